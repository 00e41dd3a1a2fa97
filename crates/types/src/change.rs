//! Effects of a column's type change on existing values.

use crate::{ColumnDef, DataType, NestedType};

/// Whether every value of the type is a value of the other with the same representation, so nothing has to be rewritten. Fields
/// that values of nested types lack are NULL ([`crate::widen`]).
#[must_use]
pub fn keeps_values(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::DateTime { scale: from }, DataType::DateTime { scale: to }) => from <= to,
        (DataType::Char { bytes: from }, DataType::Char { bytes: to } | DataType::Varchar { bytes: to })
        | (DataType::Varchar { bytes: from }, DataType::Varchar { bytes: to })
        | (DataType::Varbinary { bytes: from }, DataType::Varbinary { bytes: to }) => from <= to,
        (DataType::Char { .. } | DataType::Varchar { .. } | DataType::Json, DataType::String) => true,
        (DataType::Nested(_), DataType::Nested(_)) => grows(*from, *to),
        (from, to) => from == to,
    }
}

/// Whether a type changed only as light schema changes allow: longer VARCHARs and VARBINARYs, and additional fields at the end of STRUCTs, also
/// within other types.
#[must_use]
pub fn grows(from: DataType, to: DataType) -> bool {
    match (from, to) {
        (DataType::Varchar { bytes: from }, DataType::Varchar { bytes: to })
        | (DataType::Varbinary { bytes: from }, DataType::Varbinary { bytes: to }) => from <= to,
        (DataType::Nested(from), DataType::Nested(to)) => match (from.kept(), to.kept()) {
            (NestedType::Array(from), NestedType::Array(to)) => grows(*from, *to),
            (NestedType::Map(from_key, from), NestedType::Map(to_key, to)) => {
                grows(*from_key, *to_key) && grows(*from, *to)
            }
            (NestedType::Struct(from), NestedType::Struct(to)) => {
                let mut both = from.iter().zip(to);
                from.len() <= to.len()
                    && both.all(|(from, to)| from.name == to.name && grows(from.data_type, to.data_type))
            }
            _ => false,
        },
        (from, to) => from == to,
    }
}

/// Whether values of the column, as the other has them, are in the same order as before, and no two become one.
#[must_use]
pub fn keeps_order(from: &ColumnDef, to: &ColumnDef) -> bool {
    let is_integer = |of: &DataType| {
        matches!(
            of,
            DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt | DataType::LargeInt
        )
    };
    keeps_values(&from.data_type, &to.data_type)
        || match (&from.data_type, &to.data_type) {
            (from, to) if is_integer(from) && is_integer(to) => true,
            (DataType::Decimal { scale: from, .. }, DataType::Decimal { scale: to, .. }) => from <= to,
            (DataType::Date, DataType::DateTime { .. }) => true,
            _ => false,
        }
}

/// Whether different values of the column stay different as the other has them.
#[must_use]
pub fn keeps_apart(from: &ColumnDef, to: &ColumnDef) -> bool {
    let is_integer = matches!(
        from.data_type,
        DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt | DataType::LargeInt
    );
    keeps_order(from, to)
        || match (&from.data_type, &to.data_type) {
            (_, DataType::Varchar { .. } | DataType::String) => true,
            // 20240101 is one day, but so is 240101.
            (_, DataType::Date | DataType::DateTime { .. }) => false,
            _ => is_integer,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nested, StructField};

    #[test]
    fn longer_texts_and_finer_times_stay_as_they_are() {
        let varchar = |bytes| DataType::Varchar { bytes };
        assert!(keeps_values(&varchar(4), &varchar(8)));
        assert!(!keeps_values(&varchar(8), &varchar(4)));
        let varbinary = |bytes| DataType::Varbinary { bytes };
        assert!(keeps_values(&varbinary(4), &varbinary(8)) && grows(varbinary(4), varbinary(8)));
        assert!(!keeps_values(&varbinary(8), &varbinary(4)) && !keeps_values(&varbinary(4), &varchar(8)));
        assert!(keeps_values(&DataType::Char { bytes: 3 }, &DataType::String));
        assert!(!keeps_values(&DataType::String, &DataType::Json), "each must be a document");
        assert!(keeps_values(&DataType::DateTime { scale: 0 }, &DataType::DateTime { scale: 6 }));
        assert!(!keeps_values(&DataType::DateTime { scale: 6 }, &DataType::DateTime { scale: 0 }));
        assert!(!keeps_values(&DataType::Int, &DataType::BigInt));
    }

    #[test]
    fn nested_types_grow_by_fields_at_the_end_and_longer_texts() {
        let of = |fields: &[(&str, DataType)]| {
            let field = |(name, data_type): &(&str, DataType)| StructField {
                name: (*name).to_owned(),
                data_type: *data_type,
            };
            DataType::array(DataType::Nested(Nested::new(NestedType::Struct(
                fields.iter().map(field).collect(),
            ))))
        };
        let text = |bytes| DataType::map(DataType::Varchar { bytes }, DataType::Int);
        let small = of(&[("a", DataType::Int), ("b", text(4))]);
        let grown = of(&[("a", DataType::Int), ("b", text(5)), ("c", DataType::Date)]);
        assert!(grows(small, grown) && keeps_values(&small, &grown));
        assert!(!grows(grown, small));
        assert!(!grows(small, of(&[("a", DataType::Int), ("x", text(4))])), "another name");
        assert!(!grows(small, of(&[("b", text(4)), ("a", DataType::Int)])), "another order");
        assert!(!grows(small, of(&[("a", DataType::BigInt), ("b", text(4))])));
        assert!(!grows(DataType::array(DataType::Int), DataType::map(DataType::Int, DataType::Int)));
    }

    #[test]
    fn integers_keep_their_order_as_wider_ones_and_not_as_texts() {
        let column = |data_type| ColumnDef::new(1, "a", data_type);
        let text = column(DataType::Varchar { bytes: 20 });
        assert!(keeps_order(&column(DataType::Int), &column(DataType::LargeInt)));
        assert!(!keeps_order(&column(DataType::Int), &text));
        assert!(keeps_apart(&column(DataType::Int), &text));
        assert!(!keeps_apart(&text, &column(DataType::Int)), "'1' and '01'");
        assert!(!keeps_apart(&column(DataType::DateTime { scale: 0 }), &column(DataType::Date)));
    }
}

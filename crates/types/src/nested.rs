//! Types whose values consist of values: ARRAY, MAP and STRUCT.
//!
//! A type is copied with every column that is looked at, so the components of a nested type are interned for the life of the
//! process: there are only as many as tables and statements name, and each takes some hundred bytes.

use crate::data_type::DataType;
use arrow::datatypes::{DataType as ArrowType, Field, Fields};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// How deep types may be in one another, as in Doris.
pub const NESTING_MAX: usize = 9;

/// The components of a nested type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NestedType {
    /// Values of one type in an order; each may be NULL.
    Array(DataType),
    /// Keys, which are not NULL and differ, and their values, which may be NULL.
    Map(DataType, DataType),
    /// A value for each field; each may be NULL.
    Struct(Vec<StructField>),
}

/// A field of a STRUCT.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StructField {
    /// The name as declared; names are compared without regard to case.
    pub name: String,
    pub data_type: DataType,
}

/// An interned [`NestedType`]; equal if its components are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nested(&'static NestedType);

static KEPT: LazyLock<Mutex<HashSet<&'static NestedType>>> = LazyLock::new(Mutex::default);

impl Nested {
    /// Interns a nested type.
    #[must_use]
    pub fn new(nested: NestedType) -> Self {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&nested) {
            return Self(known);
        }
        let new: &'static NestedType = Box::leak(Box::new(nested));
        kept.insert(new);
        Self(new)
    }

    /// The components.
    #[must_use]
    pub const fn kept(self) -> &'static NestedType {
        self.0
    }

    /// `ARRAY`, `MAP` or `STRUCT`.
    #[must_use]
    pub const fn base_name(self) -> &'static str {
        match self.0 {
            NestedType::Array(_) => "ARRAY",
            NestedType::Map(..) => "MAP",
            NestedType::Struct(_) => "STRUCT",
        }
    }

    /// How deep it is: 1 if it consists of values that do not consist of values.
    #[must_use]
    pub fn depth(self) -> usize {
        1 + self.parts().map(DataType::depth).max().unwrap_or(0)
    }

    /// The types that it consists of.
    pub fn parts(self) -> impl Iterator<Item = DataType> {
        let (types, fields) = match self.0 {
            NestedType::Array(item) => ([Some(*item), None], &[][..]),
            NestedType::Map(key, value) => ([Some(*key), Some(*value)], &[][..]),
            NestedType::Struct(fields) => ([None, None], &fields[..]),
        };
        types.into_iter().flatten().chain(fields.iter().map(|field| field.data_type))
    }

    /// The Arrow type of values; inner names are Arrow's own for lists and maps.
    #[must_use]
    pub fn to_arrow(self) -> ArrowType {
        match self.0 {
            NestedType::Array(item) => {
                ArrowType::List(Arc::new(Field::new_list_field(item.to_arrow(), true)))
            }
            NestedType::Map(key, value) => {
                let pair = Fields::from(vec![
                    Field::new("key", key.to_arrow(), false),
                    Field::new("value", value.to_arrow(), true),
                ]);
                ArrowType::Map(Arc::new(Field::new("entries", ArrowType::Struct(pair), false)), false)
            }
            NestedType::Struct(fields) => {
                let field = |field: &StructField| Field::new(&field.name, field.data_type.to_arrow(), true);
                ArrowType::Struct(fields.iter().map(field).collect())
            }
        }
    }
}

impl Deref for Nested {
    type Target = NestedType;

    fn deref(&self) -> &NestedType {
        self.0
    }
}

/// The type as `SHOW CREATE TABLE` and `DESC` print it.
impl fmt::Display for Nested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NestedType::Array(item) => write!(f, "array<{item}>"),
            NestedType::Map(key, value) => write!(f, "map<{key},{value}>"),
            NestedType::Struct(fields) => {
                f.write_str("struct<")?;
                for (at, field) in fields.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{}:{}", field.name, field.data_type)?;
                }
                f.write_str(">")
            }
        }
    }
}

impl Serialize for Nested {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Nested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NestedType::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deep() -> DataType {
        let pairs = DataType::map(DataType::Varchar { bytes: 9 }, DataType::array(DataType::Int));
        let fields = vec![
            StructField { name: "f".to_owned(), data_type: DataType::DateTime { scale: 3 } },
            StructField { name: "G".to_owned(), data_type: pairs },
        ];
        DataType::array(DataType::Nested(Nested::new(NestedType::Struct(fields))))
    }

    #[test]
    fn a_nested_type_is_printed_with_all_that_it_consists_of() {
        let text = "array<struct<f:datetime(3),G:map<varchar(9),array<int>>>>";
        assert_eq!(deep().to_string(), text);
        assert_eq!(deep().depth(), 4);
        assert!(deep() != DataType::array(DataType::Int) && DataType::Int.depth() == 0);
    }

    #[test]
    fn equal_types_are_kept_once() {
        let (DataType::Nested(one), DataType::Nested(other)) = (deep(), deep()) else { unreachable!() };
        assert!(std::ptr::eq(one.0, other.0));
    }
}

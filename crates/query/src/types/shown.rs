//! The type in which a client, DESC or a new table gets values.

use super::kind::{DATETIME, is_address};
use super::metadata::declared_type;
use arrow::datatypes::{DataType as ArrowType, Field};
use std::sync::Arc;
use tributary_types::data_type::VARBINARY_BYTES_MAX;
use tributary_types::{DataType, Nested, NestedType, StructField};

/// The type that a column of `data_type` has in a result.
#[must_use]
pub fn result_type(data_type: &ArrowType) -> ArrowType {
    match data_type {
        ArrowType::UInt8 => ArrowType::Int16,
        ArrowType::UInt16 => ArrowType::Int32,
        address if is_address(address) => ArrowType::Utf8,
        ArrowType::Float16 => ArrowType::Float32,
        ArrowType::Date64 => ArrowType::Date32,
        ArrowType::Timestamp(..) => DATETIME,
        ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => ArrowType::Binary,
        ArrowType::Boolean
        | ArrowType::Int8
        | ArrowType::Int16
        | ArrowType::Int32
        | ArrowType::Int64
        | ArrowType::UInt64
        | ArrowType::Float32
        | ArrowType::Float64
        | ArrowType::Decimal128(..)
        | ArrowType::Date32
        | ArrowType::Binary => data_type.clone(),
        ArrowType::Decimal256(_, scale) => ArrowType::Decimal128(38, *scale),
        ArrowType::Dictionary(_, values) => result_type(values),
        _ => ArrowType::Utf8,
    }
}

/// A field's type as DESC shows it: the declared one of a column, else the one that a table would need for it.
#[must_use]
pub fn type_text(field: &Field) -> String {
    let data_type = declared_type(field).or_else(|| table_type(field.data_type()));
    data_type.map_or_else(|| nested_text(field.data_type()), |data_type| data_type.to_string())
}

/// The type that a column of a table needs for values of a type; `None` if no table has such.
#[must_use]
pub fn table_type(data_type: &ArrowType) -> Option<DataType> {
    let part = |field: &Field| table_type(&result_type(field.data_type()));
    Some(match data_type {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::TinyInt,
        ArrowType::Int16 => DataType::SmallInt,
        ArrowType::Int32 => DataType::Int,
        ArrowType::Int64 => DataType::BigInt,
        ArrowType::Float32 => DataType::Float,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal128(precision, scale) => {
            DataType::Decimal { precision: *precision, scale: u8::try_from(*scale).ok()? }
        }
        ArrowType::Date32 => DataType::Date,
        ArrowType::Timestamp(..) => DataType::DateTime { scale: 6 },
        ArrowType::Utf8 => DataType::String,
        ArrowType::Binary => DataType::Varbinary { bytes: VARBINARY_BYTES_MAX },
        ArrowType::List(item) => DataType::array(part(item)?),
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(pair) if pair.len() == 2 => DataType::map(part(&pair[0])?, part(&pair[1])?),
            _ => return None,
        },
        ArrowType::Struct(fields) => {
            let field = |field: &Arc<Field>| {
                Some(StructField { name: field.name().clone(), data_type: part(field)? })
            };
            let fields = fields.iter().map(field).collect::<Option<Vec<_>>>()?;
            DataType::Nested(Nested::new(NestedType::Struct(fields)))
        }
        _ => return None,
    })
}

/// A type of values that consist of values, as Doris writes it.
fn nested_text(data_type: &ArrowType) -> String {
    let inner = |field: &Field| type_text(field);
    match data_type {
        ArrowType::List(item) | ArrowType::LargeList(item) | ArrowType::FixedSizeList(item, _) => {
            format!("array<{}>", inner(item))
        }
        ArrowType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{}:{}", field.name(), inner(field))).collect();
            format!("struct<{}>", fields.join(","))
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(pair) if pair.len() == 2 => {
                format!("map<{},{}>", inner(&pair[0]), inner(&pair[1]))
            }
            _ => "map".to_owned(),
        },
        other => other.to_string().to_lowercase(),
    }
}

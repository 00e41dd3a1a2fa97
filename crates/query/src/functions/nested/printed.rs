//! The text of arrays, maps and structs, as Doris prints it: `[1, null, "a"]`, `{"a":1, "b":2}`.

use crate::functions::conversion::convert;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use std::sync::Arc;
use tributary_types::{DataType as Declared, NestedType};

/// A nested column whose leaves are texts already.
enum Shown {
    Leaf { texts: StringArray, quoted: bool },
    List { items: Box<Shown>, of: arrow::array::ListArray },
    Map { keys: Box<Shown>, values: Box<Shown>, of: arrow::array::MapArray },
    Struct { fields: Vec<(String, Shown)>, of: arrow::array::StructArray },
}

/// How texts within are quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// As Doris shows them: they stay as they are, whatever they have.
    Plain,
    /// As in JSON, so that loads read them as they were.
    Json,
}

/// The texts of a column of arrays, maps or structs. Texts, dates and times within are quoted, NULLs are `null`,
/// booleans 1 and 0.
///
/// `declared` says how many digits of a second there are within, if that is known.
pub fn to_text(array: &ArrayRef, quoting: Quoting, declared: Option<Declared>) -> Result<ArrayRef> {
    let shown = Shown::of(array, declared)?;
    let texts = (0..array.len()).map(|row| {
        array.is_valid(row).then(|| {
            let mut out = String::new();
            shown.write(&mut out, row, quoting);
            out
        })
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

impl Shown {
    fn of(array: &ArrayRef, declared: Option<Declared>) -> Result<Self> {
        let parts = declared.and_then(|declared| match declared {
            Declared::Nested(nested) => Some(nested.kept()),
            _ => None,
        });
        Ok(match array.data_type() {
            DataType::List(_) => {
                let of = array.as_list::<i32>().clone();
                let element = match parts {
                    Some(NestedType::Array(element)) => Some(*element),
                    _ => None,
                };
                Self::List { items: Box::new(Self::of(of.values(), element)?), of }
            }
            DataType::LargeList(field) | DataType::FixedSizeList(field, _) | DataType::ListView(field) => {
                Self::of(&convert::safe_cast(array, &DataType::List(Arc::clone(field)))?, declared)?
            }
            DataType::Map(..) => {
                let of = array.as_map().clone();
                let (key, value) = match parts {
                    Some(NestedType::Map(key, value)) => (Some(*key), Some(*value)),
                    _ => (None, None),
                };
                let (keys, values) = (Self::of(of.keys(), key)?, Self::of(of.values(), value)?);
                Self::Map { keys: Box::new(keys), values: Box::new(values), of }
            }
            DataType::Struct(fields) => {
                let of = array.as_struct().clone();
                let fields = fields
                    .iter()
                    .zip(of.columns())
                    .enumerate()
                    .map(|(at, (field, column))| {
                        let declared = match parts {
                            Some(NestedType::Struct(fields)) => fields.get(at).map(|field| field.data_type),
                            _ => None,
                        };
                        Ok((field.name().clone(), Self::of(column, declared)?))
                    })
                    .collect::<Result<_>>()?;
                Self::Struct { fields, of }
            }
            data_type => {
                let is_number = data_type.is_numeric() && !crate::types::kind::is_address(data_type);
                let quoted = !(is_number || *data_type == DataType::Boolean);
                let texts = match declared {
                    Some(declared) => convert::to_text_of(array, declared)?,
                    None => convert::to_text(array)?,
                };
                Self::Leaf { texts: texts.as_string::<i32>().clone(), quoted }
            }
        })
    }

    fn write(&self, out: &mut String, row: usize, quoting: Quoting) {
        match self {
            Self::Leaf { texts, .. } if texts.is_null(row) => out.push_str("null"),
            Self::Leaf { texts, quoted: true } if quoting == Quoting::Json => {
                out.push_str(&serde_json::Value::from(texts.value(row)).to_string());
            }
            Self::Leaf { texts, quoted: true } => {
                out.push('"');
                out.push_str(texts.value(row));
                out.push('"');
            }
            Self::Leaf { texts, quoted: false } => out.push_str(texts.value(row)),
            Self::List { of, .. } if of.is_null(row) => out.push_str("null"),
            Self::List { items, of } => {
                out.push('[');
                for (at, item) in range(of.value_offsets(), row).enumerate() {
                    comma(out, at);
                    items.write(out, item, quoting);
                }
                out.push(']');
            }
            Self::Map { of, .. } if of.is_null(row) => out.push_str("null"),
            Self::Map { keys, values, of } => {
                out.push('{');
                for (at, entry) in range(of.value_offsets(), row).enumerate() {
                    comma(out, at);
                    keys.write(out, entry, quoting);
                    out.push(':');
                    values.write(out, entry, quoting);
                }
                out.push('}');
            }
            Self::Struct { of, .. } if of.is_null(row) => out.push_str("null"),
            Self::Struct { fields, .. } => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    comma(out, at);
                    out.push('"');
                    out.push_str(name);
                    out.push_str("\":");
                    value.write(out, row, quoting);
                }
                out.push('}');
            }
        }
    }
}

fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

fn comma(out: &mut String, at: usize) {
    if at > 0 {
        out.push_str(", ");
    }
}

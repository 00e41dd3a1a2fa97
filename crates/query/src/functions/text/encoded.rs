//! Base64 and checksums of texts.

use crate::functions::{MySqlFunction, Param, growth};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array};
use arrow::datatypes::DataType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datafusion::common::Result;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Text};
    vec![
        MySqlFunction::new("to_base64", &[Any], crate::functions::utf8, |args| to_base64(&args[0])),
        MySqlFunction::new(
            "from_base64",
            &[Text],
            || DataType::Binary,
            |args| {
                // NULL for other texts.
                let values = args[0].as_string::<i32>().iter().map(|text| STANDARD.decode(text?).ok());
                Ok(Arc::new(values.collect::<BinaryArray>()))
            },
        ),
        MySqlFunction::new("crc32", &[Any], crate::functions::int64, |args| {
            let sums = bytes_of(&args[0])?;
            let sums = sums
                .as_binary::<i32>()
                .iter()
                .map(|bytes| bytes.map(|bytes| i64::from(crc32fast::hash(bytes))));
            Ok(Arc::new(sums.collect::<Int64Array>()))
        }),
    ]
}

/// The bytes of texts, or of the texts of other values.
pub(super) fn bytes_of(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Binary => Ok(Arc::clone(array)),
        _ => {
            let texts = crate::functions::conversion::convert::to_text(array)?;
            crate::functions::conversion::convert::safe_cast(&texts, &DataType::Binary)
        }
    }
}

fn to_base64(array: &ArrayRef) -> Result<ArrayRef> {
    let bytes = bytes_of(array)?;
    let bytes = bytes.as_binary::<i32>();
    let of = |row| Ok(bytes.is_valid(row).then(|| STANDARD.encode(bytes.value(row))));
    growth::texts("to_base64", std::slice::from_ref(array), of)
}

//! Lenient conversions: MySQL's meaning of a number next to a text.
//!
//! Texts are read as loads read them (`tributary_types::number`, `decimal` and `moment`). Text that is not a number, or not a
//! date, becomes NULL (as in Doris; MySQL would use 0). The conversions are functions too
//! (`__text`, `__numeric`, …) so that a rewrite can request one before types are known; they vanish if the type fits.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::dates::datetime;
use crate::functions::keeping;
use crate::functions::nested::printed::Quoting;
use crate::types::kind::{DATETIME, is_bytes, is_text};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, exec_datafusion_err};
use std::sync::Arc;
use tributary_types::{DataType as Declared, number, text};

/// Conversions of one argument that are nothing when the argument has the type.
pub const NAMES: [&str; 10] = [
    "__text",
    "__text_or_bytes",
    "__bytes",
    "__numeric",
    "__truth",
    "__boolean",
    "__datetime",
    "__date",
    "__integer",
    "__double",
];

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Bytes, DateTime, Int, Real, Text};
    vec![
        MySqlFunction::new("__text_or_bytes", &[Bytes], crate::functions::utf8, |args| {
            Ok(Arc::clone(&args[0]))
        })
        .returning(text_or_bytes),
        MySqlFunction::new(
            "__bytes",
            &[Bytes],
            || DataType::Binary,
            |args| safe_cast(&args[0], &DataType::Binary),
        ),
        MySqlFunction::new("__text", &[Text], crate::functions::utf8, |args| Ok(Arc::clone(&args[0]))),
        MySqlFunction::new("__integer", &[Int], crate::functions::int64, |args| Ok(Arc::clone(&args[0]))),
        MySqlFunction::new("__double", &[Real], crate::functions::float64, |args| Ok(Arc::clone(&args[0]))),
        MySqlFunction::new("__datetime", &[DateTime], crate::functions::datetime_type, |args| {
            Ok(Arc::clone(&args[0]))
        }),
        MySqlFunction::new("__date", &[DateTime], crate::functions::date32, |args| {
            safe_cast(&args[0], &DataType::Date32)
        }),
        // The value without the metadata of its column.
        MySqlFunction::new("__plain", &[Any], crate::functions::utf8, |args| Ok(Arc::clone(&args[0])))
            .returning(|types| types[0].clone()),
        // The value, of which the planner does not know that it is that of a column.
        MySqlFunction::new("__opaque", &[Any], crate::functions::utf8, |args| Ok(Arc::clone(&args[0])))
            .returning(|types| types[0].clone())
            .keeping(keeping::first),
        MySqlFunction::new("__truth", &[Any], crate::functions::boolean, |args| to_truth(&args[0])),
        MySqlFunction::new("__boolean", &[Any], crate::functions::boolean, |args| to_boolean(&args[0])),
        // A text next to a BOOLEAN.
        MySqlFunction::new("__flag", &[Text], crate::functions::float64, |args| Ok(to_flag(&args[0]))),
        MySqlFunction::new("__numeric", &[Any], crate::functions::float64, |args| to_numeric(&args[0]))
            .returning(|types| numeric_type(&types[0])),
        MySqlFunction::new("__finite", &[Real], crate::functions::float64, |args| Ok(finite(&args[0]))),
        MySqlFunction::new("__char", &[Text, Int], crate::functions::utf8, |args| cut(&args[0], &args[1])),
    ]
}

/// `array` in the form that `param` requires.
pub fn to_param(array: &ArrayRef, param: Param) -> Result<ArrayRef> {
    match param {
        Param::Any => Ok(Arc::clone(array)),
        Param::Json => crate::functions::json::made::to_documents(array, None),
        Param::Text => to_text(array),
        Param::Bytes if is_bytes(array.data_type()) => safe_cast(array, &DataType::Binary),
        Param::Bytes => to_text(array),
        Param::Int => to_integer(array),
        Param::Real => to_real(array),
        Param::DateTime => to_datetime(array),
    }
}

/// Bytes if one of the arguments is, else text.
pub fn text_or_bytes(types: &[DataType]) -> DataType {
    if types.iter().any(is_bytes) { DataType::Binary } else { DataType::Utf8 }
}

/// Converts with arrow's casts; values that do not fit become NULL.
pub fn safe_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: true, ..CastOptions::default() };
    Ok(cast_with_options(array, to, &options)?)
}

/// Text as the MySQL text protocol would show the value.
pub fn to_text(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Utf8 => Ok(Arc::clone(array)),
        DataType::Float32 => {
            let values = array.as_primitive::<arrow::datatypes::Float32Type>();
            Ok(Arc::new(values.iter().map(|value| value.map(text::float)).collect::<StringArray>()))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Ok(Arc::new(values.iter().map(|value| value.map(text::float)).collect::<StringArray>()))
        }
        DataType::Boolean => {
            let values = array.as_boolean();
            let text = values.iter().map(|value| value.map(|value| if value { "1" } else { "0" }));
            Ok(Arc::new(text.collect::<StringArray>()))
        }
        DataType::Timestamp(..) => {
            let micros = safe_cast(array, &DATETIME)?;
            let values = micros.as_primitive::<TimestampMicrosecondType>();
            Ok(Arc::new(values.iter().map(|value| value.map(datetime::to_text)).collect::<StringArray>()))
        }
        data_type if crate::types::kind::is_address(data_type) => {
            Ok(crate::functions::system::address::texts(array).expect("addresses have texts"))
        }
        data_type if data_type.is_nested() => {
            crate::functions::nested::printed::to_text(array, Quoting::Plain, None)
        }
        DataType::Binary => bytes_as_text(array),
        _ => safe_cast(array, &DataType::Utf8),
    }
}

/// Text as [`to_text`], with the digits of a second that values of this type have.
pub fn to_text_of(array: &ArrayRef, known: Declared) -> Result<ArrayRef> {
    match known {
        Declared::DateTime { scale } if matches!(array.data_type(), DataType::Timestamp(..)) => {
            datetime_text(array, scale)
        }
        known if array.data_type().is_nested() => {
            crate::functions::nested::printed::to_text(array, Quoting::Plain, Some(known))
        }
        _ => to_text(array),
    }
}

/// The text at a row of an array of texts.
#[must_use]
pub fn text_at(array: &ArrayRef, row: usize) -> Option<&str> {
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(array.as_string_view().value(row)),
        _ => None,
    }
}

/// DATETIMEs as text with that many digits of a second.
pub fn datetime_text(array: &ArrayRef, digits: u8) -> Result<ArrayRef> {
    let micros = safe_cast(array, &DATETIME)?;
    let values = micros.as_primitive::<TimestampMicrosecondType>();
    let text = values.iter().map(|value| value.map(|value| datetime::to_text_of(value, digits)));
    Ok(Arc::new(text.collect::<StringArray>()))
}

/// Bytes as UTF-8 text. Invalid bytes are an error: a NULL in their place would be a wrong answer.
fn bytes_as_text(array: &ArrayRef) -> Result<ArrayRef> {
    let text = |bytes: &[u8]| {
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| {
            exec_datafusion_err!("the bytes are no UTF-8, so they are no text; HEX shows what they are")
        })
    };
    let values = array.as_binary::<i32>().iter().map(|bytes| bytes.map(text).transpose());
    Ok(Arc::new(values.collect::<Result<StringArray>>()?))
}

/// 64-bit integers; fractions are cut, as Doris's CAST does.
pub fn to_integer(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        data_type if is_text(data_type) => {
            let text = safe_cast(array, &DataType::Utf8)?;
            let values = text.as_string::<i32>().iter().map(|text| number::int(text?.as_bytes()));
            Ok(Arc::new(values.collect::<Int64Array>()))
        }
        DataType::Timestamp(..) | DataType::Date32 => {
            let text = to_text(array)?;
            let digits = |text: &str| {
                let kept: String = text.chars().take(19).filter(char::is_ascii_digit).collect();
                kept.parse().ok()
            };
            Ok(Arc::new(text.as_string::<i32>().iter().map(|v| v.and_then(digits)).collect::<Int64Array>()))
        }
        _ => safe_cast(array, &DataType::Int64),
    }
}

/// 64-bit floats.
pub fn to_real(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        data_type if is_text(data_type) => {
            let text = safe_cast(array, &DataType::Utf8)?;
            let values = text.as_string::<i32>().iter().map(|text| real_of(text?));
            Ok(Arc::new(values.collect::<Float64Array>()))
        }
        DataType::Timestamp(..) | DataType::Date32 => safe_cast(&to_integer(array)?, &DataType::Float64),
        _ => safe_cast(array, &DataType::Float64),
    }
}

fn real_of(text: &str) -> Option<f64> {
    number::double(text.as_bytes(), false)
}

/// Microseconds without a zone; numbers are read as their digits (`20240131`).
pub fn to_datetime(array: &ArrayRef) -> Result<ArrayRef> {
    let parse_text = |text: &ArrayRef| -> ArrayRef {
        let values = text.as_string::<i32>().iter().map(|value| value.and_then(datetime::parse));
        Arc::new(values.collect::<arrow::array::TimestampMicrosecondArray>())
    };
    match array.data_type() {
        data_type if is_text(data_type) => Ok(parse_text(&safe_cast(array, &DataType::Utf8)?)),
        data_type if data_type.is_integer() => Ok(parse_text(&safe_cast(array, &DataType::Utf8)?)),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            let micros = days.iter().map(|day| day.map(|day| i64::from(day) * datetime::DAY_MICROS));
            Ok(Arc::new(micros.collect::<arrow::array::TimestampMicrosecondArray>()))
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => Ok(Arc::clone(array)),
        // As the whole number that they are; a count of days or seconds since 1970 they are not.
        data_type if data_type.is_floating() || matches!(data_type, DataType::Decimal128(..)) => {
            to_datetime(&to_integer(array)?)
        }
        _ => safe_cast(array, &DATETIME),
    }
}

/// Whether a condition that is this value counts as true: numbers other than 0, text that is such a number or a true BOOLEAN.
pub fn to_truth(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Boolean => Ok(Arc::clone(array)),
        data_type if is_text(data_type) => {
            let text = safe_cast(array, &DataType::Utf8)?;
            let truth = text.as_string::<i32>().iter().map(|value| value.and_then(truth_of));
            Ok(Arc::new(truth.collect::<BooleanArray>()))
        }
        _ => {
            let values = to_real(array)?;
            let truth =
                values.as_primitive::<Float64Type>().iter().map(|value| value.map(|value| value != 0.0));
            Ok(Arc::new(truth.collect::<BooleanArray>()))
        }
    }
}

fn truth_of(text: &str) -> Option<bool> {
    number::boolean(text.as_bytes()).or_else(|| real_of(text).map(|value| value != 0.0))
}

/// BOOLEANs: of a text the one that a load reads, of a number whether it is not 0.
pub fn to_boolean(array: &ArrayRef) -> Result<ArrayRef> {
    if !is_text(array.data_type()) {
        return to_truth(array);
    }
    let text = safe_cast(array, &DataType::Utf8)?;
    let values = text.as_string::<i32>().iter().map(|text| number::boolean(text?.as_bytes()));
    Ok(Arc::new(values.collect::<BooleanArray>()))
}

/// The number that a text next to a BOOLEAN is: 1 or 0 if it is one itself.
fn to_flag(text: &ArrayRef) -> ArrayRef {
    let flag = |text: &str| number::boolean(text.as_bytes()).map(|value| f64::from(u8::from(value)));
    let values = text.as_string::<i32>().iter().map(|text| flag(text?).or_else(|| real_of(text?)));
    Arc::new(values.collect::<Float64Array>())
}

/// The numeric type that a value of `data_type` calculates with.
#[must_use]
pub fn numeric_type(data_type: &DataType) -> DataType {
    match data_type {
        data_type if data_type.is_integer() || data_type.is_floating() => data_type.clone(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => data_type.clone(),
        DataType::Boolean => DataType::Int64,
        DataType::Date32 | DataType::Timestamp(..) => DataType::Int64,
        _ => DataType::Float64,
    }
}

/// `array` in its [`numeric_type`].
pub fn to_numeric(array: &ArrayRef) -> Result<ArrayRef> {
    match numeric_type(array.data_type()) {
        DataType::Int64 => to_integer(array),
        DataType::Float64 => to_real(array),
        _ => Ok(Arc::clone(array)),
    }
}

/// The first characters of a text: `CAST(x AS CHAR(n))`.
fn cut(text: &ArrayRef, lengths: &ArrayRef) -> Result<ArrayRef> {
    let lengths = lengths.as_primitive::<Int64Type>();
    let values = text.as_string::<i32>().iter().zip(lengths.iter()).map(|(text, length)| {
        let (text, length) = (text?, usize::try_from(length?).ok()?);
        Some(text.char_indices().nth(length).map_or(text, |(at, _)| &text[..at]))
    });
    Ok(Arc::new(values.collect::<StringArray>()))
}

/// NULL instead of infinities and NaN.
fn finite(values: &ArrayRef) -> ArrayRef {
    let values = values.as_primitive::<Float64Type>();
    Arc::new(values.iter().map(|value| value.filter(|value| value.is_finite())).collect::<Float64Array>())
}

//! Whether a DEFAULT fits its column.

use super::refused;
use chrono::{Datelike, NaiveDate, NaiveDateTime, TimeDelta, Timelike};
use tributary_types::data_type::LARGEINT_DIGITS_MAX;
use tributary_types::{DataType, DefaultValue, Nested, NestedType, SqlError};
use tributary_types::{address, clock};

/// Checks a column's default against its type and nullability.
pub(super) fn check(
    column: &str,
    data_type: DataType,
    nullable: bool,
    default: &DefaultValue,
) -> Result<(), SqlError> {
    if let DataType::Nested(nested) = data_type {
        return check_nested(nested, column, nullable, default);
    }
    if data_type == DataType::Variant && *default != DefaultValue::Null {
        return Err(refused("Json or Variant type column default value just support null"));
    }
    match default {
        DefaultValue::Null if nullable => Ok(()),
        DefaultValue::Null => {
            Err(refused(format!("Can not set null default value to non nullable column: {column}")))
        }
        DefaultValue::Literal(text) => check_literal(text, data_type).map_err(|reason| {
            refused(format!(
                "Invalid default value for column '{column}' of type {data_type}: '{text}' {reason}"
            ))
        }),
        DefaultValue::CurrentTimestamp { scale } => check_now(column, data_type, *scale),
        DefaultValue::CurrentDate if data_type == DataType::Date => Ok(()),
        DefaultValue::CurrentDate => Err(refused(format!(
            "DEFAULT CURRENT_DATE needs type DATE, but column '{column}' is {data_type}"
        ))),
    }
}

/// NULL, and `[]` for an ARRAY; Doris's texts.
fn check_nested(
    nested: Nested,
    column: &str,
    nullable: bool,
    default: &DefaultValue,
) -> Result<(), SqlError> {
    match (&*nested, default) {
        (_, DefaultValue::Null) if nullable => Ok(()),
        (_, DefaultValue::Null) => {
            Err(refused(format!("Can not set null default value to non nullable column: {column}")))
        }
        (NestedType::Array(_), DefaultValue::Literal(text)) if text == "[]" => Ok(()),
        (NestedType::Array(_), _) => {
            Err(refused("Array type column default value only support null or '[]'"))
        }
        (NestedType::Map(..), _) => Err(refused("Map type column default value just support null")),
        (NestedType::Struct(_), _) => Err(refused("Struct type column default value just support null")),
    }
}

fn check_now(column: &str, data_type: DataType, digits: u8) -> Result<(), SqlError> {
    match data_type {
        DataType::DateTime { scale } if digits <= scale => Ok(()),
        DataType::DateTime { scale } => Err(refused(format!(
            "default value precision: {digits} is greater than type precision: {scale} of column '{column}'"
        ))),
        _ => Err(refused(format!(
            "DEFAULT CURRENT_TIMESTAMP needs type DATETIME, but column '{column}' is {data_type}"
        ))),
    }
}

/// `Err` describes the fault, to be appended to the text.
fn check_literal(text: &str, data_type: DataType) -> Result<(), String> {
    let good = match data_type {
        DataType::Boolean => ["true", "false", "1", "0"].iter().any(|word| text.eq_ignore_ascii_case(word)),
        DataType::TinyInt => text.parse::<i8>().is_ok(),
        DataType::SmallInt => text.parse::<i16>().is_ok(),
        DataType::Int => text.parse::<i32>().is_ok(),
        DataType::BigInt => text.parse::<i64>().is_ok(),
        DataType::LargeInt => {
            let has_whole = text.trim_start_matches(['-', '+']).starts_with(|ch: char| ch.is_ascii_digit());
            has_whole && fits_decimal(text, LARGEINT_DIGITS_MAX, 0)
        }
        DataType::Float => text.parse::<f32>().is_ok_and(f32::is_finite),
        DataType::Double => text.parse::<f64>().is_ok_and(f64::is_finite),
        DataType::Decimal { precision, scale } => fits_decimal(text, precision, scale),
        DataType::Date => is_date(text),
        DataType::DateTime { scale } => is_date(text) || is_datetime(text, scale),
        DataType::Time { .. } => clock::of_text(text).is_some(),
        DataType::Ipv4 => address::parse_ipv4(text).is_some(),
        DataType::Ipv6 => address::parse_ipv6(text).is_some(),
        DataType::Json => serde_json::from_str::<serde_json::Value>(text).is_ok(),
        DataType::String => true,
        // Checked before.
        DataType::Variant | DataType::Nested(_) | DataType::Bitmap | DataType::Hll => false,
        DataType::Char { bytes } | DataType::Varchar { bytes } | DataType::Varbinary { bytes } => {
            if text.len() <= bytes as usize {
                return Ok(());
            }
            return Err(format!("has {} bytes", text.len()));
        }
    };
    if good { Ok(()) } else { Err("is not a value of that type".to_owned()) }
}

/// `YYYY-MM-DD` of the calendar. (The library also takes signs, years of other lengths and blanks.)
fn is_date(text: &str) -> bool {
    has_shape(text, b"0000-00-00") && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// `YYYY-MM-DD HH:MM:SS[.fraction]`, even after rounding to `scale` digits.
fn is_datetime(text: &str, scale: u8) -> bool {
    let (seconds, fraction) = text.split_once('.').map_or((text, None), |(head, tail)| (head, Some(tail)));
    let is_shaped = has_shape(seconds, b"0000-00-00 00:00:00")
        && fraction
            .is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let half_unit = TimeDelta::nanoseconds(10i64.pow(9 - u32::from(scale.min(6))) / 2);
    // The library knows a second 60.
    let is_known = |moment: &NaiveDateTime| moment.nanosecond() < 1_000_000_000;
    is_shaped
        && NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f")
            .is_ok_and(|moment| is_known(&moment) && (moment + half_unit).year() <= 9999)
}

/// Whether `text` has digits where `shape` has them, and is the same elsewhere.
fn has_shape(text: &str, shape: &[u8]) -> bool {
    let fits = |(byte, shape): (u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == *shape };
    text.len() == shape.len() && text.bytes().zip(shape).all(fits)
}

/// A plain number whose digits fit without rounding.
fn fits_decimal(text: &str, precision: u8, scale: u8) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let whole_digits = whole.trim_start_matches('0').len();
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && whole_digits <= usize::from(precision - scale)
        && fraction.trim_end_matches('0').len() <= usize::from(scale)
}

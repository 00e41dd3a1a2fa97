//! Whether a DEFAULT fits its column.

use super::refused;
use chrono::{NaiveDate, NaiveDateTime};
use tributary_types::data_type::LARGEINT_DIGITS_MAX;
use tributary_types::{DataType, DefaultValue, SqlError};

/// Checks a column's default against its type and nullability.
pub(super) fn check(
    column: &str,
    data_type: DataType,
    nullable: bool,
    default: &DefaultValue,
) -> Result<(), SqlError> {
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

/// `Err` is what is wrong with the text, to follow it.
fn check_literal(text: &str, data_type: DataType) -> Result<(), String> {
    let good = match data_type {
        DataType::Boolean => ["true", "false", "1", "0"].iter().any(|word| text.eq_ignore_ascii_case(word)),
        DataType::TinyInt => text.parse::<i8>().is_ok(),
        DataType::SmallInt => text.parse::<i16>().is_ok(),
        DataType::Int => text.parse::<i32>().is_ok(),
        DataType::BigInt => text.parse::<i64>().is_ok(),
        DataType::LargeInt => fits_decimal(text, LARGEINT_DIGITS_MAX, 0),
        DataType::Float => text.parse::<f32>().is_ok_and(f32::is_finite),
        DataType::Double => text.parse::<f64>().is_ok_and(f64::is_finite),
        DataType::Decimal { precision, scale } => fits_decimal(text, precision, scale),
        DataType::Date => NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
        DataType::DateTime { .. } => {
            NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").is_ok()
                || NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
        }
        DataType::Json => serde_json::from_str::<serde_json::Value>(text).is_ok(),
        DataType::String => true,
        DataType::Char { bytes } | DataType::Varchar { bytes } => {
            if text.len() <= bytes as usize {
                return Ok(());
            }
            return Err(format!("has {} bytes", text.len()));
        }
    };
    if good { Ok(()) } else { Err("is not a value of that type".to_owned()) }
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

//! Texts as values of the columns that decide.

use super::refused;
use chrono::NaiveDateTime;
use tributary_types::partition::PartitionValue;
use tributary_types::{ColumnDef, DataType, SqlError};

/// The value of the column's type that a text is.
pub(super) fn parsed(text: &str, column: &ColumnDef) -> Result<PartitionValue, SqlError> {
    let integer = |min: i128, max: i128| {
        let value: Option<i128> = text.trim().parse().ok();
        value.filter(|value| (min..=max).contains(value)).map(PartitionValue::Int)
    };
    let value = match column.data_type {
        DataType::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(PartitionValue::Int(1)),
            "false" | "0" => Some(PartitionValue::Int(0)),
            _ => None,
        },
        DataType::TinyInt => integer(i8::MIN.into(), i8::MAX.into()),
        DataType::SmallInt => integer(i16::MIN.into(), i16::MAX.into()),
        DataType::Int => integer(i32::MIN.into(), i32::MAX.into()),
        DataType::BigInt => integer(i64::MIN.into(), i64::MAX.into()),
        DataType::LargeInt => integer(i128::MIN, i128::MAX),
        DataType::Date => moment(text).map(|moment| PartitionValue::Int(days(moment).into())),
        DataType::DateTime { .. } => {
            moment(text).map(|moment| PartitionValue::Int(moment.and_utc().timestamp_micros().into()))
        }
        DataType::Char { bytes } | DataType::Varchar { bytes } => {
            if text.len() > bytes as usize {
                return Err(refused(format!(
                    "Partition value {text}'s length exceeds type length: {} > {bytes} for {}",
                    text.len(),
                    column.data_type.base_name()
                )));
            }
            Some(PartitionValue::Text(text.to_owned()))
        }
        _ => None,
    };
    value.ok_or_else(|| {
        refused(format!(
            "Invalid partition value '{text}' of column '{}': it is no {}",
            column.name, column.data_type
        ))
    })
}

/// A date, or a date and a time, as loads read it. One with a zone is none: a partition is the same for all sessions.
pub(super) fn moment(text: &str) -> Option<NaiveDateTime> {
    let micros = tributary_types::moment::local_datetime(text.as_bytes(), 6)?;
    Some(chrono::DateTime::from_timestamp_micros(micros)?.naive_utc())
}

/// Days since 1970-01-01.
pub(super) fn days(moment: NaiveDateTime) -> i64 {
    moment.and_utc().timestamp().div_euclid(86_400)
}

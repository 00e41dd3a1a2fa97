//! Arrays of a load as arrays of a column, if every value fits.
//!
//! Invariant: a text that is too long for its column is not copied: its length is checked first.

use super::texts;
use crate::cells::cell::{JSON_BYTES_MAX, STRING_BYTES_MAX};
use crate::cells::convert::temporal;
use crate::rows::target::TargetColumn;
use arrow::array::{Array, ArrayRef, AsArray, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, TimeUnit, TimestampMicrosecondType,
};
use std::sync::Arc;
use tributary_types::{DataType, state};

/// Texts that take more, in bytes, are split into blocks row by row.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// `array` as an array of the column's type; `None` if a value does not fit as it is, or if whole arrays of its
/// type are not converted.
pub(super) fn whole(array: &ArrayRef, column: &TargetColumn) -> Option<ArrayRef> {
    // Limits hold within its values, too, and cells check them; they write TIMEs in one form.
    if column.data_type.is_nested() || matches!(column.data_type, DataType::Time { .. }) {
        return None;
    }
    let to = column.data_type.to_arrow();
    let nulls = array.logical_null_count();
    if nulls > 0 && !column.nullable {
        return None;
    }
    let converted = if *array.data_type() == to {
        Arc::clone(array)
    } else if column.data_type.is_text() && texts::is_text(array.data_type()) {
        texts::written(array, limit_bytes(column.data_type))?
    } else if column.data_type.is_bytes() && texts::is_text(array.data_type()) {
        texts::bytes(array, limit_bytes(column.data_type))?
    } else if is_exact(array.data_type(), column.data_type) {
        cast(array, &to).ok()?
    } else {
        return None;
    };
    let checked = match column.data_type {
        DataType::Date => {
            let fits = |days| (temporal::DAYS_MIN..=temporal::DAYS_MAX).contains(&days);
            all(converted.as_primitive::<Date32Type>().iter().flatten(), fits).then_some(converted)?
        }
        DataType::DateTime { scale } => Arc::new(rounded(converted.as_primitive(), scale)),
        DataType::Decimal { precision, .. } => {
            let decimals = converted.as_primitive::<Decimal128Type>();
            decimals.validate_decimal_precision(precision).ok()?;
            converted
        }
        DataType::LargeInt => {
            converted.as_primitive::<Decimal128Type>().validate_decimal_precision(38).ok()?;
            converted
        }
        DataType::Char { bytes } | DataType::Varchar { bytes } => {
            has_short_texts(converted.as_string(), bytes as usize).then_some(converted)?
        }
        DataType::String => has_short_texts(converted.as_string(), STRING_BYTES_MAX).then_some(converted)?,
        DataType::Varbinary { bytes } => {
            has_short(converted.as_binary::<i32>().value_offsets(), bytes as usize).then_some(converted)?
        }
        DataType::Bitmap | DataType::Hll => {
            let values = converted.as_binary::<i32>().iter().flatten();
            all(values, |bytes| state::is_value(column.data_type, bytes)).then_some(converted)?
        }
        DataType::Json | DataType::Variant => has_documents(converted.as_string()).then_some(converted)?,
        _ => converted,
    };
    // A value that did not fit became NULL.
    (checked.logical_null_count() == nulls).then_some(checked)
}

/// The longest text or value of bytes of a type, in bytes.
fn limit_bytes(data_type: DataType) -> usize {
    match data_type {
        DataType::Char { bytes } | DataType::Varchar { bytes } | DataType::Varbinary { bytes } => {
            bytes as usize
        }
        DataType::Json | DataType::Variant => JSON_BYTES_MAX,
        _ => STRING_BYTES_MAX,
    }
}

fn all<T>(values: impl Iterator<Item = T>, mut fits: impl FnMut(T) -> bool) -> bool {
    values.fold(true, |all, value| all & fits(value))
}

/// Whether Arrow converts values like cells, with NULL for values that do not fit.
fn is_exact(from: &ArrowType, to: DataType) -> bool {
    let is_integer = from.is_integer();
    match (from, to) {
        // Texts and bytes are expanded elsewhere.
        (ArrowType::Dictionary(_, values), _) if values.primitive_width().is_none() => false,
        (ArrowType::Dictionary(_, values), to) => **values == to.to_arrow() || is_exact(values, to),
        (
            _,
            DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt | DataType::LargeInt,
        ) => is_integer,
        (ArrowType::Float32, DataType::Double) => true,
        (_, DataType::Double | DataType::Decimal { .. }) if is_integer => true,
        (
            ArrowType::Decimal32(_, from) | ArrowType::Decimal64(_, from) | ArrowType::Decimal128(_, from),
            DataType::Decimal { scale, .. },
        ) => (0..=scale as i8).contains(from),
        (ArrowType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Nanosecond, None), to) => {
            matches!(to, DataType::DateTime { .. })
        }
        _ => false,
    }
}

/// Times with `scale` digits of a second; NULL for those beyond the years of a DATETIME.
fn rounded(times: &TimestampMicrosecondArray, scale: u8) -> TimestampMicrosecondArray {
    times.unary_opt::<_, TimestampMicrosecondType>(|micros| temporal::rounded(micros, scale))
}

fn has_short_texts(texts: &StringArray, limit: usize) -> bool {
    has_short(texts.value_offsets(), limit)
}

/// Whether no text or value of bytes between these offsets has more than `limit` bytes.
fn has_short(offsets: &[i32], limit: usize) -> bool {
    let bytes = (offsets[offsets.len() - 1] - offsets[0]) as usize;
    let is_short = |ends: &[i32]| (ends[1] - ends[0]) as usize <= limit;
    bytes <= limit || bytes <= TEXT_BYTES_MAX && all(offsets.windows(2), is_short)
}

fn has_documents(texts: &StringArray) -> bool {
    has_short_texts(texts, JSON_BYTES_MAX)
        && texts.iter().flatten().all(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

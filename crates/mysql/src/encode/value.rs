//! One value of one column.

use super::error::ValueError;
use super::number::{write_decimal, write_int};
use super::time::{Instant, write_binary_clock, write_date, zone_offset};
use crate::column::Column;
use crate::wire::put;
use arrow::array::{
    Array, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Date64Array, Decimal32Array,
    Decimal64Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray,
    Time32MillisecondArray, Time32SecondArray, Time64MicrosecondArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{ArrowPrimitiveType, DataType as ArrowType, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use mysql_common::constants::ColumnType;
use std::fmt::Write;
use tributary_types::calendar::Date;
use tributary_types::text::write_float;

/// How a column's values look on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Length and text: all columns of the text protocol, and text in the binary one.
    Text,
    Int {
        bytes: u8,
        unsigned: bool,
    },
    Float,
    Double,
    Date,
    DateTime,
    Time,
    /// NULL only.
    Null,
}

impl Form {
    /// The form of a column in the binary protocol.
    pub(super) fn of(column: &Column) -> Self {
        use ColumnType::*;
        let int = |bytes| Self::Int { bytes, unsigned: column.is_unsigned() };
        match column.wire_type {
            MYSQL_TYPE_TINY => int(1),
            MYSQL_TYPE_SHORT | MYSQL_TYPE_YEAR => int(2),
            MYSQL_TYPE_LONG | MYSQL_TYPE_INT24 => int(4),
            MYSQL_TYPE_LONGLONG => int(8),
            MYSQL_TYPE_FLOAT => Self::Float,
            MYSQL_TYPE_DOUBLE => Self::Double,
            MYSQL_TYPE_DATE => Self::Date,
            MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP => Self::DateTime,
            MYSQL_TYPE_TIME => Self::Time,
            MYSQL_TYPE_NULL => Self::Null,
            _ => Self::Text,
        }
    }
}

/// The values of one array, its type known.
pub(super) enum Cell<'a> {
    Null,
    Bool(&'a BooleanArray),
    Int8(&'a Int8Array),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    UInt8(&'a UInt8Array),
    UInt16(&'a UInt16Array),
    UInt32(&'a UInt32Array),
    UInt64(&'a UInt64Array),
    Float(&'a Float32Array),
    Double(&'a Float64Array),
    Decimal32(&'a Decimal32Array, i8),
    Decimal64(&'a Decimal64Array, i8),
    Decimal128(&'a Decimal128Array, i8),
    Date32(&'a Date32Array),
    Date64(&'a Date64Array),
    /// Values in units since 1970, and seconds east of Greenwich.
    Timestamp(&'a [i64], TimeUnit, i64),
    Time32(&'a [i32], TimeUnit),
    Time64(&'a [i64], TimeUnit),
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedBinary(&'a FixedSizeBinaryArray),
    /// Whatever else Arrow can print.
    Printed(ArrayFormatter<'a>),
}

impl<'a> Cell<'a> {
    pub(super) fn new(array: &'a dyn Array) -> Result<Self, ValueError> {
        Ok(match array.data_type() {
            ArrowType::Null => Self::Null,
            ArrowType::Boolean => Self::Bool(typed(array)?),
            ArrowType::Int8 => Self::Int8(typed(array)?),
            ArrowType::Int16 => Self::Int16(typed(array)?),
            ArrowType::Int32 => Self::Int32(typed(array)?),
            ArrowType::Int64 => Self::Int64(typed(array)?),
            ArrowType::UInt8 => Self::UInt8(typed(array)?),
            ArrowType::UInt16 => Self::UInt16(typed(array)?),
            ArrowType::UInt32 => Self::UInt32(typed(array)?),
            ArrowType::UInt64 => Self::UInt64(typed(array)?),
            ArrowType::Float32 => Self::Float(typed(array)?),
            ArrowType::Float64 => Self::Double(typed(array)?),
            ArrowType::Decimal32(_, scale) => Self::Decimal32(typed(array)?, *scale),
            ArrowType::Decimal64(_, scale) => Self::Decimal64(typed(array)?, *scale),
            ArrowType::Decimal128(_, scale) => Self::Decimal128(typed(array)?, *scale),
            ArrowType::Date32 => Self::Date32(typed(array)?),
            ArrowType::Date64 => Self::Date64(typed(array)?),
            ArrowType::Timestamp(unit, zone) => {
                Self::Timestamp(timestamps(array, *unit)?, *unit, zone.as_deref().map_or(0, zone_offset))
            }
            ArrowType::Time32(unit @ TimeUnit::Second) => {
                Self::Time32(values(typed::<Time32SecondArray>(array)?), *unit)
            }
            ArrowType::Time32(unit) => Self::Time32(values(typed::<Time32MillisecondArray>(array)?), *unit),
            ArrowType::Time64(unit @ TimeUnit::Microsecond) => {
                Self::Time64(values(typed::<Time64MicrosecondArray>(array)?), *unit)
            }
            ArrowType::Time64(unit) => Self::Time64(values(typed::<Time64NanosecondArray>(array)?), *unit),
            ArrowType::Utf8 => Self::Utf8(typed(array)?),
            ArrowType::LargeUtf8 => Self::LargeUtf8(typed(array)?),
            ArrowType::Utf8View => Self::Utf8View(typed(array)?),
            ArrowType::Binary => Self::Binary(typed(array)?),
            ArrowType::LargeBinary => Self::LargeBinary(typed(array)?),
            ArrowType::BinaryView => Self::BinaryView(typed(array)?),
            ArrowType::FixedSizeBinary(_) => Self::FixedBinary(typed(array)?),
            _ => Self::Printed(ArrayFormatter::try_new(array, &PRINTED)?),
        })
    }

    /// Whether values of this type can be written in that form.
    pub(super) fn can_be(&self, form: Form) -> bool {
        match form {
            Form::Text => true,
            Form::Int { .. } => self.is_null_type() || self.int(None).is_some(),
            Form::Float | Form::Double => {
                self.is_null_type()
                    || matches!(self, Self::Float(_) | Self::Double(_))
                    || self.int(None).is_some()
            }
            Form::Date | Form::DateTime => {
                matches!(self, Self::Null | Self::Date32(_) | Self::Date64(_) | Self::Timestamp(..))
            }
            Form::Time => matches!(self, Self::Null | Self::Time32(..) | Self::Time64(..) | Self::Utf8(_)),
            Form::Null => self.is_null_type(),
        }
    }

    fn is_null_type(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Appends the value of `row`, which is not NULL.
    pub(super) fn write(
        &self,
        row: usize,
        form: Form,
        fraction: Option<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        match form {
            Form::Text => return self.write_text(row, fraction, out),
            Form::Int { bytes, unsigned } => {
                let value = self.int(Some(row)).ok_or(ValueError::Type)?;
                write_fixed_int(out, value, bytes, unsigned)?;
            }
            Form::Float => out.extend_from_slice(&(self.float(row)? as f32).to_le_bytes()),
            Form::Double => out.extend_from_slice(&self.float(row)?.to_le_bytes()),
            Form::Date => self.instant(row)?.write_binary_date(out)?,
            Form::DateTime => self.instant(row)?.write_binary_datetime(out, fraction)?,
            Form::Time => match self {
                Self::Utf8(array) => write_binary_clock(array.value(row), out)?,
                _ => self.instant(row)?.write_binary_time(out, fraction),
            },
            Form::Null => return Err(ValueError::Type),
        }
        Ok(())
    }

    /// The integer in `row`; without a row, zero if this type has integers at all.
    fn int(&self, row: Option<usize>) -> Option<i128> {
        fn at<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: Option<usize>) -> i128
        where
            T::Native: Into<i128>,
        {
            row.map_or(0, |row| array.value(row).into())
        }
        Some(match self {
            Self::Bool(array) => row.map_or(0, |row| array.value(row).into()),
            Self::Int8(array) => at(array, row),
            Self::Int16(array) => at(array, row),
            Self::Int32(array) => at(array, row),
            Self::Int64(array) => at(array, row),
            Self::UInt8(array) => at(array, row),
            Self::UInt16(array) => at(array, row),
            Self::UInt32(array) => at(array, row),
            Self::UInt64(array) => at(array, row),
            _ => return None,
        })
    }

    fn float(&self, row: usize) -> Result<f64, ValueError> {
        Ok(match self {
            Self::Float(array) => array.value(row).into(),
            Self::Double(array) => array.value(row),
            _ => self.int(Some(row)).ok_or(ValueError::Type)? as f64,
        })
    }

    fn instant(&self, row: usize) -> Result<Instant, ValueError> {
        Ok(match self {
            Self::Date32(array) => Instant::from_date(array.value(row).into()),
            Self::Date64(array) => Instant::new(array.value(row), TimeUnit::Millisecond, 0),
            Self::Timestamp(values, unit, offset) => Instant::new(values[row], *unit, *offset),
            Self::Time32(values, unit) => Instant::new(values[row].into(), *unit, 0),
            Self::Time64(values, unit) => Instant::new(values[row], *unit, 0),
            _ => return Err(ValueError::Type),
        })
    }

    /// Appends the value's length and text.
    fn write_text(&self, row: usize, fraction: Option<u8>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        match self {
            Self::Null => return Err(ValueError::Type),
            Self::Bool(array) => out.extend_from_slice(if array.value(row) { b"\x011" } else { b"\x010" }),
            Self::Int8(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::Int16(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::Int32(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::Int64(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::UInt8(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::UInt16(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::UInt32(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::UInt64(array) => put::short_text(out, |out| write_int(out, array.value(row))),
            Self::Float(array) => put::short_text(out, |out| write_float(out, array.value(row))),
            Self::Double(array) => put::short_text(out, |out| write_float(out, array.value(row))),
            Self::Decimal32(array, scale) => {
                put::short_text(out, |out| write_decimal(out, array.value(row).into(), *scale));
            }
            Self::Decimal64(array, scale) => {
                put::short_text(out, |out| write_decimal(out, array.value(row).into(), *scale));
            }
            Self::Decimal128(array, scale) => {
                put::short_text(out, |out| write_decimal(out, array.value(row), *scale));
            }
            Self::Date32(array) => {
                put::short_text(out, |out| write_date(out, Date::from_days(array.value(row).into())));
            }
            Self::Date64(_) => {
                let instant = self.instant(row)?;
                put::short_text(out, |out| write_date(out, instant.date()));
            }
            Self::Timestamp(..) => {
                let instant = self.instant(row)?;
                put::short_text(out, |out| instant.write_datetime(out, fraction));
            }
            Self::Time32(..) | Self::Time64(..) => {
                let instant = self.instant(row)?;
                put::short_text(out, |out| instant.write_time(out, fraction));
            }
            Self::Utf8(array) => put::lenenc_bytes(out, array.value(row).as_bytes()),
            Self::LargeUtf8(array) => put::lenenc_bytes(out, array.value(row).as_bytes()),
            Self::Utf8View(array) => put::lenenc_bytes(out, array.value(row).as_bytes()),
            Self::Binary(array) => put::lenenc_bytes(out, array.value(row)),
            Self::LargeBinary(array) => put::lenenc_bytes(out, array.value(row)),
            Self::BinaryView(array) => put::lenenc_bytes(out, array.value(row)),
            Self::FixedBinary(array) => put::lenenc_bytes(out, array.value(row)),
            Self::Printed(formatter) => {
                let mut text = String::new();
                write!(text, "{}", formatter.value(row))?;
                put::lenenc_bytes(out, text.as_bytes());
            }
        }
        Ok(())
    }
}

/// Nested values: `NULL` inside lists, times as MySQL writes them.
const PRINTED: FormatOptions<'static> = FormatOptions::new()
    .with_display_error(false)
    .with_null("NULL")
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f"));

fn typed<T: 'static>(array: &dyn Array) -> Result<&T, ValueError> {
    array.as_any().downcast_ref().ok_or(ValueError::Type)
}

fn values<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> &[T::Native] {
    array.values()
}

fn timestamps(array: &dyn Array, unit: TimeUnit) -> Result<&[i64], ValueError> {
    Ok(match unit {
        TimeUnit::Second => values(typed::<TimestampSecondArray>(array)?),
        TimeUnit::Millisecond => values(typed::<TimestampMillisecondArray>(array)?),
        TimeUnit::Microsecond => values(typed::<TimestampMicrosecondArray>(array)?),
        TimeUnit::Nanosecond => values(typed::<TimestampNanosecondArray>(array)?),
    })
}

/// Appends an integer of `bytes` bytes.
fn write_fixed_int(out: &mut Vec<u8>, value: i128, bytes: u8, unsigned: bool) -> Result<(), ValueError> {
    let bits = u32::from(bytes) * 8;
    let (min, max) = match unsigned {
        true => (0, (1_i128 << bits) - 1),
        false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
    };
    if value < min || value > max {
        return Err(ValueError::OutOfRange { value, min, max });
    }
    out.extend_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
    Ok(())
}

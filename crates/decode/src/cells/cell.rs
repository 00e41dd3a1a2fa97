//! One value of a load on its way into a column.
//!
//! Invariant: what [`push_cell`] pushes is legal for the column's type; if it returns a [`Fault`],
//! it pushed nothing.
//!
//! Not its business: the effect of a fault on the row (see [`crate::rows::target`]).

use crate::blocks::builder::ColumnBuffer;
use crate::cells::convert::decimal::{self, DecimalFault};
use crate::cells::convert::{number, temporal};
use crate::cells::nested::{NestedCells, Rules, push_nested};
use crate::cells::reject::RejectCode;
use std::borrow::Cow;
use tributary_types::data_type::VARBINARY_BYTES_MAX;
use tributary_types::{DataType, address, clock, state};

/// The longest STRING, in bytes (Doris's `string_type_length_soft_limit_bytes`).
pub(crate) const STRING_BYTES_MAX: usize = 1024 * 1024;
/// The longest JSON document, in bytes.
pub(crate) const JSON_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A value as the load has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal {
        value: i128,
        scale: i8,
    },
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00:00.
    DateTime(i64),
    /// A number's SQL literal: digits with sign, point and exponent.
    Number(&'a [u8]),
    /// Valid UTF-8, but in a file for a column of bytes.
    Text(&'a [u8]),
    /// A JSON object or array. Valid UTF-8.
    Document(&'a [u8]),
    /// A value of Arrow's that consists of values, by its row.
    Nested(&'a NestedCells, usize),
    /// The bytes of `x'…'` or a binary value: text for text columns, a big-endian number for numbers.
    Hex(&'a [u8]),
}

/// Why a cell has no value in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Null,
    /// Not a value of the type, or a date or DOUBLE out of its range.
    Bad,
    /// An integer out of the range of its type.
    IntRange,
    DecimalRange,
    /// An integer of 128 bits with more digits than a LARGEINT stores. Never NULL instead: the value is legal.
    LargeIntRange,
    /// Longer than CHAR(n) or VARCHAR(n) allows, in bytes.
    TooLong {
        limit: usize,
        actual: usize,
    },
    /// Longer than the limit for a STRING or JSON.
    TooLongString {
        limit: usize,
        actual: usize,
    },
}

impl From<Fault> for RejectCode {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Null => Self::NullValue,
            Fault::Bad => Self::WrongValue,
            Fault::IntRange | Fault::DecimalRange | Fault::LargeIntRange => Self::OutOfRange,
            Fault::TooLong { .. } | Fault::TooLongString { .. } => Self::TooLong,
        }
    }
}

impl From<DecimalFault> for Fault {
    fn from(fault: DecimalFault) -> Self {
        match fault {
            DecimalFault::Text => Self::Bad,
            DecimalFault::Range => Self::DecimalRange,
        }
    }
}

/// Converts `cell` and pushes it. With `strict` a text too long for its CHAR or VARCHAR and a number beyond
/// the range of its FLOAT or DOUBLE are faults; without, the text is cut and the number infinite.
/// `utc_offset_seconds` is the zone that texts with a zone are converted to.
#[inline]
pub(crate) fn push_cell(
    buffer: &mut ColumnBuffer,
    data_type: DataType,
    cell: Cell<'_>,
    strict: bool,
    utc_offset_seconds: i32,
) -> Result<(), Fault> {
    if matches!(cell, Cell::Null) {
        return Err(Fault::Null);
    }
    match data_type {
        DataType::Boolean => buffer.push_fixed([u8::from(boolean(cell)?)]),
        DataType::TinyInt => buffer.push_fixed(narrow::<i8>(int(cell)?)?.to_le_bytes()),
        DataType::SmallInt => buffer.push_fixed(narrow::<i16>(int(cell)?)?.to_le_bytes()),
        DataType::Int => buffer.push_fixed(narrow::<i32>(int(cell)?)?.to_le_bytes()),
        DataType::BigInt => buffer.push_fixed(int(cell)?.to_le_bytes()),
        DataType::LargeInt => buffer.push_fixed(kept_large_int(cell)?.to_le_bytes()),
        DataType::Float => buffer.push_fixed(float(cell, strict)?.to_le_bytes()),
        DataType::Double => buffer.push_fixed(double(cell, strict)?.to_le_bytes()),
        DataType::Decimal { precision, scale } => {
            buffer.push_fixed(decimal(cell, precision, scale)?.to_le_bytes());
        }
        DataType::Date => buffer.push_fixed(date(cell, utc_offset_seconds)?.to_le_bytes()),
        DataType::DateTime { scale } => {
            buffer.push_fixed(datetime(cell, scale, utc_offset_seconds)?.to_le_bytes());
        }
        DataType::Char { bytes } | DataType::Varchar { bytes } => {
            push_limited(buffer, cell, bytes as usize, strict)?;
        }
        DataType::String => push_string(buffer, cell)?,
        DataType::Json => push_json(buffer, cell)?,
        DataType::Time { .. }
        | DataType::Variant
        | DataType::Ipv4
        | DataType::Ipv6
        | DataType::Nested(_)
        | DataType::Varbinary { .. }
        | DataType::Bitmap
        | DataType::Hll => push_uncommon(buffer, data_type, cell, Rules { strict, utc_offset_seconds })?,
    }
    Ok(())
}

/// [`push_cell`] of rare types: kept out of the function for every value, which is part of the loop of each format.
#[inline(never)]
fn push_uncommon(
    buffer: &mut ColumnBuffer,
    data_type: DataType,
    cell: Cell<'_>,
    rules: Rules,
) -> Result<(), Fault> {
    match (data_type, cell) {
        (DataType::Time { scale }, cell) => push_time(buffer, cell, scale)?,
        (DataType::Variant, cell) => push_variant(buffer, cell)?,
        (DataType::Ipv4, cell) => buffer.push_fixed(ipv4(cell)?.to_le_bytes()),
        (DataType::Ipv6, cell) => buffer.push_fixed(ipv6(cell)?),
        (DataType::Nested(nested), cell) => push_nested(buffer, nested, cell, rules)?,
        (DataType::Varbinary { bytes }, cell) => push_bytes(buffer, cell, bytes as usize, rules.strict)?,
        (DataType::Bitmap | DataType::Hll, Cell::Hex(bytes)) if state::is_value(data_type, bytes) => {
            buffer.push_text(bytes);
        }
        _ => return Err(Fault::Bad),
    }
    Ok(())
}

/// [`push_cell`] of a text: every field of a file and every quoted literal is one, so the common types are converted directly. It
/// has one caller, into which it is inlined; a second one would make it a call for every value (3 % of the time of a CSV).
#[inline]
pub(crate) fn push_text(
    buffer: &mut ColumnBuffer,
    data_type: DataType,
    text: &[u8],
    strict: bool,
    utc_offset_seconds: i32,
) -> Result<(), Fault> {
    match data_type {
        DataType::Char { bytes } | DataType::Varchar { bytes } if text.len() <= bytes as usize => {
            buffer.push_text(text);
        }
        DataType::String if text.len() <= STRING_BYTES_MAX => buffer.push_text(text),
        DataType::Date => {
            let days = temporal::date(text, utc_offset_seconds).ok_or(Fault::Bad)?;
            buffer.push_fixed(days.to_le_bytes());
        }
        DataType::DateTime { scale } => {
            let micros = temporal::datetime(text, scale, utc_offset_seconds).ok_or(Fault::Bad)?;
            buffer.push_fixed(micros.to_le_bytes());
        }
        _ => {
            if !push_digits(buffer, data_type, text) {
                return push_cell(buffer, data_type, Cell::Text(text), strict, utc_offset_seconds);
            }
        }
    }
    Ok(())
}

/// [`push_cell`] of a number's SQL literal.
#[inline]
pub(crate) fn push_number(
    buffer: &mut ColumnBuffer,
    data_type: DataType,
    literal: &[u8],
    strict: bool,
    utc_offset_seconds: i32,
) -> Result<(), Fault> {
    if push_digits(buffer, data_type, literal) {
        return Ok(());
    }
    push_cell(buffer, data_type, Cell::Number(literal), strict, utc_offset_seconds)
}

/// [`push_cell`] of an integer.
#[inline]
pub(crate) fn push_int(
    buffer: &mut ColumnBuffer,
    data_type: DataType,
    value: i64,
    strict: bool,
    utc_offset_seconds: i32,
) -> Result<(), Fault> {
    match data_type {
        DataType::TinyInt => buffer.push_fixed(narrow::<i8>(value)?.to_le_bytes()),
        DataType::SmallInt => buffer.push_fixed(narrow::<i16>(value)?.to_le_bytes()),
        DataType::Int => buffer.push_fixed(narrow::<i32>(value)?.to_le_bytes()),
        DataType::BigInt => buffer.push_fixed(value.to_le_bytes()),
        _ => return push_cell(buffer, data_type, Cell::Int(value), strict, utc_offset_seconds),
    }
    Ok(())
}

/// Pushes a text of the commonest shape to an integer or DECIMAL column; whether it was one that fits.
#[inline]
fn push_digits(buffer: &mut ColumnBuffer, data_type: DataType, text: &[u8]) -> bool {
    let plain = || number::plain_int(text);
    match data_type {
        DataType::BigInt => plain().map(|value| buffer.push_fixed(value.to_le_bytes())),
        DataType::Int => plain()
            .and_then(|value| i32::try_from(value).ok())
            .map(|value| buffer.push_fixed(value.to_le_bytes())),
        DataType::SmallInt => plain()
            .and_then(|value| i16::try_from(value).ok())
            .map(|value| buffer.push_fixed(value.to_le_bytes())),
        DataType::Decimal { precision, scale } => decimal::plain_decimal(text, scale)
            .filter(|&value| decimal::within(value, precision).is_ok())
            .map(|value| buffer.push_fixed(value.to_le_bytes())),
        _ => None,
    }
    .is_some()
}

#[inline]
fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, Fault> {
    T::try_from(value).map_err(|_| Fault::IntRange)
}

fn boolean(cell: Cell<'_>) -> Result<bool, Fault> {
    match cell {
        Cell::Bool(value) => Ok(value),
        Cell::Text(text) => number::boolean(text).ok_or(Fault::Bad),
        Cell::Date(_) | Cell::DateTime(_) => Err(Fault::Bad),
        other => double(other, true).map(|value| value != 0.0),
    }
}

#[inline]
fn int(cell: Cell<'_>) -> Result<i64, Fault> {
    match cell {
        Cell::Text(text) | Cell::Number(text) => match number::int(text) {
            Some(value) => Ok(value),
            None => int_of_other(cell),
        },
        Cell::Int(value) => Ok(value),
        other => int_of_other(other),
    }
}

fn int_of_other(cell: Cell<'_>) -> Result<i64, Fault> {
    i64::try_from(large_int(cell)?).map_err(|_| Fault::IntRange)
}

/// The LARGEINT for an integer of 128 bits.
fn kept_large_int(cell: Cell<'_>) -> Result<i128, Fault> {
    let value = large_int(cell)?;
    let is_kept = (1 - number::LARGEINT_LIMIT..number::LARGEINT_LIMIT).contains(&value);
    if is_kept { Ok(value) } else { Err(Fault::LargeIntRange) }
}

fn large_int(cell: Cell<'_>) -> Result<i128, Fault> {
    Ok(match cell {
        Cell::Bool(value) => i128::from(value),
        Cell::Int(value) => i128::from(value),
        Cell::UInt(value) => i128::from(value),
        Cell::Float(value) => truncated(f64::from(value))?,
        Cell::Double(value) => truncated(value)?,
        Cell::Decimal { value, scale } if scale <= 0 => value
            .checked_mul(decimal::pow10(u32::from(scale.unsigned_abs()).min(38)))
            .ok_or(Fault::IntRange)?,
        Cell::Decimal { value, scale } => value / decimal::pow10(u32::from(scale.unsigned_abs()).min(38)),
        Cell::Date(days) => i128::from(temporal::date_number(days.into())),
        Cell::DateTime(micros) => i128::from(temporal::datetime_number(micros)),
        Cell::Text(text) => number::large_int(text).ok_or_else(|| no_integer(text))?,
        Cell::Number(text) => match number::large_int(text) {
            Some(value) => value,
            None => large_int_of_literal(text)?,
        },
        Cell::Hex(bytes) => i128::from(big_endian(bytes)?),
        Cell::Document(_) | Cell::Nested(..) => return Err(Fault::Bad),
        Cell::Null => return Err(Fault::Null),
    })
}

/// `1e3`: legal in SQL, and not in a text for an integer column.
fn large_int_of_literal(text: &[u8]) -> Result<i128, Fault> {
    if has_exponent(text) || text.contains(&b'.') {
        return truncated(number::double(text, true).ok_or(Fault::Bad)?);
    }
    Err(no_integer(text))
}

/// The fault of a text that is no integer of 128 bits: one of more digits is out of range, and any other is none at all.
fn no_integer(text: &[u8]) -> Fault {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let is_integer = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_integer { Fault::IntRange } else { Fault::Bad }
}

fn truncated(value: f64) -> Result<i128, Fault> {
    // The first that is too large is counted in: the largest integer of 128 bits becomes it as a DOUBLE.
    let whole = value.trunc();
    match whole.abs() <= i128::MAX as f64 {
        true => Ok(whole as i128),
        false if whole.is_nan() => Err(Fault::Bad),
        false => Err(Fault::IntRange),
    }
}

fn big_endian(bytes: &[u8]) -> Result<u64, Fault> {
    if bytes.len() > 8 {
        return Err(Fault::Bad);
    }
    Ok(bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn double(cell: Cell<'_>, strict: bool) -> Result<f64, Fault> {
    match cell {
        Cell::Text(text) | Cell::Number(text) => number::double(text, strict).ok_or(Fault::Bad),
        Cell::Double(value) => Ok(value),
        Cell::Float(value) => Ok(f64::from(value)),
        Cell::Int(value) => Ok(value as f64),
        Cell::Decimal { value, scale } => {
            let text = format!("{value}e{}", -i32::from(scale));
            number::double(text.as_bytes(), strict).ok_or(Fault::Bad)
        }
        other => large_int(other).map(|value| value as f64),
    }
}

fn float(cell: Cell<'_>, strict: bool) -> Result<f32, Fault> {
    match cell {
        Cell::Text(text) | Cell::Number(text) => number::float(text, strict).ok_or(Fault::Bad),
        Cell::Float(value) => Ok(value),
        other => {
            let wide = double(other, strict)?;
            let value = wide as f32;
            if strict && value.is_infinite() && wide.is_finite() { Err(Fault::Bad) } else { Ok(value) }
        }
    }
}

fn decimal(cell: Cell<'_>, precision: u8, scale: u8) -> Result<i128, Fault> {
    let of_text = |text: &[u8]| Ok(decimal::decimal(text, precision, scale)?);
    match cell {
        Cell::Text(text) | Cell::Number(text) => of_text(text),
        Cell::Double(value) => of_text(format!("{value:e}").as_bytes()),
        Cell::Float(value) => of_text(format!("{value:e}").as_bytes()),
        Cell::Decimal { value, scale: from } => Ok(decimal::rescaled(value, from, precision, scale)?),
        other => Ok(decimal::rescaled(large_int(other)?, 0, precision, scale)?),
    }
}

fn date(cell: Cell<'_>, utc_offset_seconds: i32) -> Result<i32, Fault> {
    let days = match cell {
        Cell::Text(text) => temporal::date(text, utc_offset_seconds),
        Cell::Number(literal) if !has_exponent(literal) => temporal::date(literal, utc_offset_seconds),
        Cell::Date(days) => {
            Some(days).filter(|days| (temporal::DAYS_MIN..=temporal::DAYS_MAX).contains(days))
        }
        Cell::DateTime(micros) => temporal::days_of(micros),
        other => temporal::date(packed_digits(other)?.as_bytes(), utc_offset_seconds),
    };
    days.ok_or(Fault::Bad)
}

fn datetime(cell: Cell<'_>, scale: u8, utc_offset_seconds: i32) -> Result<i64, Fault> {
    let micros = match cell {
        Cell::Text(text) => temporal::datetime(text, scale, utc_offset_seconds),
        Cell::Number(literal) if !has_exponent(literal) => {
            temporal::datetime(literal, scale, utc_offset_seconds)
        }
        Cell::Date(days) => i64::from(days)
            .checked_mul(temporal::DAY_MICROS)
            .and_then(|micros| temporal::rounded(micros, scale)),
        Cell::DateTime(micros) => temporal::rounded(micros, scale),
        other => temporal::datetime(packed_digits(other)?.as_bytes(), scale, utc_offset_seconds),
    };
    micros.ok_or(Fault::Bad)
}

/// A number such as 20240501 as the text that dates are read from. A DOUBLE is written without an exponent,
/// so that it is the date that its literal is.
fn packed_digits(cell: Cell<'_>) -> Result<String, Fault> {
    match cell {
        Cell::Bool(_) | Cell::Hex(_) => Err(Fault::Bad),
        Cell::Float(_) | Cell::Double(_) | Cell::Number(_) => Ok(double(cell, true)?.to_string()),
        other => Ok(large_int(other)?.to_string()),
    }
}

/// Whether the literal is written as `2.0240501e7`.
fn has_exponent(literal: &[u8]) -> bool {
    literal.iter().any(|byte| matches!(byte, b'e' | b'E'))
}

#[inline]
fn push_limited(buffer: &mut ColumnBuffer, cell: Cell<'_>, limit: usize, strict: bool) -> Result<(), Fault> {
    let text = text(&cell)?;
    if text.len() <= limit {
        buffer.push_text(&text);
    } else if strict {
        return Err(Fault::TooLong { limit, actual: text.len() });
    } else {
        buffer.push_text(cut(&text, limit));
    }
    Ok(())
}

/// The bytes of a cell; those of a text are its UTF-8.
fn push_bytes(buffer: &mut ColumnBuffer, cell: Cell<'_>, limit: usize, strict: bool) -> Result<(), Fault> {
    let value = match cell {
        Cell::Text(bytes) | Cell::Hex(bytes) => Cow::Borrowed(bytes),
        other => text(&other)?,
    };
    let actual = value.len();
    if actual <= limit {
        buffer.push_text(&value);
    } else if limit == VARBINARY_BYTES_MAX as usize {
        return Err(Fault::TooLongString { limit, actual });
    } else if strict {
        return Err(Fault::TooLong { limit, actual });
    } else {
        buffer.push_text(&value[..limit]);
    }
    Ok(())
}

/// A STRING is never truncated: its type promises all of it.
fn push_string(buffer: &mut ColumnBuffer, cell: Cell<'_>) -> Result<(), Fault> {
    match push_limited(buffer, cell, STRING_BYTES_MAX, true) {
        Err(Fault::TooLong { limit, actual }) => Err(Fault::TooLongString { limit, actual }),
        result => result,
    }
}

fn push_json(buffer: &mut ColumnBuffer, cell: Cell<'_>) -> Result<(), Fault> {
    let text = match cell {
        Cell::Bool(true) => Cow::Borrowed(&b"true"[..]),
        Cell::Bool(false) => Cow::Borrowed(&b"false"[..]),
        other => text(&other)?,
    };
    if text.len() > JSON_BYTES_MAX {
        return Err(Fault::TooLongString { limit: JSON_BYTES_MAX, actual: text.len() });
    }
    serde_json::from_slice::<serde::de::IgnoredAny>(&text).map_err(|_| Fault::Bad)?;
    buffer.push_text(&text);
    Ok(())
}

/// A text that is not JSON is a JSON string.
fn push_variant(buffer: &mut ColumnBuffer, cell: Cell<'_>) -> Result<(), Fault> {
    match push_json(buffer, cell) {
        Err(Fault::Bad) => {
            let text = text(&cell)?;
            let text = std::str::from_utf8(&text).map_err(|_| Fault::Bad)?;
            push_json(buffer, Cell::Text(serde_json::Value::from(text).to_string().as_bytes()))
        }
        pushed => pushed,
    }
}

/// A TIME, the digits of one, or the time of day of a point in time.
fn push_time(buffer: &mut ColumnBuffer, cell: Cell<'_>, scale: u8) -> Result<(), Fault> {
    let micros = match cell {
        Cell::DateTime(micros) => Some(micros.rem_euclid(temporal::DAY_MICROS)),
        Cell::Date(_) => Some(0),
        Cell::Bool(_) | Cell::Document(_) | Cell::Nested(..) | Cell::Hex(_) => None,
        other => text_of(&text(&other)?).and_then(clock::of_text),
    };
    buffer.push_text(clock::text_of(micros.ok_or(Fault::Bad)?, scale).as_bytes());
    Ok(())
}

/// An address, or its number.
fn ipv4(cell: Cell<'_>) -> Result<u32, Fault> {
    match cell {
        Cell::Text(text) => text_of(text).and_then(address::parse_ipv4).ok_or(Fault::Bad),
        other => u32::try_from(int(other)?).map_err(|_| Fault::Bad),
    }
}

/// An address, or its bytes.
fn ipv6(cell: Cell<'_>) -> Result<[u8; 16], Fault> {
    match cell {
        Cell::Text(text) => text_of(text).and_then(address::parse_ipv6).ok_or(Fault::Bad),
        Cell::Hex(bytes) => bytes.try_into().map_err(|_| Fault::Bad),
        _ => Err(Fault::Bad),
    }
}

fn text_of(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok()
}

/// The longest beginning of `text` within `limit` bytes that ends with a whole character.
pub(crate) fn cut(text: &[u8], limit: usize) -> &[u8] {
    let mut end = limit.min(text.len());
    while end > 0 && end < text.len() && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}

/// The cell as text, for text columns and reasons.
#[inline]
pub(crate) fn text<'a>(cell: &Cell<'a>) -> Result<Cow<'a, [u8]>, Fault> {
    match *cell {
        Cell::Text(text) | Cell::Document(text) => Ok(Cow::Borrowed(text)),
        Cell::Hex(bytes) => match std::str::from_utf8(bytes) {
            Ok(_) => Ok(Cow::Borrowed(bytes)),
            Err(_) => Err(Fault::Bad),
        },
        Cell::Null => Err(Fault::Null),
        Cell::Number(literal) if is_canonical(literal) => Ok(Cow::Borrowed(literal)),
        other => Ok(Cow::Owned(written(other).into_bytes())),
    }
}

/// Values that are not text yet.
fn written(cell: Cell<'_>) -> String {
    match cell {
        Cell::Bool(value) => u8::from(value).to_string(),
        Cell::Int(value) => itoa::Buffer::new().format(value).to_owned(),
        Cell::UInt(value) => itoa::Buffer::new().format(value).to_owned(),
        Cell::Float(value) => value.to_string(),
        Cell::Double(value) => value.to_string(),
        Cell::Decimal { value, scale } => show_decimal(value, scale),
        Cell::Date(days) => temporal::show_date(days.into()),
        Cell::DateTime(micros) => temporal::show_datetime(micros),
        Cell::Number(literal) => canonical(literal),
        Cell::Null => "NULL".to_owned(),
        Cell::Text(bytes) | Cell::Document(bytes) | Cell::Hex(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Cell::Nested(cells, row) => {
            let mut text = String::new();
            cells.show(row, &mut text);
            text
        }
    }
}

/// The text of a cell in a reason.
pub(crate) fn shown(cell: &Cell<'_>) -> String {
    match *cell {
        Cell::Text(bytes) | Cell::Document(bytes) | Cell::Hex(bytes) => crate::cells::reject::shown(bytes),
        other => written(other),
    }
}

/// `value × 10^-scale` with all its digits after the point.
pub(crate) fn show_decimal(value: i128, scale: i8) -> String {
    if scale <= 0 {
        let zeros = "0".repeat(usize::from(scale.unsigned_abs()));
        return format!("{value}{zeros}");
    }
    let (scale, digits) = (usize::from(scale.unsigned_abs()), value.unsigned_abs().to_string());
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{}{whole}.{fraction}", if value < 0 { "-" } else { "" })
}

/// Whether a number's literal is already written as its value is printed.
fn is_canonical(literal: &[u8]) -> bool {
    let digits = literal.strip_prefix(b"-").unwrap_or(literal);
    let plain = digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let leading = matches!(digits, [b'0'] | [b'0', b'.', ..] | [b'1'..=b'9', ..]);
    plain && leading && digits.last() != Some(&b'.') && literal != b"-0"
}

fn canonical(literal: &[u8]) -> String {
    let (negative, digits) = number::sign(literal);
    if digits.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return number::double(literal, false).map_or_else(String::new, |value| value.to_string());
    }
    let text = String::from_utf8_lossy(digits);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let minus = if negative && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) { "-" } else { "" };
    if fraction.is_empty() { format!("{minus}{whole}") } else { format!("{minus}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests;

//! MySQL's binary protocol values as cells.

use super::{BoundParams, ParamType};
use crate::cells::cell::Cell;
use crate::cells::convert::temporal::{self, DAY_MICROS};
use crate::rows::loader::Loader;
use std::fmt::Write;
use tributary_types::{ErrorCode, SqlError};

/// MySQL's `enum_field_types`, as far as a client can bind them.
mod column_type {
    pub(super) const DECIMAL: u8 = 0;
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const NULL: u8 = 6;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const NEWDATE: u8 = 14;
    pub(super) const VARCHAR: u8 = 15;
    pub(super) const BIT: u8 = 16;
    pub(super) const JSON: u8 = 245;
    /// `NEWDECIMAL`, `ENUM`, `SET`, the BLOBs, `VAR_STRING`, `STRING`, `GEOMETRY`.
    pub(super) const FIRST_TEXT: u8 = 246;
}

/// The error for a packet that cannot be read.
pub(super) fn malformed(what: impl AsRef<str>) -> SqlError {
    SqlError::new(ErrorCode::MalformedPacket, format!("Malformed communication packet: {}", what.as_ref()))
}

/// A place between two parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct At {
    index: usize,
    at: usize,
}

/// Reads the values of one execution, one parameter after the other.
pub(super) struct Reader<'a> {
    params: &'a BoundParams<'a>,
    /// The next parameter.
    index: usize,
    at: usize,
    /// Dates that no calendar has, and times, as text.
    scratch: String,
}

impl<'a> Reader<'a> {
    pub(super) fn new(params: &'a BoundParams<'a>) -> Self {
        Self::at(params, At::default())
    }

    /// A reader that begins at a place.
    pub(super) fn at(params: &'a BoundParams<'a>, At { index, at }: At) -> Self {
        Self { params, index, at, scratch: String::new() }
    }

    pub(super) fn place(&self) -> At {
        At { index: self.index, at: self.at }
    }

    /// Puts the next parameter's value; the commonest types without a form in between.
    #[inline]
    pub(super) fn put_next(&mut self, field: usize, loader: &mut Loader<'_>) -> Result<(), SqlError> {
        let index = self.index;
        let is_null = self.params.null_bitmap[index / 8] >> (index % 8) & 1 == 1;
        if !is_null && self.params.long_data.is_empty() {
            let ParamType { column_type, unsigned } = self.params.types[index];
            let rest = &self.params.values[self.at..];
            let taken = match column_type {
                column_type::LONG if !unsigned => rest.first_chunk().map(|&bytes| {
                    loader.put_int(field, i32::from_le_bytes(bytes).into());
                    4
                }),
                column_type::LONGLONG if !unsigned => rest.first_chunk().map(|&bytes| {
                    loader.put_int(field, i64::from_le_bytes(bytes));
                    8
                }),
                column_type::DECIMAL | column_type::VARCHAR | column_type::FIRST_TEXT.. => short_text(rest)
                    .map(|text| {
                        loader.put_text(field, text);
                        text.len() + 1
                    }),
                _ => None,
            };
            if let Some(bytes) = taken {
                self.index += 1;
                self.at += bytes;
                return Ok(());
            }
        }
        let cell = self.next_cell()?;
        loader.put(field, cell);
        Ok(())
    }

    /// The next parameter's value.
    pub(super) fn next_cell(&mut self) -> Result<Cell<'_>, SqlError> {
        let index = self.index;
        self.index += 1;
        let params = self.params;
        // Before the NULL bit: a value that was sent ahead counts, whatever its bit says.
        if !params.long_data.is_empty()
            && let Some(bytes) = u16::try_from(index).ok().and_then(|index| params.long_data.get(&index))
        {
            return Ok(bytes_cell(bytes));
        }
        if params.null_bitmap[index / 8] >> (index % 8) & 1 == 1 {
            return Ok(Cell::Null);
        }
        self.value(params.types[index])
    }

    #[inline]
    fn value(&mut self, param: ParamType) -> Result<Cell<'_>, SqlError> {
        Ok(match (param.column_type, param.unsigned) {
            (column_type::LONG | column_type::INT24, false) => {
                Cell::Int(i32::from_le_bytes(self.array()?).into())
            }
            (column_type::LONG | column_type::INT24, true) => {
                Cell::Int(u32::from_le_bytes(self.array()?).into())
            }
            (column_type::LONGLONG, false) => Cell::Int(i64::from_le_bytes(self.array()?)),
            (column_type::LONGLONG, true) => Cell::UInt(u64::from_le_bytes(self.array()?)),
            (column_type::TINY, false) => Cell::Int(i8::from_le_bytes(self.array()?).into()),
            (column_type::TINY, true) => Cell::Int(u8::from_le_bytes(self.array()?).into()),
            (column_type::SHORT, false) => Cell::Int(i16::from_le_bytes(self.array()?).into()),
            (column_type::SHORT, true) | (column_type::YEAR, _) => {
                Cell::Int(u16::from_le_bytes(self.array()?).into())
            }
            (column_type::FLOAT, _) => Cell::Float(f32::from_le_bytes(self.array()?)),
            (column_type::DOUBLE, _) => Cell::Double(f64::from_le_bytes(self.array()?)),
            (
                column_type::DATE | column_type::NEWDATE | column_type::DATETIME | column_type::TIMESTAMP,
                _,
            ) => self.datetime(param)?,
            (column_type::TIME, _) => self.time()?,
            (column_type::BIT, _) => Cell::Hex(self.bytes()?),
            (
                column_type::DECIMAL | column_type::VARCHAR | column_type::JSON | column_type::FIRST_TEXT..,
                _,
            ) => bytes_cell(self.bytes()?),
            (column_type::NULL, _) => Cell::Null,
            (other, _) => {
                return Err(malformed(format!("parameter {} of unknown type {other}", self.index - 1)));
            }
        })
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], SqlError> {
        let values = self.params.values;
        let end = self.at.checked_add(length).filter(|&end| end <= values.len());
        let Some(end) = end else { return Err(self.truncated(length)) };
        let bytes = &values[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    #[cold]
    fn truncated(&self, length: usize) -> SqlError {
        malformed(format!(
            "parameter {} needs {length} bytes at {}, the values have {}",
            self.index - 1,
            self.at,
            self.params.values.len()
        ))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("take gives the length that was asked for"))
    }

    /// A length-encoded string.
    #[inline]
    fn bytes(&mut self) -> Result<&'a [u8], SqlError> {
        let length = match self.array::<1>()?[0] {
            short @ 0..=250 => u64::from(short),
            0xfc => u64::from(u16::from_le_bytes(self.array()?)),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => u64::from_le_bytes(self.array()?),
            other => {
                return Err(malformed(format!("parameter {}: length byte {other:#04x}", self.index - 1)));
            }
        };
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A date with 0, 4, 7 or 11 bytes; one that is not in the calendar stays text, for the reason.
    fn datetime(&mut self, param: ParamType) -> Result<Cell<'_>, SqlError> {
        let length = self.array::<1>()?[0];
        let (mut year, mut month, mut day, mut time, mut micros) = (0u32, 0u32, 0u32, [0u32; 3], 0u32);
        if length >= 4 {
            let [y1, y2, m, d] = self.array()?;
            (year, month, day) = (u16::from_le_bytes([y1, y2]).into(), m.into(), d.into());
        }
        if length >= 7 {
            time = self.array::<3>()?.map(u32::from);
        }
        if length == 11 {
            micros = u32::from_le_bytes(self.array()?);
        }
        if !matches!(length, 0 | 4 | 7 | 11) {
            return Err(malformed(format!("parameter {}: date of {length} bytes", self.index - 1)));
        }
        let [hour, minute, second] = time;
        let days = temporal::days(year, month, day);
        let of_day = temporal::time_micros(hour, minute, second).filter(|_| micros < 1_000_000);
        Ok(match (days, of_day) {
            (Some(days), Some(0))
                if matches!(param.column_type, column_type::DATE | column_type::NEWDATE) && micros == 0 =>
            {
                Cell::Date(days)
            }
            (Some(days), Some(of_day)) => {
                Cell::DateTime(i64::from(days) * DAY_MICROS + of_day + i64::from(micros))
            }
            _ => self.scratch_cell(format_args!(
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
            )),
        })
    }

    /// A time of 0, 8 or 12 bytes, as text: no column has that type.
    fn time(&mut self) -> Result<Cell<'_>, SqlError> {
        let length = self.array::<1>()?[0];
        let (mut sign, mut hours, mut minute, mut second, mut micros) = ("", 0u64, 0u8, 0u8, 0u32);
        if length >= 8 {
            let [negative, d1, d2, d3, d4, hour, min, sec] = self.array()?;
            sign = if negative == 0 { "" } else { "-" };
            hours = u64::from(u32::from_le_bytes([d1, d2, d3, d4])) * 24 + u64::from(hour);
            (minute, second) = (min, sec);
        }
        if length == 12 {
            micros = u32::from_le_bytes(self.array()?);
        }
        match length {
            0 | 8 => Ok(self.scratch_cell(format_args!("{sign}{hours:02}:{minute:02}:{second:02}"))),
            12 => Ok(self.scratch_cell(format_args!("{sign}{hours:02}:{minute:02}:{second:02}.{micros:06}"))),
            _ => Err(malformed(format!("parameter {}: time of {length} bytes", self.index - 1))),
        }
    }

    fn scratch_cell(&mut self, text: std::fmt::Arguments<'_>) -> Cell<'_> {
        self.scratch.clear();
        self.scratch.write_fmt(text).expect("writing to a String does not fail");
        Cell::Text(self.scratch.as_bytes())
    }
}

/// A length-encoded string whose length takes one byte, if it is UTF-8.
#[inline]
fn short_text(values: &[u8]) -> Option<&[u8]> {
    let (&length, rest) = values.split_first()?;
    let text = rest.get(..usize::from(length)).filter(|_| length <= 250)?;
    let is_ascii = text.iter().fold(0, |all, byte| all | byte) < 0x80;
    (is_ascii || std::str::from_utf8(text).is_ok()).then_some(text)
}

/// Text if it is UTF-8, else bytes, which no text column takes.
#[inline]
fn bytes_cell(bytes: &[u8]) -> Cell<'_> {
    if std::str::from_utf8(bytes).is_ok() { Cell::Text(bytes) } else { Cell::Hex(bytes) }
}

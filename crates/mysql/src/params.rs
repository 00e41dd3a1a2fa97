//! The parameters of one execution of a prepared statement, as slices of the packet.

use crate::error::MalformedPacket;
use crate::wire::cursor::Cursor;
use mysql_common::constants::ColumnType;
use std::collections::BTreeMap;
use tributary_types::SqlError;

/// The type that a client gives a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParamType {
    /// MySQL's number of the type ([`ColumnType`]), not checked.
    pub type_code: u8,
    pub unsigned: bool,
}

/// The parameters of one execution. Nothing is copied: values are slices of the packet.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a> {
    pub(crate) types: &'a [ParamType],
    pub(crate) types_changed: bool,
    pub(crate) null_bitmap: &'a [u8],
    pub(crate) values: &'a [u8],
    pub(crate) long_data: &'a BTreeMap<u16, Vec<u8>>,
}

impl<'a> Params<'a> {
    /// How many parameters there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.types.len()
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// One type per parameter; those of an earlier execution if the client sent none.
    #[must_use]
    pub const fn types(&self) -> &'a [ParamType] {
        self.types
    }

    /// Whether the types differ from those of the statement's previous execution (true at the first, if there are parameters at
    /// all).
    #[must_use]
    pub const fn types_changed(&self) -> bool {
        self.types_changed
    }

    /// Bit `i % 8` of byte `i / 8` says that parameter `i` is NULL. `(len + 7) / 8` bytes.
    #[must_use]
    pub const fn null_bitmap(&self) -> &'a [u8] {
        self.null_bitmap
    }

    /// The values of the parameters that are neither NULL nor in [`Params::long_data`], one after
    /// another in the binary protocol, not checked.
    #[must_use]
    pub const fn values(&self) -> &'a [u8] {
        self.values
    }

    /// Values that arrived earlier, in pieces, by position.
    #[must_use]
    pub const fn long_data(&self) -> &'a BTreeMap<u16, Vec<u8>> {
        self.long_data
    }

    /// Whether parameter `index` is NULL.
    #[must_use]
    pub fn is_null(&self, index: usize) -> bool {
        let marked = self.null_bitmap.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1);
        marked && !u16::try_from(index).is_ok_and(|index| self.long_data.contains_key(&index))
    }

    /// The values in order.
    #[must_use]
    pub fn iter(&self) -> ParamIter<'a> {
        ParamIter { params: *self, index: 0, values: Cursor::new(self.values) }
    }
}

impl<'a> IntoIterator for &Params<'a> {
    type Item = Result<ParamValue<'a>, SqlError>;
    type IntoIter = ParamIter<'a>;

    fn into_iter(self) -> ParamIter<'a> {
        self.iter()
    }
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamValue<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    /// A DECIMAL as text, not validated.
    Decimal(&'a [u8]),
    /// Text and bytes.
    Bytes(&'a [u8]),
    DateTime {
        year: u16,
        month: u8,
        day: u8,
        hour: u8,
        minute: u8,
        second: u8,
        micros: u32,
    },
    Time {
        negative: bool,
        days: u32,
        hours: u8,
        minutes: u8,
        seconds: u8,
        micros: u32,
    },
}

/// Goes through the parameters' values; ends after the first error.
#[derive(Clone, Debug)]
pub struct ParamIter<'a> {
    params: Params<'a>,
    index: usize,
    values: Cursor<'a>,
}

impl<'a> Iterator for ParamIter<'a> {
    type Item = Result<ParamValue<'a>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.index;
        let param_type = *self.params.types.get(index)?;
        self.index += 1;
        let value = self.value(index, param_type);
        if value.is_err() {
            self.index = self.params.len();
        }
        Some(value.map_err(SqlError::from))
    }
}

impl<'a> ParamIter<'a> {
    fn value(&mut self, index: usize, param_type: ParamType) -> Result<ParamValue<'a>, MalformedPacket> {
        let long_data = u16::try_from(index).ok().and_then(|index| self.params.long_data.get(&index));
        if let Some(bytes) = long_data {
            return Ok(ParamValue::Bytes(bytes));
        }
        if self.params.is_null(index) {
            return Ok(ParamValue::Null);
        }
        read_value(&mut self.values, param_type)
    }
}

/// Reads one value of the binary protocol.
fn read_value<'a>(values: &mut Cursor<'a>, param_type: ParamType) -> Result<ParamValue<'a>, MalformedPacket> {
    use ColumnType::*;
    const NUMBER: &str = "a parameter's number is cut off";
    const TEXT: &str = "a parameter's text is cut off";
    let wire_type = ColumnType::try_from(param_type.type_code)
        .map_err(|_| MalformedPacket { what: "a parameter's type is unknown" })?;
    let unsigned = param_type.unsigned;
    let int = |signed: i64, bits: u32| match unsigned {
        true => ParamValue::UInt(signed as u64 & (u64::MAX >> (64 - bits))),
        false => ParamValue::Int(signed),
    };
    Ok(match wire_type {
        MYSQL_TYPE_NULL => ParamValue::Null,
        MYSQL_TYPE_TINY => int(values.array(NUMBER).map(i8::from_le_bytes)?.into(), 8),
        MYSQL_TYPE_SHORT | MYSQL_TYPE_YEAR => int(values.array(NUMBER).map(i16::from_le_bytes)?.into(), 16),
        MYSQL_TYPE_LONG | MYSQL_TYPE_INT24 => int(values.array(NUMBER).map(i32::from_le_bytes)?.into(), 32),
        MYSQL_TYPE_LONGLONG => int(values.array(NUMBER).map(i64::from_le_bytes)?, 64),
        MYSQL_TYPE_FLOAT => ParamValue::Float(values.array(NUMBER).map(f32::from_le_bytes)?),
        MYSQL_TYPE_DOUBLE => ParamValue::Double(values.array(NUMBER).map(f64::from_le_bytes)?),
        MYSQL_TYPE_DATE | MYSQL_TYPE_NEWDATE | MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP => {
            read_datetime(values)?
        }
        MYSQL_TYPE_TIME => read_time(values)?,
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => ParamValue::Decimal(values.lenenc_bytes(TEXT)?),
        MYSQL_TYPE_VARCHAR
        | MYSQL_TYPE_VAR_STRING
        | MYSQL_TYPE_STRING
        | MYSQL_TYPE_ENUM
        | MYSQL_TYPE_SET
        | MYSQL_TYPE_BIT
        | MYSQL_TYPE_JSON
        | MYSQL_TYPE_GEOMETRY
        | MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB
        | MYSQL_TYPE_BLOB => ParamValue::Bytes(values.lenenc_bytes(TEXT)?),
        _ => return Err(MalformedPacket { what: "a parameter's type cannot be sent by a client" }),
    })
}

fn read_datetime<'a>(values: &mut Cursor<'a>) -> Result<ParamValue<'a>, MalformedPacket> {
    const WHAT: &str = "a parameter's date has a wrong length";
    let length = values.u8(WHAT)?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(MalformedPacket { what: WHAT });
    }
    let mut bytes = [0_u8; 11];
    bytes[..usize::from(length)].copy_from_slice(values.bytes(length.into(), WHAT)?);
    let [y0, y1, month, day, hour, minute, second, m0, m1, m2, m3] = bytes;
    let (year, micros) = (u16::from_le_bytes([y0, y1]), u32::from_le_bytes([m0, m1, m2, m3]));
    Ok(ParamValue::DateTime { year, month, day, hour, minute, second, micros })
}

fn read_time<'a>(values: &mut Cursor<'a>) -> Result<ParamValue<'a>, MalformedPacket> {
    const WHAT: &str = "a parameter's time has a wrong length";
    let length = values.u8(WHAT)?;
    if !matches!(length, 0 | 8 | 12) {
        return Err(MalformedPacket { what: WHAT });
    }
    let mut bytes = [0_u8; 12];
    bytes[..usize::from(length)].copy_from_slice(values.bytes(length.into(), WHAT)?);
    let [negative, d0, d1, d2, d3, hours, minutes, seconds, m0, m1, m2, m3] = bytes;
    let (days, micros) = (u32::from_le_bytes([d0, d1, d2, d3]), u32::from_le_bytes([m0, m1, m2, m3]));
    Ok(ParamValue::Time { negative: negative != 0, days, hours, minutes, seconds, micros })
}

#[cfg(test)]
mod tests;

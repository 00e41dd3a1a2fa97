//! Nested values as bytes in blocks.
//!
//! ```text
//! values of a type, as many as are known from outside:
//!   u8 = 0, or 1 and a bitmap, 1 = present, lowest bit first
//!   a number, a time:  little endian, as wide as in a block; BOOLEAN: a byte
//!   a text:            a varint length for each, then the bytes
//!   ARRAY:             a varint length for each, then all elements
//!   MAP:               a varint length for each, then all keys, then all values
//!   STRUCT:            all values of the first field, then of the second, …
//! ```
//!
//! A NULL has zeros, no text, no elements; in a STRUCT NULLs for its fields.

use super::{Lists, Tree, damaged};
use crate::blocks::block::{Kind, read_varint, write_varint};
use crate::blocks::builder::ColumnBuffer;
use crate::blocks::error::BlockError;
use arrow::array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType as ArrowType;
use std::sync::Arc;
use tributary_types::Nested;

impl Tree {
    /// Appends all values.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Leaf { values, .. } => {
                write_nulls(values.nulls(), values.len(), out);
                if values.kind() == Kind::Text {
                    values.lengths().for_each(|length| write_varint(out, length));
                }
                out.extend_from_slice(values.data());
            }
            Self::List { lists, items } => {
                lists.write(out);
                items.write(out);
            }
            Self::Map { lists, keys, values } => {
                lists.write(out);
                keys.write(out);
                values.write(out);
            }
            Self::Struct { len, nulls, fields, .. } => {
                write_nulls(nulls, *len, out);
                fields.iter().for_each(|field| field.write(out));
            }
        }
    }

    /// Reads this many written values. `None` if the bytes are not that.
    fn read(&mut self, bytes: &[u8], at: &mut usize, count: usize) -> Option<()> {
        match self {
            Self::Leaf { values, .. } => read_leaf(values, bytes, at, count),
            Self::List { lists, items } => {
                let parts = lists.read(bytes, at, count)?;
                items.read(bytes, at, parts)
            }
            Self::Map { lists, keys, values } => {
                let parts = lists.read(bytes, at, count)?;
                keys.read(bytes, at, parts)?;
                values.read(bytes, at, parts)
            }
            Self::Struct { len, nulls, fields, .. } => {
                read_nulls(nulls, *len, bytes, at, count)?;
                *len += count;
                fields.iter_mut().try_for_each(|field| field.read(bytes, at, count))
            }
        }
    }

    /// All values as an array.
    fn into_array(self, data_type: &ArrowType) -> Result<ArrayRef, BlockError> {
        let len = self.len();
        let wrong = || damaged(data_type);
        Ok(match (self, data_type) {
            (Self::Leaf { values, .. }, _) => values.into_array(data_type)?,
            (Self::List { lists, items }, ArrowType::List(field)) => {
                let (offsets, nulls) = lists.into_parts()?;
                Arc::new(ListArray::try_new(
                    Arc::clone(field),
                    offsets,
                    items.into_array(field.data_type())?,
                    nulls,
                )?)
            }
            (Self::Map { lists, keys, values }, ArrowType::Map(entries, _)) => {
                let (offsets, nulls) = lists.into_parts()?;
                let ArrowType::Struct(pair) = entries.data_type() else { return Err(wrong()) };
                let [key, value] = &pair[..] else { return Err(wrong()) };
                let columns = vec![keys.into_array(key.data_type())?, values.into_array(value.data_type())?];
                let pairs = StructArray::try_new(pair.clone(), columns, None)?;
                Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, false)?)
            }
            (Self::Struct { nulls, fields, .. }, ArrowType::Struct(of)) => {
                let columns = fields.into_iter().zip(of).map(|(field, of)| field.into_array(of.data_type()));
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new(of.clone(), columns, null_buffer(&nulls, len))?)
            }
            _ => return Err(wrong()),
        })
    }
}

/// The column of a block's values, which end at `ends` in `bytes`. NULLs have no bytes.
pub(crate) fn column(
    nested: Nested,
    data_type: &ArrowType,
    bytes: &[u8],
    ends: impl Iterator<Item = usize>,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef, BlockError> {
    let mut tree = Tree::of_nested(nested);
    let mut start = 0;
    for (row, end) in ends.enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            tree.push_null();
        } else {
            let value = bytes.get(start..end).ok_or_else(|| damaged(nested))?;
            let mut at = 0;
            tree.read(value, &mut at, 1).filter(|()| at == value.len()).ok_or_else(|| damaged(nested))?;
        }
        start = end;
    }
    tree.into_array(data_type)
}

impl Lists {
    fn write(&self, out: &mut Vec<u8>) {
        write_nulls(&self.nulls, self.lengths.len(), out);
        self.lengths.iter().for_each(|&length| write_varint(out, length));
    }

    /// How many parts the values have.
    fn read(&mut self, bytes: &[u8], at: &mut usize, count: usize) -> Option<usize> {
        read_nulls(&mut self.nulls, self.lengths.len(), bytes, at, count)?;
        let mut parts = 0;
        for _ in 0..count {
            let length = read_varint(bytes, at)?;
            self.lengths.push(length);
            parts += length as usize;
        }
        // Every part takes a byte or more, so damage cannot ask for more memory than there are bytes.
        (parts <= bytes.len()).then_some(parts)
    }

    fn into_parts(self) -> Result<(OffsetBuffer<i32>, Option<NullBuffer>), BlockError> {
        let nulls = null_buffer(&self.nulls, self.lengths.len());
        if self.parts_of(self.lengths.len()) > i32::MAX as usize {
            return Err(BlockError::Damaged("too many values within the values of a column".to_owned()));
        }
        Ok((OffsetBuffer::from_lengths(self.lengths.into_iter().map(|length| length as usize)), nulls))
    }
}

fn read_leaf(values: &mut ColumnBuffer, bytes: &[u8], at: &mut usize, count: usize) -> Option<()> {
    let mut nulls = Vec::new();
    read_nulls(&mut nulls, values.len(), bytes, at, count)?;
    if values.kind() == Kind::Text {
        let mut lengths = *at;
        for _ in 0..count {
            read_varint(bytes, at)?;
        }
        for _ in 0..count {
            let length = read_varint(bytes, &mut lengths)? as usize;
            let text = bytes.get(*at..at.checked_add(length)?)?;
            std::str::from_utf8(text).ok()?;
            values.push_text(text);
            *at += length;
        }
    } else {
        let end = at.checked_add(count.checked_mul(values.kind().width())?)?;
        values.extend_stored(bytes.get(*at..end)?);
        *at = end;
    }
    nulls.into_iter().for_each(|row| values.mark_null(row));
    Some(())
}

fn write_nulls(nulls: &[u32], len: usize, out: &mut Vec<u8>) {
    out.push(u8::from(!nulls.is_empty()));
    if nulls.is_empty() {
        return;
    }
    let start = out.len();
    out.resize(start + len.div_ceil(8), 0xff);
    for &place in nulls {
        out[start + place as usize / 8] &= !(1 << (place % 8));
    }
}

/// Reads which of `count` values are NULL, the first of them being the value `first`.
fn read_nulls(nulls: &mut Vec<u32>, first: usize, bytes: &[u8], at: &mut usize, count: usize) -> Option<()> {
    let has_some = *bytes.get(*at)?;
    *at += 1;
    match has_some {
        0 => return Some(()),
        1 => {}
        _ => return None,
    }
    let bitmap = bytes.get(*at..*at + count.div_ceil(8))?;
    *at += bitmap.len();
    let is_null = |place: &usize| bitmap[place / 8] >> (place % 8) & 1 == 0;
    nulls.extend((0..count).filter(is_null).map(|place| (first + place) as u32));
    Some(())
}

/// The non-NULL positions among `len`; `None` if there are no NULLs.
pub(crate) fn null_buffer(nulls: &[u32], len: usize) -> Option<NullBuffer> {
    if nulls.is_empty() {
        return None;
    }
    let mut valid = vec![true; len];
    nulls.iter().for_each(|&place| valid[place as usize] = false);
    Some(NullBuffer::from(valid))
}

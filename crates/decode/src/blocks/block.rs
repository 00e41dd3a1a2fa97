//! The column block: rows of one schema version in one contiguous piece of bytes.
//!
//! Invariant: a [`Block`] that exists is well formed; readers need not check bounds, offsets or UTF-8 again (Arrow checks them
//! anyway when a batch is built).
//!
//! Not its business: the meaning of columns. A block knows physical kinds only; the schema of its version gives the types.
//!
//! # Format 1, packed (few rows)
//!
//! ```text
//! u8 = 1 | varint schema version | varint rows | varint columns
//! per column:
//!   u8 tag = kind | nulls << 6
//!   nulls = some: validity bitmap, 1 = present, lowest bit first
//!   nulls = all:  nothing more
//!   bits:   bitmap      fixed: rows × width, little endian
//!   text, values that consist of values:   rows × varint length, then the bytes
//! ```
//!
//! # Format 2, aligned (from [`ALIGNED_ROWS_MIN`] rows on)
//!
//! ```text
//! u8 = 2 | 3 × 0 | u32 schema version | u32 rows | u32 columns
//! columns × u8 tag
//! per column, each part at a multiple of 16: validity | bitmap or values
//!                                            validity | (rows + 1) × i32 offset | bytes
//! ```
//!
//! The parts of format 2 are Arrow's buffers as they are. A NULL has zeros (or no text) in its place.

use crate::blocks::error::BlockError;
use bytes::Bytes;
use std::ops::Range;
use tributary_types::{DataType, SchemaVersion};

/// From this many rows on, blocks are laid out so that Arrow arrays are made without copying.
pub(crate) const ALIGNED_ROWS_MIN: usize = 1024;
/// The most rows that one block may hold.
pub(crate) const BLOCK_ROWS_MAX: usize = 1 << 24;
/// The most text bytes that one column of one block may hold: Arrow's offsets are `i32`.
pub(crate) const BLOCK_TEXT_BYTES_MAX: usize = i32::MAX as usize;

pub(crate) const FORMAT_PACKED: u8 = 1;
pub(crate) const FORMAT_ALIGNED: u8 = 2;
pub(crate) const ALIGNMENT: usize = 16;
pub(crate) const ALIGNED_HEADER_BYTES: usize = 16;

/// How a column's values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Bits = 0,
    Fixed1 = 1,
    Fixed2 = 2,
    Fixed4 = 3,
    Fixed8 = 4,
    Fixed16 = 5,
    Text = 6,
    /// Values that consist of values, as `nested` writes them.
    Bytes = 7,
    /// As text, and any bytes.
    Raw = 8,
}

impl Kind {
    pub(crate) const fn of(data_type: DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Bits,
            DataType::TinyInt => Self::Fixed1,
            DataType::SmallInt => Self::Fixed2,
            DataType::Int | DataType::Float | DataType::Date | DataType::Ipv4 => Self::Fixed4,
            DataType::BigInt | DataType::Double | DataType::DateTime { .. } => Self::Fixed8,
            DataType::LargeInt | DataType::Decimal { .. } | DataType::Ipv6 => Self::Fixed16,
            DataType::Time { .. }
            | DataType::Char { .. }
            | DataType::Varchar { .. }
            | DataType::String
            | DataType::Json
            | DataType::Variant => Self::Text,
            DataType::Nested(_) => Self::Bytes,
            DataType::Varbinary { .. } | DataType::Bitmap | DataType::Hll => Self::Raw,
        }
    }

    /// Whether values are of any length.
    #[inline]
    pub(crate) const fn is_variable(self) -> bool {
        matches!(self, Self::Text | Self::Bytes | Self::Raw)
    }

    /// Bytes per value; 1 for bits (one byte each until they are packed), 0 for values of any length.
    pub(crate) const fn width(self) -> usize {
        match self {
            Self::Bits | Self::Fixed1 => 1,
            Self::Fixed2 => 2,
            Self::Fixed4 => 4,
            Self::Fixed8 => 8,
            Self::Fixed16 => 16,
            Self::Text | Self::Bytes | Self::Raw => 0,
        }
    }

    const fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag & 0x3f {
            0 => Self::Bits,
            1 => Self::Fixed1,
            2 => Self::Fixed2,
            3 => Self::Fixed4,
            4 => Self::Fixed8,
            5 => Self::Fixed16,
            6 => Self::Text,
            7 => Self::Bytes,
            8 => Self::Raw,
            _ => return None,
        })
    }
}

/// The NULL rows of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Nulls {
    None = 0,
    Some = 1,
    All = 2,
}

impl Nulls {
    const fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag >> 6 {
            0 => Self::None,
            1 => Self::Some,
            2 => Self::All,
            _ => return None,
        })
    }
}

pub(crate) const fn tag(kind: Kind, nulls: Nulls) -> u8 {
    kind as u8 | (nulls as u8) << 6
}

/// The positions of one column's parts in the block's bytes.
#[derive(Clone, Debug)]
pub(crate) struct ColumnParts {
    pub(crate) kind: Kind,
    pub(crate) nulls: Nulls,
    pub(crate) validity: Range<usize>,
    /// Values of any length only: varint lengths (packed) or `i32` offsets (aligned).
    pub(crate) lengths: Range<usize>,
    /// The values; empty if all are NULL.
    pub(crate) values: Range<usize>,
}

/// Rows of all columns of one table schema version in one contiguous piece of bytes.
///
/// Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Block {
    bytes: Bytes,
    header: Header,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    aligned: bool,
    schema_version: SchemaVersion,
    rows: u32,
    columns: u32,
    /// Offset of the first column (packed) or the tags (aligned).
    body: u32,
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block")
            .field("schema_version", &self.header.schema_version)
            .field("rows", &self.header.rows)
            .field("columns", &self.header.columns)
            .field("aligned", &self.header.aligned)
            .field("len_bytes", &self.bytes.len())
            .finish()
    }
}

impl Block {
    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.header.rows as usize
    }

    /// The schema version whose columns the block has.
    #[must_use]
    pub fn schema_version(&self) -> SchemaVersion {
        self.header.schema_version
    }

    /// The bytes to store; [`Block::from_bytes`] reads them back.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The block's size in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Reads a block that was stored. Checks everything that later readers rely on: lengths,
    /// offsets and UTF-8. Keeps `bytes` without copying.
    ///
    /// # Errors
    /// [`BlockError`] describes the damage.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, BlockError> {
        let block = Self::from_trusted_bytes(bytes)?;
        let mut columns = block.columns();
        while let Some(parts) = columns.next()? {
            block.check_text(&parts)?;
        }
        if columns.at != block.bytes.len() {
            return Err(BlockError::Damaged(format!(
                "{} bytes after the last column",
                block.bytes.len() - columns.at
            )));
        }
        Ok(block)
    }

    /// A block of bytes that the builder has just written.
    pub(crate) fn from_trusted_bytes(bytes: Bytes) -> Result<Self, BlockError> {
        let header = Header::read(&bytes)?;
        Ok(Self { bytes, header })
    }

    pub(crate) fn is_aligned(&self) -> bool {
        self.header.aligned
    }

    pub(crate) fn column_count(&self) -> usize {
        self.header.columns as usize
    }

    /// Walks the columns in order.
    pub(crate) fn columns(&self) -> Columns<'_> {
        let body = self.header.body as usize;
        let tags = if self.header.aligned { body } else { 0 };
        let at = if self.header.aligned { body + self.column_count() } else { body };
        Columns { block: self, tags, at, left: self.column_count() }
    }

    fn check_text(&self, parts: &ColumnParts) -> Result<(), BlockError> {
        if parts.kind != Kind::Text || parts.nulls == Nulls::All {
            return Ok(());
        }
        let damaged = || BlockError::Damaged("text is not valid UTF-8".to_owned());
        let text = std::str::from_utf8(&self.bytes[parts.values.clone()]).map_err(|_| damaged())?;
        if text.is_ascii() {
            return Ok(());
        }
        let mut ends = TextEnds::new(self, parts);
        while let Some(end) = ends.next_end() {
            if !text.is_char_boundary(end) {
                return Err(damaged());
            }
        }
        Ok(())
    }
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, BlockError> {
        match bytes.first() {
            Some(&FORMAT_PACKED) => Self::read_packed(bytes),
            Some(&FORMAT_ALIGNED) => Self::read_aligned(bytes),
            Some(&other) => Err(BlockError::UnknownFormat(other)),
            None => Err(BlockError::Truncated { what: "format", end: 1, len: 0 }),
        }
    }

    fn read_packed(bytes: &[u8]) -> Result<Self, BlockError> {
        let mut at = 1;
        let mut next = |what| {
            read_varint(bytes, &mut at).ok_or(BlockError::Truncated {
                what,
                end: bytes.len() + 1,
                len: bytes.len(),
            })
        };
        let schema_version = SchemaVersion(next("schema version")?);
        let rows = next("row count")?;
        let columns = next("column count")?;
        Self { aligned: false, schema_version, rows, columns, body: at as u32 }.check(bytes.len())
    }

    fn read_aligned(bytes: &[u8]) -> Result<Self, BlockError> {
        if bytes.len() < ALIGNED_HEADER_BYTES {
            return Err(BlockError::Truncated {
                what: "header",
                end: ALIGNED_HEADER_BYTES,
                len: bytes.len(),
            });
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (schema_version, rows, columns) = (SchemaVersion(word(4)), word(8), word(12));
        Self { aligned: true, schema_version, rows, columns, body: ALIGNED_HEADER_BYTES as u32 }
            .check(bytes.len())
    }

    /// Every column takes at least a byte, and rows are limited, so a damaged header cannot make a
    /// reader allocate without bound.
    fn check(self, len: usize) -> Result<Self, BlockError> {
        if self.rows as usize > BLOCK_ROWS_MAX {
            return Err(BlockError::TooManyRows { rows: self.rows as usize, limit: BLOCK_ROWS_MAX });
        }
        let end = (self.body as usize).saturating_add(self.columns as usize);
        if end > len {
            return Err(BlockError::Truncated { what: "columns", end, len });
        }
        Ok(self)
    }
}

/// Walks the columns of a block.
pub(crate) struct Columns<'a> {
    block: &'a Block,
    tags: usize,
    at: usize,
    left: usize,
}

impl Columns<'_> {
    /// The next column's parts, `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<ColumnParts>, BlockError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let tag = self.take_tag()?;
        let (Some(kind), Some(nulls)) = (Kind::from_tag(tag), Nulls::from_tag(tag)) else {
            return Err(BlockError::Damaged(format!("unknown column tag {tag:#04x}")));
        };
        let rows = self.block.row_count();
        let mut parts = ColumnParts { kind, nulls, validity: 0..0, lengths: 0..0, values: 0..0 };
        if nulls == Nulls::All {
            return Ok(Some(parts));
        }
        if nulls == Nulls::Some {
            parts.validity = self.take("validity", rows.div_ceil(8))?;
        }
        match kind {
            Kind::Text | Kind::Bytes | Kind::Raw if self.block.header.aligned => {
                self.take_aligned_text(&mut parts, rows)?;
            }
            Kind::Text | Kind::Bytes | Kind::Raw => self.take_packed_text(&mut parts, rows)?,
            Kind::Bits => parts.values = self.take("bits", rows.div_ceil(8))?,
            fixed => parts.values = self.take("values", rows * fixed.width())?,
        }
        Ok(Some(parts))
    }

    #[inline]
    fn take_tag(&mut self) -> Result<u8, BlockError> {
        if self.block.header.aligned {
            let tag = self.block.bytes[self.tags];
            self.tags += 1;
            return Ok(tag);
        }
        let range = self.take("tag", 1)?;
        Ok(self.block.bytes[range.start])
    }

    #[inline]
    fn take(&mut self, what: &'static str, size: usize) -> Result<Range<usize>, BlockError> {
        if self.block.header.aligned {
            self.at = self.at.next_multiple_of(ALIGNMENT);
        }
        let (end, len) = (self.at + size, self.block.bytes.len());
        if end > len {
            return Err(BlockError::Truncated { what, end, len });
        }
        let range = self.at..end;
        self.at = end;
        Ok(range)
    }

    fn take_packed_text(&mut self, parts: &mut ColumnParts, rows: usize) -> Result<(), BlockError> {
        let (start, mut at, mut total) = (self.at, self.at, 0usize);
        let bytes = &self.block.bytes;
        for _ in 0..rows {
            let Some(length) = read_varint(bytes, &mut at) else {
                let len = bytes.len();
                return Err(BlockError::Truncated { what: "text length", end: len + 1, len });
            };
            total += length as usize;
        }
        parts.lengths = start..at;
        self.at = at;
        parts.values = self.take("text", total)?;
        Ok(())
    }

    fn take_aligned_text(&mut self, parts: &mut ColumnParts, rows: usize) -> Result<(), BlockError> {
        parts.lengths = self.take("text offsets", (rows + 1) * 4)?;
        let mut last = 0i32;
        for (row, chunk) in self.block.bytes[parts.lengths.clone()].chunks_exact(4).enumerate() {
            let offset = i32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
            if offset < last || (row == 0 && offset != 0) {
                return Err(BlockError::Damaged(format!("text offset {offset} of row {row} after {last}")));
            }
            last = offset;
        }
        parts.values = self.take("text", last as usize)?;
        Ok(())
    }
}

/// The end of each text of a column, relative to the column's first byte.
pub(crate) struct TextEnds<'a> {
    lengths: &'a [u8],
    at: usize,
    end: usize,
    aligned: bool,
}

impl<'a> TextEnds<'a> {
    pub(crate) fn new(block: &'a Block, parts: &ColumnParts) -> Self {
        let aligned = block.header.aligned;
        let at = if aligned { 4 } else { 0 };
        Self { lengths: &block.bytes[parts.lengths.clone()], at, end: 0, aligned }
    }

    #[inline]
    pub(crate) fn next_end(&mut self) -> Option<usize> {
        if self.aligned {
            let chunk = self.lengths.get(self.at..self.at + 4)?;
            self.at += 4;
            self.end = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]) as usize;
        } else {
            self.end += read_varint(self.lengths, &mut self.at)? as usize;
        }
        Some(self.end)
    }
}

/// Reads a LEB128 number of at most 32 bits.
#[inline]
pub(crate) fn read_varint(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if shift == 28 && byte > 0x0f {
            return None;
        }
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[inline]
pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub(crate) const fn varint_len(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests;

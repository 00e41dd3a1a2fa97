//! The block builder: typed buffers per column, filled row by row and written out as a block.
//!
//! Invariant: after `finish_row`, `rollback_row` or `clear` all columns have the same number of values; a rolled-back row leaves
//! no trace. Columns reuse their buffers from block to block (up to [`KEPT_CAPACITY_BYTES_MAX`] each), so a small load costs one
//! allocation: its block.
//!
//! Not its business: conversion and checks of values.

use crate::blocks::block::{
    ALIGNED_HEADER_BYTES, ALIGNED_ROWS_MIN, ALIGNMENT, BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES_MAX, Block,
    FORMAT_ALIGNED, FORMAT_PACKED, Kind, Nulls, tag, varint_len, write_varint,
};
use crate::blocks::columns::array_of;
use crate::blocks::error::BlockError;
use crate::blocks::nested::{Tree, null_buffer};
use arrow::array::ArrayRef;
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType as ArrowType, ToByteSlice};
use bytes::Bytes;
use std::sync::Arc;
use tributary_types::{DataType, TableSchema};

/// A column whose buffers grew beyond this frees them when its block is finished, in bytes.
const KEPT_CAPACITY_BYTES_MAX: usize = 1024 * 1024;

/// Builds blocks of one schema. Keep one per connection and reuse it.
#[derive(Debug)]
pub struct BlockBuilder {
    schema: Arc<TableSchema>,
    columns: Vec<ColumnBuffer>,
    rows: usize,
}

/// One column's values of the rows so far.
#[derive(Debug)]
pub(crate) struct ColumnBuffer {
    kind: Kind,
    /// Little-endian values, bits as a byte each, or values of any length.
    data: Vec<u8>,
    /// Values of any length only: where each value ends in `data`.
    ends: Vec<u32>,
    /// The rows that are NULL, ascending.
    nulls: Vec<u32>,
    /// Buffer in which a nested value is assembled.
    scratch: Option<Box<Tree>>,
}

impl BlockBuilder {
    /// An empty builder for all columns of `schema`.
    #[must_use]
    pub fn new(schema: &Arc<TableSchema>) -> Self {
        let columns =
            schema.columns.iter().map(|column| ColumnBuffer::new(Kind::of(column.data_type))).collect();
        Self { schema: Arc::clone(schema), columns, rows: 0 }
    }

    /// Takes the builder with its buffers and its rows. What is left in its place takes no rows.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let empty = Self { schema: Arc::clone(&self.schema), columns: Vec::new(), rows: 0 };
        std::mem::replace(self, empty)
    }

    /// The schema that blocks are built for.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Drops all rows and resets the builder to `schema`, which may be another table's.
    pub fn reset(&mut self, schema: &Arc<TableSchema>) {
        if Arc::ptr_eq(&self.schema, schema) {
            self.clear();
        } else {
            *self = Self::new(schema);
        }
    }

    /// The number of finished rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// The memory that the builder holds, with rows in it or without, in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuffer::capacity_bytes).sum()
    }

    /// The bytes of the values of all rows, and of the row under construction.
    #[inline]
    pub(crate) fn stored_bytes(&self) -> usize {
        self.columns.iter().map(|column| column.data.len()).sum()
    }

    /// Drops all rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.columns.iter_mut().for_each(ColumnBuffer::clear);
    }

    #[inline]
    pub(crate) fn column_mut(&mut self, index: usize) -> &mut ColumnBuffer {
        &mut self.columns[index]
    }

    pub(crate) fn column(&self, index: usize) -> &ColumnBuffer {
        &self.columns[index]
    }

    /// Pushes NULL to column `index` of the row under construction.
    pub fn push_null(&mut self, index: usize) {
        self.columns[index].push_null();
    }

    /// Pushes a BOOLEAN.
    ///
    /// # Panics
    /// Like all `push_…`, if the column is not of a type that is stored so: a mistake in the caller.
    pub fn push_bool(&mut self, index: usize, value: bool) {
        self.checked(index, Kind::Bits).push_fixed([u8::from(value)]);
    }

    /// Pushes a TINYINT.
    pub fn push_i8(&mut self, index: usize, value: i8) {
        self.checked(index, Kind::Fixed1).push_fixed(value.to_le_bytes());
    }

    /// Pushes a SMALLINT.
    pub fn push_i16(&mut self, index: usize, value: i16) {
        self.checked(index, Kind::Fixed2).push_fixed(value.to_le_bytes());
    }

    /// Pushes an INT, or a DATE in days since 1970-01-01.
    pub fn push_i32(&mut self, index: usize, value: i32) {
        self.checked(index, Kind::Fixed4).push_fixed(value.to_le_bytes());
    }

    /// Pushes a BIGINT, or a DATETIME in µs since 1970-01-01 00:00:00.
    pub fn push_i64(&mut self, index: usize, value: i64) {
        self.checked(index, Kind::Fixed8).push_fixed(value.to_le_bytes());
    }

    /// Pushes a LARGEINT, or a DECIMAL as its value times ten to the scale.
    pub fn push_i128(&mut self, index: usize, value: i128) {
        self.checked(index, Kind::Fixed16).push_fixed(value.to_le_bytes());
    }

    /// Pushes a FLOAT.
    pub fn push_f32(&mut self, index: usize, value: f32) {
        self.checked(index, Kind::Fixed4).push_fixed(value.to_le_bytes());
    }

    /// Pushes a DOUBLE.
    pub fn push_f64(&mut self, index: usize, value: f64) {
        self.checked(index, Kind::Fixed8).push_fixed(value.to_le_bytes());
    }

    /// Pushes a CHAR, VARCHAR, STRING or JSON.
    pub fn push_text(&mut self, index: usize, value: &str) {
        self.checked(index, Kind::Text).push_text(value.as_bytes());
    }

    /// Pushes a BITMAP or HLL.
    pub fn push_bytes(&mut self, index: usize, value: &[u8]) {
        self.checked(index, Kind::Raw).push_text(value);
    }

    fn checked(&mut self, index: usize, kind: Kind) -> &mut ColumnBuffer {
        let column = &mut self.columns[index];
        assert_eq!(column.kind, kind, "value of another kind pushed to column {index}");
        column
    }

    /// Ends the row under construction, which must have a value for every column.
    #[inline]
    pub fn finish_row(&mut self) {
        self.rows += 1;
        debug_assert!(self.columns.iter().all(|column| column.len() == self.rows), "a column was left out");
    }

    /// Says that every column has been given `rows` values.
    pub(crate) fn set_rows(&mut self, rows: usize) {
        debug_assert!(self.columns.iter().all(|column| column.len() == rows), "a column was left out");
        self.rows = rows;
    }

    /// Removes everything pushed since the last finished row.
    pub fn rollback_row(&mut self) {
        let rows = self.rows;
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
    }

    /// Writes the finished rows out as a block and starts a new one.
    ///
    /// # Errors
    /// [`BlockError::TooManyRows`] or [`BlockError::TooMuchText`] if they exceed what a block can hold (2^24 rows, 2 GB of text
    /// in a column), and the builder has no rows then: callers finish a block long before, see [`crate::BLOCK_ROWS_TARGET`].
    pub fn finish(&mut self) -> Result<Block, BlockError> {
        if let Err(error) = self.check_size() {
            self.clear();
            return Err(error);
        }
        let bytes = if self.rows < ALIGNED_ROWS_MIN { self.write_packed() } else { self.write_aligned() };
        self.rows = 0;
        self.columns.iter_mut().for_each(ColumnBuffer::recycle);
        Ok(Block::from_trusted_bytes(Bytes::from(bytes)).expect("the builder writes a well-formed header"))
    }

    fn check_size(&self) -> Result<(), BlockError> {
        if self.rows > BLOCK_ROWS_MAX {
            return Err(BlockError::TooManyRows { rows: self.rows, limit: BLOCK_ROWS_MAX });
        }
        let is_long =
            |column: &ColumnBuffer| column.kind.is_variable() && column.data.len() > BLOCK_TEXT_BYTES_MAX;
        match self.columns.iter().position(is_long) {
            None => Ok(()),
            Some(index) => Err(BlockError::TooMuchText {
                column: self.schema.columns[index].name.clone(),
                text_bytes: self.columns[index].data.len(),
                limit: BLOCK_TEXT_BYTES_MAX,
            }),
        }
    }

    fn write_packed(&self) -> Vec<u8> {
        let head = [self.schema.version.0, self.rows as u32, self.columns.len() as u32];
        let head_bytes = 1 + head.iter().map(|&number| varint_len(number)).sum::<usize>();
        let body_bytes = self.columns.iter().map(|column| column.packed_bytes(self.rows)).sum::<usize>();
        let mut out = Vec::with_capacity(head_bytes + body_bytes);
        out.push(FORMAT_PACKED);
        head.iter().for_each(|&number| write_varint(&mut out, number));
        self.columns.iter().for_each(|column| column.write_packed(self.rows, &mut out));
        debug_assert_eq!(out.len(), head_bytes + body_bytes);
        out
    }

    fn write_aligned(&self) -> Vec<u8> {
        let mut size = ALIGNED_HEADER_BYTES + self.columns.len();
        for column in &self.columns {
            size = column.aligned_end(self.rows, size);
        }
        let mut out = Vec::with_capacity(size);
        out.extend_from_slice(&[FORMAT_ALIGNED, 0, 0, 0]);
        for number in [self.schema.version.0, self.rows as u32, self.columns.len() as u32] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend(self.columns.iter().map(|column| tag(column.kind, column.nulls_of(self.rows))));
        self.columns.iter().for_each(|column| column.write_aligned(self.rows, &mut out));
        debug_assert_eq!(out.len(), size);
        out
    }
}

impl ColumnBuffer {
    fn new(kind: Kind) -> Self {
        Self { kind, data: Vec::new(), ends: Vec::new(), nulls: Vec::new(), scratch: None }
    }

    /// An empty buffer for one column of `data_type`.
    pub(crate) fn of_type(data_type: DataType) -> Self {
        Self::new(Kind::of(data_type))
    }

    /// The bytes of all values.
    pub(crate) fn into_stored(self) -> Vec<u8> {
        self.data
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The number of values, including those of the unfinished row.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self.kind {
            Kind::Text | Kind::Bytes | Kind::Raw => self.ends.len(),
            fixed => self.data.len() / fixed.width(),
        }
    }

    /// The last value in stored form; `None` if it is NULL.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        let last = self.len().checked_sub(1)?;
        if self.nulls.last() == Some(&(last as u32)) {
            return None;
        }
        Some(self.stored(last))
    }

    /// A value in stored form.
    pub(crate) fn stored(&self, place: usize) -> &[u8] {
        if self.kind.is_variable() {
            let start = place.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
            return &self.data[start..self.ends[place] as usize];
        }
        let width = self.kind.width();
        &self.data[place * width..(place + 1) * width]
    }

    /// The stored values, one behind the other.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The values that are NULL, ascending.
    pub(crate) fn nulls(&self) -> &[u32] {
        &self.nulls
    }

    /// All values as an array of their type, which does not consist of values.
    pub(crate) fn into_array(self, data_type: &ArrowType) -> Result<ArrayRef, BlockError> {
        let len = self.len();
        let nulls = null_buffer(&self.nulls, len);
        let buffers = match self.kind {
            Kind::Bits => vec![self.data.iter().map(|&bit| bit != 0).collect::<BooleanBuffer>().into_inner()],
            Kind::Text | Kind::Bytes | Kind::Raw => {
                let mut offsets = Vec::with_capacity(len + 1);
                offsets.push(0);
                offsets.extend(self.ends.iter().map(|&end| end as i32));
                vec![Buffer::from_vec(offsets), Buffer::from_vec(self.data)]
            }
            _ => vec![Buffer::from_vec(self.data)],
        };
        array_of(data_type.clone(), len, buffers, nulls)
    }

    /// Takes the buffer in which the last value was assembled.
    pub(crate) fn take_scratch(&mut self) -> Option<Box<Tree>> {
        self.scratch.take()
    }

    pub(crate) fn keep_scratch(&mut self, scratch: Box<Tree>) {
        self.scratch = Some(scratch);
    }

    /// Pushes the value that is written.
    pub(crate) fn push_written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert_eq!(self.kind, Kind::Bytes);
        write(&mut self.data);
        self.ends.push(self.data.len() as u32);
    }

    #[inline]
    pub(crate) fn push_fixed<const N: usize>(&mut self, value: [u8; N]) {
        debug_assert_eq!(N, self.kind.width());
        self.data.extend_from_slice(&value);
    }

    /// `value` must be valid UTF-8 in a column of text.
    #[inline]
    pub(crate) fn push_text(&mut self, value: &[u8]) {
        debug_assert!(matches!(self.kind, Kind::Text | Kind::Raw));
        self.data.extend_from_slice(value);
        self.ends.push(self.data.len() as u32);
    }

    pub(crate) fn push_null(&mut self) {
        self.nulls.push(self.len() as u32);
        match self.kind {
            Kind::Text | Kind::Bytes | Kind::Raw => self.ends.push(self.data.len() as u32),
            fixed => self.data.resize(self.data.len() + fixed.width(), 0),
        }
    }

    /// Pushes a value that is already in stored form.
    #[inline]
    pub(crate) fn push_stored(&mut self, value: &[u8]) {
        match self.kind {
            Kind::Text | Kind::Raw => self.push_text(value),
            Kind::Bytes => self.push_written(|out| out.extend_from_slice(value)),
            fixed => {
                debug_assert_eq!(value.len(), fixed.width());
                self.data.extend_from_slice(value);
            }
        }
    }

    /// Appends many stored values at once; NULLs are marked with [`Self::mark_null`].
    pub(crate) fn extend_stored(&mut self, values: &[u8]) {
        debug_assert!(!self.kind.is_variable() && values.len().is_multiple_of(self.kind.width()));
        self.data.extend_from_slice(values);
    }

    /// Marks an already pushed row as NULL; rows must be marked in ascending order.
    pub(crate) fn mark_null(&mut self, row: u32) {
        let width = self.kind.width();
        let start = row as usize * width;
        self.data[start..start + width].fill(0);
        self.nulls.push(row);
    }

    fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
        self.nulls.clear();
    }

    fn capacity_bytes(&self) -> usize {
        self.data.capacity() + (self.ends.capacity() + self.nulls.capacity()) * size_of::<u32>()
    }

    fn recycle(&mut self) {
        if self.capacity_bytes() > KEPT_CAPACITY_BYTES_MAX {
            *self = Self::new(self.kind);
        } else {
            self.clear();
        }
    }

    /// Removes the last values until this many are left.
    pub(crate) fn truncate(&mut self, rows: usize) {
        while self.nulls.last().is_some_and(|&row| row as usize >= rows) {
            self.nulls.pop();
        }
        if self.kind.is_variable() {
            self.ends.truncate(rows);
            self.data.truncate(self.ends.last().map_or(0, |&end| end as usize));
        } else {
            self.data.truncate(rows * self.kind.width());
        }
    }

    fn nulls_of(&self, rows: usize) -> Nulls {
        match self.nulls.len() {
            0 => Nulls::None,
            some if some < rows => Nulls::Some,
            _ => Nulls::All,
        }
    }

    /// The lengths of values of any length.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u32> + '_ {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let length = end - start;
            start = end;
            length
        })
    }

    fn packed_bytes(&self, rows: usize) -> usize {
        let validity = match self.nulls_of(rows) {
            Nulls::None => 0,
            Nulls::Some => rows.div_ceil(8),
            Nulls::All => return 1,
        };
        let values = match self.kind {
            Kind::Bits => rows.div_ceil(8),
            Kind::Text | Kind::Bytes | Kind::Raw => {
                self.lengths().map(varint_len).sum::<usize>() + self.data.len()
            }
            _ => self.data.len(),
        };
        1 + validity + values
    }

    fn write_packed(&self, rows: usize, out: &mut Vec<u8>) {
        let nulls = self.nulls_of(rows);
        out.push(tag(self.kind, nulls));
        match nulls {
            Nulls::All => return,
            Nulls::Some => self.write_validity(rows, out),
            Nulls::None => {}
        }
        match self.kind {
            Kind::Bits => self.write_bits(out),
            Kind::Text | Kind::Bytes | Kind::Raw => {
                self.lengths().for_each(|length| write_varint(out, length));
                out.extend_from_slice(&self.data);
            }
            _ => out.extend_from_slice(&self.data),
        }
    }

    /// The end of the column's last part if the one before it ends at `at`.
    fn aligned_end(&self, rows: usize, mut at: usize) -> usize {
        let nulls = self.nulls_of(rows);
        if nulls == Nulls::All {
            return at;
        }
        let mut part = |size: usize| at = at.next_multiple_of(ALIGNMENT) + size;
        if nulls == Nulls::Some {
            part(rows.div_ceil(8));
        }
        match self.kind {
            Kind::Bits => part(rows.div_ceil(8)),
            Kind::Text | Kind::Bytes | Kind::Raw => {
                part((rows + 1) * 4);
                part(self.data.len());
            }
            _ => part(self.data.len()),
        }
        at
    }

    fn write_aligned(&self, rows: usize, out: &mut Vec<u8>) {
        let nulls = self.nulls_of(rows);
        if nulls == Nulls::All {
            return;
        }
        if nulls == Nulls::Some {
            pad(out);
            self.write_validity(rows, out);
        }
        pad(out);
        match self.kind {
            Kind::Bits => self.write_bits(out),
            Kind::Text | Kind::Bytes | Kind::Raw => {
                out.extend_from_slice(&0u32.to_le_bytes());
                out.extend_from_slice(self.ends.as_slice().to_byte_slice());
                pad(out);
                out.extend_from_slice(&self.data);
            }
            _ => out.extend_from_slice(&self.data),
        }
    }

    fn write_validity(&self, rows: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + rows.div_ceil(8), 0xff);
        if !rows.is_multiple_of(8) {
            out[start + rows / 8] = (1 << (rows % 8)) - 1;
        }
        for &row in &self.nulls {
            out[start + row as usize / 8] &= !(1 << (row % 8));
        }
    }

    fn write_bits(&self, out: &mut Vec<u8>) {
        let pack = |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (index, bit)| byte | bit << index);
        out.extend(self.data.chunks(8).map(pack));
    }
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

#[cfg(test)]
mod tests {
    mod golden;

    use super::*;
    use crate::testing::{column, schema};

    #[test]
    fn a_finished_block_gives_back_the_memory_of_many_rows_whatever_they_are() {
        let mut builder = BlockBuilder::new(&schema(vec![column(0, "t", DataType::String)]));
        let rows = KEPT_CAPACITY_BYTES_MAX / size_of::<u32>() + 1;
        for _ in 0..rows {
            builder.push_null(0);
            builder.finish_row();
        }
        assert!(builder.capacity_bytes() >= 2 * rows * size_of::<u32>());
        assert_eq!(builder.finish().unwrap().row_count(), rows);
        assert_eq!(builder.capacity_bytes(), 0);
        builder.push_text(0, "small");
        builder.finish_row();
        builder.finish().unwrap();
        assert!((5..1000).contains(&builder.capacity_bytes()), "a small load's buffers are kept");
    }
}

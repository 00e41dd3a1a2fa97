//! Turns blocks into Arrow batches.
//!
//! Invariant: rows keep their order. Large blocks give their bytes to Arrow without copying; runs of small ones are appended to
//! shared buffers, so that a group of ten thousand one-row loads becomes one batch.
//!
//! Not its business: other schema versions than the blocks' own (see [`crate::evolve::adapt`]).

use crate::blocks::block::{Block, ColumnParts, Kind, Nulls, TextEnds};
use crate::blocks::error::BlockError;
use crate::blocks::nested;
use arrow::array::{
    ArrayData, ArrayRef, BooleanBufferBuilder, NullBufferBuilder, RecordBatch, RecordBatchOptions, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use tributary_types::{ColumnDef, DataType, Nested, TableSchema};

/// Small blocks are gathered into batches of at most this many rows.
const GATHERED_ROWS_MAX: usize = 64 * 1024;
/// … and of about this many bytes, far below what Arrow's offsets can count.
const GATHERED_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Approximate size of the offsets and NULL positions within a nested value.
const NESTED_OVERHEAD_BYTES: usize = 32;

/// The rows of `blocks`, in order, as batches of `schema`'s Arrow schema. All blocks must be of
/// that schema version.
///
/// # Errors
/// [`BlockError`] if a block is of another version or does not have the schema's columns.
pub fn blocks_to_batches(schema: &TableSchema, blocks: &[Block]) -> Result<Vec<RecordBatch>, BlockError> {
    let arrow = schema.arrow();
    let mut batches = Vec::new();
    let mut gathered = Gathered::new(schema, &arrow);
    for block in blocks {
        check_schema(schema, block)?;
        if block.row_count() == 0 {
            continue;
        }
        if block.is_aligned() {
            batches.extend(gathered.take()?);
            batches.push(aligned_batch(schema, &arrow, block)?);
        } else {
            if gathered.is_full_with(block) {
                batches.extend(gathered.take()?);
            }
            gathered.append(block)?;
        }
    }
    batches.extend(gathered.take()?);
    Ok(batches)
}

/// Upper bound on the bytes of a row in columns beyond those in a packed block: offsets of texts, NULL positions.
#[must_use]
pub fn column_overhead_bytes(schema: &TableSchema) -> u64 {
    let of_column = |column: &ColumnDef| match Kind::of(column.data_type) {
        Kind::Text | Kind::Raw => size_of::<i32>(),
        Kind::Bytes => NESTED_OVERHEAD_BYTES,
        kind if column.nullable => kind.width(),
        _ => 0,
    };
    schema.columns.iter().map(|column| of_column(column) as u64).sum()
}

fn check_schema(schema: &TableSchema, block: &Block) -> Result<(), BlockError> {
    if block.schema_version() != schema.version {
        return Err(BlockError::SchemaVersion { found: block.schema_version(), expected: schema.version });
    }
    if block.column_count() != schema.columns.len() {
        return Err(BlockError::ColumnCount { found: block.column_count(), expected: schema.columns.len() });
    }
    Ok(())
}

#[cold]
fn wrong_kind(column: &ColumnDef, parts: &ColumnParts) -> BlockError {
    BlockError::ColumnType {
        column: column.name.clone(),
        found: format!("{:?}", parts.kind),
        expected: format!("{:?} ({})", Kind::of(column.data_type), column.data_type),
    }
}

fn batch_of(arrow: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, BlockError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(arrow.clone(), arrays, &options)?)
}

/// Arrow checks the layout again here; that costs little and needs no `unsafe`.
pub(crate) fn array_of(
    data_type: ArrowType,
    rows: usize,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, BlockError> {
    let data =
        ArrayData::builder(data_type).len(rows).buffers(buffers).nulls(nulls).align_buffers(true).build()?;
    Ok(make_array(data))
}

fn aligned_batch(schema: &TableSchema, arrow: &SchemaRef, block: &Block) -> Result<RecordBatch, BlockError> {
    let rows = block.row_count();
    let mut columns = block.columns();
    let mut arrays = Vec::with_capacity(schema.columns.len());
    for (column, field) in schema.columns.iter().zip(arrow.fields()) {
        let Some(parts) = columns.next()? else {
            return Err(BlockError::ColumnCount { found: arrays.len(), expected: schema.columns.len() });
        };
        if parts.kind != Kind::of(column.data_type) {
            return Err(wrong_kind(column, &parts));
        }
        arrays.push(match column.data_type {
            DataType::Nested(nested) => nested_array(nested, block, &parts, field.data_type(), rows)?,
            _ => aligned_array(block, &parts, field.data_type(), rows)?,
        });
    }
    batch_of(arrow, arrays, rows)
}

fn aligned_array(
    block: &Block,
    parts: &ColumnParts,
    data_type: &ArrowType,
    rows: usize,
) -> Result<ArrayRef, BlockError> {
    if parts.nulls == Nulls::All {
        return Ok(arrow::array::new_null_array(data_type, rows));
    }
    let part = |range: &std::ops::Range<usize>| Buffer::from(block.bytes().slice(range.clone()));
    let nulls = (parts.nulls == Nulls::Some)
        .then(|| NullBuffer::new(BooleanBuffer::new(part(&parts.validity), 0, rows)));
    let buffers = match parts.kind {
        Kind::Text | Kind::Bytes | Kind::Raw => vec![part(&parts.lengths), part(&parts.values)],
        _ => vec![part(&parts.values)],
    };
    array_of(data_type.clone(), rows, buffers, nulls)
}

/// A column whose values consist of values.
fn nested_array(
    nested: Nested,
    block: &Block,
    parts: &ColumnParts,
    data_type: &ArrowType,
    rows: usize,
) -> Result<ArrayRef, BlockError> {
    if parts.nulls == Nulls::All {
        return Ok(arrow::array::new_null_array(data_type, rows));
    }
    let bytes = block.bytes();
    let nulls = (parts.nulls == Nulls::Some).then(|| {
        NullBuffer::new(BooleanBuffer::new(Buffer::from(bytes.slice(parts.validity.clone())), 0, rows))
    });
    let mut ends = TextEnds::new(block, parts);
    let ends = std::iter::from_fn(|| ends.next_end());
    nested::column(nested, data_type, &bytes[parts.values.clone()], ends, nulls.as_ref())
}

/// Rows of small blocks on their way into one batch.
struct Gathered<'a> {
    schema: &'a TableSchema,
    arrow: &'a SchemaRef,
    columns: Vec<GatheredColumn>,
    rows: usize,
    bytes: usize,
}

struct GatheredColumn {
    kind: Kind,
    values: MutableBuffer,
    bits: BooleanBufferBuilder,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl<'a> Gathered<'a> {
    fn new(schema: &'a TableSchema, arrow: &'a SchemaRef) -> Self {
        let columns = schema.columns.iter().map(|column| GatheredColumn::new(Kind::of(column.data_type)));
        Self { schema, arrow, columns: columns.collect(), rows: 0, bytes: 0 }
    }

    fn is_full_with(&self, block: &Block) -> bool {
        self.rows + block.row_count() > GATHERED_ROWS_MAX
            || self.bytes + block.len_bytes() > GATHERED_BYTES_MAX
    }

    fn append(&mut self, block: &Block) -> Result<(), BlockError> {
        let mut parts = block.columns();
        for (gathered, column) in self.columns.iter_mut().zip(&self.schema.columns) {
            let Some(parts) = parts.next()? else {
                return Err(BlockError::ColumnCount {
                    found: block.column_count(),
                    expected: self.schema.columns.len(),
                });
            };
            if parts.kind != gathered.kind {
                return Err(wrong_kind(column, &parts));
            }
            gathered.append(block, &parts);
        }
        self.rows += block.row_count();
        self.bytes += block.len_bytes();
        Ok(())
    }

    /// Takes the batch of the rows so far, `None` if there are none.
    fn take(&mut self) -> Result<Option<RecordBatch>, BlockError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let fields = self.arrow.fields().iter();
        let arrays = self
            .columns
            .iter_mut()
            .zip(fields)
            .zip(&self.schema.columns)
            .map(|((column, field), of)| column.take(of.data_type, field.data_type(), rows))
            .collect::<Result<_, _>>()?;
        batch_of(self.arrow, arrays, rows).map(Some)
    }
}

impl GatheredColumn {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            values: MutableBuffer::new(0),
            bits: BooleanBufferBuilder::new(0),
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }

    fn append(&mut self, block: &Block, parts: &ColumnParts) {
        let rows = block.row_count();
        if parts.nulls == Nulls::All {
            return self.append_nulls(rows);
        }
        self.append_validity(block, parts, rows);
        let values = &block.bytes()[parts.values.clone()];
        match self.kind {
            Kind::Bits => self.bits.append_packed_range(0..rows, values),
            Kind::Text | Kind::Bytes | Kind::Raw => self.append_text(block, parts, values),
            _ => self.values.extend_from_slice(values),
        }
    }

    fn append_nulls(&mut self, rows: usize) {
        self.nulls.append_n_nulls(rows);
        match self.kind {
            Kind::Bits => self.bits.append_n(rows, false),
            Kind::Text | Kind::Bytes | Kind::Raw => {
                self.offsets.resize(self.offsets.len() + rows, self.values.len() as i32);
            }
            fixed => self.values.resize(self.values.len() + rows * fixed.width(), 0),
        }
    }

    fn append_validity(&mut self, block: &Block, parts: &ColumnParts, rows: usize) {
        if parts.nulls == Nulls::None {
            return self.nulls.append_n_non_nulls(rows);
        }
        let bitmap = &block.bytes()[parts.validity.clone()];
        for row in 0..rows {
            self.nulls.append(bitmap[row / 8] >> (row % 8) & 1 == 1);
        }
    }

    fn append_text(&mut self, block: &Block, parts: &ColumnParts, values: &[u8]) {
        let base = self.values.len();
        self.values.extend_from_slice(values);
        let mut ends = TextEnds::new(block, parts);
        while let Some(end) = ends.next_end() {
            self.offsets.push((base + end) as i32);
        }
    }

    fn take(&mut self, of: DataType, data_type: &ArrowType, rows: usize) -> Result<ArrayRef, BlockError> {
        let nulls = self.nulls.finish();
        if let DataType::Nested(nested) = of {
            let offsets = std::mem::replace(&mut self.offsets, vec![0]);
            let values = std::mem::replace(&mut self.values, MutableBuffer::new(0));
            let ends = offsets[1..].iter().map(|&end| end as usize);
            return nested::column(nested, data_type, &values, ends, nulls.as_ref());
        }
        let values = Buffer::from(std::mem::replace(&mut self.values, MutableBuffer::new(0)));
        let buffers = match self.kind {
            Kind::Bits => vec![self.bits.finish().into_inner()],
            Kind::Text | Kind::Bytes | Kind::Raw => {
                vec![Buffer::from_vec(std::mem::replace(&mut self.offsets, vec![0])), values]
            }
            _ => vec![values],
        };
        array_of(data_type.clone(), rows, buffers, nulls)
    }
}

#[cfg(test)]
mod tests;

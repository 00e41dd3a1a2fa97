//! Turns an Arrow batch with a table's exact types into a block.
//!
//! Not its business: converting other types (see [`crate::decode_batch`]) or splitting.

use crate::blocks::block::{BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES_MAX, Block, Kind};
use crate::blocks::builder::BlockBuilder;
use crate::blocks::error::BlockError;
use crate::blocks::nested::Tree;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use std::sync::Arc;
use tributary_types::{ColumnDef, TableSchema};

/// The batch's rows as one block. Columns are taken by position and must have exactly the
/// schema's Arrow types; names do not matter.
///
/// # Errors
/// [`BlockError`] if a column's count or type differs, a NOT NULL column has a NULL, or the rows or their
/// texts are more than one block can hold.
pub fn batch_to_block(batch: &RecordBatch, schema: &Arc<TableSchema>) -> Result<Block, BlockError> {
    if batch.num_columns() != schema.columns.len() {
        return Err(BlockError::ColumnCount { found: batch.num_columns(), expected: schema.columns.len() });
    }
    if batch.num_rows() > BLOCK_ROWS_MAX {
        return Err(BlockError::TooManyRows { rows: batch.num_rows(), limit: BLOCK_ROWS_MAX });
    }
    let mut builder = BlockBuilder::new(schema);
    for (index, (array, column)) in batch.columns().iter().zip(&schema.columns).enumerate() {
        check(array, column)?;
        match Kind::of(column.data_type) {
            Kind::Bits => push_bits(&mut builder, index, array),
            Kind::Text => push_texts(&mut builder, index, array),
            Kind::Bytes => push_nested(&mut builder, index, column, array)?,
            Kind::Raw => push_raw(&mut builder, index, array),
            _ => push_fixed(&mut builder, index, array),
        }
    }
    builder.set_rows(batch.num_rows());
    builder.finish()
}

fn check(array: &ArrayRef, column: &ColumnDef) -> Result<(), BlockError> {
    let expected = column.data_type.to_arrow();
    if *array.data_type() != expected {
        return Err(BlockError::ColumnType {
            column: column.name.clone(),
            found: array.data_type().to_string(),
            expected: expected.to_string(),
        });
    }
    if !column.takes_null() && array.null_count() > 0 {
        let row = (0..array.len()).find(|&row| array.is_null(row)).unwrap_or_default();
        return Err(BlockError::UnexpectedNull { column: column.name.clone(), row });
    }
    if matches!(Kind::of(column.data_type), Kind::Text | Kind::Raw) {
        let text_bytes = text_bytes(array);
        if text_bytes > BLOCK_TEXT_BYTES_MAX {
            let (column, limit) = (column.name.clone(), BLOCK_TEXT_BYTES_MAX);
            return Err(BlockError::TooMuchText { column, text_bytes, limit });
        }
    }
    Ok(())
}

fn text_bytes(array: &ArrayRef) -> usize {
    let offsets = match array.as_binary_opt::<i32>() {
        Some(bytes) => bytes.value_offsets(),
        None => array.as_string::<i32>().value_offsets(),
    };
    (offsets[offsets.len() - 1] - offsets[0]) as usize
}

fn push_bits(builder: &mut BlockBuilder, index: usize, array: &ArrayRef) {
    for value in array.as_boolean() {
        match value {
            Some(bit) => builder.push_bool(index, bit),
            None => builder.push_null(index),
        }
    }
}

fn push_texts(builder: &mut BlockBuilder, index: usize, array: &ArrayRef) {
    for value in array.as_string::<i32>() {
        match value {
            Some(text) => builder.push_text(index, text),
            None => builder.push_null(index),
        }
    }
}

fn push_raw(builder: &mut BlockBuilder, index: usize, array: &ArrayRef) {
    for value in array.as_binary::<i32>() {
        match value {
            Some(bytes) => builder.push_bytes(index, bytes),
            None => builder.push_null(index),
        }
    }
}

fn push_nested(
    builder: &mut BlockBuilder,
    index: usize,
    of: &ColumnDef,
    array: &ArrayRef,
) -> Result<(), BlockError> {
    let mut tree = Tree::new(of.data_type);
    let column = builder.column_mut(index);
    for row in 0..array.len() {
        if array.is_null(row) {
            column.push_null();
            continue;
        }
        tree.truncate(0);
        tree.extend(array, row..row + 1);
        column.push_written(|out| tree.write(out));
        // Before the offsets of values exceed their 32 bits.
        let text_bytes = column.data().len();
        if text_bytes > BLOCK_TEXT_BYTES_MAX {
            let limit = BLOCK_TEXT_BYTES_MAX;
            return Err(BlockError::TooMuchText { column: of.name.clone(), text_bytes, limit });
        }
    }
    Ok(())
}

fn push_fixed(builder: &mut BlockBuilder, index: usize, array: &ArrayRef) {
    let data = array.to_data();
    let column = builder.column_mut(index);
    let width = column.kind().width();
    let start = data.offset() * width;
    column.extend_stored(&data.buffers()[0].as_slice()[start..start + data.len() * width]);
    if let Some(nulls) = data.nulls() {
        (0..data.len()).filter(|&row| nulls.is_null(row)).for_each(|row| column.mark_null(row as u32));
    }
}

//! Columns in which each row has the same value.

use crate::blocks::builder::BlockBuilder;
use crate::blocks::columns::blocks_to_batches;
use crate::blocks::error::BlockError;
use crate::rows::target::Fill;
use arrow::array::{ArrayRef, UInt32Array, new_null_array};
use std::sync::Arc;
use tributary_types::{ColumnDef, TableSchema};

/// Repeats the value that fills a column `rows` times.
pub(crate) fn constant(
    column: &ColumnDef,
    fill: &Fill,
    rows: usize,
    now_micros: i64,
) -> Result<ArrayRef, BlockError> {
    match fill {
        Fill::Missing => Err(BlockError::NoValue { column: column.name.clone() }),
        Fill::Null => Ok(new_null_array(&column.data_type.to_arrow(), rows)),
        value => {
            let one = one_value(column, value, now_micros)?;
            let indices = UInt32Array::from(vec![0; rows]);
            Ok(arrow::compute::take(&one, &indices, None)?)
        }
    }
}

/// An array with the one value, made the way every other value is made.
fn one_value(column: &ColumnDef, fill: &Fill, now_micros: i64) -> Result<ArrayRef, BlockError> {
    let schema = Arc::new(TableSchema::new(tributary_types::SchemaVersion(1), vec![column.clone()]));
    let mut builder = BlockBuilder::new(&schema);
    fill.push(builder.column_mut(0), column.data_type, now_micros);
    builder.finish_row();
    let batches = blocks_to_batches(&schema, &[builder.finish()?])?;
    let batch = batches.first().expect("one row makes one batch");
    Ok(Arc::clone(batch.column(0)))
}

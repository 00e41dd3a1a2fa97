//! Turns batches of one schema version into batches of a later one.
//!
//! Invariant: columns are matched by [`tributary_types::ColumnId`], never by name, so a rename preserves the values, while a
//! column dropped and added again under the same name starts without them.
//!
//! Not its business: the conversion between types ([`crate::recast()`]).

use crate::blocks::error::BlockError;
use crate::evolve::recast::recast;
use crate::rows::constant::constant;
use crate::rows::target::Fill;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use tributary_types::{ColumnDef, TableSchema};

/// Converts `batch`, of schema `from`, to a batch of schema `to`: dropped columns are left out, renamed and widened ones
/// preserved, those of another type converted, added ones filled with their default or NULL. `now_micros` is the wall-clock time
/// (µs since 1970-01-01 00:00:00 in the table's zone) for defaults that need it.
///
/// # Errors
/// [`BlockError`] if `batch` is not of `from`, a value can't be converted to its column's new type, or an added column is
/// NOT NULL without a default.
pub fn adapt(
    batch: &RecordBatch,
    from: &TableSchema,
    to: &TableSchema,
    now_micros: i64,
) -> Result<RecordBatch, BlockError> {
    if batch.num_columns() != from.columns.len() {
        return Err(BlockError::ColumnCount { found: batch.num_columns(), expected: from.columns.len() });
    }
    let rows = batch.num_rows();
    let arrays = to
        .columns
        .iter()
        .map(|column| match from.index_of_id(column.id) {
            Some(index) => kept(batch.column(index), &from.columns[index], column),
            None => filled(column, rows, now_micros),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(to.arrow(), arrays, &options)?)
}

fn kept(array: &ArrayRef, from: &ColumnDef, to: &ColumnDef) -> Result<ArrayRef, BlockError> {
    let (found, expected) = (from.data_type.to_arrow(), to.data_type.to_arrow());
    if *array.data_type() != found {
        return Err(BlockError::ColumnType {
            column: to.name.clone(),
            found: array.data_type().to_string(),
            expected: expected.to_string(),
        });
    }
    Ok(recast(array, from, to)?)
}

fn filled(column: &ColumnDef, rows: usize, now_micros: i64) -> Result<ArrayRef, BlockError> {
    let fill =
        Fill::of(column).map_err(|reason| BlockError::BadDefault { column: column.name.clone(), reason })?;
    constant(column, &fill, rows, now_micros)
}

#[cfg(test)]
mod tests;

//! Turns Arrow batches of any types into blocks: for INSERT … SELECT and expressions.
//!
//! Columns are matched by position. Each array is wrapped once into something that gives cells;
//! types that no cell can hold are cast to text first.
//!
//! Not its business: running the query.

mod array_cells;

use crate::builder::BlockBuilder;
use crate::loader::{Decoded, InsertOptions, Loader, Progress};
use crate::target::Target;
use array_cells::ArrayCells;
use arrow::array::RecordBatch;
use tributary_types::{ErrorCode, SqlError};

/// Decodes a batch whose columns are the target's fields in order.
///
/// # Errors
/// 1058 if the column counts differ; 1105 if a column's type (a list, a struct) has no text form.
pub fn decode_batch(
    batch: &RecordBatch,
    target: &Target,
    options: &InsertOptions,
    builder: &mut BlockBuilder,
) -> Result<Decoded, SqlError> {
    if batch.num_columns() != target.field_count() {
        return Err(SqlError::detail(
            ErrorCode::ColumnCountMismatch,
            format!(
                "Column count doesn't match value count: {} columns, {} values",
                target.field_count(),
                batch.num_columns()
            ),
        ));
    }
    let offset = options.clock.utc_offset_seconds;
    let columns = batch
        .columns()
        .iter()
        .enumerate()
        .map(|(field, array)| {
            ArrayCells::new(array, offset).map_err(|error| unreadable(field, target, &error))
        })
        .collect::<Result<Vec<_>, _>>()?;
    builder.reset(target.schema());
    let mut progress = Progress::default();
    let mut loader = Loader::new(target, builder, options.rules(), options.clock.now_micros, &mut progress);
    let row_bytes = batch.get_array_memory_size() / batch.num_rows().max(1);
    for row in 0..batch.num_rows() {
        for (field, column) in columns.iter().enumerate() {
            loader.put(field, column.cell(row));
        }
        loader.end_row(row_bytes, String::new);
    }
    loader.end_block();
    Ok(progress.decoded)
}

fn unreadable(field: usize, target: &Target, error: &arrow::error::ArrowError) -> SqlError {
    let name = target
        .column_of(field)
        .map_or_else(|| (field + 1).to_string(), |column| target.name_of(column).to_owned());
    SqlError::detail(ErrorCode::Unknown, format!("value for column '{name}': {error}"))
}

#[cfg(test)]
mod tests;

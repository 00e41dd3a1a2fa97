//! Turns Arrow batches of any types into blocks: for INSERT … SELECT and expressions.
//!
//! Columns are matched by position. Arrays whose values all fit become columns unchanged ([`crate::rows::whole`]); others are
//! wrapped to yield cells, and types without a cell are cast to text first.
//!
//! Not its business: running the query.

use crate::blocks::builder::BlockBuilder;
use crate::rows::loader::{Decoded, InsertOptions, Progress};
use crate::rows::pieces::Pieces;
use crate::rows::target::Target;
use crate::rows::whole::{self, Field, Rows};
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use std::sync::Arc;
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
    for (field, array) in batch.columns().iter().enumerate() {
        let Some(column) = target.column_of(field).filter(|column| column.data_type.is_state()) else {
            continue;
        };
        if !matches!(array.data_type(), DataType::Binary | DataType::Null) {
            return Err(target.not_a_state(column));
        }
    }
    builder.reset(target.schema());
    let mut progress = Progress::default();
    let mut pieces = Pieces::new(batch.clone());
    while let Some(piece) = pieces.next()? {
        let fields: Vec<Field> =
            piece.columns().iter().map(|array| Field::Array(Arc::clone(array))).collect();
        let rows = Rows { fields: &fields, count: piece.num_rows(), first_row: None };
        let now = options.clock.now_micros;
        whole::load(&rows, target, options.rules(), now, builder, &mut progress)?;
    }
    Ok(progress.decoded)
}

#[cfg(test)]
mod tests;

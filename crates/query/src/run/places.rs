//! Places of rows in data files, from the result of a query that shows them.

use crate::error::stream_error;
use crate::model::QueryResult;
use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use datafusion::error::DataFusionError;
use futures::StreamExt;
use std::sync::Arc;
use tributary_table::{FoundRows, Snapshot};
use tributary_types::SqlError;

/// The rows of a result with the columns [`tributary_sql::FILE_COLUMN`] and [`tributary_sql::ROW_COLUMN`], by the paths of
/// the snapshot's files. A row may be there several times.
///
/// # Errors
/// Whatever ends the query.
pub(crate) async fn found_rows(mut result: QueryResult, snapshot: &Snapshot) -> Result<FoundRows, SqlError> {
    let mut found = FoundRows::new();
    while let Some(batch) = result.stream.next().await {
        let batch = batch.map_err(|error| stream_error(&error))?;
        let files = batch.column(0).as_primitive::<Int64Type>().values();
        let rows = batch.column(1).as_primitive::<Int64Type>().values();
        let places: Vec<_> = files.iter().zip(rows).collect();
        for of_file in places.chunk_by(|left, right| left.0 == right.0) {
            let file = usize::try_from(*of_file[0].0).unwrap_or(usize::MAX);
            let path = snapshot.files[file].path();
            let rows = found.entry(path.to_owned()).or_default();
            rows.extend(of_file.iter().map(|(_, row)| row.unsigned_abs()));
        }
    }
    Ok(found)
}

/// Rows of a snapshot's data files with values, each row once.
pub struct PlacedRows {
    result: QueryResult,
    snapshot: Arc<Snapshot>,
    found: FoundRows,
}

impl PlacedRows {
    /// The rows of a result with the columns [`tributary_sql::FILE_COLUMN`], [`tributary_sql::ROW_COLUMN`] and those of the values.
    pub(crate) fn new(result: QueryResult, snapshot: Arc<Snapshot>) -> Self {
        Self { result, snapshot, found: FoundRows::new() }
    }

    /// The values of the next rows. Of several results for one row only the first is used.
    ///
    /// # Errors
    /// Whatever ends the query.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let Some(batch) = self.result.stream.next().await else { return Ok(None) };
        let batch = batch.map_err(|error| stream_error(&error))?;
        let files = batch.column(0).as_primitive::<Int64Type>().values();
        let rows = batch.column(1).as_primitive::<Int64Type>().values();
        let mut is_new = Vec::with_capacity(batch.num_rows());
        for (file, row) in files.iter().zip(rows) {
            let file = usize::try_from(*file).unwrap_or(usize::MAX);
            let path = self.snapshot.files[file].path();
            let of_file = match self.found.get_mut(path) {
                Some(of_file) => of_file,
                None => self.found.entry(path.to_owned()).or_default(),
            };
            is_new.push(of_file.insert(row.unsigned_abs()));
        }
        let values: Vec<usize> = (2..batch.num_columns()).collect();
        let is_new = BooleanArray::from(is_new);
        let batch =
            batch.project(&values).and_then(|values| match is_new.true_count() == values.num_rows() {
                true => Ok(values),
                false => filter_record_batch(&values, &is_new),
            });
        batch.map(Some).map_err(|error| stream_error(&DataFusionError::from(error)))
    }

    /// The places of all rows so far.
    #[must_use]
    pub fn into_found(self) -> FoundRows {
        self.found
    }
}

//! Places of rows in data files, from the result of a query that shows them.

use crate::error::stream_error;
use crate::model::QueryResult;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
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

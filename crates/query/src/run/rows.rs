//! Results of rows that are in memory already.

use crate::error::plan_error;
use crate::model::{Grid, QueryResult, ResultColumn};
use crate::run::output::{self, Nested};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use std::sync::Arc;
use tributary_types::SqlError;

/// A result of whole columns.
pub(crate) fn result(columns: Vec<ResultColumn>, arrays: Vec<ArrayRef>) -> Result<QueryResult, SqlError> {
    let fields = columns.iter().map(|column| Field::new(&column.name, column.data_type.clone(), true));
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let rows = arrays.first().map_or(0, |array| array.len());
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
        .map_err(|error| plan_error(&error.into()))?;
    let stream = futures::stream::iter([Ok(batch)]);
    let stream = Box::pin(RecordBatchStreamAdapter::new(schema, stream));
    Ok(output::result(columns, stream, Nested::Shown))
}

impl QueryResult {
    /// The result that shows these rows.
    ///
    /// # Errors
    /// Never for rows of the columns' types.
    pub fn from_rows(grid: &Grid) -> Result<Self, SqlError> {
        let batch = grid.batch().map_err(|error| plan_error(&error.into()))?;
        let columns = batch
            .schema()
            .fields()
            .iter()
            .map(|field| ResultColumn::computed(field.name(), field.data_type().clone()))
            .collect();
        result(columns, batch.columns().to_vec())
    }
}

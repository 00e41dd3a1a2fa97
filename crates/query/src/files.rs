//! Files of others as tables: what a call of `S3()`, `HTTP()` or `LOCAL()` stands for in a query.
//!
//! Not its business: where files are and how they are decoded; see [`Namespace::files`](crate::Namespace::files).

use crate::engine::QueryEngine;
use crate::error::{external, plan_error};
use crate::labels::type_text;
use crate::model::{QueryResult, SessionView};
use crate::provider::lower_case;
use crate::rows::{Cell, Grid};
use crate::table_functions::TableFunctions;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::datasource::TableProvider;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::fmt;
use std::sync::Arc;
use tributary_sql::{FileCall, SelectQuery};
use tributary_types::SqlError;

/// Files that one call names, as one table.
pub trait FileTable: Send + Sync + 'static {
    /// The columns, all of which may be NULL.
    fn schema(&self) -> &SchemaRef;

    /// How many parts can be read side by side; at least one.
    fn partitions(&self) -> usize;

    /// The rows of a part, from its beginning. Dropping the stream ends the reading.
    fn read(&self, partition: usize) -> BoxStream<'static, Result<RecordBatch, SqlError>>;
}

/// A table as the planner has it.
fn provider(table: Arc<dyn FileTable>) -> Result<Arc<dyn TableProvider>, SqlError> {
    let schema = lower_case(table.schema());
    let parts = (0..table.partitions().max(1)).map(|number| {
        let (table, schema) = (Arc::clone(&table), Arc::clone(&schema));
        Arc::new(Part { table, schema, number }) as Arc<dyn PartitionStream>
    });
    let provider = StreamingTable::try_new(Arc::clone(&schema), parts.collect());
    Ok(Arc::new(provider.map_err(|error| plan_error(&error))?))
}

struct Part {
    table: Arc<dyn FileTable>,
    schema: SchemaRef,
    number: usize,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("number", &self.number).finish_non_exhaustive()
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches = self.table.read(self.number).map(move |batch| {
            let batch = batch.map_err(external)?;
            Ok(RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

impl QueryEngine {
    /// The query with its files found, and what stands for them; `None` if it reads none.
    pub(crate) async fn with_files(
        &self,
        session: &SessionView,
        query: &SelectQuery,
        functions: &mut TableFunctions,
    ) -> Result<Option<SelectQuery>, SqlError> {
        let Some((query, calls)) = query.take_file_calls()? else { return Ok(None) };
        for call in calls {
            let table = self.namespace.files(&call, session).await?;
            functions.add_files(provider(table)?);
        }
        Ok(Some(query))
    }

    /// Answers `DESC FUNCTION s3(…)`.
    ///
    /// # Errors
    /// The files can't be found or read.
    pub async fn describe_files(
        &self,
        session: &SessionView,
        call: &FileCall,
    ) -> Result<QueryResult, SqlError> {
        let table = self.namespace.files(call, session).await?;
        let mut grid = Grid::new(&["Field", "Type", "Null", "Key", "Default", "Extra"]);
        for field in table.schema().fields() {
            let data_type = type_text(field);
            grid.push(vec![
                field.name().as_str().into(),
                data_type.into(),
                "Yes".into(),
                "false".into(),
                Cell::Null,
                "NONE".into(),
            ]);
        }
        QueryResult::from_rows(&grid)
    }
}

//! External files as tables: the meaning of `S3()`, `HTTP()` and `LOCAL()` in a query.
//!
//! Not its business: where files are and how they are decoded; see [`Namespace::files`](crate::namespace::Namespace::files).

use crate::error::{external, plan_error};
use crate::namespace::FileTable;
use crate::scan::provider::lower_case;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::datasource::TableProvider;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;
use tributary_types::SqlError;

/// A table as the planner has it.
pub fn provider(table: Arc<dyn FileTable>) -> Result<Arc<dyn TableProvider>, SqlError> {
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

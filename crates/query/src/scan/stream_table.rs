//! A stream of batches as a table that can be read once.

use crate::scan::provider::lower_case;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::datasource::TableProvider;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// A table over `stream`; its columns have their names in lower case.
pub(crate) fn table(stream: SendableRecordBatchStream) -> Result<Arc<dyn TableProvider>> {
    let schema = lower_case(&stream.schema());
    let part = Arc::new(Once { schema: Arc::clone(&schema), stream: Mutex::new(Some(stream)) });
    Ok(Arc::new(StreamingTable::try_new(schema, vec![part])?))
}

struct Once {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let taken = self.stream.lock().take();
        let Some(stream) = taken else {
            let error =
                exec_datafusion_err!("the body of a load can be read once; name http_stream once in FROM");
            return Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Err(error)])));
        };
        let to = Arc::clone(&schema);
        let renamed =
            stream.map(move |batch| Ok(RecordBatch::try_new(Arc::clone(&to), batch?.columns().to_vec())?));
        Box::pin(RecordBatchStreamAdapter::new(schema, renamed))
    }
}

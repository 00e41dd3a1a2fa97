//! The table function `numbers("number" = "10")`: as many rows as it says, made while they are read.

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::datasource::TableProvider;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use std::sync::Arc;

/// The planner's name of the function.
const NAME: &str = "__numbers";
/// Rows of a batch.
const BATCH_ROWS: i64 = 8192;

/// The table of a call: how many rows, and the number that all of them have, or NULL for those from 0 on. `None` for another function.
///
/// # Errors
/// The arguments are not these.
pub fn called(function: &str, args: &[Expr]) -> Result<Option<Arc<dyn TableProvider>>> {
    if function != NAME {
        return Ok(None);
    }
    let number = |value: &Expr| match value {
        Expr::Literal(ScalarValue::Int64(number), _) => *number,
        Expr::Literal(ScalarValue::Utf8(text), _) => text.as_ref().and_then(|text| text.parse().ok()),
        _ => None,
    };
    let [count, constant] = args else { return plan_err!("numbers takes two arguments") };
    let Some(count) = number(count) else { return plan_err!("numbers takes a whole number of rows") };
    let schema = Arc::new(Schema::new(vec![Field::new("number", DataType::Int64, false)]));
    let rows = Arc::new(Numbers { schema: Arc::clone(&schema), count, constant: number(constant) });
    Ok(Some(Arc::new(StreamingTable::try_new(schema, vec![rows])?)))
}

#[derive(Debug)]
struct Numbers {
    schema: SchemaRef,
    count: i64,
    constant: Option<i64>,
}

impl PartitionStream for Numbers {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, count, constant) = (Arc::clone(&self.schema), self.count, self.constant);
        let starts = (0..count).step_by(BATCH_ROWS as usize);
        let batches = starts.map(move |start| {
            let numbers = start..count.min(start.saturating_add(BATCH_ROWS));
            let column: ArrayRef = Arc::new(match constant {
                Some(constant) => numbers.map(|_| constant).collect::<Int64Array>(),
                None => Int64Array::from_iter_values(numbers),
            });
            Ok(RecordBatch::try_new(Arc::clone(&schema), vec![column])?)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}

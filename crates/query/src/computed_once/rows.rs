//! Rows that are handed on several times: in memory, and in a temporary file if they are many or memory is short.

use arrow::array::{Array, AsArray, BinaryViewArray, RecordBatch, StringViewArray};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use std::sync::Arc;

/// The most bytes of all parts of an aggregation that stay in memory until the end of the query.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// The rows of one part.
pub(super) struct Part {
    in_memory: Arc<Rows>,
    in_file: Option<(SpillManager, Arc<dyn SpillFile>)>,
}

/// Rows in memory.
struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    _memory: MemoryReservation,
}

/// Collects the rows of one of `parts` parts.
pub(super) async fn collected(
    mut rows: SendableRecordBatchStream,
    context: Arc<TaskContext>,
    parts: usize,
) -> Result<Part> {
    let (schema, runtime) = (rows.schema(), context.runtime_env());
    let memory = MemoryConsumer::new("ComputedOnce").register(&runtime.memory_pool);
    let bytes_max = MEMORY_BYTES_MAX / parts.max(1);
    let mut batches = Vec::new();
    let mut file = None;
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let manager = SpillManager::new(Arc::clone(&runtime), metrics, Arc::clone(&schema));
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let bytes = bytes(&batch);
        // The first that does not fit is followed by all others, so that rows stay in order.
        if file.is_none() && memory.size() + bytes <= bytes_max && memory.try_grow(bytes).is_ok() {
            batches.push(batch);
            continue;
        }
        let file = match &mut file {
            Some(file) => file,
            none => none.insert(manager.create_in_progress_file("ComputedOnce")?),
        };
        file.append_batch(&batch)?;
    }
    let file = file.map(|mut file| file.finish()).transpose()?.flatten();
    let in_memory = Arc::new(Rows { schema, batches, _memory: memory });
    Ok(Part { in_memory, in_file: file.map(|file| (manager, file)) })
}

impl Part {
    /// Returns all rows, from the first on.
    pub(super) fn rows(&self) -> Result<SendableRecordBatchStream> {
        let (rows, schema) = (Arc::clone(&self.in_memory), Arc::clone(&self.in_memory.schema));
        let batches = (0..rows.batches.len()).map(move |at| Ok(rows.batches[at].clone()));
        let in_memory =
            cooperative(RecordBatchStreamAdapter::new(Arc::clone(&schema), futures::stream::iter(batches)));
        let Some((manager, file)) = &self.in_file else { return Ok(Box::pin(in_memory)) };
        let in_file = manager.read_spill_as_stream(Arc::clone(file), None)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, in_memory.chain(in_file))))
    }
}

/// Bytes of a batch's rows. Batches of an aggregation are slices of one, which must not count several times.
fn bytes(batch: &RecordBatch) -> usize {
    let of_column = |column: &dyn Array| {
        let long_texts = column.as_string_view_opt().map(StringViewArray::total_buffer_bytes_used);
        let long_bytes = column.as_binary_view_opt().map(BinaryViewArray::total_buffer_bytes_used);
        let whole = column.to_data().get_slice_memory_size();
        whole.unwrap_or_else(|_| column.get_array_memory_size()) + long_texts.or(long_bytes).unwrap_or(0)
    };
    batch.columns().iter().map(|column| of_column(column.as_ref())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use futures::TryStreamExt;

    fn batches() -> Vec<RecordBatch> {
        let batch = |batch: i64| {
            let rows = batch * 1000..(batch + 1) * 1000;
            RecordBatch::try_from_iter([
                ("n", Arc::new(Int64Array::from_iter_values(rows.clone())) as _),
                (
                    "t",
                    Arc::new(StringViewArray::from_iter_values(
                        rows.map(|row| format!("the text of row {row}")),
                    )) as _,
                ),
            ])
            .unwrap()
        };
        (0..20).map(batch).collect()
    }

    /// The part of these rows where queries have `bytes` of memory.
    async fn part_within(bytes: usize) -> (Part, Arc<TaskContext>) {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0).build_arc().unwrap();
        let context = Arc::new(TaskContext::default().with_runtime(runtime));
        let batches = batches();
        let schema = batches[0].schema();
        let rows = futures::stream::iter(batches.into_iter().map(Ok));
        let rows = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
        (collected(rows, Arc::clone(&context), 1).await.unwrap(), context)
    }

    #[tokio::test]
    async fn rows_that_memory_is_too_short_for_wait_in_a_file() {
        for (bytes, in_memory) in [(10 << 20, 20), (150_000, 3), (0, 0)] {
            let (part, context) = part_within(bytes).await;
            assert!(
                part.in_memory.batches.len().abs_diff(in_memory) <= 2,
                "{}",
                part.in_memory.batches.len()
            );
            assert_eq!(part.in_file.is_some(), in_memory < 20);
            for _ in 0..2 {
                let rows: Vec<_> = part.rows().unwrap().try_collect().await.unwrap();
                assert_eq!(rows, batches());
            }
            assert!(context.runtime_env().memory_pool.reserved() <= bytes);
            drop(part);
            assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
        }
    }

    #[test]
    fn slices_of_a_batch_count_once() {
        let batch = &batches()[0];
        let sum: usize = (0..10).map(|part| bytes(&batch.slice(part * 100, 100))).sum();
        assert!(sum <= bytes(batch) + 100, "{sum} of {}", bytes(batch));
    }
}

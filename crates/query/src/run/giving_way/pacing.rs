//! The sides of a nested-loop join, so that it pauses.
//!
//! Such a join collects all rows of its first side and compares each of them with each row of a batch of the second one before it
//! requests the next batch; it does not wait in between. So the first side is counted, and batches of the second one are cut to a
//! number of rows that bounds the number of pairs.

use crate::workarounds::physical::pass_through::{PassThrough, Passes};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_plan::ExecutionPlan;
use futures::{Stream, StreamExt};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

/// Pairs of rows after which a join pauses: some tenths of a second.
const PAIRS_MAX: usize = 1 << 28;
/// The minimum rows of a cut batch. Below a tenth of DataFusion's 8192, a join combines pairs in another, slower way.
const ROWS_MIN: usize = 1024;

/// The sides of a join: the one that it collects, and the one that it requests batch by batch.
pub(super) fn paced(
    kept: Arc<dyn ExecutionPlan>,
    asked: Arc<dyn ExecutionPlan>,
) -> [Arc<dyn ExecutionPlan>; 2] {
    let rows = Arc::new(AtomicUsize::new(0));
    [(Side::Kept, kept), (Side::Asked, asked)].map(|(side, input)| {
        let kept = Arc::clone(&rows);
        PassThrough::over(input, Paced { side, kept })
    })
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Kept,
    Asked,
}

/// Passes on rows unchanged, or in smaller batches.
#[derive(Clone, Debug)]
struct Paced {
    side: Side,
    /// The number of rows that the join has collected; known when it requests the other side.
    kept: Arc<AtomicUsize>,
}

impl Passes for Paced {
    fn name(&self) -> &'static str {
        match self.side {
            Side::Kept => "CountedForPauses",
            Side::Asked => "CutForPauses",
        }
    }

    fn rows(&self, input: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let kept = Arc::clone(&self.kept);
        match self.side {
            Side::Kept => {
                kept.store(0, Ordering::Relaxed);
                Box::pin(Counted { input, kept })
            }
            Side::Asked => Box::pin(Cut { input, kept, rest: None, pairs: 0 }),
        }
    }
}

/// Counts the rows that pass.
struct Counted {
    input: SendableRecordBatchStream,
    kept: Arc<AtomicUsize>,
}

impl Stream for Counted {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(context));
        if let Some(Ok(batch)) = &next {
            self.kept.fetch_add(batch.num_rows(), Ordering::Relaxed);
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for Counted {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// Cuts batches, and pauses when they have made enough pairs.
struct Cut {
    input: SendableRecordBatchStream,
    kept: Arc<AtomicUsize>,
    rest: Option<RecordBatch>,
    /// Pairs since the last pause.
    pairs: usize,
}

impl Stream for Cut {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.pairs >= PAIRS_MAX {
            self.pairs = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match ready!(self.input.poll_next_unpin(context)) {
                Some(Ok(batch)) => batch,
                other => return Poll::Ready(other),
            },
        };
        let kept = self.kept.load(Ordering::Relaxed);
        let rows = (PAIRS_MAX / kept.max(1)).max(ROWS_MIN).min(batch.num_rows());
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        self.pairs = self.pairs.saturating_add(kept.saturating_mul(rows));
        Poll::Ready(Some(Ok(batch.slice(0, rows))))
    }
}

impl RecordBatchStream for Cut {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::task::noop_waker_ref;

    fn cut(kept: usize, rows: i64) -> Cut {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false)]));
        let column = Arc::new(Int64Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("a batch");
        let input = futures::stream::iter([Ok(batch)]);
        Cut {
            input: Box::pin(RecordBatchStreamAdapter::new(schema, input)),
            kept: Arc::new(AtomicUsize::new(kept)),
            rest: None,
            pairs: 0,
        }
    }

    /// The sizes of the batches, a 0 for each pause between them.
    fn steps(mut stream: Cut) -> Vec<usize> {
        let mut context = Context::from_waker(noop_waker_ref());
        let mut steps = Vec::new();
        loop {
            match stream.poll_next_unpin(&mut context) {
                Poll::Ready(Some(batch)) => steps.push(batch.expect("a batch").num_rows()),
                Poll::Ready(None) => return steps,
                Poll::Pending => steps.push(0),
            }
        }
    }

    #[test]
    fn a_join_pauses_after_a_bounded_number_of_pairs() {
        assert_eq!(steps(cut(0, 8192)), [8192], "nothing to compare with");
        assert_eq!(steps(cut(100, 8192)), [8192], "few pairs");
        assert_eq!(steps(cut(PAIRS_MAX / 4096, 8192)), [4096, 0, 4096, 0]);
        assert_eq!(steps(cut(PAIRS_MAX / 3000, 8192)).iter().sum::<usize>(), 8192, "no row is lost");
        assert_eq!(
            steps(cut(usize::MAX, 1500)),
            [ROWS_MIN, 0, 1500 - ROWS_MIN, 0],
            "the batches stay usable"
        );
    }
}

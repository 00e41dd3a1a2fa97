//! The first rows of a result, computed before anybody takes them.

use crate::error::is_of_missing_file;
use crate::model::QueryResult;
use datafusion::physical_plan::EmptyRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use std::future::ready;
use std::sync::Arc;

/// Computes the first rows of a result. Returns `false` if that failed because a file was not there: then the query may be run again.
pub async fn begins(result: &mut QueryResult) -> bool {
    let schema = result.stream.schema();
    let Some(first) = result.stream.next().await else { return true };
    if first.as_ref().is_err_and(is_of_missing_file) {
        return false;
    }
    let empty = Box::pin(EmptyRecordBatchStream::new(Arc::clone(&schema)));
    let rest = std::mem::replace(&mut result.stream, empty);
    let all = futures::stream::once(ready(first)).chain(rest);
    result.stream = Box::pin(RecordBatchStreamAdapter::new(schema, all));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::common::{DataFusionError, Result};
    use datafusion::parquet::errors::ParquetError;

    fn batch(value: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
        RecordBatch::try_from_iter([("a", column)]).expect("a batch")
    }

    fn result(batches: Vec<Result<RecordBatch>>) -> QueryResult {
        let stream = RecordBatchStreamAdapter::new(batch(0).schema(), futures::stream::iter(batches));
        QueryResult { columns: Vec::new(), stream: Box::pin(stream) }
    }

    fn missing() -> DataFusionError {
        let text = "Object Store error: Object at location a/b.parquet not found: 404".to_owned();
        DataFusionError::ParquetError(Box::new(ParquetError::General(text)))
    }

    #[tokio::test]
    async fn a_result_that_has_begun_has_all_rows() {
        let mut two = result(vec![Ok(batch(1)), Ok(batch(2)), Err(missing())]);
        assert!(begins(&mut two).await);
        assert_eq!(two.stream.next().await.expect("the first").expect("rows"), batch(1));
        assert_eq!(two.stream.next().await.expect("the second").expect("rows"), batch(2));
        assert!(two.stream.next().await.expect("the end").is_err(), "rows are out already");
        assert!(begins(&mut result(Vec::new())).await);
    }

    #[tokio::test]
    async fn only_a_missing_file_is_a_reason_to_begin_again() {
        assert!(!begins(&mut result(vec![Err(missing())])).await);
        let mut other = result(vec![Err(DataFusionError::Execution("division by zero".to_owned()))]);
        assert!(begins(&mut other).await);
        assert!(other.stream.next().await.expect("the error").is_err());
    }
}

use super::source::WIDE;
use super::*;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, binary, col, like, lit};
use datafusion::physical_plan::collect;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::prelude::SessionContext;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

const ROWS: i64 = 300_000;
/// Half of the rows have it as `s`, though there are as many different values as rows.
const FREQUENT: i64 = 77;

/// Two files of which each has all rows: `n` counts them, `m` and `t` have the same numbers in no order, and `s` has one of them
/// very often.
struct Files {
    context: SessionContext,
    schema: SchemaRef,
    bytes: u64,
}

const PATHS: [&str; 2] = ["part-1.parquet", "part-2.parquet"];

impl Files {
    async fn new() -> Self {
        Self::with_more(0).await
    }

    /// The files with this number of columns behind `u`, which have the values of `n`.
    async fn with_more(columns: usize) -> Self {
        let more = columns;
        let m = || (0..ROWS).map(|n| n * 7919 % ROWS);
        let columns: [(&str, ArrayRef); 5] = [
            ("n", Arc::new(Int64Array::from_iter_values(0..ROWS))),
            ("m", Arc::new(Int64Array::from_iter_values(m()))),
            ("s", Arc::new(Int64Array::from_iter_values(m().map(|m| if m % 2 == 0 { FREQUENT } else { m })))),
            ("t", Arc::new(StringArray::from_iter_values(m().map(|m| format!("text {m}."))))),
            ("u", Arc::new(StringArray::from_iter_values(m().map(|m| format!("{m}"))))),
        ];
        let n = Arc::clone(&columns[0].1);
        let more = (0..more).map(|column| (format!("more {column}"), Arc::clone(&n)));
        let columns = columns.map(|(name, column)| (name.to_owned(), column)).into_iter().chain(more);
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100_000)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        let (store, size) = (InMemory::new(), bytes.len() as u64);
        for path in PATHS {
            store.put(&Path::from(path), PutPayload::from(bytes.clone())).await.unwrap();
        }
        let context = SessionContext::new();
        let url = ObjectStoreUrl::parse("memory://files").unwrap();
        context.register_object_store(url.as_ref(), Arc::new(store));
        Self { context, schema: batch.schema(), bytes: size }
    }

    fn column(&self, name: &str) -> Arc<dyn PhysicalExpr> {
        col(name, &self.schema).unwrap()
    }

    fn compared(&self, name: &str, operator: Operator, with: i64) -> Arc<dyn PhysicalExpr> {
        binary(self.column(name), operator, lit(with), &self.schema).unwrap()
    }

    fn both(&self, one: Arc<dyn PhysicalExpr>, other: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        binary(one, Operator::And, other, &self.schema).unwrap()
    }

    /// A scan of both files with this filter, after the rule.
    fn scan(
        &self,
        filter: &Arc<dyn PhysicalExpr>,
        shown: &[usize],
        limit: Option<usize>,
    ) -> Arc<dyn ExecutionPlan> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = Precision::Exact(ROWS as usize * 2);
        for column in &mut statistics.column_statistics[..3] {
            column.min_value = Precision::Inexact(ScalarValue::Int64(Some(0)));
            column.max_value = Precision::Inexact(ScalarValue::Int64(Some(ROWS - 1)));
        }
        let source = ParquetSource::new(Arc::clone(&self.schema)).with_predicate(Arc::clone(filter));
        let url = ObjectStoreUrl::parse("memory://files").unwrap();
        let files = PATHS.map(|path| PartitionedFile::new(path, self.bytes));
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_group(files.into_iter().collect())
            .with_statistics(statistics)
            .with_projection_indices(Some(shown.to_vec()))
            .unwrap()
            .with_limit(limit)
            .build();
        all_late(DataSourceExec::from_data_source(config)).unwrap()
    }

    /// The rows that a scan of these columns returns.
    async fn rows_of(&self, filter: &Arc<dyn PhysicalExpr>, shown: &[usize]) -> i64 {
        let batches = collect(self.scan(filter, shown, None), self.context.task_ctx()).await.unwrap();
        batches.iter().map(RecordBatch::num_rows).sum::<usize>() as i64
    }

    /// The rows that a scan of all columns returns, and those of them that pass.
    async fn rows(&self, filter: &Arc<dyn PhysicalExpr>) -> (i64, i64) {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let scan = self.scan(filter, &all, None);
        let batches = collect(scan, self.context.task_ctx()).await.unwrap();
        let passing = |batch: &RecordBatch| {
            let passes = filter.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap();
            datafusion::common::cast::as_boolean_array(&passes).unwrap().true_count() as i64
        };
        (batches.iter().map(|batch| batch.num_rows() as i64).sum(), batches.iter().map(passing).sum())
    }
}

#[tokio::test]
async fn a_filter_that_few_rows_pass_is_asked_by_the_reader() {
    let files = Files::new().await;
    assert_eq!(files.rows(&files.compared("m", Operator::Eq, 7)).await, (2, 2));
    assert_eq!(files.rows(&files.compared("m", Operator::Lt, ROWS / 100)).await, (ROWS / 50, ROWS / 50));
}

#[tokio::test]
async fn a_filter_that_many_rows_pass_is_not_asked() {
    let files = Files::new().await;
    for tenths in [1, 5, 10] {
        let found = files.rows(&files.compared("m", Operator::Lt, ROWS / 10 * tenths)).await;
        assert_eq!(found, (ROWS * 2, ROWS / 5 * tenths));
    }
}

#[tokio::test]
async fn filters_of_several_columns_count_together() {
    let files = Files::new().await;
    let few_s = files.both(
        files.compared("s", Operator::GtEq, 1_000),
        files.compared("s", Operator::Lt, ROWS / 10 + 1_000),
    );
    let both = files.both(files.compared("m", Operator::Lt, ROWS / 10), Arc::clone(&few_s));
    let (rows, passing) = files.rows(&both).await;
    // The one of `s` may give up: half of those with a small `m` pass.
    assert!((passing..=ROWS / 5).contains(&rows), "{rows} {passing}");
    assert_eq!(files.rows(&few_s).await.0, ROWS * 2);
}

#[tokio::test]
async fn a_filter_of_texts_is_asked_if_its_column_is_one_of_many() {
    let files = Files::with_more(WIDE - 4).await;
    let like = |pattern| like(false, false, files.column("t"), lit(pattern), &files.schema).unwrap();
    let few = like("%9999.%");
    assert_eq!(files.rows(&few).await, (60, 60));
    let shown: Vec<usize> = (0..WIDE).collect();
    assert_eq!(files.rows_of(&few, &shown).await, ROWS * 2, "one column less is read");
    assert_eq!(files.rows(&like("text%")).await, (ROWS * 2, ROWS * 2));
    // Most of the first 32 Ki rows are let through.
    let (rows, passing) = files.rows(&like("%1%")).await;
    assert!(rows > passing && rows <= ROWS * 2, "{rows} {passing}");
    let many = files.compared("m", Operator::Lt, ROWS / 2);
    assert_eq!(files.rows(&files.both(many, few)).await.1, 30, "of both conditions");
}

#[tokio::test]
async fn a_filter_of_texts_is_left_to_the_filter_above() {
    let files = Files::new().await;
    let few = like(false, false, files.column("t"), lit("%9999.%"), &files.schema).unwrap();
    assert_eq!(files.rows(&few).await, (ROWS * 2, 60));
    let with_another = files.both(files.compared("m", Operator::Lt, 3_000), few);
    assert_eq!(files.rows(&with_another).await, (6_000, 0));
}

#[tokio::test]
async fn a_filter_that_comes_later_is_asked_once_it_is_complete() {
    let files = Files::new().await;
    let later = Arc::new(DynamicFilterPhysicalExpr::new(vec![files.column("m")], lit(true)));
    let filter: Arc<dyn PhysicalExpr> = Arc::clone(&later) as _;
    assert_eq!(files.rows(&filter).await, (ROWS * 2, ROWS * 2));
    later.update(files.compared("m", Operator::Lt, 1_000)).unwrap();
    assert_eq!(files.rows(&filter).await, (ROWS * 2, 2_000));
    later.mark_complete();
    assert_eq!(files.rows(&filter).await, (2_000, 2_000));
}

#[tokio::test]
async fn a_filter_that_was_estimated_wrongly_gives_up() {
    let files = Files::new().await;
    let filter = files.compared("s", Operator::Eq, FREQUENT);
    let (rows, passing) = files.rows(&filter).await;
    assert_eq!(passing, ROWS + 2);
    let left_out = ROWS * 2 - rows;
    assert!((10_000..30_000).contains(&left_out), "{left_out}");
}

#[tokio::test]
async fn columns_of_filters_alone_are_no_gain() {
    let files = Files::new().await;
    let filter = files.compared("m", Operator::Lt, 1_000);
    assert_eq!(files.rows_of(&filter, &[1]).await, ROWS * 2);
    assert_eq!(files.rows_of(&filter, &[1, 3]).await, ROWS * 2);
    assert_eq!(files.rows_of(&filter, &[1, 3, 4]).await, 2_000);
}

#[tokio::test]
async fn a_scan_that_ends_early_stays() {
    let files = Files::new().await;
    let scan = files.scan(&files.compared("m", Operator::Lt, 1_000), &[0, 1, 3], Some(5));
    let config = scan.downcast_ref::<DataSourceExec>().unwrap().data_source();
    let config = config.downcast_ref::<FileScanConfig>().unwrap();
    assert!(config.file_source().is::<ParquetSource>());
}

#[tokio::test]
async fn parts_of_a_file_are_skipped_by_bounds_as_before() {
    let files = Files::new().await;
    let both =
        files.both(files.compared("n", Operator::Lt, 100_000), files.compared("m", Operator::Lt, 3_000));
    let scan = files.scan(&both, &[0, 1, 2, 3, 4], None);
    let batches = collect(Arc::clone(&scan), files.context.task_ctx()).await.unwrap();
    let passing = (0..100_000).filter(|n| n * 7919 % ROWS < 3_000).count();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2 * passing);
    let metrics = scan.metrics().unwrap();
    let Some(MetricValue::PruningMetrics { pruning_metrics, .. }) =
        metrics.sum_by_name("row_groups_pruned_statistics")
    else {
        panic!("{metrics:?}");
    };
    assert_eq!(pruning_metrics.pruned(), 4);
}

#[tokio::test]
async fn an_error_of_a_filter_is_left_to_the_filter_above() {
    let files = Files::new().await;
    let ratio = binary(files.column("n"), Operator::Divide, files.column("m"), &files.schema).unwrap();
    let fails = binary(ratio, Operator::Gt, lit(1_i64), &files.schema).unwrap();
    let filter = files.both(files.compared("m", Operator::Lt, 1_000), fails);
    assert_eq!(files.rows_of(&filter, &[0, 1, 2, 3, 4]).await, 2_000);
}

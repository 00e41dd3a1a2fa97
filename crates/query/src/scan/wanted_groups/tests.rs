use super::*;
use arrow::array::{Int64Array, RecordBatch};
use arrow::util::pretty::pretty_format_batches;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::physical_plan::aggregates::AggregateInputMode;
use datafusion::physical_plan::collect;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use url::Url;

const LINES: i64 = 200_000;
const GROUPS: i64 = 50_000;

/// Data files: `lines` has four rows for each `k`, and its `h` is half of it; `few` and `most` have keys of it.
async fn context(rules: Vec<Rule>) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2).with_batch_size(1024);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let all = state.physical_optimizers().iter().cloned().chain(rules).collect();
    let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(all).build();
    let context = SessionContext::new_with_state(state);
    let store = InMemory::new();
    let keys = |step: i64| {
        RecordBatch::try_from_iter([("id", numbers((0..GROUPS).step_by(step as usize)))]).unwrap()
    };
    let lines = RecordBatch::try_from_iter([
        ("k", numbers((0..LINES).map(|line| line * 7919 % GROUPS))),
        ("h", numbers((0..LINES).map(|line| line * 7919 % GROUPS / 2))),
        ("v", numbers(0..LINES)),
    ]);
    let tables = [("lines", lines.unwrap()), ("few", keys(1_000)), ("most", keys(2))];
    for (name, batch) in &tables {
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        let payload = PutPayload::from(writer.into_inner().unwrap());
        store.put(&Path::from(format!("{name}.parquet")), payload).await.unwrap();
    }
    context.register_object_store(&Url::parse("memory://files").unwrap(), Arc::new(store));
    for (name, _) in &tables {
        let url = format!("memory://files/{name}.parquet");
        context.register_parquet(*name, url, ParquetReadOptions::default()).await.unwrap();
    }
    context
}

fn numbers(numbers: impl Iterator<Item = i64>) -> arrow::array::ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers))
}

/// The rows as text, and how many rows went into the aggregations of rows of `lines`.
async fn run(context: &SessionContext, sql: &str) -> (String, usize) {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let rows = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    (pretty_format_batches(&rows).unwrap().to_string(), grouped(&plan))
}

fn grouped(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let inputs = || plan.children().into_iter();
    let is_of_lines = |aggregate: &AggregateExec| {
        aggregate.mode().input_mode() == AggregateInputMode::Raw
            && aggregate.input().schema().column_with_name("v").is_some()
    };
    let own = match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) if is_of_lines(aggregate) => {
            inputs().filter_map(|input| input.metrics()?.output_rows()).sum()
        }
        _ => 0,
    };
    own + inputs().map(grouped).sum::<usize>()
}

/// Queries, and the fewest and the most rows that are grouped.
const QUERIES: [(&str, usize, usize); 9] = [
    (
        "SELECT COUNT(*), SUM(s) FROM few JOIN (SELECT k, SUM(v) s FROM lines GROUP BY k) l ON id = k",
        200,
        200,
    ),
    (
        "SELECT COUNT(*), SUM(s) FROM few JOIN (SELECT k, SUM(v) s FROM lines WHERE v < 100000 GROUP BY k) l ON id = k",
        100,
        100,
    ),
    (
        "SELECT COUNT(*), SUM(s) FROM few JOIN (SELECT k, h, SUM(v) s FROM lines GROUP BY k, h) l ON id = k AND id = h * 2",
        200,
        200,
    ),
    (
        "SELECT COUNT(*) FROM few WHERE EXISTS (SELECT 1 FROM (SELECT k, MAX(v) m FROM lines GROUP BY k) l WHERE k = id AND m > id)",
        200,
        200,
    ),
    (
        "SELECT COUNT(*), SUM(s) FROM few JOIN (SELECT k, SUM(v) s FROM most JOIN lines ON most.id = h GROUP BY k) l ON few.id = k",
        100,
        200,
    ),
    // A column that the scan computes has the name of one that it reads.
    (
        "SELECT COUNT(*), SUM(s) FROM few JOIN (SELECT k, SUM(v) s FROM (SELECT k + 1 AS k, v FROM lines) GROUP BY k) l ON id = k",
        196,
        200_000,
    ),
    // The filter gives up.
    (
        "SELECT COUNT(*), SUM(s) FROM most JOIN (SELECT k, SUM(v) s FROM lines GROUP BY k) l ON id = k",
        150_000,
        199_000,
    ),
    // Sums and levels of ROLLUP need all rows.
    (
        "SELECT COUNT(*), SUM(k) FROM few JOIN (SELECT k, SUM(v) s FROM lines GROUP BY k) l ON id = s",
        200_000,
        200_000,
    ),
    (
        "SELECT COUNT(*), SUM(s) FROM few JOIN (SELECT k, SUM(v) s FROM lines GROUP BY ROLLUP(k)) l ON id = k",
        200_000,
        200_000,
    ),
];

#[tokio::test]
async fn rows_of_groups_that_no_join_looks_for_are_left_out() {
    let (with, without) = (context(vec![wanted_groups()]).await, context(Vec::new()).await);
    for (sql, least, most) in QUERIES {
        let (rows, grouped) = run(&with, sql).await;
        assert!((least..=most).contains(&grouped), "{grouped} rows were grouped: {sql}");
        let (expected, all) = run(&without, sql).await;
        assert_eq!(rows, expected, "{sql}");
        assert!(all >= grouped && all >= 100_000, "{all} rows were grouped without the rule: {sql}");
    }
}

use super::*;
use arrow::array::{Int64Array, RecordBatch};
use arrow::util::pretty::pretty_format_batches;
use datafusion::common::DataFusionError;
use datafusion::datasource::MemTable;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{ExecutionPlanProperties, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;

const ROWS: i64 = 50_000;

/// Tables `t` and `u` with the columns `k`, of 1,000 values, and `v`, which counts the rows.
fn context() -> SessionContext {
    let state = SessionStateBuilder::new()
        .with_config(SessionConfig::new().with_target_partitions(3))
        .with_default_features()
        .with_query_planner(Arc::new(Planner))
        .build();
    let context = SessionContext::new_with_state(state);
    let part = |part: i64| {
        let rows = || (0..ROWS).filter(move |row| row % 2 == part);
        RecordBatch::try_from_iter([
            ("k", Arc::new(Int64Array::from_iter_values(rows().map(|row| row % 1000))) as _),
            ("v", Arc::new(Int64Array::from_iter_values(rows())) as _),
        ])
        .unwrap()
    };
    for name in ["t", "u"] {
        let table = MemTable::try_new(part(0).schema(), vec![vec![part(0)], vec![part(1)]]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context
}

async fn planned(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

/// The steps of this kind in the plan, the outer ones first.
fn steps<T: ExecutionPlan>(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let own = plan.is::<T>().then(|| Arc::clone(plan));
    own.into_iter().chain(plan.children().into_iter().flat_map(steps::<T>)).collect()
}

/// The rows, as text, and their plan after they were computed.
async fn run(context: &SessionContext, sql: &str) -> (String, Arc<dyn ExecutionPlan>) {
    let plan = planned(context, sql).await;
    let rows = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    (pretty_format_batches(&rows).unwrap().to_string(), plan)
}

/// How many of the marked steps have rows from an aggregation of their own.
fn computed(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let has_run = |step: &Arc<dyn ExecutionPlan>| {
        let aggregates = steps::<AggregateExec>(step);
        aggregates[0].metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0) > 0
    };
    steps::<ComputedOnce>(plan).iter().filter(|step| has_run(step)).count()
}

#[tokio::test]
async fn an_aggregation_that_a_statement_has_several_times_is_computed_once() {
    let context = context();
    let sums = "WITH s AS (SELECT k, SUM(v) AS total FROM t WHERE v >= 10 GROUP BY k)";
    for (sql, marked) in [
        ("SELECT COUNT(*), SUM(total) FROM s WHERE total = (SELECT MAX(total) FROM s)", 2),
        ("SELECT COUNT(*), SUM(a.total + b.total) FROM s a JOIN s b ON a.k = b.k + 1", 2),
        (
            "SELECT COUNT(*), SUM(k) FROM (SELECT * FROM s UNION ALL SELECT * FROM s UNION ALL SELECT * FROM s)",
            3,
        ),
        ("SELECT COUNT(*), SUM(total) FROM s WHERE k IN (SELECT k + 1 FROM s WHERE total > 7)", 2),
        ("SELECT COUNT(*), SUM(k) FROM s", 0),
    ] {
        let sql = format!("{sums} {sql}");
        let (rows, plan) = run(&context, &sql).await;
        let text = displayable(plan.as_ref()).indent(false);
        assert_eq!(steps::<ComputedOnce>(&plan).len(), marked, "{sql}\n{text}");
        assert_eq!(computed(&plan), marked.min(1), "{sql}\n{text}");
        let plain = SessionContext::new();
        for name in ["t", "u"] {
            plain.register_table(name, context.table_provider(name).await.unwrap()).unwrap();
        }
        assert_eq!(rows, run(&plain, &sql).await.0, "{sql}");
    }
}

#[tokio::test]
async fn aggregations_that_differ_are_computed_apart() {
    let context = context();
    for sql in [
        "SELECT SUM(v) FROM t GROUP BY k UNION ALL SELECT SUM(v) FROM u GROUP BY k",
        "SELECT SUM(v) FROM t WHERE v > 1 GROUP BY k UNION ALL SELECT SUM(v) FROM t WHERE v > 2 GROUP BY k",
        "SELECT SUM(v) FROM t GROUP BY k UNION ALL SELECT MAX(v) FROM t GROUP BY k",
        "SELECT SUM(v + random()) FROM t GROUP BY k UNION ALL SELECT SUM(v + random()) FROM t GROUP BY k",
    ] {
        let plan = planned(&context, sql).await;
        assert!(steps::<ComputedOnce>(&plan).is_empty(), "{sql}");
    }
}

#[tokio::test]
async fn scans_of_one_name_and_different_sources_differ() {
    let context = context();
    let sql = "SELECT SUM(v) FROM t GROUP BY k";
    let one = context.sql(sql).await.unwrap();
    context.deregister_table("t").unwrap();
    context.register_table("t", context.table_provider("u").await.unwrap()).unwrap();
    let other = context.sql(sql).await.unwrap();
    let same = one.clone().union(one.clone()).unwrap().create_physical_plan().await.unwrap();
    assert_eq!(steps::<ComputedOnce>(&same).len(), 2);
    let both = one.union(other).unwrap().create_physical_plan().await.unwrap();
    assert!(steps::<ComputedOnce>(&both).is_empty());
}

#[tokio::test]
async fn of_aggregations_within_each_other_the_outer_is_marked() {
    let context = context();
    let sql = "WITH s AS (SELECT total % 7 AS m, COUNT(*) AS n FROM (SELECT k, SUM(v) AS total FROM t GROUP BY k) GROUP BY m)
        SELECT * FROM s UNION ALL SELECT * FROM s";
    let plan = planned(&context, sql).await;
    let marked = steps::<ComputedOnce>(&plan);
    assert_eq!(marked.len(), 2);
    assert!(marked.iter().all(|step| steps::<ComputedOnce>(step).len() == 1));
    let has_both = |step: &Arc<dyn ExecutionPlan>| steps::<AggregateExec>(step).len() == 4;
    assert!(marked.iter().all(has_both), "{}", displayable(plan.as_ref()).indent(false));
}

#[tokio::test]
async fn a_recursive_query_computes_its_aggregations_in_each_step() {
    let context = context();
    let sql = "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r
        WHERE n < (SELECT COUNT(*) FROM u) - 49995 AND n < (SELECT COUNT(*) FROM u) - 49995) SELECT COUNT(*) FROM r";
    let (rows, plan) = run(&context, sql).await;
    assert!(rows.contains("| 6 "), "{rows}");
    assert!(steps::<ComputedOnce>(&plan).is_empty());
}

#[tokio::test]
async fn rows_go_on_when_the_step_that_computes_them_is_dropped() {
    let context = context();
    let sql =
        "WITH s AS (SELECT k, SUM(v) AS total FROM t GROUP BY k) SELECT * FROM s UNION ALL SELECT * FROM s";
    let plan = planned(&context, sql).await;
    let marked = steps::<ComputedOnce>(&plan);
    let parts = marked[0].output_partitioning().partition_count();
    let streams = |step: &Arc<dyn ExecutionPlan>| {
        let streams = (0..parts).map(|part| step.execute(part, context.task_ctx()).unwrap());
        streams.collect::<Vec<_>>()
    };
    let mut first = streams(&marked[0]);
    // It has begun, and is not polled again.
    assert!(futures::poll!(first[0].next()).is_pending());
    drop(first);
    let mut rows = 0;
    for stream in streams(&marked[1]) {
        rows += stream
            .map(|batch| batch.unwrap().num_rows())
            .fold(0, |sum, more| async move { sum + more })
            .await;
    }
    assert_eq!(rows, 1000);
}

#[tokio::test]
async fn an_error_reaches_all_steps() {
    let context = context();
    let sql = "WITH s AS (SELECT k, SUM(10 / (v - 7)) AS total FROM t GROUP BY k) SELECT * FROM s UNION ALL SELECT * FROM s";
    let plan = planned(&context, sql).await;
    for step in steps::<ComputedOnce>(&plan) {
        let error = collect(step, context.task_ctx()).await.unwrap_err();
        assert!(matches!(error.find_root(), DataFusionError::ArrowError(..)), "{error}");
        assert!(error.to_string().contains("Divide by zero"), "{error}");
    }
}

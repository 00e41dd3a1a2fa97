//! Joins that find keys by their place in an array instead of a hash table.
//!
//! If a join has one key, a whole number, DataFusion may put the rows of the first side into an array over the range of their
//! keys: a look-up is then one access, without a hash and a comparison. By itself it does so only if the range is short, or the
//! keys fill a good part of it. The keys of a few orders fill little, but an array over all orders is made in less time than it
//! saves where all their lines are looked up. [`rule`] lets each join have an array that is as long as the rows that it will
//! look up allow.
//!
//! Invariant: the rows of joins and their order are the same.

use crate::scan::home_rule::home_rule;
use crate::workarounds::physical::only_where::Rule;
use crate::workarounds::physical::pass_through::{PassThrough, Passes};
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, StatisticsArgs, StatisticsContext};
use std::collections::HashMap;
use std::sync::Arc;

/// Places of an array for each row that is looked up in it: 16 bytes are cleared to spare a hash and a comparison.
const PLACES_OF_ROW: usize = 4;
/// The most places of an array.
const PLACES_MAX: usize = 16 << 20;
const PLACE_BYTES: usize = 4;
/// An array takes at most this fraction of the memory that a query may have.
const SHARE_OF_MEMORY: usize = 16;
/// Places that any join may have: they are cleared in microseconds.
pub(crate) const PLACES_ALWAYS: usize = 1 << 16;

/// The rule that lets joins have longer arrays. Comes after all rules that change joins, and before the ones that hide filters
/// from estimates.
pub(crate) fn rule() -> Rule {
    home_rule("KeyArrays", with_arrays)
}

fn with_arrays(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let statistics = StatisticsContext::new();
    match has_long(&plan, &statistics)? {
        true => limited(&plan, &statistics),
        false => Ok(plan),
    }
}

/// Whether any join of the plan may have a longer array than others have.
fn has_long(plan: &Arc<dyn ExecutionPlan>, statistics: &StatisticsContext) -> Result<bool> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && places(join, statistics)? > PLACES_ALWAYS
    {
        return Ok(true);
    }
    for child in plan.children() {
        if has_long(child, statistics)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The plan whose joins each have a limit of their own: that of a join also holds for all steps below it, up to the next joins.
fn limited(plan: &Arc<dyn ExecutionPlan>, statistics: &StatisticsContext) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter().map(|child| limited(child, statistics));
    let changed = replace_children_if_necessary(Arc::clone(plan), children.collect::<Result<_>>()?)?;
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) => Ok(PassThrough::over(changed, Limit { places: places(join, statistics)? })),
        None => Ok(changed),
    }
}

/// The most places that the array of a join may have.
fn places(join: &HashJoinExec, statistics: &StatisticsContext) -> Result<usize> {
    let [(key, _)] = join.on() else { return Ok(PLACES_ALWAYS) };
    if !key.data_type(&join.left().schema())?.is_integer() {
        return Ok(PLACES_ALWAYS);
    }
    let asked = statistics.compute(join.right().as_ref(), &StatisticsArgs::new())?;
    let rows = asked.num_rows.get_value().copied().unwrap_or(0);
    // Each part makes an array of its own.
    let parts = match join.partition_mode() {
        PartitionMode::Partitioned => join.right().output_partitioning().partition_count(),
        PartitionMode::CollectLeft | PartitionMode::Auto => 1,
    };
    let (of_rows, most) = (rows.saturating_mul(PLACES_OF_ROW), PLACES_MAX);
    Ok((of_rows.min(most) / parts.max(1)).max(PLACES_ALWAYS))
}

/// Hands on the rows of a join and limits the places of its array.
#[derive(Clone, Debug)]
struct Limit {
    places: usize,
}

impl Limit {
    /// The places for a query with this memory: if it has little, a hash table may fit where an array does not.
    fn within(&self, memory: MemoryLimit) -> usize {
        match memory {
            MemoryLimit::Finite(bytes) => {
                self.places.min(bytes / (SHARE_OF_MEMORY * PLACE_BYTES)).max(PLACES_ALWAYS)
            }
            MemoryLimit::Infinite | MemoryLimit::Unknown => self.places,
        }
    }
}

impl Passes for Limit {
    fn name(&self) -> &'static str {
        "KeyArray"
    }

    fn context(&self, context: Arc<TaskContext>) -> Arc<TaskContext> {
        let mut config = context.session_config().clone();
        let execution = &mut config.options_mut().execution;
        execution.perfect_hash_join_small_build_threshold = self.within(context.memory_pool().memory_limit());
        // Functions are in the plan: only plans that arrive as bytes look for them by name.
        let none = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        Arc::new(TaskContext::new(
            context.task_id(),
            context.session_id(),
            config,
            none.0,
            none.1,
            none.2,
            none.3,
            context.runtime_env(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, RecordBatch};
    use arrow::util::pretty::pretty_format_batches;
    use datafusion::datasource::MemTable;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::execution::session_state::SessionStateBuilder;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::{SessionConfig, SessionContext};

    const LINES: i64 = 400_000;

    /// Tables `orders`, whose `id` are the few multiples of 10,007, `many` with four lines for each number up to 100,000, and
    /// `few` with a hundredth of them.
    fn context(rules: Vec<Rule>, memory: Option<usize>) -> SessionContext {
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(bytes) = memory {
            runtime = runtime.with_memory_limit(bytes, 1.0);
        }
        let config = SessionConfig::new().with_target_partitions(2);
        let state = SessionStateBuilder::new().with_config(config).with_default_features();
        let state = state.with_runtime_env(runtime.build_arc().unwrap()).build();
        let all = state.physical_optimizers().iter().cloned().chain(rules).collect();
        let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(all).build();
        let context = SessionContext::new_with_state(state);
        let ids = |ids: Vec<i64>| {
            let numbers = Int64Array::from_iter_values(0..ids.len() as i64);
            RecordBatch::try_from_iter([
                ("id", Arc::new(Int64Array::from(ids)) as _),
                ("n", Arc::new(numbers) as _),
            ])
            .unwrap()
        };
        for (name, batch) in [
            ("orders", ids((0..10).map(|order| order * 10_007).collect())),
            ("many", ids((0..LINES).map(|line| line / 4).collect())),
            ("few", ids((0..LINES / 100).map(|line| line * 25).collect())),
        ] {
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
            context.register_table(name, Arc::new(table)).unwrap();
        }
        context
    }

    /// The rows as text, and how many arrays were made.
    async fn run(context: &SessionContext, sql: &str) -> (String, usize) {
        let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let rows = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
        (pretty_format_batches(&rows).unwrap().to_string(), arrays(&plan))
    }

    fn arrays(plan: &Arc<dyn ExecutionPlan>) -> usize {
        let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("array_map_created_count"));
        own.map_or(0, |count| count.as_usize()) + plan.children().into_iter().map(arrays).sum::<usize>()
    }

    const JOINS: [(&str, usize); 6] = [
        ("SELECT COUNT(*), SUM(l.n), SUM(o.n) FROM orders o JOIN many l ON o.id = l.id", 1),
        ("SELECT COUNT(*), SUM(l.n) FROM many l WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = l.id)", 1),
        ("SELECT COUNT(*), SUM(l.n), SUM(o.n) FROM orders o JOIN few l ON o.id = l.id", 0),
        ("SELECT COUNT(*), SUM(l.n) FROM orders o JOIN many l ON o.id = l.id AND o.n = l.n / 40028", 0),
        ("SELECT COUNT(*), SUM(l.n) FROM orders o JOIN many l ON o.id * 1.5 = l.id * 1.5", 0),
        (
            "SELECT COUNT(*), SUM(l.n) FROM (SELECT o.id FROM orders o JOIN few f ON o.id = f.id) a JOIN many l ON a.id = l.id",
            1,
        ),
    ];

    #[tokio::test]
    async fn an_array_is_as_long_as_the_rows_that_are_looked_up_allow() {
        let (with, without) = (context(vec![rule()], None), context(Vec::new(), None));
        for (sql, expected) in JOINS {
            let (rows, arrays) = run(&with, sql).await;
            assert_eq!(arrays, expected, "{sql}");
            assert_eq!(rows, run(&without, sql).await.0, "{sql}");
        }
    }

    #[tokio::test]
    async fn without_the_rule_few_keys_in_a_long_range_have_a_hash_table() {
        let without = context(Vec::new(), None);
        assert_eq!(run(&without, JOINS[0].0).await.1, 0);
    }

    #[tokio::test]
    async fn a_query_with_little_memory_has_hash_tables() {
        let little = context(vec![rule()], Some(4 << 20));
        assert_eq!(run(&little, JOINS[0].0).await.1, 0);
        let limit = Limit { places: PLACES_MAX };
        assert_eq!(limit.within(MemoryLimit::Infinite), PLACES_MAX);
        assert_eq!(limit.within(MemoryLimit::Finite(64 << 20)), 1 << 20);
        assert_eq!(limit.within(MemoryLimit::Finite(0)), PLACES_ALWAYS);
    }
}

//! COUNT(DISTINCT …) is computed, never taken from statistics.
//!
//! DataFusion answers aggregates from exact statistics where it can, and assumes one distinct value for a constant, even over no
//! rows: `SELECT COUNT(DISTINCT c), COUNT(*) FROM (SELECT DATE '2000-06-15' AS c FROM nothing) v` was 1, 0. [`counted`] shields
//! such aggregates from the rule. Data files have no counts of distinct values, so nothing is lost.
//!
//! Upstream: no upstream issue found; apache/datafusion#20845 brought the rule.
//!
//! Delete when a constant has no distinct value over no rows.

use crate::workarounds::physical::node_rule::kept_to;
use crate::workarounds::physical::only_where::Rule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use std::sync::Arc;

/// The rule that answers from statistics.
const RULE: &str = "aggregate_statistics";

/// The rules, with the one that answers from statistics confined to correct cases.
pub fn counted(rules: Vec<Rule>) -> Vec<Rule> {
    kept_to(rules, RULE, |plan| !counts_distinct(plan))
}

/// Whether an aggregate somewhere in the plan is over distinct values.
fn counts_distinct(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    let is_distinct = aggregate.is_some_and(|node| node.aggr_expr().iter().any(|expr| expr.is_distinct()));
    is_distinct || plan.children().into_iter().any(counts_distinct)
}

//! Keeps conditions above nodes that they must not pass.
//!
//! DataFusion moves a condition below an aggregate, a window or a join if all columns that it names exist there. A condition
//! without columns names none, so `NULL` or a subquery's value went below `COUNT(*)`, which then counted no rows and showed 0
//! instead of no row; and `RAND() < 0.5` chose among the counted rows instead of the counts.
//!
//! Upstream: no upstream issue found.
//!
//! Delete when `push_down_filter` leaves conditions without columns and volatile ones above aggregates and windows.

use crate::workarounds::logical::guard::{Guard, Rule};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;
use std::sync::Arc;

/// Holds conditions back from the rule that moves them down.
#[derive(Debug)]
pub struct HoldConditions;

impl Guard for HoldConditions {
    const RULE: &'static str = "push_down_filter";

    fn rewrite(
        &self,
        rule: &Rule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return rule.rewrite(plan, config) };
        // The rule merges adjacent filters without a further check.
        let (conditions, input) = merged(filter);
        let (held, others): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|condition| stays_above(condition, &input));
        let done = match conjunction(others) {
            Some(others) => rule.rewrite(LogicalPlan::Filter(Filter::try_new(others, input)?), config)?,
            None => Transformed::no(Arc::unwrap_or_clone(input)),
        };
        if held.is_empty() {
            return Ok(done);
        }
        done.map_data(|plan| {
            let (below, input) = match plan {
                LogicalPlan::Filter(filter) => merged(filter),
                other => (Vec::new(), Arc::new(other)),
            };
            match conjunction(below.into_iter().chain(held)) {
                Some(all) => Ok(LogicalPlan::Filter(Filter::try_new(all, input)?)),
                None => Ok(Arc::unwrap_or_clone(input)),
            }
        })
    }
}

/// The conditions of a filter and of the filters right below it, the lowest first, and their input.
fn merged(filter: Filter) -> (Vec<Expr>, Arc<LogicalPlan>) {
    let mut conditions = split_conjunction_owned(filter.predicate);
    let mut input = filter.input;
    while let LogicalPlan::Filter(below) = input.as_ref() {
        let mut all = split_conjunction_owned(below.predicate.clone());
        all.extend(conditions.into_iter().filter(|condition| !all.contains(condition)).collect::<Vec<_>>());
        conditions = all;
        input = Arc::clone(&below.input);
    }
    (conditions, input)
}

/// Whether a condition applies to the rows of `input` and not to those below it.
fn stays_above(condition: &Expr, input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Aggregate(aggregate) => {
            // Without groups, and in the set without columns, the result has a row even if the input has none.
            let has_total = matches!(aggregate.group_expr.as_slice(), [] | [Expr::GroupingSet(_)]);
            condition.is_volatile() || has_total && condition.column_refs().is_empty()
        }
        LogicalPlan::Window(_) | LogicalPlan::Distinct(_) | LogicalPlan::Join(_) => condition.is_volatile(),
        _ => false,
    }
}

//! ORDER BY … LIMIT over groups: only where no row above them needs the groups that the limit leaves out.
//!
//! DataFusion limits the groups of an aggregate to the limit above it, if it finds the key of the order by name among the columns
//! of the aggregate. Windows in between, such as `COUNT(*) OVER ()`, were then computed over those few groups, and
//! `SELECT ABS(k) AS k FROM (SELECT DISTINCT k FROM t) v ORDER BY k LIMIT 1` took the least `k`. [`limited`] confines the rule to
//! sorts right above their groups, by a column that is only renamed on its way up.
//!
//! Upstream: apache/datafusion#25066, which mends it for windows.
//!
//! Delete when the rule stops at windows and goes by places instead of names.

use crate::workarounds::physical::node_rule::kept_to;
use crate::workarounds::physical::only_where::Rule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use std::sync::Arc;

/// The rule that limits an aggregate's groups.
const RULE: &str = "LimitAggregation";

/// The rules, with the one that limits groups confined to correct cases.
pub fn limited(rules: Vec<Rule>) -> Vec<Rule> {
    kept_to(rules, RULE, sorts_groups)
}

/// Whether each sort with a limit in the plan is right above groups.
fn sorts_groups(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_right = match plan.downcast_ref::<SortExec>() {
        Some(sort) if sort.fetch().is_some() => is_above_groups(sort),
        _ => true,
    };
    is_right && plan.children().into_iter().all(sorts_groups)
}

fn is_above_groups(sort: &SortExec) -> bool {
    let [key] = sort.expr().as_ref() else { return false };
    let Some(key) = key.expr.downcast_ref::<Column>() else { return false };
    let (mut place, mut plan) = (key.index(), sort.input());
    loop {
        if plan.downcast_ref::<AggregateExec>().is_some() {
            return true;
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let shown = projection.expr();
            let Some(column) = shown[place].expr.downcast_ref::<Column>() else { return false };
            let is_like = |name: &str| name == shown[place].alias || name == column.name();
            if shown.iter().enumerate().any(|(other, shown)| other != place && is_like(&shown.alias)) {
                return false;
            }
            (place, plan) = (column.index(), projection.input());
            continue;
        }
        let hands_on = plan.downcast_ref::<CoalescePartitionsExec>().is_some()
            || plan.downcast_ref::<RepartitionExec>().is_some()
            || plan.downcast_ref::<SortPreservingMergeExec>().is_some();
        match plan.children()[..] {
            [input] if hands_on => plan = input,
            _ => return false,
        }
    }
}

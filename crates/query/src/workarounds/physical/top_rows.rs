//! ORDER BY … LIMIT over several partitions: every partition sorts by all keys.
//!
//! DataFusion leaves out of a partition's sort what is constant in that partition, and the merge
//! above puts the partitions in order. But the partitions of one sort tell each other the last
//! row that may still count, by the keys of that sort. Where a key is constant in each partition
//! and another constant in the next, as in the branches of a UNION ALL, one partition's rows then
//! throw out rows of another that come before them. [`sorted_by_all_keys`] gives the sorts their keys back.
//!
//! Upstream: apache/datafusion#23528 mends the same of sorts above.
//!
//! Delete when sorts with a limit keep keys that differ between partitions.
//!
//! slt: order.slt

use crate::workarounds::physical::node_rule::{Changed, node_rule};
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use std::sync::Arc;

/// The rules with one that gives sorts their keys back, before filters of sorts go down to the scans.
pub fn sorted_by_all_keys(mut rules: Vec<Rule>) -> Vec<Rule> {
    let place = rules.iter().rposition(|rule| rule.name().starts_with("FilterPushdown"));
    rules.insert(place.unwrap_or(rules.len()), node_rule("SortByAllKeys", sort_by_all_keys));
    rules
}

/// A sort with a limit below a merge sorts by the keys of the merge.
fn sort_by_all_keys(plan: Arc<dyn ExecutionPlan>) -> Changed {
    match with_all_keys(&plan) {
        Some(sort) => Ok(Transformed::yes(replace_children_if_necessary(plan, vec![sort])?)),
        None => Ok(Transformed::no(plan)),
    }
}

/// The sort below a merge with the merge's keys, if it has a limit and fewer keys.
fn with_all_keys(merge: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let keys = merge.downcast_ref::<SortPreservingMergeExec>()?.expr();
    let [child] = merge.children()[..] else { return None };
    let sort = child.downcast_ref::<SortExec>()?;
    if sort.fetch().is_none() || sort.expr() == keys {
        return None;
    }
    let whole = SortExec::new(keys.clone(), Arc::clone(sort.input()))
        .with_preserve_partitioning(sort.preserve_partitioning())
        .with_fetch(sort.fetch());
    Some(Arc::new(whole))
}

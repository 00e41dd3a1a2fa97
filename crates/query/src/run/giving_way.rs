//! Joins that give way to others.
//!
//! A killed query, or one that is out of time, ends at the next point where it waits. DataFusion makes scans wait now and then;
//! but a join produces millions of rows from a few input rows, and if a condition above rejects all of them, it would run to the
//! end without a pause, and block a thread of the server for all other work.

mod pacing;

use crate::workarounds::physical::node_rule::{Changed, node_rule};
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use std::sync::Arc;

/// The rule that pauses joins after every some batches, and nested loops after every some pairs of rows. Comes after all
/// other rules.
pub fn joins_give_way() -> Rule {
    node_rule("JoinsGiveWay", give_way)
}

fn give_way(plan: Arc<dyn ExecutionPlan>) -> Changed {
    if !is_join(&plan) {
        return Ok(Transformed::no(plan));
    }
    let paced = match (plan.downcast_ref::<NestedLoopJoinExec>(), plan.children()[..].as_ref()) {
        (Some(_), [kept, asked]) => {
            let sides = pacing::paced(Arc::clone(kept), Arc::clone(asked));
            replace_children_if_necessary(plan, sides.into())?
        }
        _ => plan,
    };
    Ok(Transformed::yes(Arc::new(CooperativeExec::new(paced))))
}

fn is_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<CrossJoinExec>().is_some()
        || plan.downcast_ref::<HashJoinExec>().is_some()
        || plan.downcast_ref::<NestedLoopJoinExec>().is_some()
        || plan.downcast_ref::<SortMergeJoinExec>().is_some()
}

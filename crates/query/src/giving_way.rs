//! Joins that give way to others.
//!
//! A query ends when it is killed or its time is over at the next point where it waits. DataFusion makes scans wait now and
//! then; but a join makes millions of rows of a few that it has read, and where a condition above lets none of
//! them through, it would go on to the end without a pause, and keep a thread of the server from all other work.

mod pacing;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use std::sync::Arc;

/// Pauses joins after every some batches, and nested loops after every some pairs of rows. Comes after all other rules.
#[derive(Debug)]
pub struct JoinsGiveWay;

impl PhysicalOptimizerRule for JoinsGiveWay {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
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
            Ok(Transformed::yes(Arc::new(CooperativeExec::new(paced)) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "JoinsGiveWay"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<CrossJoinExec>().is_some()
        || plan.downcast_ref::<HashJoinExec>().is_some()
        || plan.downcast_ref::<NestedLoopJoinExec>().is_some()
        || plan.downcast_ref::<SortMergeJoinExec>().is_some()
}

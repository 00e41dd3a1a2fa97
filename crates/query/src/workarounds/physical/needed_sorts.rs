//! Adds sorts that a plan needs and lacks.
//!
//! DataFusion omits a sort by a constant, and then reorders projections and joins so that the constant is no longer recognised:
//! it refused its own plan, such as that of `RANK() OVER (ORDER BY d.one)` over a join with `(SELECT 1 AS one, …) d`. [`sorted`]
//! sorts any input that is not known to be sorted, before the check.
//!
//! Upstream: no upstream issue found; apache/datafusion#11492 was another plan that the same check refused.
//!
//! Delete when DataFusion does not refuse such a plan of its own.

use crate::workarounds::physical::node_rule::{Changed, node_rule, place_of};
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use std::sync::Arc;

/// The rule that checks whether rows are sorted.
const BEFORE: &str = "SanityCheckPlan";

/// The rules with one that adds sorts, before the check of sort order.
pub fn sorted(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.insert(place_of(&rules, BEFORE), node_rule("NeededSorts", over_sorted_inputs));
    rules
}

/// Sorts the inputs of a node that are not known to have the required order.
fn over_sorted_inputs(plan: Arc<dyn ExecutionPlan>) -> Changed {
    let mut children: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
    let mut changed = false;
    for (child, needed) in children.iter_mut().zip(plan.required_input_ordering()) {
        let Some(needed) = needed else { continue };
        let needed = needed.into_single();
        if !child.equivalence_properties().ordering_satisfy_requirement(needed.clone())? {
            let sort = SortExec::new(needed.into(), Arc::clone(child));
            *child = Arc::new(sort.with_preserve_partitioning(true));
            changed = true;
        }
    }
    match changed {
        true => Ok(Transformed::yes(replace_children_if_necessary(plan, children)?)),
        false => Ok(Transformed::no(plan)),
    }
}

//! Properties of rows below a join or a union that do not hold above it.
//!
//! A column of the side that an outer join fills with NULLs may have one value below the join, as in
//! `LEFT JOIN (SELECT k, 1 AS flag FROM u) v`, and has that value or NULL above. DataFusion treats it as constant and omits it
//! from an ORDER BY. Two columns may be equal in one branch of a UNION ALL and not in the next, as in
//! `SELECT k, k … UNION ALL SELECT k, a …`. DataFusion sorts the first branch by one of them and then finds that the branches
//! have no order in common (apache/datafusion 16171); likewise if a column is constant in only one branch. A key that is constant
//! in each branch, but not the same constant, was missing in the sorts of an ORDER BY with LIMIT, whose partitions tell each other
//! the last row that may still count, and so threw out rows of another. [`guarded`] inserts a node that passes on rows and their
//! order, but neither constants nor equal columns.
//!
//! Two keys of CUBE that are the same column are equal below the aggregate; above it, one of them is NULL in some sets. No sort
//! moves down through the node, so it is also placed above a limit with an OFFSET: DataFusion turned a sort above
//! `LIMIT 2 OFFSET 2` into the first two rows below it, and the limit then skipped them (apache/datafusion 24958).
//!
//! Upstream: apache/datafusion#16171 and apache/datafusion#24958.
//!
//! Delete when both are closed.

use crate::workarounds::physical::node_rule::{Changed, node_rule, place_of};
use crate::workarounds::physical::only_where::Rule;
use crate::workarounds::physical::pass_through::{PassThrough, Passes};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use std::sync::Arc;

/// The rule behind which the sides of a join stay where they are.
const AFTER: &str = "join_selection";

/// The rules with one that puts an `Unknown` where something is to be forgotten, before the rules that ask what is sorted.
pub fn guarded(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.insert(place_of(&rules, AFTER) + 1, node_rule("Forget", forget));
    rules
}

/// Puts an `Unknown` below outer joins, on the sides that they fill with NULLs, below unions, and above limits and sets of
/// groups.
fn forget(plan: Arc<dyn ExecutionPlan>) -> Changed {
    if plan.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0) {
        return Ok(Transformed::yes(PassThrough::over(plan, Forgets::Nothing)));
    }
    if has_sets(&plan) && (has_equal_columns(&plan) || has_constants(&plan)) {
        return Ok(Transformed::yes(PassThrough::over(plan, Forgets::Facts)));
    }
    let forgets = forgetful(&plan);
    if !forgets.contains(&true) {
        return Ok(Transformed::no(plan));
    }
    let children = plan.children().into_iter().zip(forgets);
    let children = children.map(|(child, forgets)| match forgets {
        true => PassThrough::over(Arc::clone(child), Forgets::Facts),
        false => Arc::clone(child),
    });
    let children = children.collect();
    Ok(Transformed::yes(replace_children_if_necessary(plan, children)?))
}

/// A plan that no rule changes any more, without the nodes that only hold sorts back.
///
/// # Errors
/// A node does not accept the input of the one that is left out.
pub fn released(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let release = |node: Arc<dyn ExecutionPlan>| {
        let holds_back = node.downcast_ref::<PassThrough<Forgets>>();
        Ok(match holds_back.filter(|node| matches!(node.passes(), Forgets::Nothing)) {
            Some(holds_back) => Transformed::yes(Arc::clone(holds_back.input())),
            None => Transformed::no(node),
        })
    };
    plan.transform_up(release).data()
}

/// Whether a node groups by several sets of keys.
fn has_sets(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|groups| !groups.group_expr().is_single())
}

/// For each child of a node, whether a property of it does not hold for the node.
fn forgetful(plan: &Arc<dyn ExecutionPlan>) -> Vec<bool> {
    if plan.downcast_ref::<UnionExec>().is_some() {
        let is_forgotten = |child| has_equal_columns(child) || has_constants(child);
        return plan.children().into_iter().map(is_forgotten).collect();
    }
    let nulled = match join_type(plan) {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => return Vec::new(),
    };
    plan.children().into_iter().zip(nulled).map(|(child, nulled)| nulled && has_constants(child)).collect()
}

fn join_type(plan: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    let hash = plan.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let nested = || plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let merge = || plan.downcast_ref::<SortMergeJoinExec>().map(SortMergeJoinExec::join_type);
    hash.or_else(nested).or_else(merge)
}

fn has_constants(plan: &Arc<dyn ExecutionPlan>) -> bool {
    !plan.properties().equivalence_properties().constants().is_empty()
}

fn has_equal_columns(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.properties().equivalence_properties().eq_group().iter().any(|class| class.len() > 1)
}

/// Hands on rows and their order, and perhaps nothing else that is known of them.
#[derive(Clone, Copy, Debug)]
enum Forgets {
    /// Constants and equal columns are forgotten.
    Facts,
    /// Everything stays known; the node is there only to hold sorts back.
    Nothing,
}

impl Passes for Forgets {
    fn name(&self) -> &'static str {
        "Unknown"
    }

    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        let known = input.properties();
        if matches!(self, Self::Nothing) {
            return Arc::clone(known);
        }
        let mut facts = EquivalenceProperties::new(input.schema());
        facts.add_orderings(known.equivalence_properties().oeq_class().iter().cloned());
        let properties =
            PlanProperties::new(facts, known.partitioning.clone(), known.emission_type, known.boundedness);
        Arc::new(properties.with_scheduling_type(known.scheduling_type))
    }

    fn maintains_order(&self) -> bool {
        // No sort moves down: it would lose the keys that are constant or equal below.
        false
    }
}

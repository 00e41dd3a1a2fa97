//! What is known of rows below a join or a union and is not true above it.
//!
//! A column of the side that an outer join fills with NULLs may be one value below the join, as in `LEFT JOIN (SELECT k, 1
//! AS flag FROM u) v`, and is that value or NULL above. DataFusion keeps it for constant and leaves it out of an ORDER BY.
//! Two columns may be equal in one branch of a UNION ALL and not in the next, as in `SELECT k, k … UNION ALL SELECT k, a …`.
//! DataFusion sorts the first branch by one of them and then finds that the branches have no order in common
//! (apache/datafusion 16171); likewise where a column is constant in one branch only. [`guarded`] puts a node between, which hands on rows and their order and says nothing of
//! constants and equal columns.
//!
//! Two keys of CUBE that are the same column are equal below the aggregate; above it one of them is NULL in some sets. And no sort
//! moves down through the node, so it stands above a limit with an OFFSET, too: DataFusion made of a sort above `LIMIT
//! 2 OFFSET 2` the first two rows below it, and the limit then skipped them (apache/datafusion 24958).

use crate::node_rule::{Changed, node_rule, place_of};
use crate::only_where::Rule;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, replace_children_if_necessary};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs,
};
use std::fmt;
use std::sync::Arc;

/// The rule behind which the sides of a join stay where they are.
const AFTER: &str = "join_selection";

/// The rules with one that puts an [`Unknown`] where something is to be forgotten, before the rules that ask what is sorted.
pub fn guarded(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.insert(place_of(&rules, AFTER) + 1, node_rule("Forget", forget));
    rules
}

/// Puts an [`Unknown`] below outer joins, on the sides that they fill with NULLs, below unions, and above limits and sets of
/// groups.
fn forget(plan: Arc<dyn ExecutionPlan>) -> Changed {
    if plan.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0) {
        return Ok(Transformed::yes(Arc::new(Unknown::but_true(plan))));
    }
    if has_sets(&plan) && (has_equal_columns(&plan) || has_constants(&plan)) {
        return Ok(Transformed::yes(Arc::new(Unknown::new(plan))));
    }
    let forgets = forgetful(&plan);
    if !forgets.contains(&true) {
        return Ok(Transformed::no(plan));
    }
    let children = plan.children().into_iter().zip(forgets);
    let children = children.map(|(child, forgets)| match forgets {
        true => Arc::new(Unknown::new(Arc::clone(child))) as Arc<dyn ExecutionPlan>,
        false => Arc::clone(child),
    });
    let children = children.collect();
    Ok(Transformed::yes(replace_children_if_necessary(plan, children)?))
}

/// Whether a node makes groups by several sets of keys.
fn has_sets(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|groups| !groups.group_expr().is_single())
}

/// For each child of a node, whether something is known of it that is not true of the node.
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

/// Hands on rows as they come.
#[derive(Debug)]
struct Unknown {
    input: Arc<dyn ExecutionPlan>,
    /// What is known of the input stays known: it is there only to hold sorts back.
    is_true: bool,
    properties: Arc<PlanProperties>,
}

impl Unknown {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self::over(input, false)
    }

    /// One that hands on what is known of its input, too.
    fn but_true(input: Arc<dyn ExecutionPlan>) -> Self {
        Self::over(input, true)
    }

    fn over(input: Arc<dyn ExecutionPlan>, is_true: bool) -> Self {
        let known = input.properties().equivalence_properties();
        let properties = if is_true {
            known.clone()
        } else {
            let mut properties = EquivalenceProperties::new(input.schema());
            properties.add_orderings(known.oeq_class().iter().cloned());
            properties
        };
        let of_input = input.properties();
        let properties = PlanProperties::new(
            properties,
            of_input.partitioning.clone(),
            of_input.emission_type,
            of_input.boundedness,
        );
        let properties = properties.with_scheduling_type(of_input.scheduling_type);
        Self { input, is_true, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Unknown {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unknown")
    }
}

impl ExecutionPlan for Unknown {
    fn name(&self) -> &'static str {
        "Unknown"
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // No sort moves down: it would lose the keys that are constant or equal below.
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::over(input, self.is_true))),
            _ => internal_err!("Unknown has one input"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("Unknown has one input"),
        }
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}

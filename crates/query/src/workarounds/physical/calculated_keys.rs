//! Conditions that compare a column with an expression computed from it.
//!
//! `REVERSE(g) = g` makes DataFusion take the one for the other wherever it asks what is sorted. It then looks for the order
//! of `g` in that of `REVERSE(g)`, which has none, and finds a sorted window unsorted: "Expects PARTITION BY expression to be
//! ordered". [`hidden_calculations`] writes the comparison in a form in which it says nothing of orders.
//!
//! Upstream: no upstream issue found.
//!
//! Delete when an equality with a calculation says nothing of orders in DataFusion.

use crate::workarounds::physical::node_rule::{Changed, node_rule};
use crate::workarounds::physical::only_where::Rule;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{self, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use std::sync::Arc;

/// The rules with one that hides such conditions, before all others.
pub fn hidden_calculations(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.insert(0, node_rule("HideCalculations", hide));
    rules
}

fn hide(plan: Arc<dyn ExecutionPlan>) -> Changed {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(plan)) };
    let conditions = split_conjunction(filter.predicate());
    if !conditions.iter().any(|condition| is_calculated(condition)) {
        return Ok(Transformed::no(plan));
    }
    let predicate = conjunction(conditions.into_iter().map(hidden));
    let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
    Ok(Transformed::yes(Arc::new(filter)))
}

/// `condition IS TRUE`, if it is about a calculation.
fn hidden(condition: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    let condition = Arc::clone(condition);
    if !is_calculated(&condition) {
        return condition;
    }
    Arc::new(BinaryExpr::new(condition, Operator::IsNotDistinctFrom, lit(true)))
}

/// Whether a condition compares a column with an expression computed from columns.
fn is_calculated(condition: &Arc<dyn PhysicalExpr>) -> bool {
    let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { return false };
    let is_column = |side: &Arc<dyn PhysicalExpr>| side.downcast_ref::<Column>().is_some();
    let is_calculated = |side| !is_column(side) && !collect_columns(side).is_empty();
    *binary.op() == Operator::Eq
        && (is_column(binary.left()) && is_calculated(binary.right())
            || is_column(binary.right()) && is_calculated(binary.left()))
}

/// Whether a condition of a query compares columns with each other: it prunes no files, and is not passed to the scan.
pub fn compares_columns(condition: &logical_expr::Expr) -> bool {
    match condition {
        logical_expr::Expr::BinaryExpr(logical_expr::BinaryExpr { left, op: Operator::Eq, right }) => {
            !left.column_refs().is_empty() && !right.column_refs().is_empty()
        }
        _ => false,
    }
}

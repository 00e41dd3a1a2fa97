//! Keys of joins that are constants become conditions.
//!
//! DataFusion computes keys in a projection below each side of a join. Where both sides then have a column of one name, such
//! as `Boolean(false)`, it gives all columns of a side the same table, and refuses a side that has two columns of one name.
//!
//! Upstream: no upstream issue found.
//!
//! Delete when DataFusion gives calculated keys of both sides names of their own.

use super::guard::{Rule, node_rule};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::optimizer::ApplyOrder;
use std::mem::take;

/// Takes constants out of the keys of joins. Comes after the rules that calculate them.
pub fn rule() -> Rule {
    node_rule("no_constant_keys", ApplyOrder::BottomUp, without_constant_keys)
}

fn without_constant_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    let is_constant = |(left, right): &(Expr, Expr)| {
        matches!(left, Expr::Literal(..)) || matches!(right, Expr::Literal(..))
    };
    let (constant, keys): (Vec<_>, Vec<_>) = take(&mut join.on).into_iter().partition(is_constant);
    join.on = keys;
    if constant.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let op = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let conditions = constant.into_iter().map(|(left, right)| binary_expr(left, op, right));
    join.filter = conjunction(join.filter.take().into_iter().chain(conditions));
    Ok(Transformed::yes(LogicalPlan::Join(join)))
}

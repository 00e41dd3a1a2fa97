//! Conditions of subqueries that compare something of the rows outside with itself.
//!
//! `t.a IN (t.a)` is true unless `t.a` is NULL. DataFusion drops conditions of this kind when it turns subqueries into joins, so
//! that NULL was equal to itself. [`NotNull`] replaces them by their meaning before that.
//!
//! Upstream: no upstream issue found; apache/datafusion#25480 is another fault of the same rule.
//!
//! Delete when decorrelation keeps a condition of outer columns only.

use super::guard::{Rule, node_rule};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;

/// The first of the rules that make joins of subqueries.
pub const BEFORE: &str = "decorrelate_predicate_subquery";

/// Replaces such conditions by `IS NOT NULL`. Runs before the rules that turn subqueries into joins.
pub fn rule() -> Rule {
    node_rule("self_equality_is_not_null", ApplyOrder::TopDown, not_null)
}

fn not_null(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
    if !split_conjunction(&filter.predicate).into_iter().any(is_self_equality) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let conditions = split_conjunction_owned(filter.predicate).into_iter().map(|condition| match condition {
        Expr::BinaryExpr(equality) if is_same(&equality) => Expr::IsNotNull(equality.left),
        other => other,
    });
    let condition = conjunction(conditions).expect("a filter has a condition");
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(condition, filter.input)?)))
}

fn is_self_equality(condition: &Expr) -> bool {
    matches!(condition, Expr::BinaryExpr(equality) if is_same(equality))
}

fn is_same(equality: &BinaryExpr) -> bool {
    equality.op == Operator::Eq
        && equality.left == equality.right
        && equality.left.contains_outer()
        && !equality.left.is_volatile()
}

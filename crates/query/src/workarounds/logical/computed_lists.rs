//! Values of IN lists that are computed from columns are compared one by one.
//!
//! DataFusion takes a list for constant if each of its values is one value for a batch without rows. A CASE whose first
//! branch is a constant may be: all rows of no batch meet its condition. So `6 IN (CASE WHEN a > 0 THEN 5 END, 7)` becomes `6 IN (5, 7)`.
//! [`rule`] takes such values out of their lists: `x IN (v, 7)` is `x = v OR x IN (7)`.
//!
//! Upstream: no upstream issue found.
//!
//! Delete when DataFusion's `InListExpr` asks whether the values of a list have columns.

use super::guard::{Rule, node_rule};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, not};
use datafusion::optimizer::optimizer::ApplyOrder;

/// Takes values with a CASE out of lists. Comes after the rules that make lists of conditions.
pub fn rule() -> Rule {
    node_rule("computed_lists", ApplyOrder::BottomUp, without_computed_values)
}

fn without_computed_values(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        if !expr.exists(|part| Ok(is_misread(part)))? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        Ok(expr.transform(apart)?.update_data(|expr| name.restore(expr)))
    })
}

/// Whether DataFusion may take a list for constant that is not. The value is computed for each comparison, so it must be the same.
fn is_misread(expr: &Expr) -> bool {
    matches!(expr, Expr::InList(list) if list.list.iter().any(is_computed) && !list.expr.is_volatile())
}

/// Whether a value has a CASE over columns.
fn is_computed(value: &Expr) -> bool {
    let has_case = value.exists(|part| Ok(matches!(part, Expr::Case(_))));
    has_case.unwrap_or(true) && !value.column_refs().is_empty()
}

fn apart(expr: Expr) -> Result<Transformed<Expr>> {
    if !is_misread(&expr) {
        return Ok(Transformed::no(expr));
    }
    let Expr::InList(InList { expr, list, negated }) = expr else { return Ok(Transformed::no(expr)) };
    let (computed, others): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_computed);
    let equal = computed.into_iter().map(|value| expr.as_ref().clone().eq(value));
    let listed = (!others.is_empty()).then(|| expr.as_ref().clone().in_list(others, false));
    let Some(found) = equal.chain(listed).reduce(Expr::or) else { return Ok(Transformed::no(*expr)) };
    Ok(Transformed::yes(if negated { not(found) } else { found }))
}

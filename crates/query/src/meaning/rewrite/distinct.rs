//! ORDER BY of SELECT DISTINCT.

use sqlparser::ast::{Expr, OrderByKind, Query, SelectItem, SetExpr};

/// Orders by the items of the list where ORDER BY repeats them: DataFusion knows an item of a DISTINCT list only by its
/// name, which `DATE(at)` in ORDER BY is not.
pub(super) fn order_by_items(query: &mut Query) {
    let SetExpr::Select(select) = &*query.body else { return };
    let Some(order_by) = query.order_by.as_mut().filter(|_| select.distinct.is_some()) else { return };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else { return };
    for key in keys {
        let item = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if *expr == key.expr => Some(alias),
            _ => None,
        });
        // A bare column is known by its own name, too.
        if let Some(alias) = item.filter(|_| !matches!(key.expr, Expr::Identifier(_) | Expr::Value(_))) {
            key.expr = Expr::Identifier(alias.clone());
        }
    }
}

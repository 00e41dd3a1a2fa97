//! HAVING without groups: a MySQL filter on rows, after the select list has been named.

use super::calls;
use sqlparser::ast::{BinaryOperator, Expr, GroupByExpr, Query, Select, SelectItem, Visitor, VisitorMut};
use std::ops::ControlFlow;
use tributary_sql::visit::{walk_expr, walk_expr_mut, walk_item};

/// Moves the HAVING of a SELECT without GROUP BY and without aggregates into its WHERE. Names of the select list are replaced by
/// their expressions.
pub(super) fn move_to_where(select: &mut Select) {
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let is_aggregate = |select: &Select| {
        select.projection.iter().any(|item| walk_item(item, &mut Find::default()).is_break())
            || select.having.iter().any(|having| walk_expr(having, &mut Find::default()).is_break())
    };
    if is_grouped || is_aggregate(select) {
        return;
    }
    let Some(mut condition) = select.having.take() else { return };
    let aliases = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.to_lowercase(), expr.clone())),
            _ => None,
        })
        .collect();
    let _ = walk_expr_mut(&mut condition, &mut Substitute { aliases });
    select.selection = Some(match select.selection.take() {
        None => condition,
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(filter))),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(condition))),
        },
    });
}

/// Breaks off at an aggregate outside of subqueries.
#[derive(Default)]
struct Find {
    subqueries: usize,
}

impl Visitor for Find {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) if self.subqueries == 0 && calls::is_aggregate(call) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

struct Substitute {
    aliases: Vec<(String, Expr)>,
}

impl VisitorMut for Substitute {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr {
            let name = name.value.to_lowercase();
            if let Some((_, meant)) = self.aliases.iter().find(|(alias, _)| *alias == name) {
                *expr = Expr::Nested(Box::new(meant.clone()));
            }
        }
        ControlFlow::Continue(())
    }
}

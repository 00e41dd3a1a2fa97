//! Questions about plans: the places of subqueries, their outer references, and which of them DataFusion may handle.

use super::refused;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, JoinType, LogicalPlan, Operator, Projection, Subquery,
};
use std::collections::{BTreeSet, HashSet};

/// Whether an expression is one subquery.
const fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_))
}

/// Whether a subquery is in an expression.
pub(super) fn asks(expr: &Expr) -> bool {
    let mut found = false;
    let _ = expr.apply(|part| {
        found |= is_subquery(part);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Whether a subquery is in one of a node's own expressions.
pub(super) fn has_subquery(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = plan.apply_expressions(|expr| {
        found |= asks(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Whether a plan has a subquery in an expression, or LATERAL beside a table.
pub(super) fn has_subquery_anywhere(plan: &LogicalPlan) -> bool {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Subquery(_)) || has_subquery(node))).unwrap_or(true)
}

/// `x IN ((SELECT …))`.
pub(super) fn is_one_subquery(list: &[Expr]) -> bool {
    matches!(list, [Expr::ScalarSubquery(_)])
}

/// The only input of a node.
pub(super) fn only_input(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match plan.inputs().as_slice() {
        [input] => Ok((*input).clone()),
        _ => Err(refused(&format!("a subquery in {}", plan.display()))),
    }
}

fn collect_free(expr: &Expr, into: &mut BTreeSet<Column>) {
    let _ = expr.apply(|part| {
        if let Expr::OuterReferenceColumn(_, column) = part {
            into.insert(column.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// The columns of the rows outside that a plan's own nodes ask for. The plan's subqueries are joins already, or
/// ask for nothing further outside.
pub(super) fn free(plan: &LogicalPlan) -> BTreeSet<Column> {
    let mut columns = BTreeSet::new();
    let _ = plan.apply(|node| {
        if let LogicalPlan::Subquery(_) = node {
            // LATERAL: its outer columns are those of the table beside it.
            return Ok(TreeNodeRecursion::Jump);
        }
        node.apply_expressions(|expr| {
            collect_free(expr, &mut columns);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    columns
}

/// Whether outer references occur only in conditions over tables and inner joins, and refer only to the directly outer rows:
/// DataFusion answers those correctly, and without reading the outer rows twice.
pub(super) fn is_plain(subquery: &Subquery, outer: &DFSchema) -> bool {
    let asked = free(&subquery.subquery);
    !asked.is_empty()
        && asked.iter().all(|column| outer.has_column(column))
        && asks_in_conditions(&subquery.subquery, &|_| true)
}

/// Whether only filters, of conditions that `allowed` takes, ask for columns of the rows outside.
fn asks_in_conditions(plan: &LogicalPlan, allowed: &dyn Fn(&Expr) -> bool) -> bool {
    if free(plan).is_empty() {
        return true;
    }
    let own = |plan: &LogicalPlan| {
        let mut columns = BTreeSet::new();
        let _ = plan.apply_expressions(|expr| {
            collect_free(expr, &mut columns);
            Ok(TreeNodeRecursion::Continue)
        });
        columns
    };
    match plan {
        LogicalPlan::Filter(filter) => {
            !asks(&filter.predicate)
                && split_conjunction(&filter.predicate).into_iter().all(|part| {
                    let mut columns = BTreeSet::new();
                    collect_free(part, &mut columns);
                    columns.is_empty() || allowed(part)
                })
                && asks_in_conditions(&filter.input, allowed)
        }
        LogicalPlan::Projection(projection) => {
            own(plan).is_empty() && !has_subquery(plan) && asks_in_conditions(&projection.input, allowed)
        }
        LogicalPlan::SubqueryAlias(alias) => asks_in_conditions(&alias.input, allowed),
        LogicalPlan::Join(join) => {
            join.join_type == JoinType::Inner
                && own(plan).is_empty()
                && !has_subquery(plan)
                && asks_in_conditions(&join.left, allowed)
                && asks_in_conditions(&join.right, allowed)
        }
        _ => false,
    }
}

/// Whether a value is an aggregate over all rows that match the row outside by equality.
pub(super) fn is_plain_aggregate(subquery: &Subquery, outer: &DFSchema) -> bool {
    let asked = free(&subquery.subquery);
    if asked.is_empty() || !asked.iter().all(|column| outer.has_column(column)) {
        return false;
    }
    let mut plan = subquery.subquery.as_ref();
    loop {
        match plan {
            LogicalPlan::Projection(Projection { input, expr, .. }) => {
                let mut columns = BTreeSet::new();
                expr.iter().for_each(|expr| collect_free(expr, &mut columns));
                if !columns.is_empty() || has_subquery(plan) {
                    return false;
                }
                plan = input;
            }
            LogicalPlan::Aggregate(aggregate) => {
                let mut columns = BTreeSet::new();
                aggregate.aggr_expr.iter().for_each(|expr| collect_free(expr, &mut columns));
                return aggregate.group_expr.is_empty()
                    && columns.is_empty()
                    && !has_subquery(plan)
                    && asks_in_conditions(&aggregate.input, &is_equality);
            }
            _ => return false,
        }
    }
}

/// `inside = outside`, with a column of the one, which DataFusion can group by, and a column of the other.
fn is_equality(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let inner = |expr: &Expr| match expr {
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Column(_)),
        other => matches!(other, Expr::Column(_)),
    };
    let outer = |expr: &Expr| matches!(expr, Expr::OuterReferenceColumn(..));
    (inner(left) && outer(right)) || (outer(left) && inner(right))
}

/// The side of a join (0, 1) whose columns alone a condition and its subqueries depend on. `None`: both.
pub(super) fn side_of(condition: &Expr, sides: [&DFSchema; 2]) -> Result<Option<usize>> {
    let mut columns: HashSet<Column> = condition.column_refs().into_iter().cloned().collect();
    condition.apply(|part| {
        let plan = match part {
            Expr::Exists(exists) => &exists.subquery,
            Expr::InSubquery(test) => &test.subquery,
            Expr::SetComparison(comparison) => &comparison.subquery,
            Expr::ScalarSubquery(subquery) => subquery,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(asked_by(plan));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let depends = sides.map(|schema| columns.iter().any(|column| schema.has_column(column)));
    Ok(match depends {
        [_, false] => Some(0),
        [false, true] => Some(1),
        [true, true] => None,
    })
}

/// All outer references of a subquery and its inner subqueries, some of which may refer to the subquery itself.
fn asked_by(subquery: &Subquery) -> BTreeSet<Column> {
    let mut columns = BTreeSet::new();
    let _ = subquery.subquery.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            collect_free(expr, &mut columns);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    columns
}

/// A projection that includes the columns of its input that subqueries of `exprs` reference.
pub(super) fn with_asked<'a>(
    plan: LogicalPlan,
    exprs: impl Iterator<Item = &'a Expr>,
) -> Result<LogicalPlan> {
    let mut asked = BTreeSet::new();
    for expr in exprs {
        expr.apply(|part| {
            if let Expr::ScalarSubquery(subquery) = part {
                asked.extend(asked_by(subquery));
            } else if let Expr::Exists(exists) = part {
                asked.extend(asked_by(&exists.subquery));
            } else if let Expr::InSubquery(test) = part {
                asked.extend(asked_by(&test.subquery));
            } else if let Expr::SetComparison(comparison) = part {
                asked.extend(asked_by(&comparison.subquery));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    asked.retain(|column| !plan.schema().has_column(column));
    match plan {
        LogicalPlan::Projection(Projection { mut expr, input, .. }) if !asked.is_empty() => {
            let missing = asked.into_iter().filter(|column| input.schema().has_column(column));
            expr.extend(missing.map(Expr::Column));
            Ok(LogicalPlan::Projection(Projection::try_new(expr, input)?))
        }
        plan => Ok(plan),
    }
}

/// Whether a plan gives the same rows each time that it runs.
pub(super) fn is_repeatable(plan: &LogicalPlan) -> bool {
    let differs = plan.exists(|node| {
        let mut volatile = false;
        node.apply_expressions(|expr| {
            volatile |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(volatile || is_arbitrary(node))
    });
    matches!(differs, Ok(false))
}

/// Whether a node takes some of its rows, no matter which.
fn is_arbitrary(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Limit(limit) => {
            let mut below = limit.input.as_ref();
            while let LogicalPlan::Projection(Projection { input, .. }) = below {
                below = input;
            }
            !matches!(below, LogicalPlan::Sort(_))
        }
        LogicalPlan::Distinct(Distinct::On(_)) => true,
        _ => false,
    }
}

/// The plan with at least the rows that it has, the same each time: without the limits on its way. `None`: those
/// cannot be left out.
pub(super) fn without_limits(plan: &LogicalPlan) -> Option<LogicalPlan> {
    let has_limit = plan.exists(|node| Ok(matches!(node, LogicalPlan::Limit(_)))).unwrap_or(true);
    if !has_limit {
        return Some(plan.clone());
    }
    match plan {
        LogicalPlan::Limit(limit) => without_limits(&limit.input),
        LogicalPlan::Sort(sort) => without_limits(&sort.input),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Union(_) => {
            let inputs: Option<Vec<LogicalPlan>> = plan.inputs().into_iter().map(without_limits).collect();
            plan.with_new_exprs(plan.expressions(), inputs?).ok()
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            let inputs: Option<Vec<LogicalPlan>> = plan.inputs().into_iter().map(without_limits).collect();
            plan.with_new_exprs(plan.expressions(), inputs?).ok()
        }
        _ => None,
    }
}

//! `GROUP BY … WITH ROLLUP`, `ROLLUP (…)`, `CUBE (…)` and `GROUPING SETS (…)` in one form each.

use super::{ast, calls};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, GroupByWithModifier, Select,
    SelectItem, Value,
};
use std::collections::HashSet;
use tributary_types::{ErrorCode, SqlError};

/// Gives the grouping sets of a SELECT the form that the planner reads. Numbers in them are places in the list.
pub(super) fn sets(select: &mut Select) -> Result<(), SqlError> {
    let GroupByExpr::Expressions(exprs, modifiers) = &mut select.group_by else { return Ok(()) };
    for modifier in std::mem::take(modifiers) {
        let each = exprs.drain(..).map(|expr| vec![expr]).collect();
        match modifier {
            GroupByWithModifier::Rollup => exprs.push(Expr::Rollup(each)),
            GroupByWithModifier::Cube => exprs.push(Expr::Cube(each)),
            other => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    format!("GROUP BY … {other} is not supported; use ROLLUP, CUBE or GROUPING SETS (…)"),
                ));
            }
        }
    }
    for expr in exprs {
        // With a blank before the parenthesis the parser takes them for calls.
        if let Some((name, args)) = calls::plain_call(expr) {
            let sets = args.into_iter().map(set_of).collect();
            match name.as_str() {
                "rollup" => *expr = Expr::Rollup(sets),
                "cube" => *expr = Expr::Cube(sets),
                _ => {}
            }
        }
        if let Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) = expr {
            for part in sets.iter_mut().flatten() {
                if let Some(named) = by_place(part, &select.projection)? {
                    *part = named;
                }
            }
        }
    }
    Ok(())
}

/// Takes any value of the columns in the list that are not grouped, as MySQL does without its mode `ONLY_FULL_GROUP_BY`.
pub(super) fn any_values(select: &mut Select) {
    let GroupByExpr::Expressions(exprs, _) = &select.group_by else { return };
    let is_set = |expr: &Expr| matches!(expr, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
    if exprs.is_empty() || exprs.iter().any(is_set) {
        return;
    }
    let grouped: HashSet<String> = exprs.iter().map(name_of).collect();
    for (item, place) in select.projection.iter_mut().zip(1..) {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.to_lowercase())),
            _ => continue,
        };
        if grouped.contains(&place.to_string()) || alias.is_some_and(|alias| grouped.contains(&alias)) {
            continue;
        }
        let column = match &*expr {
            Expr::Identifier(name) => Some(name.clone()),
            Expr::CompoundIdentifier(parts) => parts.last().cloned(),
            _ => None,
        };
        let before = expr.clone();
        take_any(expr, &grouped);
        if let (SelectItem::UnnamedExpr(expr), Some(alias)) = (&*item, column)
            && *expr != before
        {
            // It keeps its name.
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// The name of a column without its table, or the text of another expression.
fn name_of(expr: &Expr) -> String {
    let name = match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()).unwrap_or_default(),
        Expr::Nested(inner) => return name_of(inner),
        other => other.to_string(),
    };
    name.to_lowercase()
}

fn take_any(expr: &mut Expr, grouped: &HashSet<String>) {
    if grouped.contains(&name_of(expr)) {
        return;
    }
    match expr {
        Expr::Identifier(name) if name.value.starts_with('@') => {}
        Expr::CompoundIdentifier(parts) if parts[0].value.starts_with('@') => {}
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
            let column = std::mem::replace(expr, ast::null());
            *expr = ast::call("any_value", vec![column]);
        }
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
            take_any(inner, grouped);
        }
        Expr::BinaryOp { left, right, .. } => {
            take_any(left, grouped);
            take_any(right, grouped);
        }
        Expr::Function(function) if function.over.is_none() && !calls::is_aggregate(function) => {
            if let FunctionArguments::List(list) = &mut function.args {
                for arg in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg {
                        take_any(arg, grouped);
                    }
                }
            }
        }
        _ => {}
    }
}

/// The most columns of a CUBE that are written out as sets.
const CUBE_MAX: usize = 10;

/// Writes ROLLUP and CUBE that have a column twice out as their sets, each column once in each: the planner knows a
/// column of groups by its name.
pub(super) fn without_repetitions(select: &mut Select) {
    let GroupByExpr::Expressions(exprs, _) = &mut select.group_by else { return };
    for expr in exprs {
        let sets = match expr {
            Expr::Rollup(parts) if repeats(parts) => {
                (0..=parts.len()).rev().map(|count| union(parts.iter().take(count))).collect()
            }
            Expr::Cube(parts) if repeats(parts) && parts.len() <= CUBE_MAX => (0..1_usize << parts.len())
                .rev()
                .map(|chosen| {
                    let parts = parts.iter().enumerate();
                    union(parts.filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, part)| part))
                })
                .collect(),
            _ => continue,
        };
        *expr = Expr::GroupingSets(sets);
    }
}

fn repeats(parts: &[Vec<Expr>]) -> bool {
    union(parts.iter()).len() < parts.iter().map(Vec::len).sum()
}

/// The columns of several sets, each once.
fn union<'a>(parts: impl Iterator<Item = &'a Vec<Expr>>) -> Vec<Expr> {
    let mut columns: Vec<Expr> = Vec::new();
    for column in parts.flatten() {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    columns
}

/// `(a, b)` is one set.
fn set_of(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::Tuple(parts) => parts,
        other => vec![other],
    }
}

/// The item at the place that a number names.
fn by_place(expr: &Expr, items: &[SelectItem]) -> Result<Option<Expr>, SqlError> {
    let Expr::Value(value) = expr else { return Ok(None) };
    let Value::Number(digits, _) = &value.value else { return Ok(None) };
    let place = digits.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
    let before = place.map_or(items, |place| &items[..place.min(items.len())]);
    let is_star =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    match place.and_then(|place| items.get(place)) {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. })
            if !before.iter().any(is_star) =>
        {
            Ok(Some(expr.clone()))
        }
        _ => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!("GROUP BY position {digits} is not in select list; name the column"),
        )),
    }
}

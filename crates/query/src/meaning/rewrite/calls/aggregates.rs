//! Calls of aggregates and window functions: Doris's names and arguments → DataFusion's.

use super::super::{Rewriter, ast};
use super::{as_text, collected, last_name, plain_args, rename, set_args};
use crate::functions::{self, Declared, Family, Means};
use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments,
    NullTreatment, OrderByExpr, Value, visit_expressions,
};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use tributary_types::{ErrorCode, SqlError};

/// Whether a call aggregates many rows into one value. With OVER it computes one value for each row.
pub(in super::super) fn is_aggregate(function: &Function) -> bool {
    static NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let all = datafusion::functions_aggregate::all_default_aggregate_functions();
        let names = all.iter().flat_map(|function| {
            std::iter::once(function.name()).chain(function.aliases().iter().map(String::as_str))
        });
        names.map(str::to_lowercase).collect()
    });
    let name = last_name(&function.name);
    let is_declared = functions::meant(&name).is_some_and(|declared| declared.family == Family::Aggregates);
    function.over.is_none() && (is_declared || NAMES.contains(&name))
}

impl Rewriter<'_> {
    /// An aggregate in DataFusion's words; `None` for a call of something else, or one that needs no change.
    pub(super) fn aggregate(&self, name: &str, function: &mut Function) -> Result<Option<Expr>, SqlError> {
        let Some(mut args) = plain_args(function) else { return Ok(None) };
        function.filter = function.filter.take().map(|condition| Box::new(ast::truth(*condition)));
        match functions::declared(name) {
            Some(Declared { means: Means::OfNumbers(to), .. }) if !args.is_empty() => {
                if *to != "array_agg" {
                    let kind = if *to == "approx_percentile_cont" { "__double" } else { "__numeric" };
                    let first = args.remove(0);
                    args.insert(0, ast::call(kind, vec![first]));
                }
                return Ok(Some(renamed(function, to, args)));
            }
            Some(Declared { means: Means::AggregateOfReals(to), .. }) => {
                let args = args.into_iter().map(|arg| ast::call("__double", vec![arg])).collect();
                return Ok(Some(renamed(function, to, args)));
            }
            Some(Declared { means: Means::Is(to), family: Family::Aggregates, .. }) => {
                return Ok(Some(renamed(function, to, args)));
            }
            _ => {}
        }
        Ok(match (name, args.len()) {
            ("count", 2..) => Some(renamed(function, "count", vec![ast::call("__tuple", args)])),
            ("bool_and" | "bool_or", 1) => {
                Some(renamed(function, name, args.into_iter().map(ast::truth).collect()))
            }
            ("median", 1) => Some(percentile(function, args.remove(0), ast::number("0.5"))),
            ("percentile" | "percentile_cont", 2) => {
                let share = args.remove(1);
                Some(percentile(function, args.remove(0), share))
            }
            ("first_value" | "last_value", 2) => {
                let skips_nulls = is_true(&args.remove(1)).ok_or_else(|| {
                    let text = format!("the second argument of {name} is TRUE, to skip NULLs, or FALSE");
                    SqlError::detail(ErrorCode::Unknown, text)
                })?;
                function.null_treatment = skips_nulls.then_some(NullTreatment::IgnoreNulls);
                Some(renamed(function, name, args))
            }
            ("intersect_count", _) => {
                let args = intersect_count(args)?;
                Some(renamed(function, name, args))
            }
            ("group_concat", _) => Some(self.group_concat(args, function)?),
            _ => collected::collected(name, args, function)?,
        })
    }

    /// `GROUP_CONCAT([DISTINCT] x[, ';'] [ORDER BY c])`, as in Doris: a second argument is the separator, `, ` by default. As in
    /// MySQL, with SEPARATOR or more than two arguments: the arguments are concatenated, and the default separator is `,`.
    fn group_concat(&self, mut args: Vec<Expr>, function: &mut Function) -> Result<Expr, SqlError> {
        let mut order: Vec<OrderByExpr> = Vec::new();
        let mut distinct = false;
        let mut separator = None;
        if let FunctionArguments::List(list) = &mut function.args {
            distinct = list.duplicate_treatment.take() == Some(DuplicateTreatment::Distinct);
            for clause in list.clauses.drain(..) {
                match clause {
                    FunctionArgumentClause::Separator(value) => {
                        separator = Some(match value.value {
                            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                                ast::text(text)
                            }
                            other => ast::value(other),
                        });
                    }
                    FunctionArgumentClause::OrderBy(by) => order = by,
                    other => {
                        return Err(SqlError::detail(
                            ErrorCode::NotSupported,
                            format!(
                                "GROUP_CONCAT does not take '{other}'; it takes DISTINCT, ORDER BY and SEPARATOR"
                            ),
                        ));
                    }
                }
            }
        }
        let separator = match (separator, args.len()) {
            (Some(separator), _) => separator,
            (None, 1) => ast::text(", "),
            (None, 2) if is_constant(&args[1]) => args.remove(1),
            (None, 2) => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "the second argument of GROUP_CONCAT is its separator, so it must be a constant text; \
                     write GROUP_CONCAT(CONCAT(a, b)) to put two values together",
                ));
            }
            (None, _) => ast::text(","),
        };
        let value = if args.len() == 1 { args.remove(0) } else { ast::call("concat", args) };
        // Distinct values in their own order are sorted as a side effect of deduplication; in any other order they are
        // deduplicated when they are sorted.
        let by_value = match order.as_slice() {
            [by] if distinct && by.expr == value => Some(by.options.asc != Some(false)),
            _ => None,
        };
        let distinct_first = distinct && (order.is_empty() || by_value.is_some());
        let shown = if by_value.is_some() { value } else { as_text(value) };
        set_args(function, vec![shown]);
        rename(function, "array_agg");
        if let FunctionArguments::List(list) = &mut function.args {
            list.duplicate_treatment = distinct_first.then_some(DuplicateTreatment::Distinct);
            if !order.is_empty() && by_value.is_none() {
                list.clauses.push(FunctionArgumentClause::OrderBy(order));
            }
        }
        let mut list = Expr::Function(function.clone());
        if let Some(ascending) = by_value {
            let direction = ast::text(if ascending { "ASC" } else { "DESC" });
            list = ast::call("array_sort", vec![list, direction, ast::text("NULLS LAST")]);
        }
        let join = if distinct && !distinct_first { "__join_distinct" } else { "__join" };
        let limit = ast::number(self.group_concat_max_bytes());
        Ok(ast::call(join, vec![list, separator, limit]))
    }

    /// The limit in bytes of a text of `GROUP_CONCAT`. Doris has no limit.
    #[allow(clippy::unused_self, reason = "a session's setting belongs here")]
    const fn group_concat_max_bytes(&self) -> i64 {
        i64::MAX
    }
}

/// The arguments of `intersect_count(bitmap, column, value, …)` with a condition in place of each value.
fn intersect_count(mut args: Vec<Expr>) -> Result<Vec<Expr>, SqlError> {
    let refused = |text: &str| Err(SqlError::detail(ErrorCode::Unknown, text));
    if args.len() < 3 {
        return refused(
            "intersect_count(bitmap_column, column_to_filter, filter_values) function requires at least three parameters",
        );
    }
    let values = args.split_off(2);
    if !values.iter().all(has_no_column) {
        return refused("intersect_count function filter_values arg must be constant");
    }
    let column = args.remove(1);
    args.extend(values.into_iter().map(|value| ast::binary(column.clone(), BinaryOperator::Eq, value)));
    Ok(args)
}

/// Whether the expression is the same for all rows.
fn has_no_column(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |part| match part {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Subquery(_)
        | Expr::Exists { .. }
        | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_continue()
}

fn renamed(function: &mut Function, to: &str, args: Vec<Expr>) -> Expr {
    set_args(function, args);
    rename(function, to);
    Expr::Function(function.clone())
}

fn percentile(function: &mut Function, value: Expr, share: Expr) -> Expr {
    let list = renamed(function, "array_agg", vec![ast::call("__double", vec![value])]);
    ast::call("__percentile", vec![list, share])
}

fn is_true(flag: &Expr) -> Option<bool> {
    match flag {
        Expr::Value(value) => match &value.value {
            Value::Boolean(flag) => Some(*flag),
            Value::Number(digits, _) => match digits.as_str() {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Nested(inner) => is_constant(inner),
        _ => false,
    }
}

//! Calls with a lambda: `ARRAY_MAP(x -> x + 1, a)`, `ARRAY_FILTER((x, y) -> x > y, a, b)` and so on.
//!
//! DataFusion's lambdas have one parameter. One of several parameters is a lambda over structs of the elements at the same
//! places, and its parameters are fields of those.

use super::super::ast;
use sqlparser::ast::{Expr, Ident, LambdaFunction, OneOrManyWithParens, VisitorMut};
use std::collections::HashSet;
use std::ops::ControlFlow;
use tributary_sql::visit::walk_expr_mut;
use tributary_types::{ErrorCode, SqlError};

/// Functions whose first argument may be a lambda.
const NAMES: [&str; 14] = [
    "array_count",
    "array_exists",
    "array_filter",
    "array_first",
    "array_first_index",
    "array_last",
    "array_last_index",
    "array_map",
    "array_match_all",
    "array_match_any",
    "array_reverse_split",
    "array_sort",
    "array_sortby",
    "array_split",
];

/// Functions over the array of conditions that a lambda makes.
const OF_CONDITIONS: [&str; 6] = [
    "array_count",
    "array_exists",
    "array_first_index",
    "array_last_index",
    "array_match_all",
    "array_match_any",
];

/// The call without a lambda, or with one of DataFusion's; `None` if the name is of another function.
pub(super) fn call(name: &str, args: &[Expr]) -> Result<Option<Expr>, SqlError> {
    if !NAMES.contains(&name) {
        return Ok(None);
    }
    let Some((Expr::Lambda(lambda), arrays)) = args.split_first() else { return without_lambda(name, args) };
    let Some(first) = arrays.first() else { return Err(refused(name)) };
    if name == "array_sort" {
        return sort(lambda, arrays).map(Some);
    }
    if let ("array_filter" | "array_first", [array]) = (name, arrays) {
        check_count(lambda, 1)?;
        return Ok(Some(ast::call(name, vec![array.clone(), args[0].clone()])));
    }
    let array = || first.clone();
    let made = transformed(lambda, arrays)?;
    Ok(Some(match name {
        "array_map" => made,
        "array_filter" => ast::call("__array_filter", vec![array(), made]),
        "array_first" => element(array(), "__array_first_index", made),
        "array_last" => element(array(), "__array_last_index", made),
        "array_sortby" => ast::call("__array_sortby", vec![array(), made]),
        "array_split" | "array_reverse_split" => ast::call(name, vec![array(), made]),
        _ => of_conditions(name, made),
    }))
}

fn without_lambda(name: &str, args: &[Expr]) -> Result<Option<Expr>, SqlError> {
    Ok(Some(match (name, args) {
        ("array_sort", [_]) => ast::call(name, args.to_vec()),
        ("array_sortby", [_, _]) => ast::call("__array_sortby", args.to_vec()),
        ("array_filter", [_, _]) => ast::call("__array_filter", args.to_vec()),
        ("array_split" | "array_reverse_split", [_, _]) => ast::call(name, args.to_vec()),
        (name, [conditions]) if OF_CONDITIONS.contains(&name) => of_conditions(name, conditions.clone()),
        _ => return Err(refused(name)),
    }))
}

fn refused(name: &str) -> SqlError {
    let takes = match name {
        "array_sort" => "an array, or a lambda of two elements and an array",
        "array_map" | "array_first" | "array_last" => "a lambda and arrays",
        "array_count" | "array_exists" => "a lambda and arrays, or an array of conditions",
        _ => "a lambda and arrays, or arrays alone",
    };
    let text = format!("{name} is not supported with these arguments; it takes {takes}");
    SqlError::detail(ErrorCode::NotSupported, text)
}

fn of_conditions(name: &str, conditions: Expr) -> Expr {
    match name {
        "array_count" | "array_exists" => ast::call(name, vec![conditions]),
        _ => ast::call(&format!("__{name}"), vec![conditions]),
    }
}

fn element(array: Expr, index: &str, conditions: Expr) -> Expr {
    ast::call("element_at", vec![array, ast::call(index, vec![conditions])])
}

/// `ARRAY_SORT((x, y) -> …, a)`: the lambda compares all pairs of elements at once.
fn sort(lambda: &LambdaFunction, arrays: &[Expr]) -> Result<Expr, SqlError> {
    let [array] = arrays else { return Err(refused("array_sort")) };
    check_count(lambda, 2)?;
    let pairs = ast::call("__array_pairs", vec![array.clone()]);
    let orders = ast::call("array_transform", vec![pairs, over_structs(lambda)]);
    Ok(ast::call("__array_sort_by_pairs", vec![array.clone(), orders]))
}

/// The array of what the lambda makes of elements.
fn transformed(lambda: &LambdaFunction, arrays: &[Expr]) -> Result<Expr, SqlError> {
    check_count(lambda, arrays.len())?;
    if let [array] = arrays {
        return Ok(ast::call("array_transform", vec![array.clone(), Expr::Lambda(lambda.clone())]));
    }
    let structs = ast::call("__array_zip", arrays.to_vec());
    Ok(ast::call("array_transform", vec![structs, over_structs(lambda)]))
}

fn check_count(lambda: &LambdaFunction, expected: usize) -> Result<(), SqlError> {
    let count = lambda.params.len();
    if count != expected {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "the lambda {lambda} has {count} parameters, but it needs {expected}: one for each value"
            ),
        ));
    }
    Ok(())
}

/// A lambda of one parameter, whose fields `col1`, `col2` and so on are the parameters of the given one.
fn over_structs(lambda: &LambdaFunction) -> Expr {
    let mut lambda = lambda.clone();
    let mut params: Vec<_> = lambda.params.iter().cloned().collect();
    let mut fields = Fields {
        params: params.iter().map(|param| param.name.value.clone()).collect(),
        row: String::new(),
        hidden: Vec::new(),
        inner: HashSet::new(),
    };
    // The names of the lambdas within, first.
    let _ = walk_expr_mut(&mut lambda.body, &mut fields);
    let mut number = 0;
    while fields.row.is_empty() || fields.inner.contains(&fields.row) {
        number += 1;
        fields.row = format!("__elements{number}");
    }
    let _ = walk_expr_mut(&mut lambda.body, &mut fields);
    params.truncate(1);
    params[0].name = Ident::new(&fields.row);
    lambda.params = OneOrManyWithParens::Many(params);
    Expr::Lambda(lambda)
}

/// Replaces parameters by fields of a struct, except where a lambda within has a parameter of that name.
struct Fields {
    params: Vec<String>,
    /// The struct; empty while names are collected.
    row: String,
    hidden: Vec<Vec<String>>,
    inner: HashSet<String>,
}

impl VisitorMut for Fields {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            let names: Vec<String> = lambda.params.iter().map(|param| param.name.value.clone()).collect();
            self.inner.extend(names.iter().cloned());
            self.hidden.push(names);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Lambda(_) => {
                self.hidden.pop();
            }
            Expr::Identifier(name) if !self.row.is_empty() => {
                let is_hidden = self.hidden.iter().flatten().any(|hidden| *hidden == name.value);
                let at = self.params.iter().position(|param| *param == name.value);
                if let Some(at) = at.filter(|_| !is_hidden) {
                    let row = Expr::Identifier(Ident::new(&self.row));
                    *expr = ast::call("get_field", vec![row, ast::text(format!("col{}", at + 1))]);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

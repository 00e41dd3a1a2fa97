//! Table functions in FROM: LATERAL VIEW and UNNEST, whose rows are elements of arrays, and functions such as `numbers(…)`.
//!
//! A function of elements becomes a call that names its arrays, one for each column, which `lateral_views` plans as a part of the
//! table before it. Types are not known here.

use super::{Rewriter, ast};
use crate::functions::{self, Family};
use crate::meaning::lateral_views::{Rows, call_of};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Select,
    TableAlias, TableFactor, TableFunctionArgs, TableWithJoins, Value,
};
use tributary_sql::properties_of_call;
use tributary_types::{ErrorCode, SqlError};

/// Ending of the functions that keep a row for which there are no elements.
const OUTER: &str = "_outer";

/// The arrays whose elements a call of a table function gives, side by side; `None` for another function.
///
/// # Errors
/// The number of arguments is wrong.
pub(super) fn arrays(name: &str, mut args: Vec<Expr>) -> Result<Option<Vec<Expr>>, SqlError> {
    if !is_generator(name) {
        return Ok(None);
    }
    let of_values = |function: &str, args: Vec<Expr>| {
        vec![ast::call("json_keys", args.clone()), ast::call(function, args)]
    };
    Ok(Some(match (name.strip_suffix(OUTER).unwrap_or(name), args.len()) {
        ("explode" | "unnest", 1..) => args,
        ("posexplode", 1..) => {
            args.insert(0, ast::call("__positions", args.clone()));
            args
        }
        ("explode_split", 2) => vec![ast::call("split_by_string", args)],
        ("explode_numbers", 1) => vec![ast::call("array_range", args)],
        ("explode_bitmap", 1) => vec![ast::call("bitmap_to_array", args)],
        ("explode_map", 1) => vec![ast::call("map_keys", args.clone()), ast::call("map_values", args)],
        ("explode_json_array_int", 1) => vec![ast::call("__json_integers", args)],
        ("explode_json_array_double", 1) => vec![ast::call("__json_doubles", args)],
        ("explode_json_array_string", 1) => vec![ast::call("__json_texts", args)],
        ("explode_json_array_json" | "explode_variant_array", 1) => {
            vec![ast::call("__json_documents", args)]
        }
        ("explode_json_object" | "json_each", 1) => of_values("__json_members", args),
        ("json_each_text", 1) => of_values("__json_member_texts", args),
        _ => {
            let signature = functions::declared(name).map_or("", |declared| declared.signature);
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!("Incorrect parameters in the call to function '{name}', which takes {signature}"),
            ));
        }
    }))
}

/// Whether a function's rows are elements of arrays.
fn is_generator(name: &str) -> bool {
    let is_declared = |declared: &functions::Declared| declared.family == Family::Tables;
    name == "unnest" || (functions::declared(name).is_some_and(is_declared) && !is_source(name))
}

/// Whether a function is a table of its own, without arguments that are expressions.
fn is_source(name: &str) -> bool {
    matches!(name, "numbers" | "backends" | "frontends" | "jobs" | "tasks")
}

/// A call in the SELECT list: the elements of its only array.
///
/// # Errors
/// It gives several columns, or there is no such function in the list.
pub(super) fn in_list(name: &str, args: Vec<Expr>) -> Result<Option<Expr>, SqlError> {
    if name == "unnest" {
        return Ok(None);
    }
    let Some(mut arrays) = arrays(name, args)? else { return Ok(None) };
    match (arrays.pop(), arrays.is_empty()) {
        (Some(array), true) if name.ends_with(OUTER) => {
            Ok(Some(ast::call("unnest", vec![ast::call("__never_empty", vec![array])])))
        }
        (Some(array), true) => Ok(Some(ast::call("unnest", vec![array]))),
        _ => Err(SqlError::detail(
            ErrorCode::NotSupported,
            format!(
                "{name} has several columns, so it can't be in the SELECT list: write FROM t LATERAL VIEW {name}(…) x AS a, b"
            ),
        )),
    }
}

/// The name of the function that a table factor calls, in lower case.
fn called(factor: &TableFactor) -> Option<String> {
    let (TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. }) = factor else {
        return None;
    };
    match name.0.as_slice() {
        [part] => part.as_ident().map(|name| name.value.to_lowercase()),
        _ => None,
    }
}

fn is_call_of_generator(factor: &TableFactor) -> bool {
    called(factor).is_some_and(|name| is_generator(&name))
}

/// The names of the columns of a call of a generator, if they are known without its types.
pub(super) fn columns_of(factor: &TableFactor) -> Option<(Ident, Vec<String>)> {
    let TableFactor::Table { alias: Some(alias), .. } = factor else { return None };
    if !is_call_of_generator(factor) || alias.columns.is_empty() {
        return None;
    }
    let names = alias.columns.iter().map(|column| column.name.value.clone());
    Some((alias.name.clone(), names.collect()))
}

/// Gives each call of a table function in FROM the table before it, whose columns its arguments may name.
///
/// # Errors
/// A call is joined in another way than to each row before it.
pub(super) fn nest(select: &mut Select) -> Result<(), SqlError> {
    let is_nested = |table: &TableWithJoins| {
        is_call_of_generator(&table.relation)
            || table.joins.iter().any(|join| is_call_of_generator(&join.relation))
    };
    if !select.from.iter().any(is_nested) {
        return Ok(());
    }
    let mut from: Vec<TableWithJoins> = Vec::with_capacity(select.from.len());
    for TableWithJoins { relation, joins } in select.from.drain(..) {
        if !from.is_empty() && is_call_of_generator(&relation) {
            // It may name the columns of all tables before it.
            let mut before = together(std::mem::take(&mut from));
            before.joins.push(Join { relation, global: false, join_operator: JoinOperator::CrossApply });
            before.joins.extend(joins);
            from.push(before);
        } else {
            from.push(TableWithJoins { relation, joins });
        }
    }
    select.from = from.into_iter().map(nested).collect::<Result<_, _>>()?;
    Ok(())
}

/// Several tables with commas between them as one with joins.
fn together(tables: Vec<TableWithJoins>) -> TableWithJoins {
    let mut tables = tables.into_iter();
    let Some(mut first) = tables.next() else {
        return TableWithJoins { relation: nothing(), joins: Vec::new() };
    };
    first.joins.extend(tables.map(|table| Join {
        relation: as_factor(table),
        global: false,
        join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
    }));
    first
}

/// A factor that takes the place of one that is moved.
fn nothing() -> TableFactor {
    TableFactor::Function {
        lateral: false,
        name: ObjectName(Vec::new()),
        args: Vec::new(),
        with_ordinality: false,
        alias: None,
    }
}

fn as_factor(table: TableWithJoins) -> TableFactor {
    match table.joins.as_slice() {
        [] => table.relation,
        _ => TableFactor::NestedJoin { table_with_joins: Box::new(table), alias: None },
    }
}

/// A table whose calls of generators are each in a join of their own with all that is before them.
fn nested(table: TableWithJoins) -> Result<TableWithJoins, SqlError> {
    let mut so_far = TableWithJoins { relation: table.relation, joins: Vec::new() };
    for join in table.joins {
        if !is_call_of_generator(&join.relation) {
            so_far.joins.push(join);
            continue;
        }
        let is_outer = is_outer(&join)?;
        let relation = as_factor(so_far);
        let join_operator = if is_outer { JoinOperator::OuterApply } else { JoinOperator::CrossApply };
        let apply = Join { relation: join.relation, global: false, join_operator };
        let applied = TableWithJoins { relation, joins: vec![apply] };
        so_far = TableWithJoins {
            relation: TableFactor::NestedJoin { table_with_joins: Box::new(applied), alias: None },
            joins: Vec::new(),
        };
    }
    Ok(so_far)
}

/// Whether rows stay for which the call has none.
fn is_outer(join: &Join) -> Result<bool, SqlError> {
    use JoinOperator as J;
    let is_free = |constraint: &JoinConstraint| match constraint {
        JoinConstraint::None => true,
        JoinConstraint::On(Expr::Value(value)) => match &value.value {
            Value::Boolean(truth) => *truth,
            Value::Number(number, _) => number == "1",
            _ => false,
        },
        _ => false,
    };
    match &join.join_operator {
        J::CrossApply => Ok(false),
        J::OuterApply => Ok(true),
        J::Join(constraint) | J::Inner(constraint) | J::CrossJoin(constraint) if is_free(constraint) => {
            Ok(false)
        }
        J::Left(constraint) | J::LeftOuter(constraint) if is_free(constraint) => Ok(true),
        _ => Err(SqlError::detail(
            ErrorCode::NotSupported,
            format!(
                "{} is joined to each row before it by a comma, CROSS JOIN, or LEFT JOIN … ON TRUE: write other conditions in WHERE",
                called(&join.relation).unwrap_or_default()
            ),
        )),
    }
}

impl Rewriter<'_> {
    /// Writes a call in FROM in the words of the planner.
    pub(super) fn call_in_from(&self, factor: &mut TableFactor) -> Result<(), SqlError> {
        let Some(function) = called(factor) else { return Ok(()) };
        let TableFactor::Table { name, args: Some(args), alias, .. } = factor else { return Ok(()) };
        if is_source(&function) {
            let values = source(&function, &args.args)?;
            *name = ObjectName::from(vec![Ident::new(format!("__{function}"))]);
            *args = function_args(values);
            alias.get_or_insert_with(|| named(&function));
            return Ok(());
        }
        let plain = args.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        });
        let Some(plain) = plain.collect::<Option<Vec<Expr>>>() else { return Ok(()) };
        let Some(arrays) = arrays(&function, plain)? else { return Ok(()) };
        let (base, is_outer) = match function.strip_suffix(OUTER) {
            Some(base) => (base.to_owned(), true),
            None => (function, false),
        };
        *name = ObjectName::from(vec![Ident::new(call_of(&Rows { function: base.clone(), is_outer }))]);
        *args = function_args(arrays);
        alias.get_or_insert_with(|| named(&base));
        Ok(())
    }
}

fn function_args(values: Vec<Expr>) -> TableFunctionArgs {
    let args = values.into_iter().map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value))).collect();
    TableFunctionArgs { args, settings: None }
}

/// A call without a name is called as its function.
fn named(function: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::with_quote('`', function), columns: Vec::new(), at: None }
}

/// The arguments that the planner's function takes in place of properties.
fn source(function: &str, args: &[FunctionArg]) -> Result<Vec<Expr>, SqlError> {
    let mut properties = properties_of_call(function, args)?;
    let mut number = |property: &str| match properties.remove(property) {
        None => Ok(None),
        Some(text) => match text.trim().parse::<i64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(SqlError::detail(
                ErrorCode::Unknown,
                format!("the property '{property}' of {function} is a whole number and not '{text}'"),
            )),
        },
    };
    let mut values = Vec::new();
    if function == "numbers" {
        let count = number("number")?.filter(|count| *count >= 0);
        let Some(count) = count else {
            let text = "numbers takes how many rows it has: numbers(\"number\" = \"10\")";
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        };
        let constant = number("const_value")?.map_or_else(ast::null, signed);
        values = vec![ast::number(count), constant];
    }
    if ["jobs", "tasks"].contains(&function) {
        match properties.remove("type") {
            Some(kind) if kind.eq_ignore_ascii_case("insert") => {}
            _ => {
                let text = format!("{function} is about one type of jobs: {function}(\"type\" = \"insert\")");
                return Err(SqlError::detail(ErrorCode::Unknown, text));
            }
        }
    }
    match properties.into_keys().next() {
        None => Ok(values),
        Some(other) => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "{function} has no property '{other}'; numbers has 'number' and 'const_value', others have none"
            ),
        )),
    }
}

/// A number that may be negative, as the planner's function takes it.
fn signed(number: i64) -> Expr {
    ast::text(number.to_string())
}

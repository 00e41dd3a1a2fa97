//! The rules of generated columns, in Doris's words. That the expressions can be computed is checked where they are compiled.

use super::refused;
use crate::ast::ColumnSpec;
use crate::parse::parse_expression;
use crate::visit::walk_expr;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Visitor,
};
use std::ops::ControlFlow;
use tributary_types::{
    Aggregation, ColumnDef, ColumnId, DataType, ErrorCode, Generated, KeyModel, SqlError, TableSchema,
};

/// Functions whose value depends on the time or the session, or that do not apply to one row.
const DISALLOWED: [&str; 38] = [
    "now",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "sysdate",
    "curdate",
    "current_date",
    "curtime",
    "current_time",
    "utc_timestamp",
    "utc_date",
    "utc_time",
    "rand",
    "random",
    "random_bytes",
    "array_shuffle",
    "shuffle",
    "uuid",
    "uuid_numeric",
    "uuid_to_int",
    "sleep",
    "user",
    "current_user",
    "session_user",
    "system_user",
    "database",
    "schema",
    "current_catalog",
    "connection_id",
    "last_insert_id",
    "last_query_id",
    "version",
    "found_rows",
    "row_count",
    "grouping",
    "grouping_id",
    "default",
    "values",
];

/// Functions whose first argument is a unit of time.
const OF_UNITS: [&str; 2] = ["timestampadd", "timestampdiff"];

/// Checks for attributes that exclude each other.
pub(super) fn check_column(spec: &ColumnSpec) -> Result<(), SqlError> {
    if spec.generated.is_none() {
        return Ok(());
    }
    let wrong = |text: &str| Err(refused(format!("{text} (column '{}')", spec.name)));
    if spec.default.is_some() {
        return wrong("Generated columns cannot have default value.");
    }
    if spec.on_update.is_some() {
        return wrong("Generated columns cannot have on update default value.");
    }
    if spec.auto_increment.is_some() {
        return wrong("Generated columns cannot be auto_increment.");
    }
    Ok(())
}

/// Resolves the expressions of a new table's columns.
pub(super) fn settle(
    model: KeyModel,
    specs: &[ColumnSpec],
    columns: &mut [ColumnDef],
) -> Result<(), SqlError> {
    for (place, spec) in specs.iter().enumerate() {
        let Some(text) = &spec.generated else { continue };
        let (column, replaces) =
            (&columns[place], columns[place].aggregation.is_some_and(Aggregation::replaces));
        if model.is_aggregate() && !column.is_key && !replaces {
            return Err(refused(format!(
                "The generated columns can be key columns, or value columns of replace and replace_if_not_null aggregation \
                 type. (column '{}')",
                column.name
            )));
        }
        let refers = referred(specs, columns, place, &parse_expression(text)?)?;
        columns[place].generated = Some(Box::new(Generated { expr: text.clone(), columns: refers }));
    }
    Ok(())
}

/// The columns that the expression of the one at `place` refers to.
fn referred(
    specs: &[ColumnSpec],
    columns: &[ColumnDef],
    place: usize,
    expr: &Expr,
) -> Result<Vec<ColumnId>, SqlError> {
    let mut names = Names { column: &columns[place].name, columns, found: Vec::new(), units: Vec::new() };
    if let ControlFlow::Break(error) = walk_expr(expr, &mut names) {
        return Err(error);
    }
    let mut refers = Vec::new();
    for found in names.found {
        let column = &columns[found];
        if column.auto_increment.is_some() {
            return Err(refused(format!(
                "Generated column '{}' cannot refer to auto-increment column. ('{}')",
                columns[place].name, column.name
            )));
        }
        if specs[found].generated.is_some() && found >= place {
            return Err(refused(format!(
                "Generated column can refer only to generated columns defined prior to it. ('{}' refers to '{}')",
                columns[place].name, column.name
            )));
        }
        if !refers.contains(&column.id) {
            refers.push(column.id);
        }
    }
    Ok(refers)
}

/// Finds the columns in an expression.
struct Names<'a> {
    /// The column that is computed.
    column: &'a str,
    columns: &'a [ColumnDef],
    /// By their places.
    found: Vec<usize>,
    /// The next words that are units.
    units: Vec<Ident>,
}

impl Names<'_> {
    fn find(&mut self, name: &Ident, whole: &Expr) -> ControlFlow<SqlError> {
        if name.quote_style.is_none() && name.value.starts_with('@') {
            return stop("Generated column expression cannot contain variable.");
        }
        let place = self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name.value));
        let is_part = matches!(whole, Expr::CompoundIdentifier(_));
        match place {
            Some(place) if !is_part || has_parts(&self.columns[place]) => {
                self.found.push(place);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(SqlError::detail(
                ErrorCode::UnknownColumn,
                format!(
                    "Unknown column '{whole}' in 'generated column function' (of column '{}')",
                    self.column
                ),
            )),
        }
    }

    fn call(&mut self, function: &Function) -> ControlFlow<SqlError> {
        let name = function.name.to_string().to_lowercase();
        if function.over.is_some() || DISALLOWED.contains(&name.as_str()) || is_time_now(&name, function) {
            return ControlFlow::Break(disallowed(self.column, &name));
        }
        if let (true, FunctionArguments::List(args)) = (OF_UNITS.contains(&name.as_str()), &function.args)
            && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(unit)))) =
                args.args.first()
        {
            self.units.push(unit.clone());
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Names<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        stop("Generated column does not support subquery.")
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::Identifier(name) if self.units.last() == Some(name) => {
                self.units.pop();
                ControlFlow::Continue(())
            }
            Expr::Identifier(name) => self.find(name, expr),
            Expr::CompoundIdentifier(parts) => match parts.first() {
                Some(first) => self.find(first, expr),
                None => ControlFlow::Continue(()),
            },
            // `a -> '$.x'` is a lambda to the parser.
            Expr::Lambda(_) => {
                stop("Generated column does not support lambda. (Write json_extract for `->`.)")
            }
            Expr::Function(function) => self.call(function),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// `unix_timestamp()` is the time now.
fn is_time_now(name: &str, function: &Function) -> bool {
    let has_args = matches!(&function.args, FunctionArguments::List(args) if !args.args.is_empty());
    name == "unix_timestamp" && !has_args
}

fn has_parts(column: &ColumnDef) -> bool {
    matches!(column.data_type, DataType::Nested(_) | DataType::Variant)
}

fn stop(text: &str) -> ControlFlow<SqlError> {
    ControlFlow::Break(refused(text))
}

/// The error for a function that no generated column can have.
#[must_use]
pub fn disallowed(column: &str, function: &str) -> SqlError {
    refused(format!("Expression of generated column '{column}' contains a disallowed function:'{function}'"))
}

/// Refuses adding such a column.
pub(super) fn check_added(spec: &ColumnSpec) -> Result<(), SqlError> {
    match spec.generated {
        Some(_) => Err(refused("Not supporting alter table add generated columns.")),
        None => Ok(()),
    }
}

/// Checks that no other column is computed from this one; `what` begins the error.
fn check_unused(schema: &TableSchema, column: &ColumnDef, what: &str) -> Result<(), SqlError> {
    match schema.computed_from(column.id) {
        others if others.is_empty() => Ok(()),
        others => Err(refused(format!(
            "{what} '{}' has a generated column dependency on :[{}]",
            column.name,
            others.join(", ")
        ))),
    }
}

/// Checks that no other column is computed from a dropped one.
pub(super) fn check_dropped(schema: &TableSchema, index: usize) -> Result<(), SqlError> {
    check_unused(schema, &schema.columns[index], "Column")
}

/// Whether no other column is computed from the one that gets another name.
pub(super) fn check_renamed(schema: &TableSchema, index: usize) -> Result<(), SqlError> {
    check_unused(schema, &schema.columns[index], "Cannot rename column, because column")
}

/// Checks MODIFY COLUMN: a computed column can't change, and a column that others are computed from can't change its type.
pub(super) fn check_modified(
    schema: &TableSchema,
    old: &ColumnDef,
    spec: &ColumnSpec,
) -> Result<(), SqlError> {
    if old.generated.is_some() || spec.generated.is_some() {
        return Err(refused("Not supporting alter table modify generated columns."));
    }
    let is_longer = matches!(
        (old.data_type, spec.data_type),
        (DataType::Varchar { bytes: old }, DataType::Varchar { bytes: new }) if old <= new
    );
    if is_longer || old.data_type == spec.data_type {
        return Ok(());
    }
    check_unused(schema, old, "Can not modify the type of a column that others are computed from: column")
}

/// Checks that computed columns stay after the computed columns they refer to.
pub(super) fn check_order(schema: &TableSchema, order: &[usize]) -> Result<(), SqlError> {
    for (place, &index) in order.iter().enumerate() {
        let Some(generated) = &schema.columns[index].generated else { continue };
        let later = order[place..].iter().map(|&other| &schema.columns[other]);
        let mut later = later.filter(|other| other.generated.is_some());
        if let Some(other) = later.find(|other| generated.columns.contains(&other.id)) {
            let name = &schema.columns[index].name;
            return Err(refused(format!(
                "The specified column order is incorrect, `{name}` should come after `{}`, because both of them are generated \
                 columns, and `{name}` refers to `{}`.",
                other.name, other.name
            )));
        }
    }
    Ok(())
}

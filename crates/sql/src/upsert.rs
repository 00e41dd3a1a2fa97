//! The rows of an `INSERT … ON DUPLICATE KEY UPDATE` with expressions: a query over the new rows and the rows that exist.
//!
//! Not its business: which clauses a table allows, and how the rows are loaded.

use crate::ast::{Expr, OnDuplicate, SelectQuery};
use crate::parse::{parse_expression, parse_query, unsupported};
use crate::visit;
use sqlparser::ast::{
    FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr, VisitorMut,
};
use std::ops::ControlFlow;
use tributary_types::{ColumnDef, DataType, SqlError, TableDef};

/// The names of the new rows and of the rows that exist.
const NEW: &str = "__tributary_new";
const OLD: &str = "__tributary_old";

impl OnDuplicate {
    /// The query of `columns` of the rows that the statement leaves: of the new rows, which `new` gives with these columns, or of rows
    /// of `table` that exist with the values of the clause. `called` is the table's name in the statement.
    ///
    /// # Errors
    /// An expression has a subquery.
    pub fn rows(
        &self,
        table: &TableDef,
        called: &str,
        columns: &[String],
        new: SelectQuery,
    ) -> Result<SelectQuery, SqlError> {
        let computed = |name: &str| self.computed.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        let keys: Vec<&ColumnDef> = table.schema.visible().filter(|column| column.is_key).collect();
        // A row that exists has a key.
        let first = keys.iter().find(|key| !key.nullable).or(keys.first());
        let is_new = first.map_or_else(|| "true".to_owned(), |key| format!("{} IS NULL", of(OLD, &key.name)));
        let item = |name: &String| match computed(name) {
            Some(_) => format!("CASE WHEN {is_new} THEN {} ELSE 0 END", of(NEW, name)),
            None => of(NEW, name),
        };
        let items: Vec<String> = columns.iter().map(item).collect();
        let is_same = |key: &&ColumnDef| format!("{} = {}", of(OLD, &key.name), new_value(key));
        let same: Vec<String> = keys.iter().map(is_same).collect();
        let text = format!(
            "{} SELECT {} FROM {} LEFT JOIN {}.{} AS {} ON {}",
            with(columns),
            items.join(", "),
            quoted(NEW),
            quoted(&table.db),
            quoted(&table.name),
            quoted(OLD),
            same.join(" AND ")
        );
        let mut query = over(&text, new)?;
        let SetExpr::Select(select) = query.ast.body.as_mut() else { return Ok(query) };
        for (name, item) in columns.iter().zip(&mut select.projection) {
            if let (Some((_, expr)), SelectItem::UnnamedExpr(Expr::Case { else_result, .. })) =
                (computed(name), item)
            {
                *else_result = Some(Box::new(self.value(table, called, expr)?));
            }
        }
        Ok(query)
    }

    /// A query that has a row if two of the new rows have one key.
    ///
    /// # Errors
    /// None for the columns of a table.
    pub fn same_keys(
        &self,
        table: &TableDef,
        columns: &[String],
        new: SelectQuery,
    ) -> Result<SelectQuery, SqlError> {
        let keys = table.schema.visible().filter(|column| column.is_key).map(new_value);
        let keys: Vec<String> = keys.collect();
        let text = format!(
            "{} SELECT 1 FROM {} GROUP BY {} HAVING COUNT(*) > 1 LIMIT 1",
            with(columns),
            quoted(NEW),
            keys.join(", ")
        );
        over(&text, new)
    }

    /// The expression with the names of the query.
    fn value(&self, table: &TableDef, called: &str, expr: &Expr) -> Result<Expr, SqlError> {
        let mut names = Names { table, called, alias: self.alias.as_deref(), failed: None };
        let mut value = expr.clone();
        let _ = visit::walk_expr_mut(&mut value, &mut names);
        match names.failed {
            Some(error) => Err(error),
            None => Ok(value),
        }
    }
}

/// Gives the columns of an expression their tables.
struct Names<'a> {
    table: &'a TableDef,
    called: &'a str,
    /// The statement's name of the new row.
    alias: Option<&'a str>,
    failed: Option<SqlError>,
}

impl Names<'_> {
    fn column(&self, name: &str) -> Option<&ColumnDef> {
        self.table.schema.visible().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The replacement of an expression that names a column; `None`: it names none.
    fn replaced(&self, expr: &Expr) -> Option<Result<Expr, SqlError>> {
        let parts: Vec<&str> = match expr {
            Expr::Identifier(name) => vec![name.value.as_str()],
            Expr::CompoundIdentifier(names) => names.iter().map(|name| name.value.as_str()).collect(),
            Expr::Function(call) if is_values(&call.name.to_string()) => {
                let name = new_column(expr)?;
                return self.column(&name).map(|column| parse_expression(&new_value(column)));
            }
            _ => return None,
        };
        let (name, qualifiers) = parts.split_last()?;
        let column = self.column(name)?;
        match qualifiers {
            [alias] if self.alias.is_some_and(|own| own == *alias) => {
                Some(parse_expression(&new_value(column)))
            }
            [] => Some(parse_expression(&of(OLD, &column.name))),
            [.., table] if *table == self.called => Some(parse_expression(&of(OLD, &column.name))),
            _ => None,
        }
    }
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.failed = Some(unsupported::refuse(
            "ON DUPLICATE KEY UPDATE with a subquery",
            "read the value before the statement",
        ));
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match self.replaced(expr) {
            Some(Ok(replaced)) => *expr = replaced,
            Some(Err(error)) => {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

pub(crate) fn is_values(name: &str) -> bool {
    name.eq_ignore_ascii_case("values") || name.eq_ignore_ascii_case("value")
}

/// The column of `VALUES(column)`; `None`: it is another expression.
pub(crate) fn new_column(expr: &Expr) -> Option<String> {
    let Expr::Function(call) = expr else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    match (is_values(&call.name.to_string()), list.args.as_slice()) {
        (true, [FunctionArg::Unnamed(FunctionArgExpr::Expr(column))]) => last_name(column),
        _ => None,
    }
}

/// The last part of a column's name; `None`: it is another expression.
pub(crate) fn last_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()),
        _ => None,
    }
}

/// The value of a new row's column, of the column's type: literals are texts, perhaps.
fn new_value(column: &ColumnDef) -> String {
    let value = of(NEW, &column.name);
    match column.data_type {
        DataType::TinyInt
        | DataType::SmallInt
        | DataType::Int
        | DataType::BigInt
        | DataType::LargeInt
        | DataType::Float
        | DataType::Double
        | DataType::Decimal { .. }
        | DataType::Date
        | DataType::DateTime { .. } => format!("CAST({value} AS {})", column.data_type),
        _ => value,
    }
}

/// `WITH new (columns) AS (SELECT 1)`
fn with(columns: &[String]) -> String {
    let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    format!("WITH {} ({}) AS (SELECT 1)", quoted(NEW), names.join(", "))
}

/// The query of the text with the new rows in place of `SELECT 1`.
fn over(text: &str, new: SelectQuery) -> Result<SelectQuery, SqlError> {
    let mut query = parse_query(text)?;
    if let Some(cte) = query.ast.with.as_mut().and_then(|with| with.cte_tables.first_mut()) {
        *cte.query = new.ast.into_inner();
    }
    // Most spans are of the statement.
    query.text = String::new();
    Ok(query)
}

fn of(table: &str, column: &str) -> String {
    format!("{}.{}", quoted(table), quoted(column))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

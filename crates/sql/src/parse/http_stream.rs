//! The statement of an HTTP Stream: `INSERT INTO t [(columns)] SELECT … FROM http_stream(properties) [WHERE …]`.
//!
//! The function's properties are texts; nothing here interprets them.

use crate::ast::{Expr, Insert, InsertSource, Statement};
use crate::parse::parse;
use crate::properties;
use sqlparser::ast::{GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor};
use std::collections::BTreeMap;
use tributary_types::{ErrorCode, Sealed, SqlError};

/// The statement of an HTTP Stream.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpStream {
    pub insert: Insert,
    /// The properties of `http_stream(…)`, by their names in lower case.
    pub properties: BTreeMap<String, String>,
    /// The select list; `None`: `SELECT *`.
    pub items: Option<Sealed<Vec<Expr>>>,
    pub where_expr: Option<Sealed<Expr>>,
}

/// Parses the statement of an HTTP Stream.
///
/// # Errors
/// See [`parse`]; [`ErrorCode::Unknown`] for any statement of another shape, [`ErrorCode::NotSupported`] for a query with more
/// than a select list, one `http_stream(…)` and WHERE, and for arguments that are not properties.
pub fn parse_http_stream(sql: &str) -> Result<HttpStream, SqlError> {
    let shape = || {
        SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "parse db and tb with wrong sql:{sql}; the statement must be INSERT INTO db.table [(columns)] SELECT … \
                 FROM http_stream(…) [WHERE …]"
            ),
        )
    };
    let Statement::Insert(insert) = parse(sql)? else { return Err(shape()) };
    let InsertSource::Query(query) = &insert.source else { return Err(shape()) };
    let select = select_of(&query.ast).ok_or_else(|| {
        refused(
            "only SELECT … FROM http_stream(…) WHERE … is supported here, without GROUP BY, ORDER BY, LIMIT or joins",
        )
    })?;
    let properties = properties_of(select).ok_or_else(shape)??;
    let items = match select.projection.as_slice() {
        [SelectItem::Wildcard(_)] => None,
        items => Some(Sealed::new(items.iter().map(item).collect::<Result<Vec<_>, _>>()?)),
    };
    let where_expr = select.selection.clone().map(Sealed::new);
    Ok(HttpStream { properties, items, where_expr, insert: *insert })
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::NotSupported, text)
}

fn item(item: &SelectItem) -> Result<Expr, SqlError> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Ok(expr.clone()),
        other => Err(refused(format!("`{other}` is not supported in the select list of an HTTP Stream"))),
    }
}

/// The query's SELECT if it has nothing but a list, one table and a filter.
fn select_of(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let no_groups = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) => exprs.is_empty() && modifiers.is_empty(),
        GroupByExpr::All(_) => false,
    };
    let is_plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && no_groups;
    is_plain.then_some(select)
}

/// The properties of `FROM http_stream(…)`; `None` if the FROM is anything else.
fn properties_of(select: &Select) -> Option<Result<BTreeMap<String, String>, SqlError>> {
    let [from] = select.from.as_slice() else { return None };
    if !from.joins.is_empty() {
        return None;
    }
    let args = match &from.relation {
        TableFactor::Table { name, args: Some(args), .. } if is_http_stream(&name.to_string()) => &args.args,
        TableFactor::Function { name, args, .. } if is_http_stream(&name.to_string()) => args,
        _ => return None,
    };
    Some(properties::of_call("http_stream", args))
}

fn is_http_stream(name: &str) -> bool {
    name.trim_matches('`').eq_ignore_ascii_case("http_stream")
}

#[cfg(test)]
mod tests;

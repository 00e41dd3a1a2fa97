//! The queries for which connectors ask for a plan: parts of one table.

use sqlparser::ast::{Select, SetExpr, TableFactor};
use tributary_sql::parse_query;
use tributary_types::{ErrorCode, SqlError, TableDef};

/// Checks that a text is a query of the table alone, with columns and conditions and nothing that needs other rows.
///
/// # Errors
/// It is not, or no query at all.
pub(super) fn check(sql: &str, db: &str, table: &TableDef) -> Result<(), SqlError> {
    if sql.trim().is_empty() {
        let text = "the body has no statement: {\"sql\": \"SELECT … FROM db.table\"}";
        return Err(SqlError::new(ErrorCode::Syntax, text));
    }
    let query = parse_query(sql)?;
    let has_more =
        query.ast.with.is_some() || query.ast.order_by.is_some() || query.ast.limit_clause.is_some();
    match query.ast.body.as_ref() {
        SetExpr::Select(select) if !has_more && reads_only(select, db, &table.name) => Ok(()),
        _ => Err(SqlError::detail(
            ErrorCode::NotSupported,
            format!("a plan is only for SELECT … FROM `{db}`.`{}` [WHERE …]", table.name),
        )),
    }
}

fn reads_only(select: &Select, db: &str, table: &str) -> bool {
    let [from] = &select.from[..] else { return false };
    let TableFactor::Table { name, args: None, .. } = &from.relation else { return false };
    let parts: Vec<&str> =
        name.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.as_str()).collect();
    let is_named = match parts[..] {
        [named] => named == table,
        [of, named] | [_, of, named] => of == db && named == table,
        _ => false,
    };
    is_named && from.joins.is_empty() && select.distinct.is_none() && select.having.is_none()
}

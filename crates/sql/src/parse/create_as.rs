//! CREATE TABLE that takes its columns from elsewhere: `LIKE` and `AS SELECT`.

use crate::ast::{CreateTable, Name, SelectQuery, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{query, rollup};
use sqlparser::tokenizer::Token;

/// `CREATE TABLE … [(names)] … [AS] SELECT …`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAs {
    /// Everything but the columns, which the query has; with columns, those of the query are found by their names.
    pub create: CreateTable,
    /// The names of the columns; `None`: those of the query.
    pub names: Option<Vec<String>>,
    pub query: SelectQuery,
}

/// After `CREATE TABLE t LIKE`.
pub(crate) fn like(
    cursor: &mut Cursor<'_>,
    table: Name,
    if_not_exists: bool,
    is_temporary: bool,
) -> Parsed<Statement> {
    let source = cursor.name()?;
    let rollups = rollup::of_copy(cursor)?;
    Ok(Statement::CreateTableLike { table, if_not_exists, source, rollups, is_temporary })
}

/// `(name, …)`, where a list of columns has types.
pub(crate) fn names(cursor: &mut Cursor<'_>) -> Parsed<Option<Vec<String>>> {
    let is_list = *cursor.peek() == Token::LParen
        && matches!(cursor.peek_nth(1), Token::Word(_))
        && matches!(cursor.peek_nth(2), Token::Comma | Token::RParen);
    if !is_list {
        return Ok(None);
    }
    cursor.parenthesized(|cursor| cursor.identifier("a column name")).map(Some)
}

/// Whether a query is next, with AS or without.
pub(crate) fn begins(cursor: &Cursor<'_>) -> bool {
    cursor.is_any(&["AS", "SELECT", "WITH"])
        || *cursor.peek() == Token::LParen && matches!(cursor.peek_nth(1), Token::LParen)
        || *cursor.peek() == Token::LParen && (cursor.is_nth(1, "SELECT") || cursor.is_nth(1, "WITH"))
}

/// The query of a table without columns of its own.
pub(crate) fn query(
    cursor: &mut Cursor<'_>,
    create: CreateTable,
    names: Option<Vec<String>>,
) -> Parsed<Statement> {
    cursor.eat("AS");
    let query = query::select(cursor)?;
    Ok(Statement::CreateTableAs(Box::new(CreateTableAs { create, names, query })))
}

//! `UPDATE`.
//!
//! The rows to change become a query, so that conditions have the same meaning as elsewhere.

use crate::ast::{Assigned, Statement, Update};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{delete, unsupported};
use sqlparser::tokenizer::Token;
use tributary_types::Sealed;

pub(crate) fn update(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("UPDATE")?;
    // There are no locks of tables that others would be let through.
    cursor.eat("LOW_PRIORITY");
    if cursor.eat("IGNORE") {
        return Err(unsupported::refuse("UPDATE IGNORE", "use UPDATE"));
    }
    let table = cursor.name()?;
    let is_named = cursor.eat("AS");
    let alias = match cursor.is("SET") || *cursor.peek() == Token::Comma || cursor.is_any(&delete::JOINS) {
        false if is_named || cursor.word().is_some() => cursor.identifier("an alias")?,
        _ if is_named => return Err(cursor.expected("an alias")),
        _ => table.table.clone(),
    };
    let (mut others, joined) = delete::joined(cursor, "UPDATE")?;
    cursor.expect("SET")?;
    let assignments = cursor.list(assignment)?;
    if cursor.eat("FROM") {
        others.extend(cursor.relations()?);
    }
    let condition = if cursor.eat("WHERE") { Some(cursor.expr()?) } else { None };
    let condition = delete::both(joined, condition);
    delete::order_of_all(cursor, "UPDATE")?;
    let rows = delete::rows_of(&alias, others, condition)?;
    Ok(Statement::Update(Box::new(Update { table, assignments, rows })))
}

/// `[[db.]table.]column = expression`
fn assignment(cursor: &mut Cursor<'_>) -> Parsed<(Vec<String>, Assigned)> {
    let mut name = vec![cursor.identifier("a column")?];
    while cursor.eat_token(&Token::Period) {
        name.push(cursor.identifier("a column")?);
    }
    cursor.expect_token(&Token::Eq)?;
    if cursor.eat("DEFAULT") {
        return Ok((name, Assigned::Default));
    }
    Ok((name, Assigned::Expr(Sealed::new(cursor.expr()?))))
}

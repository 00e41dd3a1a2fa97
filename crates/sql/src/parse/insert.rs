//! `INSERT`, in all the forms that are not hot.

use crate::ast::{Expr, Insert, InsertSource, Name, OnDuplicate, Statement, Value};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{partition, query};
use crate::upsert;
use sqlparser::tokenizer::Token;
use tributary_types::Sealed;

pub(crate) fn insert(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    // A row replaces the one of its key either way, and where there is no unique key, none.
    let replaces = !cursor.eat("INSERT");
    if replaces {
        cursor.expect("REPLACE")?;
    }
    cursor.eat_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]);
    let ignores = !replaces && cursor.eat("IGNORE");
    let overwrite = !replaces && !ignores && cursor.eat("OVERWRITE");
    if overwrite {
        cursor.expect("TABLE")?;
    } else {
        cursor.eat("INTO");
        cursor.eat("TABLE");
    }
    let table = cursor.name()?;
    let overwrites_touched = overwrite && partition::is_star(cursor);
    let partitions = partition::names(cursor)?;
    let mut label = label(cursor)?;
    let columns = columns(cursor)?;
    if label.is_none() {
        label = self::label(cursor)?;
    }
    skip_shuffle_hint(cursor)?;
    let (columns, source) = match columns {
        None if cursor.eat("SET") => assignments(cursor)?,
        columns => (columns, source(cursor)?),
    };
    let on_duplicate = on_duplicate(cursor)?;
    Ok(Statement::Insert(Box::new(Insert {
        table,
        label,
        partitions,
        overwrite,
        overwrites_touched,
        columns,
        source,
        ignores,
        replaces,
        on_duplicate,
    })))
}

/// `[AS new] ON DUPLICATE KEY UPDATE column = VALUES(column), column = new.column, column = expression, column = column`. The last
/// one changes nothing.
fn on_duplicate(cursor: &mut Cursor<'_>) -> Parsed<Option<OnDuplicate>> {
    let alias = match cursor.is("AS") && cursor.is_nth(2, "ON") {
        true => {
            cursor.advance();
            Some(cursor.identifier("an alias of the new row")?)
        }
        false => None,
    };
    if !cursor.eat_all("ON DUPLICATE KEY UPDATE") {
        return Ok(None);
    }
    let assigned = cursor.list(|cursor| {
        let Name { table: column, .. } = cursor.name()?;
        cursor.expect_token(&Token::Eq)?;
        Ok((column, cursor.expr()?))
    })?;
    let (mut updated, mut computed) = (Vec::new(), Vec::new());
    for (column, expr) in assigned {
        let is_same = |name: Option<String>| name.is_some_and(|name| name.eq_ignore_ascii_case(&column));
        let is_new = is_same(upsert::new_column(&expr))
            || (is_of(&expr, alias.as_deref()) && is_same(upsert::last_name(&expr)));
        if is_new {
            updated.push(column);
        } else if !is_same(upsert::last_name(&expr)) {
            updated.push(column.clone());
            computed.push((column, expr));
        }
    }
    Ok(Some(OnDuplicate { updated, computed: Sealed::new(computed), alias }))
}

/// Whether the expression is a column of the row that has this alias.
fn is_of(expr: &Expr, alias: Option<&str>) -> bool {
    match (expr, alias) {
        (Expr::CompoundIdentifier(names), Some(alias)) => {
            names.first().is_some_and(|name| name.value == alias)
        }
        _ => false,
    }
}

/// `WITH LABEL l`, but not a CTE that is called `label`.
fn label(cursor: &mut Cursor<'_>) -> Parsed<Option<String>> {
    if !cursor.is("WITH") || !cursor.is_nth(1, "LABEL") || cursor.is_nth(2, "AS") {
        return Ok(None);
    }
    cursor.advance();
    cursor.advance();
    cursor.identifier_or_string("a label").map(Some)
}

/// `(a, b, …)`, unless the parenthesis starts a query.
fn columns(cursor: &mut Cursor<'_>) -> Parsed<Option<Vec<String>>> {
    let is_query = *cursor.peek_nth(1) == Token::LParen
        || ["SELECT", "WITH", "VALUES"].iter().any(|word| cursor.is_nth(1, word));
    if *cursor.peek() != Token::LParen || is_query {
        return Ok(None);
    }
    if *cursor.peek_nth(1) == Token::RParen {
        cursor.advance();
        cursor.advance();
        return Ok(None);
    }
    cursor.parenthesized(column).map(Some)
}

/// A column, which may have the names of its table and database before it, as Connector/J writes them.
fn column(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let mut name = cursor.identifier("a column name")?;
    while cursor.eat_token(&Token::Period) {
        name = cursor.identifier("a column name")?;
    }
    Ok(name)
}

/// `[shuffle]` and the like between the columns and the query say how to distribute rows.
fn skip_shuffle_hint(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if !cursor.eat_token(&Token::LBracket) {
        return Ok(());
    }
    cursor.list(|cursor| cursor.identifier("a hint"))?;
    cursor.expect_token(&Token::RBracket)
}

fn source(cursor: &mut Cursor<'_>) -> Parsed<InsertSource> {
    if cursor.eat_any(&["VALUES", "VALUE"]).is_some() {
        return cursor.list(row).map(|rows| InsertSource::Values(Sealed::new(rows)));
    }
    if !query::begins(cursor) {
        return Err(cursor.expected("VALUES or a query"));
    }
    query::select(cursor).map(InsertSource::Query)
}

/// `column = value, …`, behind `SET`: one row.
fn assignments(cursor: &mut Cursor<'_>) -> Parsed<(Option<Vec<String>>, InsertSource)> {
    let assigned = cursor.list(|cursor| {
        let column = cursor.identifier("a column name")?;
        cursor.expect_token(&Token::Eq)?;
        Ok((column, value(cursor)?))
    })?;
    let (columns, row) = assigned.into_iter().unzip();
    Ok((Some(columns), InsertSource::Values(Sealed::new(vec![row]))))
}

fn row(cursor: &mut Cursor<'_>) -> Parsed<Vec<Value>> {
    cursor.expect_token(&Token::LParen)?;
    if cursor.eat_token(&Token::RParen) {
        return Ok(Vec::new());
    }
    let values = cursor.list(value)?;
    cursor.expect_token(&Token::RParen)?;
    Ok(values)
}

fn value(cursor: &mut Cursor<'_>) -> Parsed<Value> {
    if cursor.is("DEFAULT")
        && matches!(cursor.peek_nth(1), Token::Comma | Token::RParen | Token::SemiColon | Token::EOF)
    {
        cursor.advance();
        return Ok(Value::Default);
    }
    cursor.expr().map(Value::Expr)
}

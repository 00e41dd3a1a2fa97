//! `ROLLUP`: in CREATE TABLE, in ALTER TABLE, and behind `LIKE`.

use crate::ast::{AlterOp, RollupSpec};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::ddl;
use sqlparser::tokenizer::Token;

/// `(r (column, …) [DUPLICATE KEY (…)] [PROPERTIES (…)], …)`, behind ROLLUP in CREATE TABLE.
pub(super) fn clause(cursor: &mut Cursor<'_>) -> Parsed<Vec<RollupSpec>> {
    cursor.parenthesized(definition)
}

/// `r (column, …) [FROM base] [DUPLICATE KEY (…)] [PROPERTIES (…)]`
fn definition(cursor: &mut Cursor<'_>) -> Parsed<RollupSpec> {
    let name = cursor.identifier("a rollup name")?;
    let columns = cursor.parenthesized(|cursor| cursor.identifier("a column name"))?;
    let base = if cursor.eat("FROM") { Some(cursor.identifier("a rollup name")?) } else { None };
    let keys = match cursor.eat_all("DUPLICATE KEY") {
        true => cursor.parenthesized(|cursor| cursor.identifier("a key column"))?,
        false => Vec::new(),
    };
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    Ok(RollupSpec { name, columns, base, keys, properties })
}

/// `r (…), r (…)`, behind `ADD ROLLUP`.
pub(super) fn add(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    let mut rollups = vec![definition(cursor)?];
    // A comma may also precede another clause.
    while *cursor.peek() == Token::Comma
        && *cursor.peek_nth(2) == Token::LParen
        && !cursor.is_nth(1, "ADD")
        && !cursor.is_nth(1, "SET")
    {
        cursor.advance();
        rollups.push(definition(cursor)?);
    }
    Ok(AlterOp::AddRollups(rollups))
}

/// `r, r`, behind `DROP ROLLUP`.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Parsed<AlterOp> {
    let mut names = vec![cursor.identifier("a rollup name")?];
    let is_last = |token: &Token| matches!(token, Token::Comma | Token::SemiColon | Token::EOF);
    while *cursor.peek() == Token::Comma && is_last(cursor.peek_nth(2)) {
        cursor.advance();
        names.push(cursor.identifier("a rollup name")?);
    }
    Ok(AlterOp::DropRollups(names))
}

/// `[WITH ROLLUP [(r, …)]]`, behind LIKE; no names: all.
pub(super) fn of_copy(cursor: &mut Cursor<'_>) -> Parsed<Option<Vec<String>>> {
    if !cursor.eat_all("WITH ROLLUP") {
        return Ok(None);
    }
    match *cursor.peek() == Token::LParen {
        true => cursor.parenthesized(|cursor| cursor.identifier("a rollup name")).map(Some),
        false => Ok(Some(Vec::new())),
    }
}

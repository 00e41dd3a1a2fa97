//! `INDEX`: in CREATE TABLE, in ALTER TABLE, and `CREATE INDEX … ON t`, `DROP INDEX … ON t`, which are ALTER TABLE by other words.

use crate::ast::{AlterOp, IndexSpec, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{compat, ddl, unsupported};
use sqlparser::tokenizer::Token;
use tributary_types::IndexKind;

/// Whether an index is declared here, and not a column that is called so: a column's name is followed by its type.
pub(super) fn begins(cursor: &Cursor<'_>) -> bool {
    let is_declared = |name: usize| *cursor.peek_nth(name + 1) == Token::LParen;
    cursor.is("INDEX") && (is_declared(1) || (cursor.is_nth(1, "IF") && is_declared(4)))
}

/// `[IF NOT EXISTS] name (column, …) [USING kind] [PROPERTIES (…)] [COMMENT '…']`, behind INDEX.
pub(super) fn definition(cursor: &mut Cursor<'_>) -> Parsed<IndexSpec> {
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let name = cursor.identifier("an index name")?;
    rest(cursor, name, if_not_exists)
}

/// `[IF NOT EXISTS] name ON t (column, …) …`, behind CREATE INDEX.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.is_compatible() && compat::is_index_of_mysql(cursor) {
        return compat::create_index(cursor);
    }
    let if_not_exists = cursor.eat_all("IF NOT EXISTS");
    let name = cursor.identifier("an index name")?;
    cursor.expect("ON")?;
    let table = cursor.name()?;
    let index = rest(cursor, name, if_not_exists)?;
    Ok(Statement::AlterTable { table, ops: vec![AlterOp::AddIndex(index)] })
}

/// `[IF EXISTS] name ON t`, behind DROP INDEX.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let if_exists = cursor.eat_all("IF EXISTS");
    let name = cursor.identifier("an index name")?;
    cursor.expect("ON")?;
    let table = cursor.name()?;
    let if_exists = compat::may_lack_index(cursor, &name)? || if_exists;
    Ok(Statement::AlterTable { table, ops: vec![AlterOp::DropIndex { name, if_exists }] })
}

fn rest(cursor: &mut Cursor<'_>, name: String, if_not_exists: bool) -> Parsed<IndexSpec> {
    let columns = cursor.parenthesized(|cursor| cursor.identifier("a column name"))?;
    let kind = if cursor.eat("USING") { kind(cursor)? } else { IndexKind::Inverted };
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    let comment = if cursor.eat("COMMENT") { cursor.string("a comment in quotes")? } else { String::new() };
    Ok(IndexSpec { name, if_not_exists, may_be_left_out: false, columns, kind, properties, comment })
}

fn kind(cursor: &mut Cursor<'_>) -> Parsed<IndexKind> {
    if let Some(kind) = IndexKind::ALL.into_iter().find(|kind| cursor.is(kind.name())) {
        cursor.advance();
        return Ok(kind);
    }
    match cursor.word().map(str::to_ascii_uppercase) {
        Some(word) => {
            Err(unsupported::refuse(&format!("an index USING {word}"), "use INVERTED, BITMAP or NGRAM_BF"))
        }
        None => Err(cursor.expected("INVERTED, BITMAP or NGRAM_BF")),
    }
}

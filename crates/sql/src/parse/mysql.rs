//! Statements of MySQL's clients that have little or nothing to do here: dumps, drivers and tools send them.

use crate::ast::{Maintenance, SelectQuery, Statement, WithoutEffect};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::unsupported;
use sqlparser::tokenizer::Token;

/// `LOCK TABLES …`, `UNLOCK TABLES` and `FLUSH …`
pub(super) fn without_effect(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.eat("UNLOCK") {
        table_word(cursor)?;
        return Ok(Statement::WithoutEffect(WithoutEffect::UnlockTables));
    }
    if cursor.eat("LOCK") {
        table_word(cursor)?;
        cursor.list(locked_table)?;
        return Ok(Statement::WithoutEffect(WithoutEffect::LockTables));
    }
    cursor.expect("FLUSH")?;
    cursor.eat_any(&["LOCAL", "NO_WRITE_TO_BINLOG"]);
    cursor.list(flushed)?;
    Ok(Statement::WithoutEffect(WithoutEffect::Flush))
}

fn table_word(cursor: &mut Cursor<'_>) -> Parsed<()> {
    match cursor.eat_any(&["TABLES", "TABLE"]) {
        Some(_) => Ok(()),
        None => Err(cursor.expected("TABLES")),
    }
}

/// `t [[AS] alias] {READ [LOCAL] | [LOW_PRIORITY] WRITE}`
fn locked_table(cursor: &mut Cursor<'_>) -> Parsed<()> {
    cursor.name()?;
    if cursor.eat("AS") || !cursor.is_any(&["READ", "LOW_PRIORITY", "WRITE"]) {
        cursor.identifier("an alias")?;
    }
    if cursor.eat("READ") {
        cursor.eat("LOCAL");
        return Ok(());
    }
    cursor.eat("LOW_PRIORITY");
    match cursor.eat_any(&["WRITE"]) {
        Some(_) => Ok(()),
        None => Err(cursor.expected("READ or WRITE")),
    }
}

/// `TABLES [t, …] [WITH READ LOCK | FOR EXPORT]`, `PRIVILEGES`, `STATUS`, a kind of logs, and so on.
fn flushed(cursor: &mut Cursor<'_>) -> Parsed<()> {
    const KINDS: [&str; 10] = [
        "PRIVILEGES",
        "STATUS",
        "LOGS",
        "HOSTS",
        "QUERY CACHE",
        "USER_RESOURCES",
        "OPTIMIZER_COSTS",
        "DES_KEY_FILE",
        "TABLE_STATISTICS",
        "USER_STATISTICS",
    ];
    if cursor.eat_any(&["TABLES", "TABLE"]).is_some() {
        if matches!(cursor.peek(), Token::Word(_)) && !cursor.is_any(&["WITH", "FOR"]) {
            cursor.list(Cursor::name)?;
        }
        let _ = cursor.eat_all("WITH READ LOCK") || cursor.eat_all("FOR EXPORT");
        return Ok(());
    }
    if ["BINARY", "ENGINE", "ERROR", "GENERAL", "SLOW", "RELAY"].iter().any(|kind| cursor.eat(kind)) {
        return cursor.expect("LOGS");
    }
    match KINDS.iter().any(|kind| cursor.eat_all(kind)) {
        true => Ok(()),
        false => Err(cursor.expected("TABLES, PRIVILEGES, STATUS, LOGS or HOSTS")),
    }
}

/// `RENAME TABLE a TO b, …`
pub(super) fn rename_tables(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    if cursor.is("USER") {
        return Err(unsupported::refuse("RENAME USER", "create the user again with its grants"));
    }
    table_word(cursor)?;
    let renamed = cursor.list(|cursor| {
        let from = cursor.name()?;
        cursor.expect("TO")?;
        Ok((from, cursor.name()?))
    })?;
    Ok(Statement::RenameTables(renamed))
}

/// `DO expression, …`
pub(super) fn compute(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let missing = cursor.expected("an expression");
    cursor.advance();
    let row = cursor.list(Cursor::expr)?;
    match SelectQuery::of_rows(vec![row]) {
        Some(query) => Ok(Statement::Compute(query)),
        None => Err(missing),
    }
}

/// `CHECK TABLE t, … [option …]`, `ANALYZE …`, `OPTIMIZE …`, `REPAIR …`, `CHECKSUM …`
pub(super) fn maintain(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let verb = match cursor.eat_any(&["CHECK", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECKSUM"]) {
        Some("CHECK") => Maintenance::Check,
        Some("ANALYZE") => Maintenance::Analyze,
        Some("OPTIMIZE") => Maintenance::Optimize,
        Some("REPAIR") => Maintenance::Repair,
        _ => Maintenance::Checksum,
    };
    cursor.eat_any(&["LOCAL", "NO_WRITE_TO_BINLOG"]);
    table_word(cursor)?;
    let tables = cursor.list(Cursor::name)?;
    // Kinds of work of other engines, and Doris's `WITH SYNC`.
    cursor.eat("WITH");
    while cursor
        .eat_any(&[
            "FOR", "UPGRADE", "QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM", "SYNC", "FULL",
        ])
        .is_some()
    {}
    Ok(Statement::Maintain { verb, tables })
}

/// `ALTER DATABASE [db] [DEFAULT] CHARACTER SET …`, behind the first two words.
pub(super) fn alter_database(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let is_option = |cursor: &Cursor<'_>| cursor.is_any(&["DEFAULT", "CHARACTER", "CHARSET", "COLLATE"]);
    if !is_option(cursor) {
        cursor.database()?;
    }
    if !is_option(cursor) {
        let word = cursor.word().unwrap_or_default().to_ascii_uppercase();
        return Err(unsupported::refuse(&format!("ALTER DATABASE … {word}"), ""));
    }
    while is_option(cursor) {
        cursor.eat("DEFAULT");
        let _ = cursor.eat_all("CHARACTER SET") || cursor.eat_any(&["CHARSET", "COLLATE"]).is_some();
        cursor.eat_token(&Token::Eq);
        cursor.identifier_or_string("a character set or a collation")?;
    }
    Ok(Statement::WithoutEffect(WithoutEffect::LeftOut))
}

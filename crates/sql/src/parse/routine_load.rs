//! `CREATE`, `ALTER`, `PAUSE`, `RESUME`, `STOP` and `SHOW` of `ROUTINE LOAD`, in Doris's grammar.
//!
//! Expressions are parsed here and stored as they are written: a job outlives the server that reads the statement.

use crate::ast::{CreateRoutineLoad, Deletes, Name, RoutineLoad, RoutineLoadClauses, Show, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{ddl, partition, schedule, unsupported};
use sqlparser::tokenizer::Token;
use tributary_types::{ErrorCode, PartitionNames, SqlError};

/// Parses the rest after `CREATE ROUTINE LOAD`.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let job = cursor.name()?;
    let table = if cursor.eat("ON") { Some(cursor.identifier("a table name")?) } else { None };
    let kind = if cursor.eat("WITH") {
        let kind = cursor.eat_any(&["APPEND", "MERGE", "DELETE"]);
        Some(kind.ok_or_else(|| cursor.expected("APPEND, MERGE or DELETE"))?)
    } else {
        None
    };
    let mut clauses = RoutineLoadClauses::default();
    while clause(cursor, &mut clauses)? {
        cursor.eat_token(&Token::Comma);
    }
    clauses.deletes = deletes(kind, clauses.deletes.take())?;
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    let source = source(cursor)?;
    let comment = if cursor.eat("COMMENT") { cursor.string("a comment in quotes")? } else { String::new() };
    let create = CreateRoutineLoad { job, table, clauses, properties, source, comment };
    Ok(Statement::RoutineLoad(Box::new(RoutineLoad::Create(Box::new(create)))))
}

/// Takes the next clause about rows, if there is one.
fn clause(cursor: &mut Cursor<'_>, clauses: &mut RoutineLoadClauses) -> Parsed<bool> {
    if cursor.eat_all("COLUMNS TERMINATED BY") {
        clauses.column_separator = Some(cursor.string("a separator in quotes")?);
    } else if cursor.eat("COLUMNS") {
        clauses.columns = Some(cursor.parenthesized(column)?);
    } else if cursor.eat_all("PRECEDING FILTER") {
        clauses.preceding_filter = Some(cursor.expression_text()?);
    } else if cursor.eat("WHERE") {
        clauses.filter = Some(cursor.expression_text()?);
    } else if cursor.is_any(&["PARTITION", "PARTITIONS", "TEMPORARY"]) {
        clauses.partitions = match partition::names(cursor)? {
            PartitionNames::Any => Vec::new(),
            PartitionNames::Named(names) => names,
            PartitionNames::Temporary(_) => {
                let what = "CREATE ROUTINE LOAD … TEMPORARY PARTITION";
                return Err(unsupported::refuse(what, "name partitions of the table"));
            }
        };
    } else if cursor.eat_all("DELETE ON") {
        clauses.deletes = Some(Deletes::If(cursor.expression_text()?));
    } else if cursor.eat_all("ORDER BY") {
        clauses.sequence = Some(cursor.identifier("the sequence column")?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Combines MERGE, DELETE or APPEND with DELETE ON; refuses illegal combinations in Doris's words.
fn deletes(kind: Option<&str>, on: Option<Deletes>) -> Parsed<Option<Deletes>> {
    let wrong = |text: &str| Err(SqlError::detail(ErrorCode::Unknown, text));
    match (kind, on) {
        (Some("MERGE"), None) => wrong("Excepted DELETE ON clause when merge type is MERGE."),
        (Some("MERGE"), on) => Ok(on),
        (_, Some(_)) => wrong("Not support DELETE ON clause when merge type is not MERGE."),
        (Some("DELETE"), None) => Ok(Some(Deletes::All)),
        (_, None) => Ok(None),
    }
}

/// `column` or `column = expression`
fn column(cursor: &mut Cursor<'_>) -> Parsed<(String, Option<String>)> {
    let name = cursor.identifier("a column")?;
    let value = if cursor.eat_token(&Token::Eq) { Some(cursor.expression_text()?) } else { None };
    Ok((name, value))
}

/// `FROM KAFKA ("key" = "value", …)`
fn source(cursor: &mut Cursor<'_>) -> Parsed<Vec<(String, String)>> {
    cursor.expect("FROM")?;
    if !cursor.eat("KAFKA") {
        let word = cursor.word().map(str::to_ascii_uppercase).unwrap_or_default();
        return Err(unsupported::refuse(&format!("ROUTINE LOAD FROM {word}"), "there is FROM KAFKA"));
    }
    ddl::properties(cursor)
}

/// Parses the rest after `ALTER ROUTINE LOAD`.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.expect("FOR")?;
    let job = cursor.name()?;
    if cursor.is("SET") {
        return Err(unsupported::refuse("ALTER ROUTINE LOAD … SET TARGET TABLE", "make another job"));
    }
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    let source = if cursor.is("FROM") { source(cursor)? } else { Vec::new() };
    if properties.is_empty() && source.is_empty() {
        return Err(cursor.expected("PROPERTIES or FROM KAFKA"));
    }
    Ok(Statement::RoutineLoad(Box::new(RoutineLoad::Alter { job, properties, source })))
}

/// `PAUSE`, `RESUME` and `STOP`. The verb is next.
pub(super) fn control(cursor: &mut Cursor<'_>, verb: &str) -> Parsed<Statement> {
    if let Some(job) = schedule::control(cursor, verb)? {
        return Ok(job);
    }
    let is_all = cursor.is_nth(1, "ALL");
    let at = if is_all { 2 } else { 1 };
    if !cursor.is_nth(at, "ROUTINE") || !cursor.is_nth(at + 1, "LOAD") {
        return Err(unsupported::statement(verb).unwrap_or_else(|| cursor.expected("a statement")));
    }
    for _ in 0..at + 2 {
        cursor.advance();
    }
    let control = match (verb, is_all) {
        ("PAUSE", true) => RoutineLoad::PauseAll,
        ("RESUME", true) => RoutineLoad::ResumeAll,
        (_, true) => return Err(unsupported::refuse("STOP ALL ROUTINE LOAD", "stop each job")),
        ("PAUSE", false) => RoutineLoad::Pause(named(cursor)?),
        ("RESUME", false) => RoutineLoad::Resume(named(cursor)?),
        (_, false) => RoutineLoad::Stop(named(cursor)?),
    };
    Ok(Statement::RoutineLoad(Box::new(control)))
}

fn named(cursor: &mut Cursor<'_>) -> Parsed<Name> {
    cursor.expect("FOR")?;
    cursor.name()
}

/// The SHOW statements of jobs; `None` if it is another one.
pub(super) fn show(cursor: &mut Cursor<'_>) -> Parsed<Option<Show>> {
    if cursor.eat_all("CREATE ROUTINE LOAD") {
        return Ok(Some(Show::CreateRoutineLoad { job: named(cursor)? }));
    }
    if cursor.eat_all("ROUTINE LOAD TASK") {
        let db = if cursor.eat_any(&["FROM", "IN"]).is_some() { Some(cursor.database()?) } else { None };
        cursor.expect("WHERE")?;
        cursor.expect("JobName")?;
        cursor.expect_token(&Token::Eq)?;
        let job = Name { db, table: cursor.string("a job's name in quotes")? };
        return Ok(Some(Show::RoutineLoadTask { job }));
    }
    let history = cursor.eat_all("ALL ROUTINE LOAD");
    if !history && !cursor.eat_all("ROUTINE LOAD") {
        return Ok(None);
    }
    let job = if cursor.eat("FOR") { Some(cursor.name()?) } else { None };
    let db = match &job {
        None if cursor.eat_any(&["FROM", "IN"]).is_some() => Some(cursor.database()?),
        _ => None,
    };
    Ok(Some(Show::RoutineLoad { history, job, db }))
}

#[cfg(test)]
mod tests;

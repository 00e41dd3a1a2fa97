//! One statement's text → [`Statement`]: looks at the first words and dispatches.

mod admin;
mod backup;
mod broker_load;
pub(crate) mod compat;
mod create_as;
mod ddl;
mod default_value;
mod delete;
mod export;
mod grant;
mod http_stream;
mod index;
mod insert;
mod load;
mod mysql;
mod nested_types;
mod outfile;
pub(crate) mod partition;
mod prepared;
mod query;
mod recycle;
mod rollup;
mod routine_load;
mod schedule;
mod set;
mod show;
mod token;
mod transaction;
mod types;
pub(crate) mod unsupported;
mod update;
mod user;
mod verify;
mod view;

#[cfg(test)]
mod tests;

pub use backup::Backup;
pub use broker_load::{BrokerLoad, DataInfile, HiddenText, JobsBy, RowsOf};
pub use create_as::CreateTableAs;
pub use export::Export;
pub use http_stream::{HttpStream, parse_http_stream};
pub use outfile::{HiddenProperties, Outfile};
pub use partition::{PartitionBy, PartitionItem, RowsSpec, ValueSpec};
pub use recycle::{Recover, Recovered, RecycledId};
pub use schedule::{CreateJob, JobStatement, JobUnit, Moment, Schedule};
pub use verify::Verify;
pub use view::{CreateView, ViewBody, ViewStatement};

use crate::ast::{ColumnSpec, Expr, SelectQuery, Statement};
use crate::cursor::Cursor;
use crate::dialect::Grammar;
use crate::errors::Parsed;
use crate::hints;
use crate::modes::Reading;
use crate::syntax;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tributary_types::{DataType, SqlError};

/// Parses one statement; final `;` are allowed.
///
/// # Errors
/// - [`tributary_types::ErrorCode::Syntax`] with the offending token, its line (from 1) and its
///   position in the line (from 0);
/// - [`tributary_types::ErrorCode::NotSupported`] for statements that Doris or MySQL has and we do
///   not yet, naming them;
/// - [`tributary_types::ErrorCode::PacketTooLarge`] above [`crate::STATEMENT_BYTES_MAX`];
/// - the errors of names and types inside of CREATE and ALTER.
pub fn parse(sql: &str) -> Result<Statement, SqlError> {
    with_cursor(sql, statement)
}

/// Parses one statement as [`parse`] does, but maps DDL that only MySQL has to what comes nearest. Returns a sentence for each part
/// that was mapped.
///
/// # Errors
/// See [`parse`].
pub fn parse_compatible(sql: &str) -> Result<(Statement, Vec<String>), SqlError> {
    parse_as(sql, Reading { is_compatible: true, ..Reading::default() })
}

/// Parses one statement as a session reads it. Returns a sentence for each part that was mapped.
///
/// # Errors
/// See [`parse`]; the statement's text is kept, and would mean something else to another session.
pub fn parse_as(sql: &str, reading: Reading) -> Result<(Statement, Vec<String>), SqlError> {
    syntax::prepare_stack();
    let sql = &*hints::unwrapped(sql);
    let grammar = Grammar::of(reading);
    let tokens = syntax::tokenize(sql, &grammar)?;
    let concatenates = reading.pipes_concatenate && tokens.iter().any(is_pipes);
    let mut cursor = Cursor::new(sql, &grammar, tokens);
    cursor.read_as(reading);
    let parsed = statement(&mut cursor)?;
    cursor.expect_end()?;
    if concatenates && keeps_text(&parsed) {
        return Err(unsupported::refuse(
            "|| in a statement whose text is kept, with PIPES_AS_CONCAT in sql_mode,",
            "write CONCAT(a, b)",
        ));
    }
    Ok((parsed, cursor.into_notes()))
}

fn is_pipes(token: &TokenWithSpan) -> bool {
    token.token == Token::StringConcat
}

/// Whether a part of the statement's text is parsed again, without the modes of its session.
const fn keeps_text(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::View(_)
            | Statement::CreateTable(_)
            | Statement::AlterTable { .. }
            | Statement::RoutineLoad(_)
            | Statement::BrokerLoad(_)
            | Statement::Export(_)
            | Statement::Job(_)
    )
}

/// Parses one expression and nothing else, e.g. the `where` of a Stream Load.
///
/// # Errors
/// See [`parse`].
pub fn parse_expression(text: &str) -> Result<Expr, SqlError> {
    with_cursor(text, |cursor| {
        let expr = cursor.expr()?;
        // An expression is not a statement, so no semicolon may follow.
        if cursor.at_end() { Ok(expr) } else { Err(cursor.expected("the end of the expression")) }
    })
}

/// Parses one query and nothing else.
///
/// # Errors
/// See [`parse`].
pub fn parse_query(sql: &str) -> Result<SelectQuery, SqlError> {
    with_cursor(sql, query::select)
}

/// Parses a type and nothing else.
///
/// # Errors
/// See [`parse`].
pub fn parse_type(text: &str) -> Result<DataType, SqlError> {
    with_cursor(text, |cursor| types::data_type(cursor, "CAST"))
}

/// Parses the columns of the property `csv_schema`: `k1:int;k2:decimal(10,2)`.
///
/// # Errors
/// See [`parse`].
pub fn parse_csv_schema(text: &str) -> Result<Vec<ColumnSpec>, SqlError> {
    let columns = text.split(';').map(str::trim).filter(|column| !column.is_empty());
    columns
        .map(|column| {
            let (name, data_type) = column.split_once(':').unwrap_or((column, ""));
            let quoted = name.trim().replace('`', "``");
            with_cursor(&format!("`{quoted}` {data_type}"), types::column)
        })
        .collect()
}

fn with_cursor<T>(sql: &str, parse: impl FnOnce(&mut Cursor<'_>) -> Parsed<T>) -> Parsed<T> {
    syntax::prepare_stack();
    let sql = &*hints::unwrapped(sql);
    let grammar = Grammar::new();
    let tokens = syntax::tokenize(sql, &grammar)?;
    let mut cursor = Cursor::new(sql, &grammar, tokens);
    let parsed = parse(&mut cursor)?;
    cursor.expect_end()?;
    Ok(parsed)
}

fn statement(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    while cursor.eat_token(&Token::SemiColon) {}
    if cursor.at_end() {
        return Ok(Statement::Empty);
    }
    if query::begins(cursor) {
        let query = query::select(cursor)?;
        return outfile::query_or_outfile(cursor, query);
    }
    let Some(word) = cursor.word().map(str::to_ascii_uppercase) else {
        return Err(cursor.expected("a statement"));
    };
    match word.as_str() {
        "INSERT" | "REPLACE" => insert::insert(cursor),
        "LOAD" if cursor.is_nth(1, "LABEL") => broker_load::load(cursor),
        "LOAD" => load::load(cursor),
        "CLEAN" => broker_load::clean_label(cursor),
        "CANCEL" => broker_load::cancel(cursor),
        "BACKUP" => backup::backup(cursor),
        "VERIFY" => verify::verify(cursor),
        "EXPORT" => export::export(cursor),
        "DELETE" => delete::delete(cursor),
        "UPDATE" => update::update(cursor),
        "SET" => set::set(cursor),
        "UNSET" => set::unset(cursor),
        "SHOW" => show::show(cursor),
        "USE" => query::use_database(cursor),
        "EXPLAIN" | "DESC" | "DESCRIBE" => query::explain_or_describe(cursor),
        "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SYNC" | "SAVEPOINT" | "RELEASE" => {
            transaction::transaction(cursor)
        }
        "CREATE" => ddl::create(cursor),
        "DROP" => ddl::drop(cursor),
        "ALTER" => ddl::alter(cursor),
        "TRUNCATE" => ddl::truncate(cursor),
        "RECOVER" => recycle::recover(cursor),
        "PAUSE" | "RESUME" | "STOP" => routine_load::control(cursor, &word),
        "GRANT" => grant::grant(cursor),
        "REVOKE" => grant::revoke(cursor),
        "KILL" => user::kill(cursor),
        "UNLOCK" | "LOCK" | "FLUSH" => mysql::without_effect(cursor),
        "PREPARE" => prepared::prepare(cursor),
        "EXECUTE" => prepared::execute(cursor),
        "DEALLOCATE" => {
            cursor.advance();
            prepared::deallocate(cursor)
        }
        "RENAME" => mysql::rename_tables(cursor),
        "DO" => mysql::compute(cursor),
        "CHECK" | "ANALYZE" | "OPTIMIZE" | "REPAIR" | "CHECKSUM" => mysql::maintain(cursor),
        "ADMIN" => admin::admin(cursor),
        other => Err(unsupported::statement(other).unwrap_or_else(|| cursor.expected("a statement"))),
    }
}

//! `SHOW`.

use crate::ast::{
    Name, Scope, Show, ShowFilter, ShowTail, Statement, TransactionBy, UnusedPart, UserName, WarningsOf,
};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{routine_load, set, unsupported, user};
use crate::visit::walk_expr_mut;
use sqlparser::ast::{BinaryOperator, Expr, Value as SpValue, VisitorMut};
use sqlparser::tokenizer::Token;
use std::ops::ControlFlow;
use tributary_types::Sealed;

pub(crate) fn show(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    cursor.advance();
    form(cursor).map(|show| Statement::Show(Box::new(show)))
}

fn form(cursor: &mut Cursor<'_>) -> Parsed<Show> {
    if let Some(show) = of_a_table(cursor)? {
        return Ok(show);
    }
    if let Some(show) = routine_load::show(cursor)? {
        return Ok(show);
    }
    if let Some(show) = of_loads(cursor)? {
        return Ok(show);
    }
    if let Some(show) = of_the_server(cursor)? {
        return Ok(show);
    }
    if let Some(show) = of_mysql(cursor)? {
        return Ok(show);
    }
    if let Some(part) = unused(cursor)? {
        return Ok(Show::Unused(part));
    }
    match cursor.word().map(str::to_ascii_uppercase) {
        Some(word) => Err(unsupported::refuse(&format!("SHOW {word}"), "")),
        None => Err(cursor.expected("what to show")),
    }
}

/// Databases, tables and what belongs to one table.
fn of_a_table(cursor: &mut Cursor<'_>) -> Parsed<Option<Show>> {
    if cursor.eat_all("CREATE TABLE") {
        return Ok(Some(Show::CreateTable { table: cursor.name()? }));
    }
    if cursor.eat_all("CREATE VIEW") {
        return Ok(Some(Show::CreateView { view: cursor.name()? }));
    }
    if cursor.eat_all("CREATE DATABASE") || cursor.eat_all("CREATE SCHEMA") {
        // As dumps ask: the statement that is shown would have the words, too.
        cursor.eat_all("IF NOT EXISTS");
        return Ok(Some(Show::CreateDatabase { db: cursor.database()? }));
    }
    if cursor.eat_all("CATALOG RECYCLE BIN") {
        return Ok(Some(Show::RecycleBin { tail: tail(cursor)? }));
    }
    if cursor.eat_all("TABLE STATUS") {
        return Ok(Some(Show::TableStatus { db: from_db(cursor)?, filter: filter(cursor)? }));
    }
    if cursor.eat_all("ALTER TABLE ROLLUP") || cursor.eat_all("ALTER TABLE MATERIALIZED VIEW") {
        return Ok(Some(Show::AlterTableRollup { db: from_db(cursor)?, tail: tail(cursor)? }));
    }
    if cursor.eat_all("ALTER TABLE COLUMN") {
        return Ok(Some(Show::AlterTableColumn { db: from_db(cursor)?, tail: tail(cursor)? }));
    }
    let is_functions = ["FUNCTIONS", "BUILTIN"].iter().any(|word| cursor.is_nth(1, word));
    if cursor.is("FULL") && !cursor.is_nth(1, "PROCESSLIST") && !is_functions || cursor.is("EXTENDED") {
        let full = cursor.eat("FULL") | cursor.eat("EXTENDED") | cursor.eat("FULL");
        return match tables_or_columns(cursor, full)? {
            Some(show) => Ok(Some(show)),
            None => Err(cursor.expected("TABLES, COLUMNS or PROCESSLIST")),
        };
    }
    if let Some(show) = tables_or_columns(cursor, false)? {
        return Ok(Some(show));
    }
    if cursor.eat_all("DATA TYPES") {
        return Ok(Some(Show::DataTypes));
    }
    let show = match cursor.eat_any(&[
        "DATABASES",
        "SCHEMAS",
        "INDEX",
        "INDEXES",
        "KEYS",
        "PARTITION",
        "PARTITIONS",
        "TEMPORARY",
        "DATA",
        "DYNAMIC",
    ]) {
        Some("DATABASES" | "SCHEMAS") => Show::Databases { filter: filter(cursor)? },
        Some("DYNAMIC") => {
            cursor.expect("PARTITION")?;
            cursor.expect("TABLES")?;
            Show::DynamicPartitionTables { db: from_db(cursor)? }
        }
        Some("PARTITION") => Show::Partition { id: cursor.number("the number of a partition")? },
        Some("PARTITIONS") => partitions(cursor, false)?,
        Some("TEMPORARY") => {
            cursor.expect("PARTITIONS")?;
            partitions(cursor, true)?
        }
        Some("DATA") => {
            let table = if is_from(cursor) { Some(from_table(cursor)?) } else { None };
            Show::Data { table, tail: tail(cursor)? }
        }
        Some(_) => Show::Index { table: from_table(cursor)? },
        None => return Ok(None),
    };
    Ok(Some(show))
}

fn partitions(cursor: &mut Cursor<'_>, is_temporary: bool) -> Parsed<Show> {
    Ok(Show::Partitions { table: from_table(cursor)?, is_temporary, tail: tail(cursor)? })
}

fn tables_or_columns(cursor: &mut Cursor<'_>, full: bool) -> Parsed<Option<Show>> {
    let show = match cursor.eat_any(&["TABLES", "COLUMNS", "FIELDS"]) {
        Some("TABLES") => Show::Tables { full, db: from_db(cursor)?, filter: filter(cursor)? },
        Some(_) => Show::Columns { full, table: from_table(cursor)?, filter: filter(cursor)? },
        None => return Ok(None),
    };
    Ok(Some(show))
}

/// Loads and transactions.
fn of_loads(cursor: &mut Cursor<'_>) -> Parsed<Option<Show>> {
    if cursor.eat_all("LAST INSERT") {
        return Ok(Some(Show::LastInsert));
    }
    if cursor.eat_all("STREAM LOAD") {
        let (db, mut tail) = (from_db(cursor)?, tail(cursor)?);
        if let Some(ShowFilter::Where(condition)) = &mut tail.filter {
            let _ = walk_expr_mut(condition, &mut StatusOfLoad);
        }
        return Ok(Some(Show::StreamLoad { db, tail }));
    }
    if cursor.eat_all("LOAD WARNINGS") {
        return load_warnings(cursor).map(Some);
    }
    if cursor.eat_all("CREATE LOAD") {
        cursor.expect("FOR")?;
        return Ok(Some(Show::CreateLoad { label: cursor.name()? }));
    }
    if cursor.is("LOAD") && !cursor.is_nth(1, "PROFILE") {
        cursor.advance();
        return Ok(Some(Show::Load { db: from_db(cursor)?, tail: tail(cursor)? }));
    }
    if cursor.eat("JOBS") {
        return Ok(Some(Show::Jobs { tail: tail(cursor)? }));
    }
    if cursor.eat("EXPORT") {
        let (db, mut tail) = (from_db(cursor)?, tail(cursor)?);
        if let Some(ShowFilter::Where(condition)) = &mut tail.filter {
            let _ = walk_expr_mut(condition, &mut IdOfJob);
        }
        return Ok(Some(Show::Export { db, tail }));
    }
    if cursor.eat("TRANSACTION") {
        let db = from_db(cursor)?;
        return Ok(Some(Show::Transaction { db, by: transaction_by(cursor)? }));
    }
    if cursor.eat("DELETE") {
        return Ok(Some(Show::Delete { db: from_db(cursor)? }));
    }
    Ok(None)
}

/// Doris's condition on a job's `ID` means the column `JobId`.
struct IdOfJob;

impl VisitorMut for IdOfJob {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && name.value.eq_ignore_ascii_case("id")
        {
            "JobId".clone_into(&mut name.value);
        }
        ControlFlow::Continue(())
    }
}

/// Doris accepts the status of a load in any case; the column contains `Success` and `Fail`.
struct StatusOfLoad;

impl VisitorMut for StatusOfLoad {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr
            && matches!(&**left, Expr::Identifier(name) if name.value.eq_ignore_ascii_case("status"))
            && let Expr::Value(value) = &mut **right
            && let SpValue::SingleQuotedString(text) | SpValue::DoubleQuotedString(text) = &mut value.value
        {
            for known in ["Success", "Fail", "Publish Timeout", "Label Already Exists"] {
                if text.eq_ignore_ascii_case(known) {
                    known.clone_into(text);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// `[FROM db] WHERE LABEL = 'l' [LIMIT n]` or `ON 'url' [LIMIT n]`
fn load_warnings(cursor: &mut Cursor<'_>) -> Parsed<Show> {
    let of = if cursor.eat("ON") {
        WarningsOf::Url(cursor.string("the ErrorURL of a load in quotes")?)
    } else {
        let db = from_db(cursor)?;
        match compared(cursor, "LABEL = '<label>', or ON '<ErrorURL of a load>'")? {
            (
                column,
                Comparison::Eq,
                SpValue::SingleQuotedString(label) | SpValue::DoubleQuotedString(label),
            ) if column == "label" => WarningsOf::Label { db, label },
            _ => return Err(cursor.expected("LABEL = '<label>'")),
        }
    };
    Ok(Show::LoadWarnings { of, limit: ShowTail { filter: None, ..tail(cursor)? } })
}

enum Comparison {
    Eq,
    Like,
}

/// `WHERE column = value` or `WHERE column LIKE value`; the column in lower case.
fn compared(cursor: &mut Cursor<'_>, what: &str) -> Parsed<(String, Comparison, SpValue)> {
    let wrong = cursor.expected(&format!("WHERE {what}"));
    if !cursor.eat("WHERE") {
        return Err(wrong);
    }
    let (column, comparison, value) = match cursor.expr()? {
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => (left, Comparison::Eq, right),
        Expr::Like { negated: false, any: false, expr, pattern, escape_char: None } => {
            (expr, Comparison::Like, pattern)
        }
        _ => return Err(wrong),
    };
    match (*column, *value) {
        (Expr::Identifier(column), Expr::Value(value)) => {
            Ok((column.value.to_ascii_lowercase(), comparison, value.value))
        }
        _ => Err(wrong),
    }
}

/// `WHERE id = n`, `WHERE label = 'l'`, `WHERE label LIKE 'l%'` or `WHERE status = 's'`
fn transaction_by(cursor: &mut Cursor<'_>) -> Parsed<TransactionBy> {
    let what = "id = <number>, label = '<label>', label LIKE '<pattern>' or \
                status = 'prepare|precommitted|committed|visible|aborted'";
    let wrong = cursor.expected(what);
    let (column, comparison, value) = compared(cursor, what)?;
    let text = match value {
        SpValue::Number(digits, _) if column == "id" => {
            return digits.parse().map(TransactionBy::Id).map_err(|_| wrong);
        }
        SpValue::SingleQuotedString(text) | SpValue::DoubleQuotedString(text) => text,
        _ => return Err(wrong),
    };
    match (column.as_str(), comparison) {
        ("label", Comparison::Eq) => Ok(TransactionBy::Label(text)),
        ("label", Comparison::Like) => Ok(TransactionBy::LabelLike(text)),
        ("status", Comparison::Eq) => {
            let status = text.to_ascii_uppercase();
            match ["PREPARE", "PRECOMMITTED", "COMMITTED", "VISIBLE", "ABORTED"].contains(&status.as_str()) {
                true => Ok(TransactionBy::Status(status)),
                false => Err(wrong),
            }
        }
        _ => Err(wrong),
    }
}

/// Facts about the server.
fn of_the_server(cursor: &mut Cursor<'_>) -> Parsed<Option<Show>> {
    if cursor.eat_all("FRONTEND CONFIG") {
        return Ok(Some(Show::FrontendConfig { filter: filter(cursor)? }));
    }
    if cursor.eat_all("BACKEND CONFIG") {
        return Ok(Some(Show::BackendConfig { filter: filter(cursor)? }));
    }
    let forms =
        ["FUNCTIONS", "BUILTIN FUNCTIONS", "FULL FUNCTIONS", "FULL BUILTIN FUNCTIONS", "GLOBAL FUNCTIONS"];
    if let Some(words) = forms.into_iter().find(|words| cursor.eat_all(words)) {
        from_db(cursor)?;
        let is = |word: &str| words.contains(word);
        return Ok(Some(Show::Functions {
            is_builtin: is("BUILTIN"),
            full: is("FULL"),
            filter: filter(cursor)?,
        }));
    }
    if cursor.eat_all("FULL PROCESSLIST") {
        return Ok(Some(Show::ProcessList { full: true }));
    }
    let show = match cursor.eat_any(&[
        "PROCESSLIST",
        "BACKENDS",
        "FRONTENDS",
        "CATALOGS",
        "GRANTS",
        "ROLES",
        "TOKENS",
        "PROPERTY",
        "ALL",
    ]) {
        Some("PROCESSLIST") => Show::ProcessList { full: false },
        Some("BACKENDS") => Show::Backends,
        Some("FRONTENDS") => {
            cursor.eat("DISKS");
            Show::Frontends
        }
        Some("ROLES") => Show::Roles,
        Some("TOKENS") => Show::Tokens { user: grants_of(cursor)?, all: false },
        Some("ALL") if cursor.eat("TOKENS") => Show::Tokens { user: None, all: true },
        Some("PROPERTY") => {
            let user = if cursor.eat("FOR") { Some(user::user_name(cursor)?) } else { None };
            Show::Property { user, tail: tail(cursor)? }
        }
        Some("CATALOGS") => Show::Catalogs { filter: filter(cursor)? },
        Some("GRANTS") => Show::Grants { user: grants_of(cursor)?, all: false },
        Some(_) => {
            cursor.expect("GRANTS")?;
            Show::Grants { user: None, all: true }
        }
        None => return Ok(None),
    };
    Ok(Some(show))
}

/// The kinds that are one word.
const WORDS: [&str; 11] = [
    "VARIABLES",
    "STATUS",
    "WARNINGS",
    "ERRORS",
    "ENGINES",
    "CHARSET",
    "COLLATION",
    "TRIGGERS",
    "EVENTS",
    "PLUGINS",
    "PRIVILEGES",
];

/// Queries that MySQL's clients send when they connect.
fn of_mysql(cursor: &mut Cursor<'_>) -> Parsed<Option<Show>> {
    if let Some(scope) = set::scope_word(cursor) {
        return match cursor.eat_any(&["VARIABLES", "STATUS"]) {
            Some("VARIABLES") => Ok(Some(Show::Variables { scope, filter: filter(cursor)? })),
            Some(_) => Ok(Some(Show::Status { scope, filter: filter(cursor)? })),
            None => Err(cursor.expected("VARIABLES or STATUS")),
        };
    }
    if cursor.is("COUNT") && *cursor.peek_nth(1) == Token::LParen {
        return count(cursor).map(Some);
    }
    if cursor.eat_all("CHARACTER SET") {
        return Ok(Some(Show::Charset { filter: filter(cursor)? }));
    }
    if cursor.eat_all("PROCEDURE STATUS") {
        return Ok(Some(Show::ProcedureStatus { filter: filter(cursor)? }));
    }
    if cursor.eat_all("FUNCTION STATUS") {
        return Ok(Some(Show::FunctionStatus { filter: filter(cursor)? }));
    }
    if cursor.eat_all("STORAGE ENGINES") {
        return Ok(Some(Show::Engines));
    }
    let show = match cursor.eat_any(&WORDS) {
        Some("VARIABLES") => Show::Variables { scope: Scope::Session, filter: filter(cursor)? },
        Some("STATUS") => Show::Status { scope: Scope::Session, filter: filter(cursor)? },
        Some("WARNINGS") => {
            tail(cursor)?;
            Show::Warnings { count: false }
        }
        Some("ERRORS") => {
            tail(cursor)?;
            Show::Errors { count: false }
        }
        Some("ENGINES") => Show::Engines,
        Some("CHARSET") => Show::Charset { filter: filter(cursor)? },
        Some("COLLATION") => Show::Collation { filter: filter(cursor)? },
        Some("TRIGGERS") => Show::Triggers { db: from_db(cursor)?, filter: filter(cursor)? },
        Some("EVENTS") => Show::Events { db: from_db(cursor)?, filter: filter(cursor)? },
        Some("PLUGINS") => Show::Plugins,
        Some(_) => Show::Privileges,
        None => return Ok(None),
    };
    Ok(Some(show))
}

/// Parts of MySQL's servers that there are not.
fn unused(cursor: &mut Cursor<'_>) -> Parsed<Option<UnusedPart>> {
    const PARTS: [(&str, UnusedPart); 9] = [
        ("SLAVE STATUS", UnusedPart::SlaveStatus),
        ("REPLICA STATUS", UnusedPart::ReplicaStatus),
        ("SLAVE HOSTS", UnusedPart::SlaveHosts),
        ("REPLICAS", UnusedPart::Replicas),
        ("MASTER STATUS", UnusedPart::BinaryLogStatus),
        ("BINARY LOG STATUS", UnusedPart::BinaryLogStatus),
        ("BINARY LOGS", UnusedPart::BinaryLogs),
        ("MASTER LOGS", UnusedPart::BinaryLogs),
        ("PROFILES", UnusedPart::Profiles),
    ];
    if cursor.eat_all("OPEN TABLES") {
        from_db(cursor)?;
        filter(cursor)?;
        return Ok(Some(UnusedPart::OpenTables));
    }
    if cursor.is("ENGINE") && cursor.is_nth(2, "STATUS") {
        (0..3).for_each(|_| cursor.advance());
        return Ok(Some(UnusedPart::EngineStatus));
    }
    let found = PARTS.iter().find(|(words, _)| cursor.eat_all(words)).map(|(_, part)| *part);
    let is_of_channel = matches!(found, Some(UnusedPart::SlaveStatus | UnusedPart::ReplicaStatus));
    if is_of_channel && cursor.eat_all("FOR CHANNEL") {
        cursor.string("the name of a channel in quotes")?;
    }
    Ok(found)
}

/// `COUNT(*) WARNINGS` or `COUNT(*) ERRORS`
fn count(cursor: &mut Cursor<'_>) -> Parsed<Show> {
    cursor.advance();
    for token in [Token::LParen, Token::Mul, Token::RParen] {
        cursor.expect_token(&token)?;
    }
    match cursor.eat_any(&["WARNINGS", "ERRORS"]) {
        Some("WARNINGS") => Ok(Show::Warnings { count: true }),
        Some(_) => Ok(Show::Errors { count: true }),
        None => Err(cursor.expected("WARNINGS or ERRORS")),
    }
}

fn is_from(cursor: &Cursor<'_>) -> bool {
    cursor.is_any(&["FROM", "IN"])
}

fn from_db(cursor: &mut Cursor<'_>) -> Parsed<Option<String>> {
    match cursor.eat_any(&["FROM", "IN"]) {
        Some(_) => cursor.database().map(Some),
        None => Ok(None),
    }
}

/// `FROM [db.]t [FROM db]`
fn from_table(cursor: &mut Cursor<'_>) -> Parsed<Name> {
    if cursor.eat_any(&["FROM", "IN"]).is_none() {
        return Err(cursor.expected("FROM"));
    }
    let name = cursor.name()?;
    Ok(Name { db: from_db(cursor)?.or(name.db), table: name.table })
}

pub(super) fn filter(cursor: &mut Cursor<'_>) -> Parsed<Option<ShowFilter>> {
    if cursor.eat("LIKE") {
        return cursor.string("a pattern in quotes").map(|pattern| Some(ShowFilter::Like(pattern)));
    }
    if cursor.eat("WHERE") {
        return cursor.expr().map(|expr| Some(ShowFilter::Where(Sealed::new(expr))));
    }
    Ok(None)
}

/// `[LIKE …|WHERE …] [ORDER BY c [ASC|DESC], …] [LIMIT [o,] n [OFFSET o]]`
fn tail(cursor: &mut Cursor<'_>) -> Parsed<ShowTail> {
    let mut tail = ShowTail { filter: filter(cursor)?, ..ShowTail::default() };
    if cursor.eat_all("ORDER BY") {
        tail.order_by = cursor.list(order)?;
    }
    if cursor.eat("LIMIT") {
        let first = cursor.number("a number of rows")?;
        if cursor.eat_token(&Token::Comma) {
            tail.offset = first;
            tail.limit = Some(cursor.number("a number of rows")?);
        } else {
            tail.limit = Some(first);
            if cursor.eat("OFFSET") {
                tail.offset = cursor.number("a number of rows")?;
            }
        }
    }
    Ok(tail)
}

/// A column and whether its order is descending.
fn order(cursor: &mut Cursor<'_>) -> Parsed<(String, bool)> {
    let column = cursor.identifier("a column name")?;
    let descending = cursor.eat_any(&["ASC", "DESC"]) == Some("DESC");
    Ok((column, descending))
}

/// The user of `SHOW GRANTS [FOR u | FOR CURRENT_USER[()]]`; `None` is the session's.
fn grants_of(cursor: &mut Cursor<'_>) -> Parsed<Option<UserName>> {
    if !cursor.eat("FOR") {
        return Ok(None);
    }
    if !cursor.eat("CURRENT_USER") {
        return user::user_name(cursor).map(Some);
    }
    if cursor.eat_token(&Token::LParen) {
        cursor.expect_token(&Token::RParen)?;
    }
    Ok(None)
}

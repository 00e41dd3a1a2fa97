//! Statements that only Doris or MySQL support: refused by name, never mistaken for another.

use crate::cursor::offset_of;
use sqlparser::tokenizer::Location;
use tributary_types::{ErrorCode, SqlError};

/// First words of statements that are not built, and what to do instead.
const STATEMENTS: [(&str, &str); 25] = [
    ("MERGE", "use INSERT"),
    ("LOAD", "use LOAD DATA, LOAD LABEL, or Stream Load (PUT /api/{db}/{table}/_stream_load)"),
    ("RESTORE", "restore a backup into an empty directory by `tributary restore`, and start a server there"),
    ("HELP", ""),
    ("BUILD", ""),
    ("CALL", "there are no procedures"),
    ("CANCEL", ""),
    ("CLEAN", ""),
    ("COPY", ""),
    ("HANDLER", ""),
    ("IMPORT", ""),
    ("INSTALL", ""),
    ("LINK", ""),
    ("PAUSE", ""),
    ("PLAY", ""),
    ("REFRESH", ""),
    ("RESET", ""),
    ("RESUME", ""),
    ("SHUTDOWN", ""),
    ("STOP", ""),
    ("SWITCH", "there is one catalog, 'internal'"),
    ("TRANSACTION", ""),
    ("UNINSTALL", ""),
    ("UNLINK", ""),
    ("WARM", ""),
];

/// The error for an unsupported statement that starts with this word (in upper case).
pub(crate) fn statement(first_word: &str) -> Option<SqlError> {
    STATEMENTS.iter().find(|(word, _)| *word == first_word).map(|(word, instead)| refuse(word, instead))
}

/// Returns the error for a known form that is not built, if the parser stopped at this place because of one.
pub(crate) fn form(sql: &str, place: Location) -> Option<SqlError> {
    let at = offset_of(sql, place);
    let rest = sql.get(at..)?;
    let mut words = rest.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let word = words.next()?;
    let begins = |form: &&str| {
        let mut found = rest.split_ascii_whitespace();
        form.split(' ').all(|word| found.next().is_some_and(|next| next.eq_ignore_ascii_case(word)))
    };
    let lock = ["FOR UPDATE", "FOR SHARE", "LOCK IN SHARE MODE", "IN SHARE MODE"].into_iter().find(begins);
    // FOR or LOCK itself may have been taken for an alias.
    let last = sql[..at].split_ascii_whitespace().next_back();
    let follows_for = last.is_some_and(|last| last.eq_ignore_ascii_case("FOR"));
    let lock = match lock {
        Some("IN SHARE MODE") => "LOCK IN SHARE MODE",
        Some(lock) => lock,
        None if follows_for && word.eq_ignore_ascii_case("UPDATE") => "FOR UPDATE",
        None if follows_for && word.eq_ignore_ascii_case("SHARE") => "FOR SHARE",
        None => return None,
    };
    Some(self::lock(lock))
}

/// Returns the error for a query that is to lock rows.
pub(crate) fn lock(clause: &str) -> SqlError {
    refuse(clause, "a query reads one version of each table and locks no rows")
}

/// The error that `what` is not supported yet; `instead` may be empty.
pub(crate) fn refuse(what: &str, instead: &str) -> SqlError {
    let remedy = if instead.is_empty() { String::new() } else { format!(": {instead}") };
    SqlError::detail(ErrorCode::NotSupported, format!("{what} is not supported yet{remedy}"))
}

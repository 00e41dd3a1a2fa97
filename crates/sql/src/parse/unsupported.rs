//! Statements that only Doris or MySQL support: refused by name, never mistaken for another.

use tributary_types::{ErrorCode, SqlError};

/// First words of statements that are not built, and what to do instead.
const STATEMENTS: [(&str, &str); 44] = [
    ("REPLACE", "use INSERT"),
    ("MERGE", "use INSERT"),
    ("GRANT", "every user may do everything"),
    ("REVOKE", "every user may do everything"),
    ("LOAD", "use LOAD DATA, LOAD LABEL, or Stream Load (PUT /api/{db}/{table}/_stream_load)"),
    ("BACKUP", "copy the storage root"),
    ("RESTORE", "copy the storage root"),
    ("LOCK", "there are no table locks; mysqldump has --skip-lock-tables"),
    ("PREPARE", "use the driver's prepared statements"),
    ("EXECUTE", "use the driver's prepared statements"),
    ("DEALLOCATE", "use the driver's prepared statements"),
    ("SAVEPOINT", "a transaction commits or rolls back as a whole"),
    ("RELEASE", "a transaction commits or rolls back as a whole"),
    ("RENAME", "use ALTER TABLE t RENAME new_name"),
    ("HELP", ""),
    ("ANALYZE", ""),
    ("BUILD", ""),
    ("CALL", ""),
    ("CANCEL", ""),
    ("CHECK", ""),
    ("CHECKSUM", ""),
    ("CLEAN", ""),
    ("COPY", ""),
    ("DO", ""),
    ("FLUSH", ""),
    ("HANDLER", ""),
    ("IMPORT", ""),
    ("INSTALL", ""),
    ("LINK", ""),
    ("OPTIMIZE", ""),
    ("PAUSE", ""),
    ("PLAY", ""),
    ("REFRESH", ""),
    ("REPAIR", ""),
    ("RESET", ""),
    ("RESUME", ""),
    ("SHUTDOWN", ""),
    ("STOP", ""),
    ("SWITCH", "there is one catalog, 'internal'"),
    ("TRANSACTION", ""),
    ("UNINSTALL", ""),
    ("UNLINK", ""),
    ("UNSET", "use SET <variable> = DEFAULT"),
    ("WARM", ""),
];

/// The error for an unsupported statement that starts with this word (in upper case).
pub(crate) fn statement(first_word: &str) -> Option<SqlError> {
    STATEMENTS.iter().find(|(word, _)| *word == first_word).map(|(word, instead)| refuse(word, instead))
}

/// The error that `what` is not supported yet; `instead` may be empty.
pub(crate) fn refuse(what: &str, instead: &str) -> SqlError {
    let remedy = if instead.is_empty() { String::new() } else { format!(": {instead}") };
    SqlError::detail(ErrorCode::NotSupported, format!("{what} is not supported yet{remedy}"))
}

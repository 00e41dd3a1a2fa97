//! Statements and their errors as records of the server have them: the process list, the log, the audit log.
//!
//! Invariant: what comes out of here has no secret of a statement that was parsed, and only the first word of a text that was
//! not.

use super::{HIDDEN, all_secrets};
use crate::split::{Lexeme, skip_lexeme};
use std::borrow::Cow;

/// A shorter secret is not looked for in errors: it would be found in every other word.
const FOUND_BYTES_MIN: usize = 4;

/// First words of statements. Any other first word may be anything.
const WORDS: [&str; 50] = [
    "ADMIN",
    "ALTER",
    "ANALYZE",
    "BACKUP",
    "BEGIN",
    "CALL",
    "CANCEL",
    "CLEAN",
    "COMMIT",
    "CREATE",
    "DEALLOCATE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DROP",
    "EXECUTE",
    "EXPLAIN",
    "EXPORT",
    "FLUSH",
    "GRANT",
    "HELP",
    "INSERT",
    "INSTALL",
    "KILL",
    "LOAD",
    "LOCK",
    "MERGE",
    "OPTIMIZE",
    "PAUSE",
    "PREPARE",
    "RECOVER",
    "REFRESH",
    "RENAME",
    "REPLACE",
    "RESTORE",
    "RESUME",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "STOP",
    "SYNC",
    "TRUNCATE",
    "UPDATE",
    "USE",
    "VERIFY",
    "WITH",
];

/// A statement without its secrets and comments, and the secrets.
#[derive(Debug)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    secrets: Vec<&'a str>,
}

/// Returns a statement that was parsed, or its beginning, without its secrets and comments.
#[must_use]
pub fn redacted(sql: &str) -> Redacted<'_> {
    let mut removed: Vec<_> = all_secrets(sql).into_iter().map(|range| (range, HIDDEN)).collect();
    let secrets = removed.iter().map(|(range, _)| &sql[range.clone()]).collect();
    removed.extend(comments(sql).into_iter().map(|range| (range, " ")));
    if removed.is_empty() {
        return Redacted { text: Cow::Borrowed(sql), secrets };
    }
    removed.sort_unstable_by_key(|(range, _)| range.start);
    let mut text = String::with_capacity(sql.len());
    let mut at = 0;
    for (range, shown) in removed {
        text.push_str(&sql[at..range.start]);
        text.push_str(shown);
        at = range.end;
    }
    text.push_str(&sql[at..]);
    Redacted { text: Cow::Owned(text), secrets }
}

impl Redacted<'_> {
    /// The text of an error of the statement without the statement's secrets.
    #[must_use]
    pub fn error<'e>(&self, text: &'e str) -> Cow<'e, str> {
        let mut shown = Cow::Borrowed(text);
        for secret in &self.secrets {
            if secret.len() < FOUND_BYTES_MIN {
                continue;
            }
            let plain =
                secret.replace("\\'", "'").replace("''", "'").replace("\\\"", "\"").replace("\\\\", "\\");
            for form in [*secret, &plain] {
                if shown.contains(form) {
                    shown = Cow::Owned(shown.replace(form, HIDDEN));
                }
            }
        }
        shown
    }
}

/// Returns the part of a text that may be shown although nobody knows whether it is a statement: its first word, if statements
/// begin with it, and its length.
#[must_use]
pub fn outline(sql: &str, bytes: usize) -> String {
    let first: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).take(16).collect();
    let first = first.to_ascii_uppercase();
    let word = WORDS.iter().find(|word| **word == first).copied().unwrap_or("?");
    format!("{word} … ({bytes} bytes)")
}

/// The positions of comments, but for those with a meaning.
fn comments(sql: &str) -> Vec<std::ops::Range<usize>> {
    let bytes = sql.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    if !sql.contains("/*") && !sql.contains("--") && !sql.contains('#') {
        return found;
    }
    while at < bytes.len() {
        let (next, kind) = skip_lexeme(bytes, at);
        if matches!(kind, Lexeme::Blank) && !bytes[at].is_ascii_whitespace() {
            found.push(at..next);
        }
        at = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_comments_are_taken_from_a_statement_and_secrets_from_its_errors() {
        let sql = "SELECT 1 /* hush */, 'a#b' FROM s3('s3.secret_key' = 'it\\'s hush', 'x' = 'tiny') -- hush\n WHERE a # hush";
        let redacted = redacted(sql);
        assert_eq!(
            redacted.text,
            "SELECT 1  , 'a#b' FROM s3('s3.secret_key' = '***', 'x' = '***')   WHERE a  "
        );
        assert_eq!(redacted.error("key it's hush is wrong"), "key *** is wrong");
        assert_eq!(redacted.error("nothing"), "nothing");
    }

    #[test]
    fn a_text_that_is_no_statement_is_its_first_word_and_its_length() {
        for (sql, shown) in [
            ("CREATE USER u IDENTIFIED 'hush", "CREATE … (30 bytes)"),
            ("  select hush", "SELECT … (13 bytes)"),
            ("hush", "? … (4 bytes)"),
            ("createhush", "? … (10 bytes)"),
            ("", "? … (0 bytes)"),
        ] {
            assert_eq!(outline(sql, sql.len()), shown);
        }
        assert!(WORDS.is_sorted());
    }
}

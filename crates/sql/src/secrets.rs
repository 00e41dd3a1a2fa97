//! Statements as they may be shown to others: without the keys that they name.
//!
//! Not its business: passwords of users, which statements name as hashes or in a grammar of their own.

use crate::split::{Lexeme, skip_lexeme};
use std::borrow::Cow;
use std::ops::Range;

/// What a property's name has in it if its text is secret.
const SECRET: [&str; 6] = ["access_key", "secret", "token", "password", "passwd", "http.header."];
const HIDDEN: &str = "\"***\"";

/// The statement, or its beginning, without the texts of properties (`"name" = "text"`) that are secret.
#[must_use]
pub fn without_secrets(sql: &str) -> Cow<'_, str> {
    let secrets = secrets(sql);
    if secrets.is_empty() {
        return Cow::Borrowed(sql);
    }
    let mut shown = String::with_capacity(sql.len());
    let mut at = 0;
    for secret in secrets {
        shown.push_str(&sql[at..secret.start]);
        shown.push_str(HIDDEN);
        at = secret.end;
    }
    shown.push_str(&sql[at..]);
    Cow::Owned(shown)
}

/// Where the texts are, quotes included.
fn secrets(sql: &str) -> Vec<Range<usize>> {
    #[derive(PartialEq)]
    enum Before {
        Other,
        Name,
        Equals,
    }
    let bytes = sql.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut before) = (0, Before::Other);
    while at < bytes.len() {
        let (next, kind) = skip_lexeme(bytes, at);
        let lexeme = &bytes[at..next];
        if !matches!(kind, Lexeme::Blank) {
            let is_text = matches!(lexeme[0], b'\'' | b'"');
            before = match before {
                Before::Name if lexeme == b"=" => Before::Equals,
                Before::Equals if is_text => {
                    found.push(at..next);
                    Before::Other
                }
                _ if is_text && is_secret(lexeme) => Before::Name,
                _ => Before::Other,
            };
        }
        at = next;
    }
    found
}

/// Whether a statement seems to have a property whose text is secret.
pub(crate) fn names_secrets(sql: &str) -> bool {
    is_secret(sql.as_bytes())
}

fn is_secret(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    SECRET.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn texts_of_secret_properties_are_hidden_and_nothing_else() {
        for (sql, shown) in [
            ("SELECT 1", "SELECT 1"),
            (
                r#"SELECT * FROM s3("uri" = "s3://b/x", "s3.access_key"="k", 'AWS_SECRET_KEY' = 's\'s', "format"="csv")"#,
                r#"SELECT * FROM s3("uri" = "s3://b/x", "s3.access_key"="***", 'AWS_SECRET_KEY' = "***", "format"="csv")"#,
            ),
            (
                "SELECT \"secret\" -- don't\n /* \" */ = /* a */ 'x' = 'y'",
                "SELECT \"secret\" -- don't\n /* \" */ = /* a */ \"***\" = 'y'",
            ),
            (r#"x("s3.session_token" = "cut off"#, r#"x("s3.session_token" = "***""#),
            (r#"SELECT "secret", "a" = "b""#, r#"SELECT "secret", "a" = "b""#),
            (
                "SELECT 'ü', \"http.header.Authorization\" = 'Basic ü'",
                "SELECT 'ü', \"http.header.Authorization\" = \"***\"",
            ),
        ] {
            assert_eq!(without_secrets(sql), shown);
        }
    }

    #[test]
    fn a_syntax_error_does_not_show_a_key() {
        let error = crate::parse(r#"SELECT * FROM s3("s3.secret_key" = x "hush")"#).unwrap_err().to_string();
        assert!(error.contains("found '***'"), "{error}");
        let error = crate::parse("SELECT * FROM t 'shown'  'x' y").unwrap_err().to_string();
        assert!(error.contains("found '"), "{error}");
    }
}

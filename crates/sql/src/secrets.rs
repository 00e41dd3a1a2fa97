//! Statements as they may be shown to others: without the keys that they name.
//!
//! Not its business: passwords of users, which statements name as hashes or in a grammar of their own.

use crate::split::{Lexeme, skip_lexeme};
use std::borrow::Cow;
use std::ops::Range;

/// Parts of the names of properties with secret texts: keys of stores, and logins of Kafka's client.
const SECRET: [&str; 10] = [
    "access_key",
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "http.header.",
    "key.pem",
    "jaas",
    "oauthbearer.config",
];
const HIDDEN: &str = "***";

/// Returns the statement, or its beginning, without the secret texts of properties (`"name" = "text"`) and without secrets in
/// URLs: user and password, and the query of a property whose name marks it as a URL.
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

/// How much of a property's text is secret.
#[derive(Clone, Copy, PartialEq)]
enum Hides {
    All,
    /// The query of a URL, which may be a signature.
    Query,
}

/// Finds the secrets, without the quotes around them.
fn secrets(sql: &str) -> Vec<Range<usize>> {
    #[derive(PartialEq)]
    enum Before {
        Other,
        Name(Hides),
        Equals(Hides),
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
                Before::Name(hides) if lexeme == b"=" => Before::Equals(hides),
                Before::Equals(Hides::All) if is_text => {
                    found.push(inside(lexeme, at));
                    Before::Other
                }
                Before::Equals(Hides::Query) if is_text => {
                    found.extend(user_of_url(lexeme, at));
                    found.extend(query_of_url(lexeme, at));
                    Before::Other
                }
                _ if is_text => {
                    found.extend(user_of_url(lexeme, at));
                    if is_secret(lexeme) {
                        Before::Name(Hides::All)
                    } else if lexeme.to_ascii_lowercase().windows(3).any(|part| part == b"uri") {
                        Before::Name(Hides::Query)
                    } else {
                        Before::Other
                    }
                }
                _ => Before::Other,
            };
        }
        at = next;
    }
    found
}

/// A text at `at` without its quotes; the last one may be cut off.
fn inside(lexeme: &[u8], at: usize) -> Range<usize> {
    let is_closed = lexeme.len() > 1 && lexeme.last() == lexeme.first();
    at + 1..at + lexeme.len() - usize::from(is_closed)
}

/// `user:password` of a URL in a text.
fn user_of_url(lexeme: &[u8], at: usize) -> Option<Range<usize>> {
    let start = lexeme.windows(3).position(|part| part == b"://")? + 3;
    let authority = lexeme[start..].split(|byte| b"/?#'\" ".contains(byte)).next()?;
    let length = authority.iter().rposition(|&byte| byte == b'@')?;
    Some(at + start..at + start + length)
}

/// The part after the `?` of a URL in a text.
fn query_of_url(lexeme: &[u8], at: usize) -> Option<Range<usize>> {
    let start = lexeme.windows(3).position(|part| part == b"://")? + 3;
    let question = lexeme[start..].iter().position(|&byte| byte == b'?')?;
    Some(at + start + question + 1..inside(lexeme, at).end)
}

/// Whether a statement seems to have a property whose text is secret.
pub(crate) fn names_secrets(sql: &str) -> bool {
    is_secret(sql.as_bytes())
}

/// Whether the text of a property with this name is secret.
#[must_use]
pub fn is_secret_property(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|secret| name.contains(secret))
}

fn is_secret(name: &[u8]) -> bool {
    is_secret_property(&String::from_utf8_lossy(name))
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
                r#"SELECT * FROM s3("uri" = "s3://b/x", "s3.access_key"="***", 'AWS_SECRET_KEY' = '***', "format"="csv")"#,
            ),
            (
                "SELECT \"secret\" -- don't\n /* \" */ = /* a */ 'x' = 'y'",
                "SELECT \"secret\" -- don't\n /* \" */ = /* a */ '***' = 'y'",
            ),
            (r#"x("s3.session_token" = "cut off"#, r#"x("s3.session_token" = "***"#),
            (
                r#"FROM KAFKA ("property.ssl.key.pem" = "-----BEGIN", "property.sasl.username" = "me", "property.sasl.jaas.config" = "x")"#,
                r#"FROM KAFKA ("property.ssl.key.pem" = "***", "property.sasl.username" = "me", "property.sasl.jaas.config" = "***")"#,
            ),
            (
                r#"HTTP("uri" = "https://me:hush@host:1/a.csv?signature=hush", "format" = "csv")"#,
                r#"HTTP("uri" = "https://***@host:1/a.csv?***", "format" = "csv")"#,
            ),
            (
                "DATA INFILE('http://me:hush@host/a?b') 'https://host/?shown' 'a://b@",
                "DATA INFILE('http://***@host/a?b') 'https://host/?shown' 'a://***@",
            ),
            (r#"SELECT "secret", "a" = "b""#, r#"SELECT "secret", "a" = "b""#),
            (
                "SELECT 'ü', \"http.header.Authorization\" = 'Basic ü'",
                "SELECT 'ü', \"http.header.Authorization\" = '***'",
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

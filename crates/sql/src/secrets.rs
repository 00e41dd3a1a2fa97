//! Statements as they may be shown to others: without the keys that they name.
//!
//! Hidden are texts of properties unless their names are known to be harmless ([`harmless`]), users, passwords and queries of
//! URLs, and passwords of users (`IDENTIFIED BY`, `SET PASSWORD`, `PASSWORD()`). That works on lexemes, so that it works on the
//! beginning of a long statement, too. A text that is no statement may have a secret anywhere: [`outline`] is all that may be
//! shown of it.

mod harmless;
mod redacted;

use crate::split::{Lexeme, skip_lexeme};
use harmless::is_harmless;
pub use redacted::{Redacted, outline, redacted};
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
/// URLs: user and password, and the query, which may be a signature.
#[must_use]
pub fn without_secrets(sql: &str) -> Cow<'_, str> {
    let secrets = all_secrets(sql);
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

/// The positions of all secrets, in order and apart from each other.
fn all_secrets(sql: &str) -> Vec<Range<usize>> {
    let mut secrets = secrets(sql);
    secrets.extend(passwords(sql));
    secrets.extend(statements_in_texts(sql));
    secrets.sort_unstable_by_key(|secret| (secret.start, usize::MAX - secret.end));
    secrets.dedup_by(|next, before| next.start < before.end);
    secrets
}

/// The positions of texts of PREPARE and SET that are statements with secrets, without the quotes around them.
fn statements_in_texts(sql: &str) -> Vec<Range<usize>> {
    let first =
        sql.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    if !["PREPARE", "SET"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
        return Vec::new();
    }
    let bytes = sql.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (mut next, _) = skip_lexeme(bytes, at);
        if let quote @ (b'\'' | b'"') = bytes[at] {
            next = doubled(bytes, next, quote);
            let text = inside(&bytes[at..next], at);
            let quote = char::from(quote).to_string();
            let written = sql[text.clone()].replace(&format!("{quote}{quote}"), &quote);
            let written = written.replace("\\'", "'").replace("\\\"", "\"");
            if !secrets(&written).is_empty() || !passwords(&written).is_empty() {
                found.push(text);
            }
        }
        at = next;
    }
    found
}

/// Finds the secrets, without the quotes around them.
fn secrets(sql: &str) -> Vec<Range<usize>> {
    #[derive(PartialEq)]
    enum Before {
        Other,
        /// A text, and whether it is where properties have their names.
        Text(Range<usize>, bool),
        /// The name of a secret property, and `=`.
        Equals,
    }
    let bytes = sql.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut before) = (0, Before::Other);
    // Properties are in parentheses, and begin after one or a comma.
    let (mut depth, mut begins) = (0_usize, false);
    while at < bytes.len() {
        let (mut next, kind) = skip_lexeme(bytes, at);
        let lexeme = &bytes[at..next];
        if !matches!(kind, Lexeme::Blank) {
            let is_text = matches!(lexeme[0], b'\'' | b'"');
            before = match before {
                Before::Text(name, is_property) if lexeme == b"=" => {
                    let name = &bytes[name];
                    if is_secret(name) || is_property && !is_harmless(name) {
                        Before::Equals
                    } else {
                        Before::Other
                    }
                }
                Before::Equals if is_text => {
                    next = doubled(bytes, next, lexeme[0]);
                    found.push(inside(&bytes[at..next], at));
                    Before::Other
                }
                Before::Equals => {
                    let value =
                        bytes[at..].iter().take_while(|byte| !b"(),; \t\r\n'\"".contains(byte)).count();
                    if value > 0 {
                        found.push(at..at + value);
                    }
                    next = at + value.max(1);
                    Before::Other
                }
                _ if is_text => {
                    found.extend(user_of_url(lexeme, at));
                    found.extend(query_of_url(lexeme, at));
                    Before::Text(inside(lexeme, at), depth > 0 && begins)
                }
                _ => Before::Other,
            };
            begins = matches!(lexeme, b"(" | b",");
            match lexeme {
                b"(" => depth += 1,
                b")" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        at = next;
    }
    found
}

/// The end of a text whose first part ends here: a doubled quote belongs to it.
fn doubled(bytes: &[u8], mut end: usize, quote: u8) -> usize {
    while bytes.get(end) == Some(&quote) {
        end = skip_lexeme(bytes, end).0;
    }
    end
}

/// Meaning of the next text, according to the words before it.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    Nothing,
    /// The next text is a password, or the name of a plugin.
    Password,
    /// That text was there; `BY` or `AS` may come with the next one.
    Hidden,
    /// The word PASSWORD: what follows `(` or `=` is one.
    Word,
    /// `PASSWORD FOR`: what follows the user's name and `=` is one.
    For,
}

/// The positions of users' passwords, without the quotes around them.
fn passwords(sql: &str) -> Vec<Range<usize>> {
    let bytes = sql.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut said) = (0, Said::Nothing);
    while at < bytes.len() {
        let is_letter =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-') || *byte >= 0x80;
        let word = bytes[at..].iter().take_while(|byte| is_letter(byte)).count();
        if word > 0 && bytes[at] != b'-' {
            let text = &bytes[at..at + word];
            let is = |known: &str| text.eq_ignore_ascii_case(known.as_bytes());
            said = match said {
                _ if is("IDENTIFIED") => Said::Password,
                Said::Password => Said::Password,
                Said::Hidden if is("BY") || is("AS") => Said::Password,
                Said::Word if is("FOR") => Said::For,
                Said::For => Said::For,
                _ if is("PASSWORD") => Said::Word,
                _ => Said::Nothing,
            };
            at += word;
            continue;
        }
        let (mut next, kind) = skip_lexeme(bytes, at);
        let lexeme = &bytes[at..next];
        if !matches!(kind, Lexeme::Blank) {
            said = match (said, lexeme[0]) {
                // Texts side by side are one.
                (Said::Password | Said::Hidden, quote @ (b'\'' | b'"')) => {
                    next = doubled(bytes, next, quote);
                    found.push(inside(&bytes[at..next], at));
                    Said::Hidden
                }
                (Said::Password | Said::Word, b'(' | b'=') | (Said::For, b'=') => Said::Password,
                (Said::For, _) if !matches!(kind, Lexeme::End) => Said::For,
                _ => Said::Nothing,
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
                r#"s3("uri" = "s3://b/x", "s3.acces_kye" = "a""b", "Format" = "csv", "pin" = 1234)"#,
                r#"s3("uri" = "s3://b/x", "s3.acces_kye" = "***", "Format" = "csv", "pin" = ***)"#,
            ),
            ("IF('a' = 'b', 'c', x = 'd')", "IF('a' = '***', 'c', x = 'd')"),
            (
                r#"HTTP("uri" = "https://me:hush@host:1/a.csv?signature=hush", "format" = "csv")"#,
                r#"HTTP("uri" = "https://***@host:1/a.csv?***", "format" = "csv")"#,
            ),
            (
                "DATA INFILE('http://me:hush@host/a?hush') 'https://host/?hush' 'a://b@",
                "DATA INFILE('http://***@host/a?***') 'https://host/?***' 'a://***@",
            ),
            (r#"SELECT "secret", "a" = "b""#, r#"SELECT "secret", "a" = "b""#),
            ("PREPARE s FROM 'CREATE USER u IDENTIFIED BY ''hush'''", "PREPARE s FROM '***'"),
            (r#"PREPARE s FROM "ALTER USER u IDENTIFIED BY \"hush\"""#, r#"PREPARE s FROM "***""#),
            (r"set @a = 'x', @b = 'CREATE USER u IDENTIFIED BY \'hush", "set @a = 'x', @b = '***"),
            ("PREPARE s FROM 'SELECT ''a'' = ?'", "PREPARE s FROM 'SELECT ''a'' = ?'"),
            (
                "SELECT 'ü', \"http.header.Authorization\" = 'Basic ü'",
                "SELECT 'ü', \"http.header.Authorization\" = '***'",
            ),
        ] {
            assert_eq!(without_secrets(sql), shown);
        }
    }

    #[test]
    fn passwords_of_users_are_hidden() {
        for (sql, shown) in [
            ("CREATE USER 'u'@'%' IDENTIFIED BY 'hush'", "CREATE USER 'u'@'%' IDENTIFIED BY '***'"),
            (
                "create user u identified by \"it\"\"s\", v identified by ''",
                "create user u identified by \"***\", v identified by '***'",
            ),
            (
                "ALTER USER u IDENTIFIED WITH mysql_native_password BY 'hush' REQUIRE NONE COMMENT 'shown'",
                "ALTER USER u IDENTIFIED WITH mysql_native_password BY '***' REQUIRE NONE COMMENT 'shown'",
            ),
            ("x IDENTIFIED WITH 'plugin' AS '*HASH'", "x IDENTIFIED WITH '***' AS '***'"),
            (
                "ALTER USER u IDENTIFIED BY 'hush' 'hush' COMMENT 'shown'",
                "ALTER USER u IDENTIFIED BY '***' '***' COMMENT 'shown'",
            ),
            ("CREATE USER u IDENTIFIED BY PASSWORD '*HASH'", "CREATE USER u IDENTIFIED BY PASSWORD '***'"),
            ("SET PASSWORD FOR 'u'@'%' = PASSWORD('hush')", "SET PASSWORD FOR 'u'@'%' = PASSWORD('***')"),
            ("SET PASSWORD = 'hush'", "SET PASSWORD = '***'"),
            ("SELECT PASSWORD ( 'hush' ), 'shown'", "SELECT PASSWORD ( '***' ), 'shown'"),
            ("SELECT password, 'shown' FROM identified", "SELECT password, 'shown' FROM identified"),
            ("CREATE USER u IDENTIFIED /* by */ BY 'cut", "CREATE USER u IDENTIFIED /* by */ BY '***"),
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

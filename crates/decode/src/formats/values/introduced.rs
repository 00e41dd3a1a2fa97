//! Bytes that are not UTF-8 in the literals of a statement: `_binary '…'`, or just `'…'`.
//!
//! Drivers of MySQL write values of bytes so, between texts of UTF-8. Everything behind the connection takes statements that are text, so
//! such a literal becomes `x'…'` before anything reads it. A statement that is text already is never looked at.

use super::scan::{Scanner, is_name_byte};
use memchr::memmem;
use std::fmt::Write;

const INTRODUCER: &[u8] = b"_binary";
/// The statements whose literals are values.
const OF_ROWS: [&str; 6] = ["INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "WITH"];

/// The statement with bytes that are not UTF-8 as hexadecimal literals. `None` if it has such bytes elsewhere. With `plain`, literals without
/// `_binary` are bytes, too, if the statement is about rows.
#[must_use]
pub fn with_hex_literals(sql: &[u8], plain: bool) -> Option<String> {
    let plain = plain && OF_ROWS.iter().any(|word| Scanner::new(sql).keyword(word).is_some());
    let mut text = String::with_capacity(sql.len() * 2);
    let (mut copied, mut at) = (0, 0);
    let mut scratch = Vec::new();
    while let Some(byte) = sql.get(at) {
        let end = match byte {
            b'`' | b'\'' | b'"' => end_of_quoted(sql, at)?,
            b'#' => end_of_line(sql, at),
            b'-' if sql[at..].starts_with(b"--") => end_of_line(sql, at),
            b'/' if sql[at..].starts_with(b"/*") && sql.get(at + 2) != Some(&b'!') => {
                at + 4 + memmem::find(&sql[at + 2..], b"*/")?
            }
            byte if is_name_byte(*byte) => {
                at + sql[at..].iter().take_while(|byte| is_name_byte(**byte)).count()
            }
            _ => at + 1,
        };
        let literal_at = match byte {
            b'\'' | b'"' if plain => Some(at),
            _ => sql[at..end].eq_ignore_ascii_case(INTRODUCER).then_some(end),
        };
        if let Some((bytes, behind)) = literal_at.and_then(|begin| literal(sql, begin, &mut scratch)) {
            if std::str::from_utf8(bytes).is_err() {
                text.push_str(std::str::from_utf8(&sql[copied..at]).ok()?);
                text.push_str("x'");
                for byte in bytes {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "{byte:02x}");
                }
                text.push('\'');
                copied = behind;
            }
            at = behind;
        } else {
            at = end;
        }
    }
    text.push_str(std::str::from_utf8(&sql[copied..]).ok()?);
    Some(text)
}

/// The bytes of the literal in quotes that is next, and where it ends.
fn literal<'s>(sql: &'s [u8], at: usize, scratch: &'s mut Vec<u8>) -> Option<(&'s [u8], usize)> {
    let mut scanner = Scanner::new(&sql[at..]);
    let bytes = scanner.quoted(scratch)?;
    Some((bytes, at + scanner.at()))
}

/// The end of a text or name in quotes; doubled quotes are two of them.
fn end_of_quoted(sql: &[u8], start: usize) -> Option<usize> {
    let quote = sql[start];
    let mut at = start + 1;
    loop {
        match *sql.get(at)? {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn end_of_line(sql: &[u8], start: usize) -> usize {
    memchr::memchr(b'\n', &sql[start..]).map_or(sql.len(), |length| start + length + 1)
}

#[cfg(test)]
mod tests {
    use super::with_hex_literals;

    #[test]
    fn literals_that_are_not_text_become_hexadecimal_and_others_stay() {
        for (sql, expected) in [
            (&b"INSERT INTO t VALUES (1,_binary'\xff\x00a')"[..], Some("INSERT INTO t VALUES (1,x'ff0061')")),
            (b"SELECT _Binary  '\xfe''\\'\\0\\\\', 'b'", Some("SELECT x'fe2727005c', 'b'")),
            (b"SELECT _binary \"\xc3\", _binary 'a\xc3\xa9', 1", Some("SELECT x'c3', _binary 'a\u{e9}', 1")),
            (
                b"SELECT '_binary', `_binary`, _binary '\x80' -- _binary '",
                Some("SELECT '_binary', `_binary`, x'80' -- _binary '"),
            ),
            (b"SELECT /* ' */ 1 # '\n, _binary'\xff'", Some("SELECT /* ' */ 1 # '\n, x'ff'")),
            (b"SELECT 'it''s', \"a\\\"\", _binary'\xff'", Some("SELECT 'it''s', \"a\\\"\", x'ff'")),
            (b"SELECT '\xff'", None),
            (b"SELECT a_binary '\xff'", None),
            (b"SELECT _binary '\xff' \xff", None),
            (b"SELECT _binary '\xff", None),
            (b"SELECT /*! _binary '\xff' */", Some("SELECT /*! x'ff' */")),
        ] {
            assert_eq!(
                with_hex_literals(sql, false).as_deref(),
                expected,
                "{}",
                String::from_utf8_lossy(sql)
            );
        }
    }

    #[test]
    fn literals_of_rows_are_bytes_without_an_introducer_on_request() {
        for (sql, expected) in [
            (
                &b"/* a */ insert into t values ('\xff\\'', \"\xc3\", '\xc3\xa9', _binary'\xfe')"[..],
                Some("/* a */ insert into t values (x'ff27', x'c3', '\u{e9}', x'fe')"),
            ),
            (b"SELECT '\xff' FROM `t` WHERE a = 'b'", Some("SELECT x'ff' FROM `t` WHERE a = 'b'")),
            (b"SELECT '\xff' FROM `\xff`", None),
            (b"CREATE TABLE t (a INT COMMENT '\xff')", None),
            (b"INSERT INTO t VALUES ('\xff", None),
        ] {
            assert_eq!(with_hex_literals(sql, true).as_deref(), expected, "{}", String::from_utf8_lossy(sql));
        }
    }
}

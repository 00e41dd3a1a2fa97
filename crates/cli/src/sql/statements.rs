//! Text → statements, each up to its `;` or `\G`.

/// A whole statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub text: String,
    /// It ends with `\G`: its rows are to be shown one field a line.
    pub is_vertical: bool,
}

/// Splits a text into its whole statements and the rest, which has no end yet.
pub(crate) fn split(text: &str) -> (Vec<Statement>, &str) {
    let bytes = text.as_bytes();
    let (mut statements, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        let ahead = &bytes[at..];
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => at = after_quote(bytes, at + 1, quote),
            b'#' => at = after(text, at, "\n"),
            b'-' if is_dashes(ahead) => at = after(text, at, "\n"),
            b'/' if ahead.starts_with(b"/*") => at = after(text, at + 2, "*/"),
            b';' => {
                push(&mut statements, &text[start..at], false);
                at += 1;
                start = at;
            }
            b'\\' if ahead.starts_with(b"\\G") || ahead.starts_with(b"\\g") => {
                push(&mut statements, &text[start..at], ahead[1] == b'G');
                at += 2;
                start = at;
            }
            _ => at += 1,
        }
    }
    (statements, &text[start..])
}

/// Splits a text whose last statement may lack its end.
pub(crate) fn split_all(text: &str) -> Vec<Statement> {
    let (mut statements, rest) = split(text);
    push(&mut statements, rest, false);
    statements
}

/// Whether a text has anything but blanks and comments.
fn is_something(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        let end = match rest.as_bytes() {
            [] => return false,
            [b'#', ..] => after(rest, 0, "\n"),
            bytes if is_dashes(bytes) => after(rest, 0, "\n"),
            [b'/', b'*', third, ..] if !matches!(third, b'!' | b'+') => after(rest, 2, "*/"),
            _ => return true,
        };
        rest = rest[end.min(rest.len())..].trim_start();
    }
}

fn push(statements: &mut Vec<Statement>, text: &str, is_vertical: bool) {
    if is_something(text) {
        statements.push(Statement { text: text.trim().to_owned(), is_vertical });
    }
}

/// Two dashes begin a comment only before a blank or at the end.
fn is_dashes(bytes: &[u8]) -> bool {
    bytes.starts_with(b"--") && bytes.get(2).is_none_or(u8::is_ascii_whitespace)
}

fn after(text: &str, from: usize, end: &str) -> usize {
    text.get(from..).and_then(|rest| rest.find(end)).map_or(text.len(), |at| from + at + end.len())
}

/// The place behind a closing quote. A doubled quote closes and opens again, which leads to the same place.
fn after_quote(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' if quote != b'`' => at += 1,
            byte if byte == quote => return at,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> (Vec<String>, String) {
        let (statements, rest) = split(text);
        let text =
            |statement: Statement| statement.text + if statement.is_vertical { " (vertical)" } else { "" };
        (statements.into_iter().map(text).collect(), rest.to_owned())
    }

    #[test]
    fn statements_end_outside_of_quotes_and_comments() {
        for (text, statements, rest) in [
            ("a; b;c", &["a", "b"][..], "c"),
            ("a ';' \";\" `;`;", &["a ';' \";\" `;`"], ""),
            (r"a '\';';", &[r"a '\';'"], ""),
            ("a `\\`;", &["a `\\`"], ""),
            ("a 'it''s;';", &["a 'it''s;'"], ""),
            ("a -- ;\n;", &["a -- ;"], ""),
            ("1--1;", &["1--1"], ""),
            ("a /* ; */ ;", &["a /* ; */"], ""),
            ("# ;\n;; -- x\n;", &[], ""),
            (r"a\G b\g", &["a (vertical)", "b"], ""),
            ("a 'b;", &[], "a 'b;"),
            ("ä 'ö;' ;ü", &["ä 'ö;'"], "ü"),
        ] {
            let (found, left) = texts(text);
            assert_eq!(
                (found.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), left.as_str()),
                (statements, rest),
                "{text}"
            );
        }
        assert_eq!(split_all("a;b").len(), 2);
        assert_eq!(split_all("a; -- end").len(), 1);
        assert_eq!(split_all("/*+ hint */;/* none */").len(), 1);
    }
}

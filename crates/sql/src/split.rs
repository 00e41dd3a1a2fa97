//! Cuts a text into statements at `;`, knowing quotes and comments and nothing else.

use std::ops::Range;

/// The statements of `sql`, each without its `;` and without blanks around it. Pieces without any
/// token (blanks, comments) are left out, so the result may be empty.
#[must_use]
pub fn split(sql: &str) -> Vec<&str> {
    let bytes = sql.as_bytes();
    let mut pieces = Vec::new();
    let (mut start, mut at, mut has_token) = (0, 0, false);
    while at < bytes.len() {
        let (next, kind) = skip_lexeme(bytes, at);
        match kind {
            Lexeme::End => {
                pieces.extend(piece(sql, start..at, has_token));
                (start, has_token) = (next, false);
            }
            Lexeme::Token => has_token = true,
            Lexeme::Blank => {}
        }
        at = next;
    }
    pieces.extend(piece(sql, start..sql.len(), has_token));
    pieces
}

/// The rest without blanks, including non-ASCII ones, unless it is empty.
fn piece(sql: &str, range: Range<usize>, has_token: bool) -> Option<&str> {
    let piece = sql[range].trim();
    (has_token && !piece.is_empty()).then_some(piece)
}

pub(crate) enum Lexeme {
    /// `;`
    End,
    Token,
    Blank,
}

/// The end of the quoted text, comment or single byte that starts at `at`. Only ASCII bytes end a lexeme or have a meaning, so
/// `;` is always found at a character's boundary.
pub(crate) fn skip_lexeme(bytes: &[u8], at: usize) -> (usize, Lexeme) {
    let rest = &bytes[at..];
    match rest[0] {
        b';' => (at + 1, Lexeme::End),
        quote @ (b'\'' | b'"' | b'`') => (at + quoted_len(rest, quote), Lexeme::Token),
        b'#' => (at + line_len(rest), Lexeme::Blank),
        b'-' if is_dash_comment(rest) => (at + line_len(rest), Lexeme::Blank),
        b'/' if rest.starts_with(b"/*") => {
            // `/*! … */` and `/*+ … */` carry a meaning.
            let kind = if matches!(rest.get(2), Some(b'!' | b'+')) { Lexeme::Token } else { Lexeme::Blank };
            (at + comment_len(rest), kind)
        }
        byte if byte.is_ascii_whitespace() => (at + 1, Lexeme::Blank),
        _ => (at + 1, Lexeme::Token),
    }
}

/// `--` starts a comment only before a blank, a control character or the end, as in MySQL.
fn is_dash_comment(rest: &[u8]) -> bool {
    rest.starts_with(b"--") && rest.get(2).is_none_or(|&byte| byte <= b' ')
}

fn line_len(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1)
}

fn comment_len(rest: &[u8]) -> usize {
    rest[2..].windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 4)
}

/// The length of a quoted text with its quotes. A doubled quote needs no care: it reads as two texts.
fn quoted_len(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn statements_are_cut_at_semicolons() {
        assert_eq!(split("select 1; select 2 ;\n"), ["select 1", "select 2"]);
        assert_eq!(split("select 1"), ["select 1"]);
    }

    #[test]
    fn pieces_of_blanks_are_no_statements_whatever_the_blanks() {
        assert_eq!(split("select 1; \u{b} ;\u{a0}; select 2"), ["select 1", "select 2"]);
    }

    #[test]
    fn a_semicolon_inside_quotes_does_not_cut() {
        for sql in [r"select ';'", r#"select ";""#, "select `;`", r"select 'a\';b'", "select 'it''s;'"] {
            assert_eq!(split(sql), [sql]);
        }
    }

    #[test]
    fn a_backslash_means_nothing_inside_backticks() {
        assert_eq!(split(r"select `a\`; select 2"), [r"select `a\`", "select 2"]);
    }

    #[test]
    fn a_semicolon_inside_a_comment_does_not_cut() {
        assert_eq!(
            split("select 1 -- a;b\n; # c;d\nselect /* ; */ 2"),
            ["select 1 -- a;b", "# c;d\nselect /* ; */ 2"]
        );
        assert_eq!(split("select 1--1; select 2"), ["select 1--1", "select 2"]);
    }

    #[test]
    fn pieces_without_a_token_are_left_out() {
        assert!(split(" ; ;; -- nothing\n;/* no */").is_empty());
        assert_eq!(split("select 1; -- done"), ["select 1"]);
        assert_eq!(split("/*!40101 SET NAMES utf8 */;"), ["/*!40101 SET NAMES utf8 */"]);
    }

    #[test]
    fn unfinished_quotes_and_comments_reach_to_the_end() {
        for sql in ["select 'a;b", "select `a;b", "select /*! a;b", r"select 'a\"] {
            assert_eq!(split(sql), [sql]);
        }
    }
}

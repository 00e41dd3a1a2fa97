//! Hints: `/*!NNNNN … */`, text that MySQL's servers from a version on read, and others skip; and Doris's `JOIN [shuffle]`.
//!
//! Dumps wrap whole statements in it. The marks are replaced by blanks before a statement is read, so that each token keeps its place
//! in the text; with a number above the server's version, so is what is between them.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::borrow::Cow;

/// The version that numbers are compared with: the server's own in the form of the marks, 5.7.99.
const VERSION: u32 = 50_799;

/// The text without marks.
pub(crate) fn unwrapped(sql: &str) -> Cow<'_, str> {
    if !sql.contains("/*!") {
        return Cow::Borrowed(sql);
    }
    let mut bytes = sql.as_bytes().to_vec();
    let blank = |bytes: &mut [u8]| {
        for byte in bytes.iter_mut().filter(|byte| !byte.is_ascii_whitespace()) {
            *byte = b' ';
        }
    };
    let mut at = 0;
    let mut is_open = false;
    while at < bytes.len() {
        match &bytes[at..] {
            [quote @ (b'\'' | b'"' | b'`'), ..] => at = after_quoted(&bytes, at, *quote),
            [b'/', b'*', b'!', ..] => {
                let digits = bytes[at + 3..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
                // Five digits, or six from version 10 on.
                let digits = if digits == 6 || digits == 5 { digits } else { 0 };
                let number = std::str::from_utf8(&bytes[at + 3..at + 3 + digits]).ok();
                let version = number.and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
                if version > VERSION {
                    let end = end_of_comment(&bytes, at);
                    blank(&mut bytes[at..end]);
                    at = end;
                } else {
                    blank(&mut bytes[at..at + 3 + digits]);
                    at += 3 + digits;
                    is_open = true;
                }
            }
            [b'/', b'*', ..] => at = end_of_comment(&bytes, at),
            [b'*', b'/', ..] if is_open => {
                blank(&mut bytes[at..at + 2]);
                at += 2;
                is_open = false;
            }
            [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
            }
            _ => at += 1,
        }
    }
    // Whole characters were replaced by blanks, or stayed.
    String::from_utf8(bytes).map_or(Cow::Borrowed(sql), Cow::Owned)
}

/// Doris's words in brackets behind JOIN, which choose among its ways to move rows between servers.
const OF_JOINS: [&str; 2] = ["broadcast", "shuffle"];

/// Removes `[broadcast]` and `[shuffle]` behind JOIN: there is one way to join.
pub(crate) fn drop_of_joins(tokens: &mut Vec<TokenWithSpan>) {
    let word = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
        _ => None,
    };
    let is_hint = |token: &Token| word(token).is_some_and(|word| OF_JOINS.contains(&word.as_str()));
    let is_join = |token: &Token| word(token).is_some_and(|word| word == "join");
    let found: Vec<usize> = tokens
        .windows(4)
        .enumerate()
        .filter(|(_, four)| {
            four[1].token == Token::LBracket
                && four[3].token == Token::RBracket
                && is_join(&four[0].token)
                && is_hint(&four[2].token)
        })
        .map(|(at, _)| at)
        .collect();
    if found.is_empty() {
        return;
    }
    let mut at = 0;
    let mut of_hints = found.iter().flat_map(|join| join + 1..join + 4).peekable();
    tokens.retain(|_| {
        let is_of_hint = of_hints.next_if_eq(&at).is_some();
        at += 1;
        !is_of_hint
    });
}

/// The place behind a quoted text or name.
fn after_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The place behind a comment, or behind the text if the comment does not end.
fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let ends = bytes[start + 2..].windows(2).position(|pair| pair == b"*/");
    ends.map_or(bytes.len(), |end| start + 2 + end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Grammar;

    #[test]
    fn words_in_brackets_are_left_out_behind_join_only() {
        for (sql, expected) in [
            ("a JOIN [broadcast] b JOIN [SHUFFLE] c", "a JOIN b JOIN c"),
            ("a JOIN [other] b", "a JOIN [ other ] b"),
            ("`join` [shuffle]", "`join` [ shuffle ]"),
            ("[shuffle]", "[ shuffle ]"),
        ] {
            let tokens = crate::syntax::tokenize(sql, &Grammar::new()).unwrap();
            let shown: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(shown.join(" "), expected, "{sql}");
        }
    }

    #[test]
    fn marks_become_blanks_and_everything_else_keeps_its_place() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("/*!40101 SET NAMES utf8 */;", "         SET NAMES utf8   ;"),
            ("SELECT /*!1*/", "SELECT    1  "),
            (
                "SELECT '/*!40101 é */', `/*!`, \"*/\" /*! + 1 */",
                "SELECT '/*!40101 é */', `/*!`, \"*/\"     + 1   ",
            ),
            ("a /*!80016 é\n*/ b", "a            \n   b"),
            ("a /*!100100 c */ b /* /*! */ */", "a                b /* /*! */ */"),
            ("a -- /*! b\n/*!c*/ # /*!\n", "a -- /*! b\n   c   # /*!\n"),
            ("a /*!50001 b", "a          b"),
        ] {
            assert_eq!(unwrapped(sql), expected, "{sql}");
        }
    }
}

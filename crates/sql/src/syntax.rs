//! Text → tokens, within limits.

use crate::chains;
use crate::dialect::Grammar;
use crate::errors::{self, Parsed};
use crate::escapes;
use crate::hints;
use crate::lateral_views;
use crate::limits::{BLANKS_MAX, STATEMENT_BYTES_MAX, TOKENS_MAX};
use crate::retries;
use crate::tablets;
use crate::temporary;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use tributary_types::{ErrorCode, SqlError, memory};

/// A statement of more bytes is parsed only if there is memory for its tree, which has about this many times its bytes.
const LARGE_BYTES: usize = 64 * 1024;
const TREE_FACTOR: usize = 16;
/// Stack that must remain where sqlparser checks whether to allocate another one. Its own 128 KiB are too few: unoptimized builds
/// use more from one check to the next.
const STACK_LEFT_BYTES: usize = 512 * 1024;
/// The size of a stack that is taken then.
const STACK_TAKEN_BYTES: usize = 4 * 1024 * 1024;
/// Makes sure that sqlparser finds enough stack on any thread. The setting is the process's.
pub(crate) fn prepare_stack() {
    if recursive::get_minimum_stack_size() < STACK_LEFT_BYTES {
        recursive::set_minimum_stack_size(STACK_LEFT_BYTES);
    }
    if recursive::get_stack_allocation_size() < STACK_TAKEN_BYTES {
        recursive::set_stack_allocation_size(STACK_TAKEN_BYTES);
    }
}

/// Refuses a text of too many tokens before they are made. The tokenizer makes one of each blank, too.
fn check_tokens(sql: &str) -> Parsed<()> {
    if sql.len() <= TOKENS_MAX {
        return Ok(());
    }
    let (tokens, blanks) = estimated(sql);
    let too_many = |max: usize, of: &str| {
        Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "a statement has more than the {max} {of} that can be parsed (INSERT … VALUES of literals only has no such \
                 limit): send fewer rows at once, or load a long list into a table"
            ),
        ))
    };
    if tokens > TOKENS_MAX {
        return too_many(TOKENS_MAX, "words, numbers, texts and signs");
    }
    if blanks > BLANKS_MAX { too_many(BLANKS_MAX, "blanks") } else { Ok(()) }
}

/// About how many tokens a text has, and how many blanks, counted without the memory that they would take. A text is never taken for
/// a comment that the tokenizer reads: tokens could hide there.
fn estimated(sql: &str) -> (usize, usize) {
    let bytes = sql.as_bytes();
    let (mut at, mut tokens, mut blanks) = (0, 0, 0);
    while let Some(&byte) = bytes.get(at)
        && tokens <= TOKENS_MAX
        && blanks <= BLANKS_MAX
    {
        let rest = &bytes[at..];
        let (len, found) = match byte {
            b'\'' | b'"' | b'`' => (quoted_len(rest), 1),
            b'#' => (line_len(rest), 0),
            // Otherwise it is two signs.
            b'-' if rest[1..].first() == Some(&b'-') && rest.get(2).is_none_or(u8::is_ascii_whitespace) => {
                (line_len(rest), 0)
            }
            // What follows the mark is executed.
            b'/' if rest.starts_with(b"/*") && rest.get(2) != Some(&b'!') => {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                (end.map_or(rest.len(), |end| end + 4), 0)
            }
            byte if byte.is_ascii_whitespace() => {
                blanks += 1;
                (1, 0)
            }
            byte if is_of_word(byte) => word(rest),
            _ => (1, 1),
        };
        at += len;
        tokens += found;
    }
    (tokens, blanks)
}

/// The length and about the tokens of a name, a number, or several with points between them.
fn word(rest: &[u8]) -> (usize, usize) {
    let len = rest.iter().take_while(|byte| is_of_word(**byte)).count();
    let points = rest[..len].iter().filter(|byte| **byte == b'.').count();
    // A number has one.
    let of_number = usize::from(rest[0].is_ascii_digit() || rest[0] == b'.');
    (len, 1 + points.saturating_sub(of_number))
}

/// Whether this byte is of a name or a number, or of several with points between them.
const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'$' | b'.')
}

/// The length of a quoted text or name.
fn quoted_len(rest: &[u8]) -> usize {
    let quote = rest[0];
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        at += 1;
        if byte == quote {
            // Twice, it is one of the text.
            if rest.get(at) != Some(&quote) {
                break;
            }
            at += 1;
        }
        if byte == b'\\' && quote != b'`' {
            at += 1;
        }
    }
    at
}

fn line_len(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// The tokens of a statement, without blanks and comments.
pub(crate) fn tokenize(sql: &str, grammar: &Grammar) -> Parsed<Vec<TokenWithSpan>> {
    if sql.len() > STATEMENT_BYTES_MAX {
        return Err(SqlError::detail(
            ErrorCode::PacketTooLarge,
            format!(
                "a statement of {} bytes is longer than the {STATEMENT_BYTES_MAX} bytes that can be parsed \
                 (INSERT … VALUES of literals only has no such limit): send fewer rows at once",
                sql.len()
            ),
        ));
    }
    check_tokens(sql)?;
    if sql.len() > LARGE_BYTES {
        memory::check((sql.len() * TREE_FACTOR) as u64)?;
    }
    // A comment to the library only if a blank follows.
    let ended = sql.ends_with("--").then(|| format!("{sql}\n"));
    // Its own unescaping is not MySQL's.
    let mut tokens = Tokenizer::new(grammar, ended.as_deref().unwrap_or(sql))
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|error| errors::at(&format!("syntax error: {}", error.message), error.location))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    tokens.iter_mut().for_each(|token| escapes::resolve(&mut token.token));
    hints::drop_of_joins(&mut tokens);
    temporary::mark(&mut tokens);
    tablets::mark(&mut tokens);
    lateral_views::apply(&mut tokens);
    grammar.note(&tokens);
    chains::check(&tokens)?;
    retries::check(&tokens)?;
    grammar.limit(tokens.len());
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_without_those_of_texts_and_comments() {
        for (sql, tokens, blanks) in [
            ("SELECT a, b FROM t", 6, 4),
            ("SELECT 'a, b, c', \"d,e\", `f,g`", 6, 3),
            (r"SELECT 'a\', b', 1", 4, 2),
            ("SELECT 'it''s'", 2, 1),
            ("SELECT /* 1, 2, 3 */ 1 -- 2, 3\n, 2 # 3, 4", 4, 6),
            ("SELECT 1.5e3, -1, t.a", 8, 3),
            ("'open, 1, 2", 1, 0),
            ("1.1.1.1", 3, 0),
            ("a.b.c", 3, 0),
        ] {
            assert_eq!(estimated(sql), (tokens, blanks), "{sql}");
        }
    }

    #[test]
    fn tokens_hide_nowhere() {
        let many = ",1".repeat(TOKENS_MAX);
        for sql in [
            format!("SELECT 1--1{many}"),
            format!("SELECT 1 /*!40000 {many} */"),
            format!("SELECT a{}", ".a".repeat(TOKENS_MAX)),
            format!("SELECT {}1", "- ".repeat(TOKENS_MAX + 1)),
            format!("SELECT {}", "@".repeat(TOKENS_MAX + 1)),
            format!("SELECT 1{}", ";".repeat(TOKENS_MAX + 1)),
            format!("SELECT 1{}", "\n".repeat(BLANKS_MAX + 1)),
        ] {
            let error = tokenize(&sql, &Grammar::new()).expect_err("too many");
            assert!(error.message.contains("a statement has more than the"), "{}: {error}", &sql[..20]);
        }
        assert!(tokenize(&format!("SELECT '{many}' /* {many} */ # {many}"), &Grammar::new()).is_ok());
    }

    #[test]
    fn a_statement_of_too_many_tokens_is_refused_before_they_take_memory() {
        let list = |count: usize| format!("SELECT {}", vec!["1"; count].join(","));
        assert!(tokenize(&list(249_999), &Grammar::new()).is_ok());
        let error = tokenize(&list(250_001), &Grammar::new()).expect_err("too many");
        assert!(error.message.contains("more than the 500000 words"), "{error}");
    }
}

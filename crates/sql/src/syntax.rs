//! Text → tokens, within limits.

use crate::chains;
use crate::dialect::Grammar;
use crate::errors::{self, Parsed};
use crate::escapes;
use crate::limits::{STATEMENT_BYTES_MAX, TOKENS_MAX};
use crate::retries;
use crate::temporary;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use tributary_types::{ErrorCode, SqlError};

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

/// The number of tokens that a text has at least, counted until it is above a limit. It takes no memory, unlike the tokens.
fn at_least(sql: &str, limit: usize) -> usize {
    let bytes = sql.as_bytes();
    let (mut at, mut count) = (0, 0);
    while let Some(&byte) = bytes.get(at)
        && count <= limit
    {
        let rest = &bytes[at..];
        at += match byte {
            b'\'' | b'"' | b'`' => {
                count += 1;
                quoted_len(rest)
            }
            b'#' => line_len(rest),
            b'-' if rest.starts_with(b"--") => line_len(rest),
            b'/' if rest.starts_with(b"/*") => {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                end.map_or(rest.len(), |end| end + 4)
            }
            b'(' | b')' | b',' => {
                count += 1;
                1
            }
            byte if is_of_word(byte) => {
                count += 1;
                rest.iter().take_while(|byte| is_of_word(**byte)).count()
            }
            // Blanks, and signs that may be one with the next.
            _ => 1,
        };
    }
    count
}

/// Whether it is in a name or a number, which has a point, too.
const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'$' | b'@' | b'.')
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
    if sql.len() > TOKENS_MAX && at_least(sql, TOKENS_MAX) > TOKENS_MAX {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "a statement has more than the {TOKENS_MAX} words, numbers, texts and signs that can be parsed (INSERT … VALUES of \
                 literals only has no such limit): send fewer rows at once, or load a long list into a table"
            ),
        ));
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
    temporary::mark(&mut tokens);
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
        for (sql, count) in [
            ("SELECT a, b FROM t", 6),
            ("SELECT 'a, b, c', \"d,e\", `f,g`", 6),
            (r"SELECT 'a\', b', 1", 4),
            ("SELECT /* 1, 2, 3 */ 1 -- 2, 3\n, 2 # 3, 4", 4),
            ("SELECT 1.5e3, -1, t.a", 6),
            ("'open, 1, 2", 1),
        ] {
            assert_eq!(at_least(sql, 100), count, "{sql}");
        }
        assert_eq!(at_least("1,1,1,1,1,1", 5), 6, "it stops above the limit");
    }

    #[test]
    fn a_statement_of_too_many_tokens_is_refused_before_they_take_memory() {
        let list = |count: usize| format!("SELECT {}", vec!["1"; count].join(","));
        assert!(tokenize(&list(249_999), &Grammar::new()).is_ok());
        let error = tokenize(&list(250_001), &Grammar::new()).expect_err("too many");
        assert!(error.message.contains("more than the 500000 words"), "{error}");
    }
}

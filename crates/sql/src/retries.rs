//! Bounds, before parsing, how often the parser backtracks.
//!
//! In FROM, sqlparser tries `((SELECT …` as a subquery first and, if that fails, as a joined table in parentheses: k parentheses
//! before SELECT are k attempts at their contents, and nested groups multiply. The product over the open groups, times the
//! tokens, is limited. (Attempts that go through expressions are limited by [`crate::dialect`].)

use crate::errors::{self, Parsed};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// How many tokens may be looked at in all attempts.
const TOKENS_VISITED_MAX: u64 = 2_000_000;
/// How many attempts are always fine.
const ATTEMPTS_ALWAYS: u64 = 8;

/// Refuses statements whose subqueries nest in too many parentheses.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Parsed<()> {
    let allowed = (TOKENS_VISITED_MAX / (tokens.len() as u64).max(1)).max(ATTEMPTS_ALWAYS);
    // Attempts at the contents of each open parenthesis.
    let mut open: Vec<u64> = Vec::new();
    let mut run = 0;
    for token in tokens {
        match &token.token {
            Token::LParen => {
                run += 1;
                open.push(open.last().copied().unwrap_or(1));
                continue;
            }
            Token::RParen => {
                open.pop();
            }
            other if run > 1 && begins_query(other) => {
                let attempts = open.last().copied().unwrap_or(1).saturating_mul(run);
                if attempts > allowed {
                    let message = "subqueries nest in too many parentheses: write one pair around each";
                    return Err(errors::at(message, token.span.start));
                }
                let first = open.len().saturating_sub(run as usize);
                open[first..].iter_mut().for_each(|inside| *inside = attempts);
            }
            _ => {}
        }
        run = 0;
    }
    Ok(())
}

fn begins_query(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
        && ["select", "with", "values", "table"].iter().any(|begin| word.value.eq_ignore_ascii_case(begin)))
}

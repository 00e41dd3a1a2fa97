//! Text → tokens, within limits.

use crate::chains;
use crate::dialect::Grammar;
use crate::errors::{self, Parsed};
use crate::escapes;
use crate::limits::STATEMENT_BYTES_MAX;
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

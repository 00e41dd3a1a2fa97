//! Text → tokens within limits, and the errors of a text that is not a statement.

use crate::chains;
use crate::cursor::Parsed;
use crate::dialect::{Grammar, TOO_COMPLEX};
use crate::escapes;
use crate::retries;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use tributary_types::{ErrorCode, SqlError};

/// The longest statement that is parsed, in bytes. Tokens take about thirty times the text's memory.
pub const STATEMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How deep parentheses, functions and subqueries may nest (some forms count twice).
pub(crate) const DEPTH_MAX: usize = 128;
/// What must be left of a stack where sqlparser looks whether to take another one. Its own 128 KiB
/// are too few: in unoptimized builds it takes more from one look to the next.
const STACK_LEFT_BYTES: usize = 512 * 1024;
/// The size of a stack that is taken then.
const STACK_TAKEN_BYTES: usize = 4 * 1024 * 1024;
/// How much of an offending token an error shows, in characters.
const SHOWN_MAX: usize = 64;

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
        .map_err(|error| at(&format!("syntax error: {}", error.message), error.location))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    tokens.iter_mut().for_each(|token| escapes::resolve(&mut token.token));
    chains::check(&tokens)?;
    retries::check(&tokens)?;
    grammar.limit(tokens.len());
    Ok(tokens)
}

/// The error that `what` was expected where `found` is.
pub(crate) fn expected(sql: &str, what: &str, found: &TokenWithSpan) -> SqlError {
    let (shown, place) = match &found.token {
        Token::EOF => ("the end of the statement".to_owned(), end_of(sql)),
        token => (format!("'{}'", shorten(&token.to_string())), found.span.start),
    };
    at(&format!("syntax error: expected {what}, found {shown}"), place)
}

/// sqlparser's error in our words; `next` is the token where it stopped.
pub(crate) fn translate(sql: &str, error: ParserError, next: &TokenWithSpan) -> SqlError {
    let text = match error {
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text,
        ParserError::RecursionLimitExceeded => {
            return SqlError::detail(
                ErrorCode::Syntax,
                format!(
                    "the statement nests deeper than {DEPTH_MAX} levels of parentheses or subqueries: flatten it"
                ),
            );
        }
    };
    if text == TOO_COMPLEX {
        return SqlError::detail(
            ErrorCode::Syntax,
            "the statement is too complex to parse: nest less deeply or divide it",
        );
    }
    let (message, place) = cut_location(&text);
    let place = place.unwrap_or(match next.token {
        Token::EOF => end_of(sql),
        _ => next.span.start,
    });
    match message.strip_prefix("Expected: ").and_then(|rest| rest.split_once(", found: ")) {
        Some((what, "EOF")) => {
            at(&format!("syntax error: expected {what}, found the end of the statement"), place)
        }
        Some((what, found)) => {
            at(&format!("syntax error: expected {what}, found '{}'", shorten(found)), place)
        }
        None => at(&format!("syntax error: {}", shorten(message)), place),
    }
}

/// Takes ` at Line: l, Column: c` off the end.
fn cut_location(text: &str) -> (&str, Option<Location>) {
    let parse = || {
        let (message, place) = text.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((message, Location { line: line.parse().ok()?, column: column.parse().ok()? }))
    };
    match parse() {
        Some((message, place)) => (message, Some(place)),
        None => (text, None),
    }
}

fn end_of(sql: &str) -> Location {
    let sql = sql.trim_end();
    let line_start = sql.rfind('\n').map_or(0, |newline| newline + 1);
    Location {
        line: sql.bytes().filter(|&byte| byte == b'\n').count() as u64 + 1,
        column: sql[line_start..].chars().count() as u64 + 1,
    }
}

/// Doris's form of a place: the line from 1, the position in it from 0.
pub(crate) fn at(message: &str, place: Location) -> SqlError {
    let place = format!("(line {}, pos {})", place.line.max(1), place.column.saturating_sub(1));
    SqlError::detail(ErrorCode::Syntax, format!("{message} {place}"))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

//! Errors of texts that are not statements: the expected and the actual token, and its position.

use crate::dialect::TOO_COMPLEX;
use crate::limits::DEPTH_MAX;
use crate::parse::unsupported;
use crate::secrets::names_secrets;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use tributary_types::{ErrorCode, SqlError};

pub(crate) type Parsed<T> = Result<T, SqlError>;

/// How much of an offending token an error shows, in characters.
const SHOWN_MAX: usize = 64;

/// The error that `what` was expected where `found` is.
pub(crate) fn expected(sql: &str, what: &str, found: &TokenWithSpan) -> SqlError {
    if let Some(refused) = unsupported::form(sql, found.span.start) {
        return refused;
    }
    let (shown, place) = match &found.token {
        Token::EOF => ("the end of the statement".to_owned(), end_of(sql)),
        token => (format!("'{}'", shorten(shown(sql, &token.to_string()))), found.span.start),
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
    if let Some(refused) = unsupported::form(sql, place.unwrap_or(next.span.start)) {
        return refused;
    }
    let place = place.unwrap_or(match next.token {
        Token::EOF => end_of(sql),
        _ => next.span.start,
    });
    match message.strip_prefix("Expected: ").and_then(|rest| rest.split_once(", found: ")) {
        Some((what, "EOF")) => {
            at(&format!("syntax error: expected {what}, found the end of the statement"), place)
        }
        Some((what, found)) => {
            let found = shown(sql, found);
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

/// A token; one that may be a key or a password is not shown.
fn shown<'a>(sql: &str, token: &'a str) -> &'a str {
    let is_text = token.starts_with(['\'', '"']);
    if is_text && names_secrets(sql) { "***" } else { token }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

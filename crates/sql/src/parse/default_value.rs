//! The value after DEFAULT.

use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::unsupported;
use sqlparser::tokenizer::Token;
use tributary_types::DefaultValue;

/// The value after DEFAULT.
pub(super) fn default_value(cursor: &mut Cursor<'_>) -> Parsed<DefaultValue> {
    let literal = |text: String| Ok(DefaultValue::Literal(text));
    let sign = match cursor.peek() {
        Token::Minus => "-",
        _ => "",
    };
    if !sign.is_empty() || *cursor.peek() == Token::Plus {
        cursor.advance();
    }
    if let Token::Number(digits, _) = cursor.peek() {
        let text = format!("{sign}{digits}");
        cursor.advance();
        return literal(text);
    }
    if cursor.is_compatible() && cursor.is_any(&["NOW", "LOCALTIME", "LOCALTIMESTAMP"]) {
        cursor.advance();
        return Ok(DefaultValue::CurrentTimestamp { scale: timestamp_scale(cursor)? });
    }
    match cursor.eat_any(&["NULL", "TRUE", "FALSE", "CURRENT_TIMESTAMP", "CURRENT_DATE"]) {
        Some("NULL") => Ok(DefaultValue::Null),
        Some("CURRENT_TIMESTAMP") => Ok(DefaultValue::CurrentTimestamp { scale: timestamp_scale(cursor)? }),
        Some("CURRENT_DATE") => {
            if cursor.eat_token(&Token::LParen) {
                cursor.expect_token(&Token::RParen)?;
            }
            Ok(DefaultValue::CurrentDate)
        }
        Some(word) => literal(word.to_ascii_lowercase()),
        None if cursor.is_any(&["BITMAP_EMPTY", "HLL_EMPTY"]) => {
            let name = cursor.word().unwrap_or_default().to_ascii_uppercase();
            cursor.advance();
            if cursor.eat_token(&Token::LParen) {
                cursor.expect_token(&Token::RParen)?;
            }
            literal(name)
        }
        None if cursor.is_any(&["PI", "E", "NOW", "UUID"]) => {
            let what = cursor.word().unwrap_or_default().to_ascii_uppercase();
            Err(unsupported::refuse(
                &format!("DEFAULT {what}"),
                "use a literal, CURRENT_TIMESTAMP or CURRENT_DATE",
            ))
        }
        None => literal(cursor.string("a literal, NULL, CURRENT_TIMESTAMP or CURRENT_DATE")?),
    }
}

/// `CURRENT_TIMESTAMP[([p])]`, and its digits of a second.
pub(super) fn current_timestamp(cursor: &mut Cursor<'_>) -> Parsed<u8> {
    cursor.expect("CURRENT_TIMESTAMP")?;
    timestamp_scale(cursor)
}

/// `[([p])]`
fn timestamp_scale(cursor: &mut Cursor<'_>) -> Parsed<u8> {
    if !cursor.eat_token(&Token::LParen) {
        return Ok(0);
    }
    if cursor.eat_token(&Token::RParen) {
        return Ok(0);
    }
    let scale = cursor.number("a number of fraction digits")?;
    cursor.expect_token(&Token::RParen)?;
    Ok(scale)
}

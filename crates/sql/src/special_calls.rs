//! Forms that sqlparser takes for something else, or does not know: `INTERVAL(n, a, b)`, the beginning of a span of time to it,
//! `CHAR(n USING utf8)`, spans and parts of times in units of several parts, and CAST to a type whose values are collections.

use crate::braces;
use sqlparser::ast::{CastKind, DataType, DateTimeField, Expr, ExtractSyntax, Ident, Interval, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Tokens behind `INTERVAL(` among which the comma of a call is looked for.
const ARGUMENT_MAX: usize = 1000;
/// Tokens of a span of time before its unit.
const SPAN_MAX: usize = 64;

/// The name of the type in a CAST to one whose values are collections; its only argument is the text of that type.
pub const NESTED_TYPE: &str = "tributary nested";

/// Units of INTERVAL that have several parts.
pub(crate) const UNITS_OF_PARTS: [&str; 11] = [
    "YEAR_MONTH",
    "DAY_HOUR",
    "DAY_MINUTE",
    "DAY_SECOND",
    "DAY_MICROSECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "HOUR_MICROSECOND",
    "MINUTE_SECOND",
    "MINUTE_MICROSECOND",
    "SECOND_MICROSECOND",
];

/// Whether one of these forms is next.
pub(crate) fn begin(parser: &Parser) -> bool {
    let Token::Word(word) = &parser.peek_token_ref().token else { return false };
    if word.quote_style.is_some() {
        return false;
    }
    let is_call = parser.peek_nth_token_ref(1).token == Token::LParen;
    match word.keyword {
        Keyword::INTERVAL => (is_call && has_comma(parser)) || has_unit_of_parts(parser),
        Keyword::CHAR => is_call,
        Keyword::EXTRACT => is_call && unit_of_parts(&parser.peek_nth_token_ref(2).token).is_some(),
        Keyword::CAST | Keyword::TRY_CAST => is_call,
        _ => false,
    }
}

/// Whether the parenthesis has several parts.
fn has_comma(parser: &Parser) -> bool {
    let mut depth = 0_usize;
    for at in 1..ARGUMENT_MAX {
        match parser.peek_nth_token_ref(at).token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace if depth <= 1 => return false,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            Token::Comma if depth == 1 => return true,
            Token::EOF => return false,
            _ => {}
        }
    }
    false
}

/// Whether a unit of several parts ends the span of time.
fn has_unit_of_parts(parser: &Parser) -> bool {
    let mut depth = 0_usize;
    for at in 1..SPAN_MAX {
        let token = &parser.peek_nth_token_ref(at).token;
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace if depth == 0 => return false,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            Token::Comma | Token::SemiColon if depth == 0 => return false,
            Token::EOF => return false,
            // Behind the value of the span.
            _ if depth == 0 && at > 1 && unit_of_parts(token).is_some() => return true,
            _ => {}
        }
    }
    false
}

fn unit_of_parts(token: &Token) -> Option<&'static str> {
    let Token::Word(word) = token else { return None };
    let is_it = |unit: &&str| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(unit);
    UNITS_OF_PARTS.into_iter().find(is_it)
}

/// The form.
pub(crate) fn parse(parser: &mut Parser) -> Result<Expr, ParserError> {
    if parser.parse_keyword(Keyword::EXTRACT) {
        return extract(parser);
    }
    if parser.parse_keyword(Keyword::CAST) {
        return cast(parser, CastKind::Cast);
    }
    if parser.parse_keyword(Keyword::TRY_CAST) {
        return cast(parser, CastKind::TryCast);
    }
    if has_unit_of_parts(parser) {
        parser.advance_token();
        return interval(parser);
    }
    let is_char = parser.parse_keyword(Keyword::CHAR);
    if !is_char {
        parser.advance_token();
    }
    parser.expect_token(&Token::LParen)?;
    let args = parser.parse_comma_separated(Parser::parse_expr)?;
    if is_char && parser.parse_keyword(Keyword::USING) {
        // Texts are UTF-8, whatever they are said to be.
        parser.parse_identifier()?;
    }
    parser.expect_token(&Token::RParen)?;
    Ok(braces::call(if is_char { "char" } else { "interval" }, args))
}

/// The value and the unit of a span of time.
fn interval(parser: &mut Parser) -> Result<Expr, ParserError> {
    let value = Box::new(parser.parse_expr()?);
    let unit = unit_of_parts(&parser.peek_token_ref().token);
    let field = match unit {
        Some(unit) => {
            parser.advance_token();
            DateTimeField::Custom(Ident::new(unit))
        }
        None if parser.next_token_is_temporal_unit() => parser.parse_date_time_field()?,
        None => return parser.expected_ref("a unit of INTERVAL", parser.peek_token_ref()),
    };
    Ok(Expr::Interval(Interval {
        value,
        leading_field: Some(field),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

/// `(unit FROM x)`
fn extract(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let Some(unit) = unit_of_parts(&parser.peek_token_ref().token) else {
        return parser.expected_ref("a unit of several parts", parser.peek_token_ref());
    };
    parser.advance_token();
    parser.expect_keyword(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    let field = DateTimeField::Custom(Ident::new(unit));
    Ok(Expr::Extract { field, syntax: ExtractSyntax::From, expr })
}

/// `(x AS type)`
fn cast(parser: &mut Parser, kind: CastKind) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword(Keyword::AS)?;
    let data_type = match nested_type(parser)? {
        Some(text) => DataType::Custom(ObjectName::from(vec![Ident::new(NESTED_TYPE)]), vec![text]),
        None => parser.parse_data_type()?,
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Cast { kind, expr, data_type, array: false, format: None })
}

/// The text of `ARRAY<T>`, `MAP<K, V>` or `STRUCT<f:T, …>`, if one is next. It is read later.
fn nested_type(parser: &mut Parser) -> Result<Option<String>, ParserError> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return Ok(None) };
    let is_nested = ["ARRAY", "MAP", "STRUCT"].iter().any(|name| word.value.eq_ignore_ascii_case(name));
    if !is_nested || word.quote_style.is_some() || parser.peek_nth_token_ref(1).token != Token::Lt {
        return Ok(None);
    }
    let mut text = String::new();
    let (mut open, mut parentheses) = (0_usize, 0_usize);
    loop {
        let token = parser.peek_token_ref().token.clone();
        match token {
            Token::Lt => open += 1,
            Token::Gt => open = open.saturating_sub(1),
            Token::ShiftRight => open = open.saturating_sub(2),
            Token::LParen => parentheses += 1,
            Token::RParen if parentheses > 0 => parentheses -= 1,
            Token::RParen | Token::EOF => return parser.expected_ref("'>'", parser.peek_token_ref()),
            _ => {}
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&token.to_string());
        parser.advance_token();
        if open == 0 && text.contains('<') {
            return Ok(Some(text));
        }
    }
}

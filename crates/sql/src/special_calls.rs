//! Calls that sqlparser takes for something else: `INTERVAL(n, a, b)`, the beginning of a span of time to it, and
//! `CHAR(n USING utf8)`.

use crate::braces;
use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Tokens behind `INTERVAL(` among which the comma of a call is looked for.
const ARGUMENT_MAX: usize = 1000;

/// Whether one of these calls is next.
pub(crate) fn begin(parser: &Parser) -> bool {
    let Token::Word(word) = &parser.peek_token_ref().token else { return false };
    if word.quote_style.is_some() || parser.peek_nth_token_ref(1).token != Token::LParen {
        return false;
    }
    match word.keyword {
        Keyword::INTERVAL => has_comma(parser),
        Keyword::CHAR => true,
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

/// The call.
pub(crate) fn parse(parser: &mut Parser) -> Result<Expr, ParserError> {
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

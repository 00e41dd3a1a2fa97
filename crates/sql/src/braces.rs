//! Doris's `{'k': 1, 'l': 2}` and `{1, 'x'}`, which are `map('k', 1, 'l', 2)` and `struct(1, 'x')`.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Words behind the brace of an escape of ODBC, such as `{d '2024-01-31'}`.
const ESCAPES: [&str; 4] = ["d", "t", "ts", "fn"];

/// Whether a map or a struct is next.
pub(crate) fn begin(parser: &Parser) -> bool {
    let is_escape = match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) => ESCAPES.iter().any(|escape| word.value.eq_ignore_ascii_case(escape)),
        _ => false,
    };
    parser.peek_token_ref().token == Token::LBrace && !is_escape
}

/// The call that the braces are.
pub(crate) fn parse(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    let mut args = Vec::new();
    if parser.consume_token(&Token::RBrace) {
        return Ok(call("map", args));
    }
    args.push(parser.parse_expr()?);
    let is_map = parser.consume_token(&Token::Colon);
    if is_map {
        args.push(parser.parse_expr()?);
    }
    while parser.consume_token(&Token::Comma) {
        args.push(parser.parse_expr()?);
        if is_map {
            parser.expect_token(&Token::Colon)?;
            args.push(parser.parse_expr()?);
        }
    }
    parser.expect_token(&Token::RBrace)?;
    Ok(call(if is_map { "map" } else { "struct" }, args))
}

/// The call of a function by its name.
#[must_use]
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

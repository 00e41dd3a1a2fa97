//! `FROM t TABLET(10008, …)`, which the parser of queries does not know: it gets `PARTITION` with the numbers as names.
//!
//! Connectors of Doris read a table so, tablet by tablet. Not this module's business: which tablets a table has.

use crate::names::TABLETS;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Marks the tablets that queries of the statement name.
pub(crate) fn mark(tokens: &mut Vec<TokenWithSpan>) {
    // Its own grammar takes partitions behind FROM.
    if tokens.first().is_some_and(|first| is(first, "DELETE")) {
        return;
    }
    let Some(from) = tokens.iter().position(|token| is(token, "FROM")) else { return };
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        if !is(token, "TABLET") || !is_list(&tokens[at + 1..]) {
            at += 1;
            continue;
        }
        let span = token.span;
        let like = |token: Token| TokenWithSpan { token, span };
        tokens[at].token = Token::make_keyword("PARTITION");
        tokens.splice(at + 2..at + 2, [like(name(TABLETS)), like(Token::Comma)]);
        at += 4;
        while let Some(token) = tokens.get_mut(at).filter(|token| token.token != Token::RParen) {
            if let Token::Number(number, _) = &token.token {
                token.token = name(number);
            }
            at += 1;
        }
    }
}

/// Whether numbers in parentheses are next.
fn is_list(rest: &[TokenWithSpan]) -> bool {
    let mut rest = rest.iter().map(|token| &token.token);
    if rest.next() != Some(&Token::LParen) {
        return false;
    }
    loop {
        match (rest.next(), rest.next()) {
            (Some(Token::Number(..)), Some(Token::Comma)) => {}
            (Some(Token::Number(..)), Some(Token::RParen)) => return true,
            _ => return false,
        }
    }
}

fn name(value: &str) -> Token {
    Token::make_word(value, Some('`'))
}

fn is(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

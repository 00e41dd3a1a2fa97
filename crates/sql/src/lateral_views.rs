//! `FROM t LATERAL VIEW explode(a) x AS c`, which the parser of queries knows behind the last table only: it gets
//! `t CROSS APPLY explode(a) AS x (c)`, which may stand behind each of them, or OUTER APPLY for LATERAL VIEW OUTER.
//!
//! Not this module's business: the functions that may be called.

use crate::cursor::is_word;
use sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Writes the lateral views of a statement as the parser reads them.
pub(crate) fn apply(tokens: &mut Vec<TokenWithSpan>) {
    let begins =
        |at: usize, given: &[TokenWithSpan]| is(given.get(at), "LATERAL") && is(given.get(at + 1), "VIEW");
    if !(0..tokens.len()).any(|at| begins(at, tokens)) {
        return;
    }
    let given = std::mem::take(tokens);
    let mut at = 0;
    let mut views = 0;
    while at < given.len() {
        if !begins(at, &given) {
            tokens.push(given[at].clone());
            at += 1;
            continue;
        }
        views += 1;
        at = view(&given, at, views, tokens);
    }
}

/// Writes the lateral view at a place, and returns the place behind it. `number` tells those without a name apart.
fn view(given: &[TokenWithSpan], start: usize, number: usize, out: &mut Vec<TokenWithSpan>) -> usize {
    let span = given[start].span;
    let like = |token: Token| TokenWithSpan { token, span };
    let mut at = start + 2;
    let is_outer = is(given.get(at), "OUTER");
    at += usize::from(is_outer);
    let kind = if is_outer { "OUTER" } else { "CROSS" };
    out.extend([like(Token::make_keyword(kind)), like(Token::make_keyword("APPLY"))]);
    let end = end_of_call(given, at);
    out.extend_from_slice(&given[at..end]);
    at = end;
    let name = given.get(at).filter(|token| is_name(token) && !is(Some(token), "AS"));
    at += usize::from(name.is_some());
    let names = if is(given.get(at), "AS") { names(given, at + 1) } else { &[] };
    at += names.len() + usize::from(!names.is_empty());
    if name.is_none() && names.is_empty() {
        return at;
    }
    out.push(like(Token::make_keyword("AS")));
    out.push(match name {
        Some(name) => name.clone(),
        None => like(Token::Word(Word {
            value: format!("lateral view {number}"),
            quote_style: Some('`'),
            keyword: Keyword::NoKeyword,
        })),
    });
    if !names.is_empty() {
        out.push(like(Token::LParen));
        out.extend_from_slice(names);
        out.push(like(Token::RParen));
    }
    at
}

/// The place behind a call's closing parenthesis.
fn end_of_call(given: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in given.iter().enumerate().skip(start) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => return at + 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    given.len()
}

/// The names behind AS, with their commas; none if no name is there. A function, or a table behind its database, is none.
fn names(given: &[TokenWithSpan], start: usize) -> &[TokenWithSpan] {
    let is_word = |at: usize| given.get(at).is_some_and(is_name);
    if !is_word(start) {
        return &[];
    }
    let mut end = start + 1;
    let is_more =
        |at: usize| matches!(given.get(at).map(|token| &token.token), Some(Token::LParen | Token::Period));
    let is_comma = |at: usize| given.get(at).is_some_and(|token| token.token == Token::Comma);
    while is_comma(end) && is_word(end + 1) && !is_more(end + 2) {
        end += 2;
    }
    &given[start..end]
}

/// Whether a token can name a table or a column.
fn is_name(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(word) => word.quote_style.is_some() || !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword),
        _ => false,
    }
}

fn is(token: Option<&TokenWithSpan>, word: &str) -> bool {
    token.is_some_and(|token| is_word(token, word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Grammar;

    #[test]
    fn lateral_views_become_what_the_parser_reads() {
        for (sql, expected) in [
            ("FROM t LATERAL VIEW f(a, (b)) x AS c", "FROM t CROSS APPLY f ( a , ( b ) ) AS x ( c )"),
            (
                "FROM t lateral view OUTER f(a) x as c, `d` lateral view g(c) y WHERE",
                "FROM t OUTER APPLY f ( a ) AS x ( c , `d` ) CROSS APPLY g ( c ) AS y WHERE",
            ),
            ("t LATERAL VIEW f() AS c JOIN u", "t CROSS APPLY f ( ) AS `lateral view 1` ( c ) JOIN u"),
            ("t LATERAL VIEW f(a) x AS c, g(1)", "t CROSS APPLY f ( a ) AS x ( c ) , g ( 1 )"),
            ("t LATERAL VIEW f(a) x AS c, e, d.u", "t CROSS APPLY f ( a ) AS x ( c , e ) , d . u"),
            ("t LATERAL VIEW f(a) WHERE", "t CROSS APPLY f ( a ) WHERE"),
            ("t LATERAL VIEW f(a", "t CROSS APPLY f ( a"),
            ("t LATERAL VIEW", "t CROSS APPLY"),
            ("t, LATERAL (SELECT 1) x", "t , LATERAL ( SELECT 1 ) x"),
        ] {
            let mut tokens = crate::syntax::tokenize(sql, &Grammar::new()).unwrap();
            apply(&mut tokens);
            let shown: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(shown.join(" "), expected, "{sql}");
        }
    }
}

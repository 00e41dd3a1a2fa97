//! `FROM t TEMPORARY PARTITION (p, …)`, which the parser of queries does not know: it gets `PARTITION` with one more name.
//!
//! Not this module's business: other statements that name temporary partitions, whose grammar is our own.

use crate::cursor::is_word;
use crate::names::TEMPORARY;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Statements whose own grammar takes temporary partitions behind `FROM`.
const OTHERS: [&str; 2] = ["DELETE", "LOAD"];

/// Marks the temporary partitions that queries of the statement name.
pub(crate) fn mark(tokens: &mut Vec<TokenWithSpan>) {
    let is_other = tokens.first().is_some_and(|first| OTHERS.iter().any(|word| is_word(first, word)));
    if is_other || !tokens.iter().any(|token| is_word(token, "TEMPORARY")) {
        return;
    }
    let mut marked = Vec::with_capacity(tokens.len() + 4);
    let mut is_behind_from = false;
    let mut rest = tokens.drain(..).peekable();
    while let Some(token) = rest.next() {
        is_behind_from |= is_word(&token, "FROM");
        let begins = is_behind_from && is_word(&token, "TEMPORARY");
        let Some(word) = rest.next_if(|next| begins && is_any(next, &["PARTITION", "PARTITIONS"])) else {
            marked.push(token);
            continue;
        };
        let like = |token: Token| TokenWithSpan { token, span: word.span };
        let comma = like(Token::Comma);
        marked.extend([
            like(Token::make_keyword("PARTITION")),
            like(Token::LParen),
            like(Token::Word(Word { value: TEMPORARY.to_owned(), quote_style: Some('`'), ..bare() })),
            comma,
        ]);
        if rest.next_if(|next| next.token == Token::LParen).is_none() {
            // `TEMPORARY PARTITION p`
            marked.extend(rest.next());
            marked.push(TokenWithSpan { token: Token::RParen, span: word.span });
        }
    }
    drop(rest);
    *tokens = marked;
}

fn bare() -> Word {
    Word { value: String::new(), quote_style: None, keyword: sqlparser::keywords::Keyword::NoKeyword }
}

fn is_any(token: &TokenWithSpan, words: &[&str]) -> bool {
    words.iter().any(|word| is_word(token, word))
}

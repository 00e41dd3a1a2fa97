//! `FROM t TABLET(10008, …)`, which the parser of queries does not know: it gets `PARTITION` with the numbers as names.
//!
//! Connectors of Doris read a table so, tablet by tablet. Not this module's business: which tablets a table has.

use crate::cursor::is_word;
use crate::names::TABLETS;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Marks the tablets that queries of the statement name.
pub(crate) fn mark(tokens: &mut Vec<TokenWithSpan>) {
    let begins = places(tokens);
    if begins.is_empty() {
        return;
    }
    let mut marked = Vec::with_capacity(tokens.len() + 2 * begins.len());
    let mut begins = begins.into_iter().peekable();
    let mut is_in_list = false;
    for (at, mut token) in tokens.drain(..).enumerate() {
        let like = |other: Token| TokenWithSpan { token: other, span: token.span };
        if begins.next_if_eq(&at).is_some() {
            is_in_list = true;
            marked.push(like(Token::make_keyword("PARTITION")));
            continue;
        }
        match &token.token {
            Token::LParen if is_in_list => {
                marked.extend([Token::LParen, name(TABLETS), Token::Comma].map(like));
                continue;
            }
            Token::Number(number, _) if is_in_list => token.token = name(number),
            Token::RParen => is_in_list = false,
            _ => {}
        }
        marked.push(token);
    }
    *tokens = marked;
}

/// Where the word is behind FROM and before numbers in parentheses.
fn places(tokens: &[TokenWithSpan]) -> Vec<usize> {
    // Its own grammar takes partitions behind FROM.
    if tokens.first().is_some_and(|first| is_word(first, "DELETE")) {
        return Vec::new();
    }
    let from = tokens.iter().position(|token| is_word(token, "FROM")).unwrap_or(tokens.len());
    let is_place = |at: &usize| is_word(&tokens[*at], "TABLET") && is_list(&tokens[at + 1..]);
    (from..tokens.len()).filter(is_place).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::MySqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn marked(sql: &str) -> String {
        let mut tokens = Tokenizer::new(&MySqlDialect {}, sql).tokenize_with_location().unwrap();
        // As the parser of statements has them.
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
        mark(&mut tokens);
        let texts: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
        texts.join(" ").replace(TABLETS, "T")
    }

    #[test]
    fn tablets_behind_from_are_partitions_by_number() {
        for (sql, expected) in [
            ("SELECT a FROM t tablet(7)", "SELECT a FROM t PARTITION ( `T` , `7` )"),
            (
                "SELECT 1 FROM a TABLET(1, 2) x JOIN b TABLET(3) WHERE c IN (4)",
                "SELECT 1 FROM a PARTITION ( `T` , `1` , `2` ) x JOIN b PARTITION ( `T` , `3` ) WHERE c IN ( 4 )",
            ),
            ("SELECT tablet(1), 2 FROM t", "SELECT tablet ( 1 ) , 2 FROM t"),
            ("SELECT 1 FROM t tablet", "SELECT 1 FROM t tablet"),
            ("SELECT 1 FROM t TABLET(a)", "SELECT 1 FROM t TABLET ( a )"),
            ("SELECT 1 FROM t TABLET(1,", "SELECT 1 FROM t TABLET ( 1 ,"),
            ("DELETE FROM t TABLET(1)", "DELETE FROM t TABLET ( 1 )"),
        ] {
            assert_eq!(marked(sql), expected, "{sql}");
        }
    }
}

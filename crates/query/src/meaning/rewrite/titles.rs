//! The titles of a result's columns: aliases and expressions as the client wrote them.
//!
//! The text of an expression is cut out of the statement, because a tree printed back has other
//! blanks and capitals. Where the text cannot be found the printed tree is used.

use sqlparser::ast::{Expr, Query, SelectItem, SetExpr, Value};
use sqlparser::dialect::MySqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// Facts about one item of the outermost SELECT list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Title {
    Text(String),
    /// `*`: as many columns as it turns out to be.
    Wildcard,
}

/// The titles of the query's columns.
pub(super) fn of(query: &Query, text: &str) -> Vec<Title> {
    let Some(select) = leftmost_select(&query.body) else { return Vec::new() };
    let sources = item_sources(text).filter(|sources| sources.len() == select.projection.len());
    select
        .projection
        .iter()
        .enumerate()
        .map(|(index, item)| match item {
            SelectItem::ExprWithAlias { alias, .. } => Title::Text(alias.value.clone()),
            SelectItem::UnnamedExpr(expr) => {
                let source = sources.as_ref().map(|sources| sources[index].as_str());
                Title::Text(expression_title(expr, source))
            }
            SelectItem::ExprWithAliases { expr, .. } => Title::Text(expr.to_string()),
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => Title::Wildcard,
        })
        .collect()
}

fn leftmost_select(body: &SetExpr) -> Option<&sqlparser::ast::Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => leftmost_select(&query.body),
        SetExpr::SetOperation { left, .. } => leftmost_select(left),
        _ => None,
    }
}

/// Columns lose their qualifier and quotes, strings their quotes; all else is its source.
fn expression_title(expr: &Expr, source: Option<&str>) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) if !parts[0].value.starts_with('@') => {
            parts.last().map(|name| name.value.clone()).unwrap_or_default()
        }
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
            _ => source.map_or_else(|| expr.to_string(), str::to_owned),
        },
        _ => source.map_or_else(|| expr.to_string(), str::to_owned),
    }
}

/// The source of each item after the outermost first SELECT. `None` without such a list.
fn item_sources(text: &str) -> Option<Vec<String>> {
    let tokens = Tokenizer::new(&MySqlDialect {}, text).tokenize_with_location().ok()?;
    let tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let first = first_select(&tokens)?;
    let offsets = Offsets::new(text);
    let mut items = Vec::new();
    let mut start = None;
    let mut end = 0;
    let mut depth = 0usize;
    for token in &tokens[first..] {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::SemiColon => break,
            Token::Word(word) if depth == 0 && word.quote_style.is_none() && ends_list(&word.value) => break,
            Token::Word(word)
                if start.is_none() && word.quote_style.is_none() && is_modifier(&word.value) =>
            {
                continue;
            }
            Token::Comma if depth == 0 => {
                items.push(text.get(start.take()?..end)?.to_owned());
                continue;
            }
            _ => {}
        }
        start.get_or_insert(offsets.of(token.span.start)?);
        end = offsets.of(token.span.end)?;
    }
    items.push(text.get(start?..end)?.to_owned());
    Some(items)
}

/// The position after the SELECT that gives the columns: the first outside of WITH's parentheses.
fn first_select(tokens: &[TokenWithSpan]) -> Option<usize> {
    let is_word = |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(wanted));
    let with = tokens.iter().find(|token| !matches!(token.token, Token::LParen));
    let has_with = with.is_some_and(|token| is_word(&token.token, "with"));
    let mut depth = 0i32;
    for (index, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            token if is_word(token, "select") && (depth == 0 || !has_with) => return Some(index + 1),
            _ => {}
        }
    }
    None
}

fn ends_list(word: &str) -> bool {
    const ENDS: [&str; 14] = [
        "from",
        "into",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "union",
        "except",
        "intersect",
        "minus",
        "window",
        "for",
        "lock",
    ];
    ENDS.iter().any(|end| word.eq_ignore_ascii_case(end))
}

fn is_modifier(word: &str) -> bool {
    const MODIFIERS: [&str; 11] = [
        "all",
        "distinct",
        "distinctrow",
        "high_priority",
        "straight_join",
        "sql_small_result",
        "sql_big_result",
        "sql_buffer_result",
        "sql_no_cache",
        "sql_cache",
        "sql_calc_found_rows",
    ];
    MODIFIERS.iter().any(|modifier| word.eq_ignore_ascii_case(modifier))
}

/// Line and column (both from 1, columns count characters) → byte offset.
struct Offsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Offsets<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = vec![0];
        lines.extend(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1));
        Self { text, lines }
    }

    fn of(&self, at: Location) -> Option<usize> {
        let line = *self.lines.get(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
        let column = usize::try_from(at.column).ok()?.checked_sub(1)?;
        let rest = &self.text[line..];
        let offset = rest.char_indices().nth(column).map_or(rest.len(), |(offset, _)| offset);
        Some(line + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_cut_out_of_the_text_as_they_were_written() {
        let items = |text| item_sources(text).unwrap();
        assert_eq!(items("SELECT 1+1,  COUNT( * ) , f(a, b) FROM t"), ["1+1", "COUNT( * )", "f(a, b)"]);
        assert_eq!(items("select distinct a\n +  b"), ["a\n +  b"]);
        assert_eq!(items("WITH c AS (SELECT 9) SELECT 'ü', Max(x) FROM c"), ["'ü'", "Max(x)"]);
        assert_eq!(items("(select extract(year from d)) union select 2"), ["extract(year from d)"]);
    }
}

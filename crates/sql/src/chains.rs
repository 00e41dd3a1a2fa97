//! Bounds how deep a statement's tree can get, before it is parsed.
//!
//! The parser bounds nesting, but handles `1+1+1+…` and `SELECT … UNION SELECT …` in loops that build a tree as deep as they are
//! long; dropping or walking such a tree overflows the stack. So the operators that are open at a token (in its own list item and
//! in the parentheses and CASEs around it) are counted and limited. An operator may count without deepening the tree, but
//! everything that deepens it is counted.

use crate::errors::{self, Parsed};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// How many operators may be open at one place. A set operator counts as [`SET_OPERATOR_WEIGHT`].
pub(crate) const CHAIN_MAX: usize = 1_000;
/// Stack use of a set operator, in operators.
const SET_OPERATOR_WEIGHT: usize = 4;
/// A stack on which every accepted statement can be copied, printed, walked and dropped, in
/// unoptimized builds too. All but copying is safe on 2 MiB.
pub const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Words that may make a tree deeper without opening a parenthesis.
const OPERATORS: [&str; 26] = [
    "and", "or", "xor", "not", "div", "mod", "like", "ilike", "rlike", "regexp", "in", "between", "is",
    "collate", "binary", "match", "interval", "at", "member", "similar", "overlaps", "notnull", "isnull",
    "operator", "prior", "any",
];
const SET_OPERATORS: [&str; 4] = ["union", "except", "intersect", "minus"];

/// A parenthesis or CASE that is open, or the statement itself.
#[derive(Default)]
struct Level {
    is_case: bool,
    /// Operators of the current list item.
    operators: usize,
    /// Set operators of the current query, with their weight.
    set_operators: usize,
}

impl Level {
    fn total(&self) -> usize {
        self.operators + self.set_operators
    }
}

/// The effect of a token on the levels.
enum Effect {
    None,
    Open {
        is_case: bool,
    },
    Close {
        is_case: bool,
    },
    /// A comma: the next item starts a tree of its own.
    NextItem,
    /// WHEN, THEN, ELSE: the same inside of CASE.
    NextBranch,
    Operator,
    SetOperator,
}

/// Refuses statements whose tree would be too deep.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Parsed<()> {
    let mut levels = vec![Level::default()];
    let mut open = 0;
    let mut after_period = false;
    for token in tokens {
        let effect = effect_of(&token.token, after_period);
        after_period = token.token == Token::Period;
        open = apply(effect, &mut levels, open);
        if open > CHAIN_MAX {
            let message = format!(
                "an expression chains more than {CHAIN_MAX} operators, or a query more than {} UNIONs: \
                 use IN (…), lists, or several statements",
                CHAIN_MAX / SET_OPERATOR_WEIGHT
            );
            return Err(errors::at(&message, token.span.start));
        }
    }
    Ok(())
}

/// Applies a token; `open` is the sum over all levels before and after.
fn apply(effect: Effect, levels: &mut Vec<Level>, open: usize) -> usize {
    let depth = levels.len();
    let Some(top) = levels.last_mut() else { return open };
    match effect {
        Effect::None => open,
        Effect::Open { is_case } => {
            levels.push(Level { is_case, ..Level::default() });
            open
        }
        Effect::Close { is_case } if depth > 1 && top.is_case == is_case => {
            let closed = top.total();
            levels.pop();
            open - closed
        }
        Effect::Close { .. } => open,
        Effect::NextBranch if !top.is_case => open,
        Effect::NextItem | Effect::NextBranch => open - std::mem::take(&mut top.operators),
        Effect::Operator => {
            top.operators += 1;
            open + 1
        }
        Effect::SetOperator => {
            let before = std::mem::take(&mut top.operators);
            top.set_operators += SET_OPERATOR_WEIGHT;
            open - before + SET_OPERATOR_WEIGHT
        }
    }
}

fn effect_of(token: &Token, after_period: bool) -> Effect {
    match token {
        Token::LParen | Token::LBracket | Token::LBrace => Effect::Open { is_case: false },
        Token::RParen | Token::RBracket | Token::RBrace => Effect::Close { is_case: false },
        Token::Comma => Effect::NextItem,
        Token::Word(word) if word.quote_style.is_some() || after_period => Effect::None,
        Token::Word(word) => effect_of_word(&word.value),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::Placeholder(_)
        | Token::EOF
        | Token::SemiColon
        | Token::Period => Effect::None,
        _ => Effect::Operator,
    }
}

fn effect_of_word(word: &str) -> Effect {
    let is = |other: &&str| word.eq_ignore_ascii_case(other);
    if OPERATORS.iter().any(is) {
        Effect::Operator
    } else if SET_OPERATORS.iter().any(is) {
        Effect::SetOperator
    } else if ["when", "then", "else"].iter().any(is) {
        Effect::NextBranch
    } else if is(&"case") {
        Effect::Open { is_case: true }
    } else if is(&"end") {
        Effect::Close { is_case: true }
    } else {
        Effect::None
    }
}

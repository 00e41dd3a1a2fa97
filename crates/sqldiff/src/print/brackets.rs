//! The brackets that an expression needs, from the precedence of operators.
//!
//! `a = b IN (c)` is `a = (b IN (c))` in MySQL and `(a = b) IN (c)` in Doris, so the brackets stay between
//! a comparison and a predicate. Everything else both read alike.
//!
//! Queries are written with brackets around everything, so that all sides parse them alike. Without the redundant ones, they must
//! still mean the same.

use crate::ast::{Expr, Form, Op};

const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const PREDICATE: u8 = 5;
const COMPARISON: u8 = 6;
const BITS: u8 = 7;
const SUM: u8 = 8;
const PRODUCT: u8 = 9;
const SIGN: u8 = 10;
const WHOLE: u8 = 11;

/// Required precedence of an operand of a list, a clause or a function: any.
pub const ANYTHING: u8 = 0;
/// Required precedence on the left of IN.
pub const BESIDE_IN: u8 = BITS;
/// Required precedence on the left of `= ANY`.
pub const BESIDE_ANY: u8 = BITS;

/// The precedence of an expression: it needs brackets where a higher one is required.
pub fn level(expr: &Expr) -> u8 {
    match &expr.op {
        Op::Form(form) => of_form(form).0,
        Op::In { .. } | Op::InQuery { .. } => PREDICATE,
        Op::Quantified { .. } => COMPARISON,
        Op::Exists { negated: true } => NOT,
        _ => WHOLE,
    }
}

/// How tightly the form's argument at this place must hold together.
pub fn needed(form: &Form, place: usize) -> u8 {
    let (_, first, rest) = of_form(form);
    if place == 0 { first } else { rest }
}

/// The level of a form, that of its first argument and that of the others. Operators take from the left.
fn of_form(form: &Form) -> (u8, u8, u8) {
    // A form that begins with a name is a function, whose arguments are in its own brackets.
    let is_operator = form.mysql.starts_with("{0} ");
    match form.name {
        "NOT" => (NOT, NOT, NOT),
        "negative" => (SIGN, WHOLE, WHOLE),
        // `ROUND({0} / {1}, 2)`.
        "/" if !is_operator => (WHOLE, PRODUCT, SIGN),
        _ if !is_operator => (WHOLE, ANYTHING, ANYTHING),
        "OR" => (OR, OR, XOR),
        "XOR" => (XOR, XOR, AND),
        "AND" => (AND, AND, NOT),
        "IS TRUE" | "IS NOT TRUE" | "IS FALSE" | "IS NULL" | "IS NOT NULL" => {
            (PREDICATE, COMPARISON, COMPARISON)
        }
        "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>" => (COMPARISON, COMPARISON, BITS),
        "LIKE" | "NOT LIKE" | "BETWEEN" | "NOT BETWEEN" => (PREDICATE, BITS, BITS),
        "*" | "/" | "%" | "DIV" => (PRODUCT, PRODUCT, SIGN),
        "+" | "-" => (SUM, SUM, PRODUCT),
        // A datetime and an interval.
        "DATE_SUB" => (SUM, SUM, WHOLE),
        _ => (ANYTHING, WHOLE, WHOLE),
    }
}

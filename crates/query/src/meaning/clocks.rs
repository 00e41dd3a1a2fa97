//! Comparisons of columns of TIMEs, whose values are texts of one form.
//!
//! The other side of a comparison gets that form: a constant while the query is planned, anything else by a cast. So equal TIMEs are equal
//! texts. They are in order by their microseconds, because the texts of negative ones and of those of 100 hours and more are not.

use crate::functions;
use crate::functions::conversion::exprs::literal;
use crate::types::metadata;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, lit};
use std::sync::Arc;
use tributary_types::{DataType, clock};

/// The most digits of a second.
const DIGITS_MAX: u8 = 6;

/// Both sides of a comparison.
pub fn alike(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    if digits(&left, schema).is_none() && digits(&right, schema).is_some() {
        let (right, mut others, _) = all_alike(right, vec![left], schema);
        return (others.remove(0), right);
    }
    let (left, mut others, _) = all_alike(left, vec![right], schema);
    (left, others.remove(0))
}

/// Both sides of a comparison of which is less.
pub fn in_order(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let are_times = is_column(&left, schema) || is_column(&right, schema);
    let (left, right) = alike(left, right, schema);
    if are_times { (micros(left), micros(right)) } else { (left, right) }
}

/// A value and its bounds; whether one has changed.
pub fn bounded(expr: Expr, bounds: Vec<Expr>, schema: &DFSchema) -> (Expr, Vec<Expr>, bool) {
    match all_alike(expr, bounds, schema) {
        (expr, bounds, true) => (micros(expr), bounds.into_iter().map(micros).collect(), true),
        unchanged => unchanged,
    }
}

/// Orders by TIMEs as such. Returns whether there are any.
pub fn order<'a>(keys: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let mut changed = false;
    for key in keys {
        if is_time(key, schema) {
            *key = micros(std::mem::take(key));
            changed = true;
        }
    }
    changed
}

/// The aggregate that MIN and MAX of TIMEs are, with its arguments.
pub fn best(name: &str, args: &[Expr], schema: &DFSchema) -> Option<(Arc<AggregateUDF>, Vec<Expr>)> {
    let by = match name {
        "min" => "min_by",
        "max" => "max_by",
        _ => return None,
    };
    let [value] = args else { return None };
    if !is_time(value, schema) {
        return None;
    }
    Some((functions::aggregates::get(by)?, vec![value.clone(), micros(value.clone())]))
}

/// Whether the texts of an expression are TIMEs.
fn is_time(expr: &Expr, schema: &DFSchema) -> bool {
    is_column(expr, schema) || expr.to_field(schema).is_ok_and(|(_, field)| metadata::is_clock(&field))
}

/// The microseconds of a TIME.
fn micros(expr: Expr) -> Expr {
    functions::named("__time_micros").call(vec![expr])
}

/// A value and the others it is compared with; whether one has changed.
pub fn all_alike(expr: Expr, others: Vec<Expr>, schema: &DFSchema) -> (Expr, Vec<Expr>, bool) {
    let Some(own) = digits(&expr, schema) else { return (expr, others, false) };
    if others.iter().all(|other| is_constant(other) || digits(other, schema) == Some(own)) {
        let others = others.into_iter().map(|other| constant(other, own)).collect();
        return (expr, others, true);
    }
    let cast = |expr| functions::named("__time_to").call(vec![expr, lit(i64::from(DIGITS_MAX))]);
    (cast(expr), others.into_iter().map(cast).collect(), true)
}

/// Whether an expression is a column of TIMEs.
pub fn is_column(expr: &Expr, schema: &DFSchema) -> bool {
    digits(expr, schema).is_some()
}

/// The digits of a second of a column of TIMEs.
fn digits(expr: &Expr, schema: &DFSchema) -> Option<u8> {
    let Expr::Column(_) = expr else { return None };
    match metadata::declared_type(expr.to_field(schema).ok()?.1.as_ref())? {
        DataType::Time { scale } => Some(scale),
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null() || value.try_as_str().is_some())
}

/// A constant text as the column has it, with more digits if it has more; NULL if it is no TIME. Columns stay.
fn constant(expr: Expr, own: u8) -> Expr {
    let Expr::Literal(value, _) = &expr else { return expr };
    let Some(text) = value.try_as_str().flatten() else { return expr };
    let text = clock::of_text(text).map(|micros| {
        let is_exact = micros % 10_i64.pow(u32::from(DIGITS_MAX - own.min(DIGITS_MAX))) == 0;
        clock::text_of(micros, if is_exact { own } else { DIGITS_MAX })
    });
    literal(ScalarValue::Utf8(text))
}

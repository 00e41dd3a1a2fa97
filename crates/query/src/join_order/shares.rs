//! The share of a plan's rows that conditions leave.
//!
//! Comparisons of a column with constants are measured on the column's bounds, all of a column's together; others have a share that
//! is usual for their kind.

use super::estimates::{Facts, Input, number, origin};
use datafusion::common::Column;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// No condition leaves less, as far as anyone knows.
const LEAST: f64 = 1e-6;
/// Of conditions of which nothing is known.
const UNKNOWN: f64 = 0.3;
/// Of patterns.
const PATTERN: f64 = 0.1;
/// NULLs of a column.
const NULLS: f64 = 0.05;
/// Different texts that a column of which nothing is known has, if it has enough rows: conditions ask kinds rather than names.
const TEXTS: f64 = 20.0;
/// How deep conditions are looked into.
const DEPTH_MAX: usize = 50;

/// The share of the rows of `input` for which all of these hold.
pub(super) fn share(conditions: &[&Expr], input: &Input<'_>) -> f64 {
    all(conditions, input, 0)
}

fn all(conditions: &[&Expr], input: &Input<'_>, depth: usize) -> f64 {
    let mut share = 1.0;
    let mut pieces: Vec<(&Column, Piece)> = Vec::new();
    for condition in conditions {
        let bounds = bounds_of(condition);
        let is_measured = bounds.iter().all(|bound| {
            let known = pieces.iter_mut().find(|(column, _)| *column == bound.column);
            if let Some((_, piece)) = known {
                piece.cut(bound);
                return true;
            }
            let Some(mut piece) = Piece::of(input, bound.column) else { return false };
            piece.cut(bound);
            pieces.push((bound.column, piece));
            true
        });
        if bounds.is_empty() || !is_measured {
            share *= of_condition(condition, input, depth);
        }
    }
    let measured: f64 = pieces.iter().map(|(_, piece)| piece.share()).product();
    (share * measured).clamp(LEAST, 1.0)
}

/// A piece of the values from a column's smallest to its largest.
struct Piece {
    all: (f64, f64),
    left: (f64, f64),
    /// The distance of neighbouring values.
    step: f64,
}

impl Piece {
    fn of(input: &Input<'_>, column: &Column) -> Option<Self> {
        let (scan, name) = origin(input.plan, column, 0)?;
        let facts = Facts::of(scan, &name)?;
        let all = facts.range?;
        Some(Self { all, left: all, step: if facts.is_whole { 1.0 } else { 0.0 } })
    }

    fn cut(&mut self, bound: &Bound<'_>) {
        // Without the value itself.
        let step = if bound.is_open { self.step } else { 0.0 };
        match bound.side {
            Side::Low => self.left.0 = self.left.0.max(bound.value + step),
            Side::High => self.left.1 = self.left.1.min(bound.value - step),
        }
    }

    fn share(&self) -> f64 {
        let width = |(low, high): (f64, f64)| high - low + self.step;
        let all = width(self.all);
        if all <= 0.0 {
            return if width(self.left) >= 0.0 { 1.0 } else { LEAST };
        }
        (width(self.left) / all).clamp(LEAST, 1.0)
    }
}

#[derive(Clone, Copy)]
enum Side {
    Low,
    High,
}

/// A comparison of a column with a constant.
struct Bound<'a> {
    column: &'a Column,
    side: Side,
    value: f64,
    is_open: bool,
}

/// The bounds that a condition is; none if it is another.
fn bounds_of(condition: &Expr) -> Vec<Bound<'_>> {
    let bound = |column: &Expr, op: Operator, value: &Expr| {
        let (side, is_open) = match op {
            Operator::Gt => (Side::Low, true),
            Operator::GtEq => (Side::Low, false),
            Operator::Lt => (Side::High, true),
            Operator::LtEq => (Side::High, false),
            _ => return None,
        };
        Some((side, is_open, constant(value)?)).filter(|_| column_of(column).is_some())
    };
    let named = |column, (side, is_open, value)| {
        column_of(column).map(|column| Bound { column, side, value, is_open })
    };
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let swapped = op.swap().unwrap_or(*op);
            let one = bound(left, *op, right).and_then(|found| named(left.as_ref(), found));
            let other = || bound(right, swapped, left).and_then(|found| named(right.as_ref(), found));
            one.or_else(other).into_iter().collect()
        }
        Expr::Between(between) if !between.negated => {
            let low = bound(&between.expr, Operator::GtEq, &between.low);
            let high = bound(&between.expr, Operator::LtEq, &between.high);
            let both = low.zip(high).map(|(low, high)| [low, high]);
            both.into_iter().flatten().filter_map(|found| named(between.expr.as_ref(), found)).collect()
        }
        _ => Vec::new(),
    }
}

fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Cast(cast) if cast.field.data_type().is_numeric() => column_of(&cast.expr),
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(value, _) => number(value),
        _ => None,
    }
}

fn of_condition(condition: &Expr, input: &Input<'_>, depth: usize) -> f64 {
    if depth > DEPTH_MAX {
        return UNKNOWN;
    }
    let below = |condition: &Expr| of_condition(condition, input, depth + 1);
    let share = match condition {
        Expr::Alias(alias) => below(&alias.expr),
        Expr::Literal(value, _) => number(value).unwrap_or(0.0).min(1.0),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => all(&split_conjunction(condition), input, depth + 1),
            Operator::Or => 1.0 - (1.0 - below(left)) * (1.0 - below(right)),
            Operator::Eq | Operator::IsNotDistinctFrom => equal(left, right, input),
            Operator::NotEq | Operator::IsDistinctFrom => 1.0 - equal(left, right, input),
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
                all_if_measured(condition, input).unwrap_or(UNKNOWN)
            }
            _ => UNKNOWN,
        },
        Expr::Between(_) => all_if_measured(condition, input).unwrap_or(UNKNOWN),
        Expr::InList(InList { expr, list, negated }) => {
            let within = (list.len() as f64 / different(expr, input)).min(1.0);
            if *negated { 1.0 - within } else { within }
        }
        Expr::Like(like) if like.negated => 1.0 - PATTERN,
        Expr::Like(_) => PATTERN,
        Expr::ScalarFunction(call) if call.name().contains("like") => PATTERN,
        Expr::Not(inner) => 1.0 - below(inner),
        Expr::IsNull(_) => NULLS,
        Expr::IsNotNull(_) => 1.0 - NULLS,
        _ => UNKNOWN,
    };
    share.clamp(LEAST, 1.0)
}

/// The share of a comparison with constants, if the column's bounds are known.
fn all_if_measured(condition: &Expr, input: &Input<'_>) -> Option<f64> {
    let bounds = bounds_of(condition);
    let mut piece = Piece::of(input, bounds.first()?.column)?;
    bounds.iter().for_each(|bound| piece.cut(bound));
    Some(piece.share())
}

fn equal(left: &Expr, right: &Expr, input: &Input<'_>) -> f64 {
    let is_constant = |expr: &Expr| expr.column_refs().is_empty();
    match (is_constant(left), is_constant(right)) {
        (false, true) => 1.0 / different(left, input),
        (true, false) => 1.0 / different(right, input),
        _ => (1.0 / different(left, input)).min(1.0 / different(right, input)),
    }
}

/// How many different values a condition that asks for one of them has before it.
fn different(expr: &Expr, input: &Input<'_>) -> f64 {
    let all = input.values(expr).unwrap_or(TEXTS);
    let known = column_of(expr).and_then(|column| origin(input.plan, column, 0));
    let is_known = known.and_then(|(scan, name)| Facts::of(scan, &name)).is_some_and(|facts| facts.is_known);
    if is_known { all.max(1.0) } else { all.sqrt().clamp(1.0, TEXTS) }
}

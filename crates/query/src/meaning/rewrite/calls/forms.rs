//! Calls that are replaced by another function according to their constant arguments.

use super::super::ast;
use super::{last_name, plain_args};
use crate::functions::dates::datetime;
use sqlparser::ast::{BinaryOperator, DataType, ExactNumberInfo, Expr, UnaryOperator};
use tributary_types::{ErrorCode, SqlError};

/// The span of `random(a, b)`: a random DOUBLE leads to each number of a smaller one.
const SPAN_MAX: i64 = 1 << 53;

/// `random(a, b)`: a whole number from `a` to `b`, both constants.
pub(super) fn random_between(args: &[Expr]) -> Result<Expr, SqlError> {
    let bounds = [constant_integer(&args[0]), constant_integer(&args[1])];
    let [Some(low), Some(high)] = bounds else {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            "the bounds of random must be constant whole numbers",
        ));
    };
    let Some(span) = high.checked_sub(low).filter(|span| (1..SPAN_MAX).contains(span)) else {
        return Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "random needs a lower bound below its upper bound, 2^53 apart at most; it has {low} and {high}"
            ),
        ));
    };
    let scaled =
        ast::binary(ast::call("random", Vec::new()), BinaryOperator::Multiply, ast::number(span + 1));
    let steps = ast::call("__integer", vec![ast::call("floor", vec![scaled])]);
    Ok(ast::binary(steps, BinaryOperator::Plus, ast::number(low)))
}

fn constant_integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => constant_integer(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => constant_integer(expr).map(|value| -value),
        other => ast::as_number(other)?.parse().ok(),
    }
}

/// `UNIX_TIMESTAMP(x)`; of a constant with as many digits behind the point as that has.
pub(super) fn unix_timestamp(value: Expr, zone: Expr) -> Expr {
    let text = match &value {
        Expr::Function(function) if last_name(&function.name) == "__datetime" => {
            plain_args(function).and_then(|args| args.first().and_then(ast::as_text).map(str::to_owned))
        }
        other => ast::as_text(other).map(str::to_owned),
    };
    let seconds = ast::call("__unix_timestamp", vec![value, zone]);
    let Some(text) = text else { return seconds };
    let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end().len().min(6));
    let shown = match digits {
        0 => DataType::BigInt(None),
        digits => DataType::Decimal(ExactNumberInfo::PrecisionAndScale(18, digits as i64)),
    };
    ast::try_cast(seconds, shown)
}

/// `date_trunc(x, 'day')` and `date_trunc('day', x)`; a constant text that names a day alone is a DATE.
pub(super) fn date_trunc(mut args: Vec<Expr>) -> Result<Expr, SqlError> {
    const UNITS: [&str; 8] = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];
    let unit =
        |expr: &Expr| ast::as_text(expr).map(str::to_lowercase).filter(|text| UNITS.contains(&text.as_str()));
    let (at, unit) = match (unit(&args[1]), unit(&args[0])) {
        (Some(unit), _) => (0, unit),
        (None, Some(unit)) => (1, unit),
        (None, None) => {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "date_trunc function time unit param only support argument is year|quarter|month|week|day|hour|\
                     minute|second, and neither '{}' nor '{}' is one",
                    args[0], args[1]
                ),
            ));
        }
    };
    let value = args.swap_remove(at);
    let is_date = ast::as_text(&value).is_some_and(datetime::is_date_only);
    let value = if is_date { ast::call("__date", vec![value]) } else { value };
    Ok(ast::call("__date_trunc", vec![value, ast::text(unit)]))
}

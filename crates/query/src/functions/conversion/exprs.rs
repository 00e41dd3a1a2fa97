//! Conversions of expressions, planned when their types are known.

use crate::functions;
use crate::types::kind::{DATETIME, Kind, is_text, kind};
use arrow::datatypes::{DataType, Decimal128Type, DecimalType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

/// A constant.
#[must_use]
pub fn literal(scalar: ScalarValue) -> Expr {
    Expr::Literal(scalar, None)
}

/// A call of one of our conversions.
#[must_use]
pub fn convert(name: &str, expr: Expr) -> Expr {
    functions::named(name).call(vec![expr])
}

/// A number as DOUBLE. Constants are read from their digits: the float next to `522.762`, and not
/// next to 522762 and then divided.
#[must_use]
pub fn double(expr: Expr, data_type: &DataType) -> Expr {
    let digits = match &expr {
        _ if *data_type == DataType::Float64 => return expr,
        Expr::Literal(ScalarValue::Decimal128(Some(value), precision, scale), _) => {
            Decimal128Type::format_decimal(*value, *precision, *scale)
        }
        _ => return cast(expr, DataType::Float64),
    };
    literal(ScalarValue::Float64(digits.parse().ok()))
}

/// A value in the common type of several ([`types::common`]): text for any type, a number for a narrower one. A number that is
/// too large for the common DECIMAL is an error at run time.
#[must_use]
pub fn widened(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    match to {
        to if from == to => expr,
        to if is_text(to) && is_text(from) => cast(expr, to.clone()),
        DataType::Utf8 if *from != DataType::Null => convert("__text", expr),
        to if *to == DATETIME && *from == DataType::Date32 => convert("__datetime", expr),
        DataType::Float64 => double(expr, from),
        // Booleans have no cast to decimals.
        DataType::Decimal128(..) if *from == DataType::Boolean => {
            cast(cast(expr, DataType::Int8), to.clone())
        }
        to => cast(expr, to.clone()),
    }
}

/// A value as DATETIME. DataFusion alone would compare dates with times in nanoseconds, which end in the year 2262.
#[must_use]
pub fn datetime(expr: Expr, data_type: &DataType) -> Expr {
    match kind(data_type) {
        Kind::DateTime => expr,
        Kind::Date => cast(expr, DATETIME),
        _ => convert("__datetime", expr),
    }
}

/// A plain cast, folded for constants by the optimizer.
#[must_use]
pub fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(datafusion::logical_expr::Cast::new(Box::new(expr), to))
}

//! Small builders of expressions in sqlparser's tree.

use datafusion::common::ScalarValue;
use sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, Value, ValueWithSpan};
use sqlparser::tokenizer::Span;
use std::fmt::Write;
pub(super) use tributary_sql::function_call as call;

pub(super) fn value(value: Value) -> Expr {
    Expr::Value(ValueWithSpan { value, span: Span::empty() })
}

pub(super) fn null() -> Expr {
    value(Value::Null)
}

pub(super) fn text(text: impl Into<String>) -> Expr {
    value(Value::SingleQuotedString(text.into()))
}

pub(super) fn number(number: impl ToString) -> Expr {
    value(Value::Number(number.to_string(), false))
}

pub(super) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(nested(left)), op, right: Box::new(nested(right)) }
}

fn nested(expr: Expr) -> Expr {
    match expr {
        Expr::BinaryOp { .. } => Expr::Nested(Box::new(expr)),
        other => other,
    }
}

pub(super) fn try_cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::TryCast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// `expr` as a condition: as it is if it is evidently one.
pub(super) fn truth(expr: Expr) -> Expr {
    if is_condition(&expr) { expr } else { call("__truth", vec![expr]) }
}

/// Whether an operator compares two values.
pub(super) const fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
            | BinaryOperator::Spaceship
    )
}

fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_condition(inner),
        Expr::BinaryOp { op, .. } => {
            let is_logical = matches!(
                op,
                BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor | BinaryOperator::StringConcat
            );
            is_logical || is_comparison(op)
        }
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::Exists { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => true,
        Expr::Value(value) => matches!(value.value, Value::Boolean(_)),
        _ => false,
    }
}

/// A parameter's value as a literal.
pub(super) fn literal(scalar: &ScalarValue) -> Expr {
    if scalar.is_null() {
        return null();
    }
    let shown = scalar.to_string();
    match scalar {
        ScalarValue::Boolean(Some(flag)) => value(Value::Boolean(*flag)),
        ScalarValue::Float32(_) | ScalarValue::Float64(_) => call("__double", vec![text(shown)]),
        ScalarValue::Decimal128(Some(digits), _, scale) => number(decimal_text(*digits, *scale)),
        ScalarValue::Date32(_) => call("__date", vec![text(shown)]),
        ScalarValue::TimestampMicrosecond(Some(micros), _) => {
            call("__datetime", vec![text(crate::functions::dates::datetime::to_text(*micros))])
        }
        ScalarValue::Utf8(Some(t)) | ScalarValue::LargeUtf8(Some(t)) | ScalarValue::Utf8View(Some(t)) => {
            text(t.clone())
        }
        ScalarValue::Binary(Some(bytes)) | ScalarValue::LargeBinary(Some(bytes)) => {
            call("unhex", vec![text(hex(bytes))])
        }
        other if other.data_type().is_integer() => number(shown),
        _ => text(shown),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn decimal_text(digits: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).unwrap_or(0);
    let plain = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = plain.split_at(plain.len() - scale);
    let sign = if digits < 0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// The text of a string literal.
pub(super) fn as_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => as_text(inner),
        _ => None,
    }
}

/// The digits of a number literal.
pub(super) fn as_number(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits),
            _ => None,
        },
        _ => None,
    }
}

//! MySQL's rules for operands of two different types.
//!
//! DataFusion compares a number with a text as texts or refuses to; MySQL compares them as
//! numbers, and a date with a text as dates. Constants are converted here, at planning, so that
//! filters on them can still prune files; columns are converted leniently at run time.

use crate::functions::conversion::exprs::{cast, convert, datetime, double, literal};
use crate::functions::dates::datetime::{DAY_MICROS, parse};
use crate::functions::system::address;
use crate::types;
use crate::types::kind::{IPV4, Kind, is_address, is_bytes, is_text, kind};
use arrow::datatypes::{DataType, Decimal128Type, DecimalType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use tributary_types::number;

/// The type in which BIGINT UNSIGNED is calculated.
const UNSIGNED: DataType = DataType::Decimal128(20, 0);

/// The text of a constant, even under a cast that the planner added.
fn constant_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(scalar, _) => scalar.try_as_str().flatten(),
        _ => None,
    }
}

fn constant_integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        Expr::Literal(scalar, _) if scalar.data_type().is_integer() => scalar.to_string().parse().ok(),
        _ => None,
    }
}

/// Two sides of a comparison as values of one kind.
#[must_use]
pub fn comparable(left: Expr, right: Expr, types: (&DataType, &DataType)) -> (Expr, Expr) {
    use Kind::{Boolean, Date, DateTime, Decimal, Float, Integer, Text};
    match (is_address(types.0), is_address(types.1)) {
        (true, true) if types.0 == types.1 => return (left, right),
        (true, true) => return (convert("to_ipv6_or_null", left), convert("to_ipv6_or_null", right)),
        (true, false) if is_text(types.1) => return (left, address_of(right, types.0)),
        (false, true) if is_text(types.0) => return (address_of(left, types.1), right),
        _ => {}
    }
    if is_text(types.0) && is_bytes(types.1) {
        return text_with_bytes(left, right);
    }
    if is_bytes(types.0) && is_text(types.1) {
        return swapped(text_with_bytes(right, left));
    }
    match (kind(types.0), kind(types.1)) {
        (Text, Integer | Decimal | Float) => text_with_number(left, right, types.1),
        (Integer | Decimal | Float, Text) => swapped(text_with_number(right, left, types.0)),
        (Text, Date | DateTime) => text_with_date(left, right, types.1),
        (Date | DateTime, Text) => swapped(text_with_date(right, left, types.0)),
        (Text, Boolean) => text_with_boolean(left, right),
        (Boolean, Text) => swapped(text_with_boolean(right, left)),
        (Integer | Decimal | Float, Boolean) => number_with_boolean(left, right),
        (Boolean, Integer | Decimal | Float) => swapped(number_with_boolean(right, left)),
        (Integer | Decimal | Float, Integer | Decimal | Float) => numbers(left, right, types),
        (Integer, Date | DateTime) | (Date | DateTime, Integer) | (Date, DateTime) | (DateTime, Date) => {
            (datetime(left, types.0), datetime(right, types.1))
        }
        _ => (left, right),
    }
}

/// A text next to bytes is bytes. Constant bytes next to a column of texts are left to DataFusion, which makes a text of them, so
/// that the filter can prune files.
fn text_with_bytes(text: Expr, bytes: Expr) -> (Expr, Expr) {
    if let Some(constant) = constant_text(&text) {
        return (literal(ScalarValue::Binary(Some(constant.as_bytes().to_vec()))), bytes);
    }
    if bytes.column_refs().is_empty() {
        return (text, bytes);
    }
    (cast(text, DataType::Binary), bytes)
}

/// A text next to an address.
fn address_of(text: Expr, data_type: &DataType) -> Expr {
    match constant_text(&text) {
        Some(constant) => literal(address::constant(constant, data_type)),
        None if *data_type == IPV4 => convert("to_ipv4_or_null", text),
        None => convert("to_ipv6_or_null", text),
    }
}

fn swapped((left, right): (Expr, Expr)) -> (Expr, Expr) {
    (right, left)
}

fn text_with_number(text: Expr, number: Expr, number_type: &DataType) -> (Expr, Expr) {
    let Some(constant) = constant_text(&text) else {
        return (convert("__double", text), double(number, number_type));
    };
    let scalar = exact_number(constant.trim())
        .unwrap_or_else(|| ScalarValue::Float64(number::double(constant.as_bytes(), false)));
    let scalar_type = scalar.data_type();
    numbers(literal(scalar), number, (&scalar_type, number_type))
}

/// The whole or decimal number that a text is, with all its digits.
fn exact_number(text: &str) -> Option<ScalarValue> {
    let whole = text.parse().ok().map(|value| ScalarValue::Int64(Some(value)));
    whole.or_else(|| decimal(text))
}

/// Parses a text such as `-1.50` as a DECIMAL with all its digits; `None` for other texts, or more than 38 digits.
#[must_use]
pub fn decimal(text: &str) -> Option<ScalarValue> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = u8::try_from(fraction.len()).ok()?;
    let digits = u8::try_from(value.unsigned_abs().to_string().len()).ok()?.max(scale);
    let fits = digits <= Decimal128Type::MAX_PRECISION;
    fits.then(|| ScalarValue::Decimal128(Some(value), digits, scale as i8))
}

/// Two numbers as DOUBLE if one of them is a float, otherwise exactly. DataFusion alone would convert floats to decimals, and
/// lose the digits of decimals that are too wide for 128 bits.
fn numbers(left: Expr, right: Expr, types: (&DataType, &DataType)) -> (Expr, Expr) {
    match types::comparison([types.0, types.1]) {
        Some(DataType::Float64) => (double(left, types.0), double(right, types.1)),
        Some(wide @ DataType::Decimal256(..)) => (cast(left, wide.clone()), cast(right, wide)),
        _ => (left, right),
    }
}

fn text_with_date(text: Expr, date: Expr, date_type: &DataType) -> (Expr, Expr) {
    let Some(constant) = constant_text(&text) else {
        return (convert("__datetime", text), datetime(date, date_type));
    };
    let Some(micros) = parse(constant) else {
        return (literal(ScalarValue::TimestampMicrosecond(None, None)), datetime(date, date_type));
    };
    if kind(date_type) == Kind::Date && micros.rem_euclid(DAY_MICROS) == 0 {
        let days = i32::try_from(micros.div_euclid(DAY_MICROS)).ok();
        return (literal(ScalarValue::Date32(days)), date);
    }
    (literal(ScalarValue::TimestampMicrosecond(Some(micros), None)), datetime(date, date_type))
}

fn text_with_boolean(text: Expr, boolean: Expr) -> (Expr, Expr) {
    match constant_text(&text).and_then(|constant| number::boolean(constant.as_bytes())) {
        Some(flag) => (literal(ScalarValue::Boolean(Some(flag))), boolean),
        None => (convert("__flag", text), convert("__double", boolean)),
    }
}

fn number_with_boolean(number: Expr, boolean: Expr) -> (Expr, Expr) {
    match constant_integer(&number) {
        Some(value @ (0 | 1)) => (literal(ScalarValue::Boolean(Some(value == 1))), boolean),
        _ => (number, convert("__integer", boolean)),
    }
}

/// A value that takes part in arithmetic: texts and booleans become numbers, small integers 64-bit
/// ones (as in Doris, where a sum is wider than its parts).
#[must_use]
pub fn operand(expr: Expr, data_type: &DataType) -> (Expr, DataType) {
    match kind(data_type) {
        Kind::Text => (convert("__double", expr), DataType::Float64),
        Kind::Boolean | Kind::Date | Kind::DateTime => (convert("__integer", expr), DataType::Int64),
        Kind::Integer if *data_type == DataType::UInt64 => (cast(expr, UNSIGNED), UNSIGNED),
        Kind::Integer if *data_type != DataType::Int64 => (cast(expr, DataType::Int64), DataType::Int64),
        Kind::Float if *data_type != DataType::Float64 => (cast(expr, DataType::Float64), DataType::Float64),
        _ => (expr, data_type.clone()),
    }
}

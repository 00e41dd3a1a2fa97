//! The common type of values of different types, as Doris finds it.
//!
//! There are two questions. [`common`] says in which type values are *shown* together: the columns
//! of a UNION, the results of a CASE. Text takes in everything there. [`comparison`] says in which
//! type numbers are *compared* with each other. Both are asked while a query is planned, so
//! that every schema has its final types before anything is planned on top of it. How a value is
//! converted is the business of `functions::conversion`.

use super::kind::{DATETIME, Kind, is_bytes, is_text, kind};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, DataType as T, Field, Fields,
};
use std::sync::Arc;

/// The most digits of a DECIMAL.
pub const DIGITS_MAX: u8 = DECIMAL128_MAX_PRECISION;

/// The common type of the values of all these types. `None` if it does not exist: an array next to a number.
#[must_use]
pub fn common<'a>(types: impl IntoIterator<Item = &'a DataType>) -> Option<DataType> {
    types.into_iter().try_fold(T::Null, |so_far, next| wider(&so_far, next))
}

fn wider(left: &DataType, right: &DataType) -> Option<DataType> {
    if left == right {
        return Some(left.clone());
    }
    match (left, right) {
        (T::List(left), T::List(right)) => {
            let element = wider(left.data_type(), right.data_type())?;
            return Some(T::List(Arc::new(Field::new_list_field(element, true))));
        }
        (T::Map(left, false), T::Map(right, false)) => {
            let entries = wider(left.data_type(), right.data_type())?;
            return Some(T::Map(Arc::new(left.as_ref().clone().with_data_type(entries)), false));
        }
        (T::Struct(left), T::Struct(right)) => return wider_fields(left, right),
        // Each text is bytes, but not the other way round.
        (left, right) if is_bytes(left) && is_text(right) || is_text(left) && is_bytes(right) => {
            return Some(T::Binary);
        }
        _ => {}
    }
    Some(match (kind(left), kind(right)) {
        (Kind::Null, _) => right.clone(),
        (_, Kind::Null) => left.clone(),
        (Kind::Other, _) | (_, Kind::Other) => return None,
        (Kind::Text, _) | (_, Kind::Text) => T::Utf8,
        (Kind::Date | Kind::DateTime, Kind::Date | Kind::DateTime) => DATETIME,
        (Kind::Date | Kind::DateTime, _) | (_, Kind::Date | Kind::DateTime) => T::Utf8,
        (Kind::Boolean, Kind::Decimal) | (Kind::Decimal, Kind::Boolean) => decimal(left, right),
        (Kind::Boolean, _) => right.clone(),
        (_, Kind::Boolean) => left.clone(),
        (Kind::Float, _) => float(left, right),
        (_, Kind::Float) => float(right, left),
        (Kind::Integer, Kind::Integer) => integer(left, right),
        _ => decimal(left, right),
    })
}

/// The same fields, of types that hold both.
fn wider_fields(left: &Fields, right: &Fields) -> Option<DataType> {
    let is_same =
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.name() == right.name());
    let field = |(left, right): (&Arc<Field>, &Arc<Field>)| {
        let is_nullable = left.is_nullable() || right.is_nullable();
        Some(Field::new(left.name(), wider(left.data_type(), right.data_type())?, is_nullable))
    };
    let fields = left.iter().zip(right).map(field).collect::<Option<Fields>>();
    fields.filter(|_| is_same).map(T::Struct)
}

/// FLOAT absorbs the integers that it represents exactly; all other numbers make it DOUBLE.
fn float(float: &DataType, other: &DataType) -> DataType {
    match (float, other) {
        (T::Float32 | T::Float16, T::Int8 | T::Int16 | T::UInt8) => T::Float32,
        _ => T::Float64,
    }
}

fn integer(left: &DataType, right: &DataType) -> DataType {
    match digits(left).0.max(digits(right).0) {
        _ if *left == T::UInt64 || *right == T::UInt64 => T::Decimal128(20, 0),
        0..=3 => T::Int8,
        4..=5 => T::Int16,
        6..=10 => T::Int32,
        _ => T::Int64,
    }
}

fn decimal(left: &DataType, right: &DataType) -> DataType {
    let ((left_whole, left_scale), (right_whole, right_scale)) = (digits(left), digits(right));
    let scale = left_scale.max(right_scale).min(DIGITS_MAX);
    let precision = (left_whole.max(right_whole) + scale).clamp(1, DIGITS_MAX);
    T::Decimal128(precision, scale as i8)
}

/// Digits before and after the point that a number of that type can have.
#[must_use]
pub fn digits(data_type: &DataType) -> (u8, u8) {
    match data_type {
        T::Boolean => (1, 0),
        T::Int8 => (3, 0),
        T::UInt8 | T::Int16 => (5, 0),
        T::UInt16 | T::Int32 => (10, 0),
        T::UInt32 | T::Int64 => (19, 0),
        T::UInt64 => (20, 0),
        T::Decimal128(precision, scale) | T::Decimal256(precision, scale) => {
            let scale_digits = u8::try_from(*scale).unwrap_or(0);
            let whole = i16::from(*precision) - i16::from(*scale);
            (u8::try_from(whole).unwrap_or(0), scale_digits)
        }
        _ => (0, 0),
    }
}

/// The type in which numbers of these types are compared exactly, or as exactly as MySQL and Doris do: as DOUBLE as soon as one
/// of them is a floating-point number. `None` if one is not a number.
#[must_use]
pub fn comparison<'a>(types: impl IntoIterator<Item = &'a DataType>) -> Option<DataType> {
    types.into_iter().filter(|data_type| **data_type != T::Null).try_fold(T::Null, |so_far, next| {
        match (kind(&so_far), kind(next)) {
            (Kind::Null, Kind::Integer | Kind::Decimal | Kind::Float) => Some(next.clone()),
            (Kind::Float, Kind::Float) if so_far == *next => Some(so_far),
            (Kind::Float, Kind::Integer | Kind::Decimal | Kind::Float)
            | (Kind::Integer | Kind::Decimal, Kind::Float) => Some(T::Float64),
            (Kind::Integer, Kind::Integer) if so_far == *next => Some(so_far),
            (Kind::Integer, Kind::Integer) => Some(integer(&so_far, next)),
            (Kind::Integer | Kind::Decimal, Kind::Integer | Kind::Decimal) => {
                Some(exact_decimal(&so_far, next))
            }
            _ => None,
        }
    })
}

/// A decimal that retains every digit of both; of 256 bits if 128 are too few.
fn exact_decimal(left: &DataType, right: &DataType) -> DataType {
    let ((left_whole, left_scale), (right_whole, right_scale)) = (digits(left), digits(right));
    let scale = left_scale.max(right_scale);
    let precision = (left_whole.max(right_whole) + scale).max(1);
    if precision <= DIGITS_MAX {
        T::Decimal128(precision, scale as i8)
    } else {
        T::Decimal256(precision.min(DECIMAL256_MAX_PRECISION), scale as i8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(precision: u8, scale: i8) -> DataType {
        T::Decimal128(precision, scale)
    }

    #[test]
    fn the_common_type_holds_the_values_of_both_in_either_order() {
        for (left, right, expected) in [
            (T::Null, T::Int8, Some(T::Int8)),
            (T::Int8, T::Int64, Some(T::Int64)),
            (T::Int16, T::Int32, Some(T::Int32)),
            (T::Int64, T::UInt64, Some(decimal(20, 0))),
            (T::Int64, decimal(2, 1), Some(decimal(20, 1))),
            (decimal(10, 2), decimal(10, 5), Some(decimal(13, 5))),
            (decimal(38, 0), decimal(10, 4), Some(decimal(38, 4))),
            (decimal(10, 2), T::Float64, Some(T::Float64)),
            (T::Float32, T::Int16, Some(T::Float32)),
            (T::Float32, T::Int32, Some(T::Float64)),
            (T::Float32, T::Float64, Some(T::Float64)),
            (T::Boolean, T::Int64, Some(T::Int64)),
            (T::Boolean, decimal(3, 1), Some(decimal(3, 1))),
            (T::Date32, DATETIME, Some(DATETIME)),
            (T::Date32, T::Int64, Some(T::Utf8)),
            (T::Int64, T::Utf8, Some(T::Utf8)),
            (T::Date32, T::Utf8, Some(T::Utf8)),
            (T::Boolean, T::Utf8, Some(T::Utf8)),
            (T::Binary, T::Int64, None),
            (T::Binary, T::Utf8, Some(T::Binary)),
        ] {
            assert_eq!(common([&left, &right]), expected, "{left} and {right}");
            assert_eq!(common([&right, &left]), expected, "{right} and {left}");
        }
    }

    #[test]
    fn numbers_are_compared_without_losing_a_digit_unless_one_is_a_float() {
        for (left, right, expected) in [
            (T::Int32, T::Int64, Some(T::Int64)),
            (T::Int64, decimal(5, 2), Some(decimal(21, 2))),
            (decimal(38, 0), decimal(10, 4), Some(T::Decimal256(42, 4))),
            (T::Float32, decimal(3, 1), Some(T::Float64)),
            (T::Float32, T::Float32, Some(T::Float32)),
            (T::Float32, T::Int8, Some(T::Float64)),
            (T::Null, T::Int8, Some(T::Int8)),
            (T::Utf8, T::Int8, None),
        ] {
            assert_eq!(comparison([&left, &right]), expected, "{left} and {right}");
        }
    }
}

//! ROUND, TRUNCATE, CEIL and FLOOR. Whole numbers and decimals are rounded exactly, to the last digit.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::conversion::convert;
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::{Result, exec_datafusion_err};
use std::sync::Arc;

/// The direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The nearer one; of two as near the one away from zero.
    Nearest,
    /// The nearer one; of two as near the even one.
    NearestEven,
    TowardZero,
    Up,
    Down,
}

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int};
    let real = crate::functions::float64;
    let all: [(_, _, crate::functions::Body); 5] = [
        ("__round", "__round_by", |args| rounded(args, Way::Nearest)),
        ("__round_bankers", "__round_bankers_by", |args| rounded(args, Way::NearestEven)),
        ("__truncate", "__truncate_by", |args| rounded(args, Way::TowardZero)),
        ("__ceil", "__ceil_by", |args| rounded(args, Way::Up)),
        ("__floor", "__floor_by", |args| rounded(args, Way::Down)),
    ];
    all.into_iter()
        .flat_map(|(constant, by_column, body)| {
            [
                // The digits are a constant, so the result has that scale.
                MySqlFunction::new(constant, &[Any, Int], real, body).returning_digits(type_with),
                MySqlFunction::new(by_column, &[Any, Int], real, body)
                    .returning(|types| kept_type(&types[0])),
            ]
        })
        .collect()
}

/// The largest count of digits that means something, before or behind the point.
const DIGITS_MAX: i64 = 38;

fn kept_type(of: &DataType) -> DataType {
    match convert::numeric_type(of) {
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal256(_, scale) => DataType::Decimal128(38, scale),
        data_type if data_type.is_integer() => DataType::Int64,
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, scale),
        _ => DataType::Float64,
    }
}

fn type_with(types: &[DataType], digits: Option<i64>) -> DataType {
    let kept = kept_type(&types[0]);
    let (DataType::Decimal128(_, scale), Some(digits)) = (&kept, digits) else { return kept };
    let shown = (*scale).min(digits.clamp(0, DIGITS_MAX) as i8);
    let precision = match convert::numeric_type(&types[0]) {
        DataType::Decimal128(precision, scale) => {
            precision.saturating_sub(scale.unsigned_abs()).saturating_add(1)
        }
        _ => 38,
    };
    DataType::Decimal128(precision.saturating_add(shown.unsigned_abs()).min(38), shown)
}

fn rounded(args: &[ArrayRef], way: Way) -> Result<ArrayRef> {
    let numbers = convert::to_numeric(&args[0])?;
    let digits = args[1].as_primitive::<Int64Type>();
    let to = kept_type(numbers.data_type());
    let numbers = match &to {
        DataType::Float64 => convert::to_real(&numbers)?,
        to => convert::safe_cast(&numbers, to)?,
    };
    let digits_of = |row: usize| {
        (digits.is_valid(row) && numbers.is_valid(row))
            .then(|| digits.value(row).clamp(-DIGITS_MAX, DIGITS_MAX))
    };
    let rows = 0..numbers.len();
    let too_large =
        |number: &dyn std::fmt::Display| exec_datafusion_err!("{number} has no room for its rounding");
    match to {
        DataType::Int64 => {
            let values = numbers.as_primitive::<Int64Type>();
            let round = |row| {
                let Some(digits) = digits_of(row) else { return Ok(None) };
                let value = values.value(row);
                let rounded = whole(i128::from(value), -digits, way).and_then(|sum| i64::try_from(sum).ok());
                rounded.map(Some).ok_or_else(|| too_large(&value))
            };
            Ok(Arc::new(rows.map(round).collect::<Result<Int64Array>>()?))
        }
        DataType::Decimal128(precision, scale) => {
            let values = numbers.as_primitive::<Decimal128Type>();
            let round = |row| {
                let Some(digits) = digits_of(row) else { return Ok(None) };
                let rounded = whole(values.value(row), i64::from(scale) - digits, way);
                rounded.map(Some).ok_or_else(|| too_large(&values.value_as_string(row)))
            };
            let rounded = rows.map(round).collect::<Result<Decimal128Array>>()?;
            Ok(Arc::new(rounded.with_precision_and_scale(precision, scale)?))
        }
        _ => {
            let values = numbers.as_primitive::<Float64Type>();
            let round = |row| digits_of(row).map(|digits| real(values.value(row), digits, way));
            Ok(Arc::new(rows.map(round).collect::<Float64Array>()))
        }
    }
}

/// `value` without its last `places` digits, which become zeros. `None` where the result does not fit.
fn whole(value: i128, places: i64, way: Way) -> Option<i128> {
    let Ok(places @ 1..) = u32::try_from(places) else { return Some(value) };
    let Some(step) = 10i128.checked_pow(places) else {
        return match (way, value.signum()) {
            (Way::Up, 1) | (Way::Down, -1) => None,
            _ => Some(0),
        };
    };
    let (quotient, rest) = (value / step, value % step);
    let away = value.signum();
    let step_on = match way {
        Way::Nearest => rest.unsigned_abs() >= step.unsigned_abs() / 2,
        Way::NearestEven => {
            let half = step.unsigned_abs() / 2;
            rest.unsigned_abs() > half || (rest.unsigned_abs() == half && quotient % 2 != 0)
        }
        Way::TowardZero => false,
        Way::Up => rest > 0,
        Way::Down => rest < 0,
    };
    quotient.checked_add(if step_on { away } else { 0 })?.checked_mul(step)
}

fn real(value: f64, digits: i64, way: Way) -> f64 {
    /// Whole numbers from here on have no fraction to round.
    const WHOLE_MIN: f64 = 9_007_199_254_740_992.0;
    let one = |value: f64| match way {
        Way::Nearest => value.round(),
        Way::NearestEven => value.round_ties_even(),
        Way::TowardZero => value.trunc(),
        Way::Up => value.ceil(),
        Way::Down => value.floor(),
    };
    let factor = 10f64.powi(digits.unsigned_abs() as i32);
    let rounded = if digits < 0 {
        one(value / factor) * factor
    } else if (value * factor).abs() < WHOLE_MIN {
        one(value * factor) / factor
    } else {
        value
    };
    // No negative zero.
    rounded + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_lose_their_last_digits_in_each_way() {
        let all = |value, places| {
            [Way::Nearest, Way::TowardZero, Way::Up, Way::Down].map(|way| whole(value, places, way).unwrap())
        };
        assert_eq!(all(1250, 2), [1300, 1200, 1300, 1200]);
        assert_eq!(all(-1250, 2), [-1300, -1200, -1200, -1300]);
        assert_eq!(all(1249, 2), [1200, 1200, 1300, 1200]);
        assert_eq!(all(1200, 2), [1200; 4]);
        assert_eq!(all(1234, 0), [1234; 4]);
        assert_eq!(all(1234, -3), [1234; 4]);
        assert_eq!(whole(5, 40, Way::Nearest), Some(0));
        assert_eq!(whole(5, 40, Way::Up), None);
        assert_eq!(whole(i128::MAX, 1, Way::Up), None);
    }

    #[test]
    fn halves_go_to_the_even_number_if_bankers_round() {
        let all = |values: [i128; 6]| values.map(|value| whole(value, 1, Way::NearestEven).unwrap());
        assert_eq!(all([15, 25, 26, -15, -25, -24]), [20, 20, 30, -20, -20, -20]);
        assert_eq!(
            [0.5, 1.5, 2.5, -2.5].map(|value| real(value, 0, Way::NearestEven)),
            [0.0, 2.0, 2.0, -2.0]
        );
    }

    #[test]
    fn reals_are_rounded_half_away_from_zero_and_have_no_negative_zero() {
        assert_eq!(real(2.5, 0, Way::Nearest), 3.0);
        assert_eq!(real(-2.5, 0, Way::Nearest), -3.0);
        assert_eq!(real(1250.0, -2, Way::Nearest), 1300.0);
        assert_eq!(real(1.999, 1, Way::TowardZero), 1.9);
        assert_eq!(real(1e300, 5, Way::Nearest), 1e300);
        assert!(real(-0.4, 0, Way::Nearest).is_sign_positive());
    }
}

//! Doris's functions over numbers that MySQL lacks: `EVEN`, `PMOD`, `INTERVAL`, `NORMAL_CDF`, `UNIFORM` and so on.

use crate::functions::conversion::convert::{to_integer, to_real};
use crate::functions::{MySqlFunction, Param};
use crate::types::kind::{Kind, kind};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Real};
    let (int, real, boolean) =
        (crate::functions::int64, crate::functions::float64, crate::functions::boolean);
    vec![
        MySqlFunction::new("e", &[], real, |_| Ok(Arc::new(Float64Array::from(vec![std::f64::consts::E])))),
        MySqlFunction::new("sec", &[Real], real, |args| Ok(of_real(&args[0], |x| x.cos().recip()))),
        MySqlFunction::new("csc", &[Real], real, |args| Ok(of_real(&args[0], |x| x.sin().recip()))),
        MySqlFunction::new("isinf", &[Real], boolean, |args| {
            Ok(Arc::new(BooleanArray::from_unary(args[0].as_primitive::<Float64Type>(), f64::is_infinite)))
        }),
        MySqlFunction::new("signbit", &[Real], boolean, |args| {
            Ok(Arc::new(BooleanArray::from_unary(
                args[0].as_primitive::<Float64Type>(),
                f64::is_sign_negative,
            )))
        }),
        MySqlFunction::new("even", &[Any], real, |args| even(&args[0])).returning(whole_or_real),
        MySqlFunction::new("fmod", &[Real, Real], real, |args| {
            Ok(of_reals(args, |a, b| if b == 0.0 { f64::NAN } else { a % b }))
        }),
        MySqlFunction::new("pmod", &[Any, Any], real, pmod).returning(whole_or_real),
        MySqlFunction::new("normal_cdf", &[Real, Real, Real], real, normal_cdf),
        MySqlFunction::new("interval", &[Int, Int], int, interval).variadic(),
        MySqlFunction::new("__uniform", &[Real, Real, Int], real, uniform),
        MySqlFunction::new("__uniform_integer", &[Int, Int, Int], int, uniform_integer),
    ]
}

/// BIGINT of whole numbers alone, else DOUBLE.
fn whole_or_real(types: &[DataType]) -> DataType {
    let is_whole = |data_type: &DataType| matches!(kind(data_type), Kind::Integer | Kind::Boolean);
    if types.iter().all(is_whole) { DataType::Int64 } else { DataType::Float64 }
}

/// NULL where the result is no number.
fn of_real(array: &ArrayRef, f: impl Fn(f64) -> f64) -> ArrayRef {
    let values = array.as_primitive::<Float64Type>().iter();
    Arc::new(values.map(|x| x.map(&f).filter(|x| x.is_finite())).collect::<Float64Array>())
}

fn of_reals(args: &[ArrayRef], f: impl Fn(f64, f64) -> f64) -> ArrayRef {
    let pairs = args[0].as_primitive::<Float64Type>().iter().zip(args[1].as_primitive::<Float64Type>());
    Arc::new(pairs.map(|(a, b)| Some(f(a?, b?)).filter(|x| x.is_finite())).collect::<Float64Array>())
}

/// The next even number that is not nearer to zero.
fn even(array: &ArrayRef) -> Result<ArrayRef> {
    if whole_or_real(&[array.data_type().clone()]) == DataType::Int64 {
        let values = to_integer(array)?;
        let next = |value: i64| match value.checked_add(value % 2) {
            Some(even) => Ok(even),
            None => exec_err!("EVEN of {value} does not fit into BIGINT"),
        };
        let values = values.as_primitive::<Int64Type>().iter().map(|value| value.map(next).transpose());
        return Ok(Arc::new(values.collect::<Result<Int64Array>>()?));
    }
    let values = to_real(array)?;
    Ok(of_real(&values, |x| 2.0 * if x < 0.0 { (x / 2.0).floor() } else { (x / 2.0).ceil() } + 0.0))
}

/// The remainder that is not negative; NULL for a divisor of 0.
fn pmod(args: &[ArrayRef]) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    if whole_or_real(&types) == DataType::Int64 {
        let (a, b) = (to_integer(&args[0])?, to_integer(&args[1])?);
        let pairs = a.as_primitive::<Int64Type>().iter().zip(b.as_primitive::<Int64Type>());
        // A remainder by -1 is 0, though the quotient may not fit.
        let rest = |a: i64, b: i64| if b == -1 { Some(0) } else { a.checked_rem_euclid(b) };
        return Ok(Arc::new(pairs.map(|(a, b)| rest(a?, b?)).collect::<Int64Array>()));
    }
    let pair = [to_real(&args[0])?, to_real(&args[1])?];
    Ok(of_reals(&pair, f64::rem_euclid))
}

/// The share of a normal distribution below a value: of its mean, its deviation and the value.
fn normal_cdf(args: &[ArrayRef]) -> Result<ArrayRef> {
    let columns: Vec<&Float64Array> = args.iter().map(AsArray::as_primitive::<Float64Type>).collect();
    let share = |row: usize| {
        if columns.iter().any(|column| column.is_null(row)) {
            return None;
        }
        let (mean, deviation, value) = (columns[0].value(row), columns[1].value(row), columns[2].value(row));
        let share = 0.5 * (1.0 + erf((value - mean) / (deviation * std::f64::consts::SQRT_2)));
        Some(share).filter(|share| deviation > 0.0 && share.is_finite())
    };
    Ok(Arc::new((0..args[0].len()).map(share).collect::<Float64Array>()))
}

/// The error function, by a series whose terms are all positive, so that no digits cancel out.
fn erf(x: f64) -> f64 {
    /// From here on it is 1 to the last digit.
    const ONE_MIN: f64 = 6.0;
    if x.abs() >= ONE_MIN {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    let mut divisor = 1.0;
    while term.abs() > sum.abs() * f64::EPSILON / 4.0 {
        divisor += 2.0;
        term *= 2.0 * x * x / divisor;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// How many of the bounds, which ascend, the first number has reached.
fn interval(args: &[ArrayRef]) -> Result<ArrayRef> {
    let columns: Vec<&Int64Array> = args.iter().map(AsArray::as_primitive::<Int64Type>).collect();
    let (numbers, bounds) = (columns[0], &columns[1..]);
    let reached = |row: usize| {
        let number = numbers.is_valid(row).then(|| numbers.value(row))?;
        let is_reached = |bound: &&Int64Array| bound.is_valid(row) && bound.value(row) <= number;
        Some(bounds.partition_point(is_reached) as i64)
    };
    Ok(Arc::new((0..numbers.len()).map(reached).collect::<Int64Array>()))
}

/// Bits that are equal for equal seeds and else have nothing to do with each other.
pub(in crate::functions) fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

fn uniform(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (low, high) = (args[0].as_primitive::<Float64Type>(), args[1].as_primitive::<Float64Type>());
    let seeds = args[2].as_primitive::<Int64Type>();
    let value = |row: usize| -> Result<Option<f64>> {
        if [low.is_null(row), high.is_null(row), seeds.is_null(row)].contains(&true) {
            return Ok(None);
        }
        let (low, high) = (low.value(row), high.value(row));
        if low >= high {
            return exec_err!("UNIFORM takes a lower bound below the upper one, but has {low} and {high}");
        }
        let share = (mixed(seeds.value(row) as u64) >> 11) as f64 / (1_u64 << 53) as f64;
        Ok(Some(low + (high - low) * share))
    };
    Ok(Arc::new((0..args[0].len()).map(value).collect::<Result<Float64Array>>()?))
}

fn uniform_integer(args: &[ArrayRef]) -> Result<ArrayRef> {
    let columns: Vec<&Int64Array> = args.iter().map(AsArray::as_primitive::<Int64Type>).collect();
    let value = |row: usize| -> Result<Option<i64>> {
        if columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let (low, high, seed) = (columns[0].value(row), columns[1].value(row), columns[2].value(row));
        if low >= high {
            return exec_err!("UNIFORM takes a lower bound below the upper one, but has {low} and {high}");
        }
        let span = (i128::from(high) - i128::from(low) + 1) as u128;
        let step = (u128::from(mixed(seed as u64)) * span) >> 64;
        Ok(Some((i128::from(low) + step as i128) as i64))
    };
    Ok(Arc::new((0..args[0].len()).map(value).collect::<Result<Int64Array>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_has_all_digits() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (-2.0, -0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (7.0, 1.0),
        ] {
            assert!((erf(x) - expected).abs() < 4e-16, "{x}: {}", erf(x));
        }
    }
}

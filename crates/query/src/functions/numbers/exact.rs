//! Numbers: what DataFusion computes otherwise than MySQL, and sums over lists that an aggregate has collected.

use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Real};
    vec![
        MySqlFunction::new("factorial", &[Int], crate::functions::int64, |args| {
            let values = args[0].as_primitive::<Int64Type>().iter().map(|value| value.and_then(factorial));
            Ok(Arc::new(values.collect::<Int64Array>()))
        }),
        MySqlFunction::new("__percentile", &[Any, Real], crate::functions::float64, percentile),
    ]
}

/// `None` outside of 0 to 20, where the product does not fit.
fn factorial(n: i64) -> Option<i64> {
    (1..=n).try_fold(1i64, i64::checked_mul).filter(|_| n >= 0)
}

/// The value below which a share of a list's numbers lies, interpolated between the two next to it.
fn percentile(args: &[ArrayRef]) -> Result<ArrayRef> {
    // NULL without a type, as the optimizer evaluates it.
    let Some(lists) = args[0].as_list_opt::<i32>() else {
        return Ok(Arc::new(Float64Array::new_null(args[0].len())));
    };
    let shares = args[1].as_primitive::<Float64Type>();
    let of = |row: usize| -> Result<Option<f64>> {
        if lists.is_null(row) || shares.is_null(row) {
            return Ok(None);
        }
        let share = shares.value(row);
        if !(0.0..=1.0).contains(&share) {
            return exec_err!("percentile takes a share from 0 to 1 and not {share}");
        }
        let list = lists.value(row);
        let mut numbers: Vec<f64> = list.as_primitive::<Float64Type>().iter().flatten().collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let place = numbers.len().saturating_sub(1) as f64 * share;
        let (lower, fraction) = (place.floor() as usize, place.fract());
        Ok(match (numbers.get(lower), numbers.get(lower + 1)) {
            (Some(lower), Some(upper)) => Some(lower + fraction * (upper - lower)),
            (Some(last), None) => Some(*last),
            (None, _) => None,
        })
    };
    Ok(Arc::new((0..lists.len()).map(of).collect::<Result<Float64Array>>()?))
}

#[cfg(test)]
mod tests {
    use super::factorial;

    #[test]
    fn factorials_are_known_from_0_to_20() {
        assert_eq!([0, 1, 5, 20].map(factorial), [1, 1, 120, 2_432_902_008_176_640_000].map(Some));
        assert_eq!([-1, 21, i64::MAX, i64::MIN].map(factorial), [None; 4]);
    }
}

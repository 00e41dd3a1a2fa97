//! `WIDTH_BUCKET`: the number of the bucket of a histogram that a value is in.

use crate::functions::conversion::convert::{to_datetime, to_real};
use crate::functions::{MySqlFunction, Param};
use crate::types::kind::{Kind, kind};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int};
    vec![MySqlFunction::new("width_bucket", &[Any, Any, Any, Int], crate::functions::int64, width_bucket)]
}

/// The bucket of each value between a lower and an upper bound, from 1; 0 below them and one more than there are above.
fn width_bucket(args: &[ArrayRef]) -> Result<ArrayRef> {
    let are_dates = args[..3].iter().any(|arg| matches!(kind(arg.data_type()), Kind::Date | Kind::DateTime));
    let real = |array: &ArrayRef| -> Result<ArrayRef> {
        if are_dates {
            let micros = cast(&to_datetime(array)?, &DataType::Int64)?;
            return to_real(&micros);
        }
        to_real(array)
    };
    let (values, low, high) = (real(&args[0])?, real(&args[1])?, real(&args[2])?);
    let number = |array: &ArrayRef, row: usize| {
        let array = array.as_primitive::<Float64Type>();
        array.is_valid(row).then(|| array.value(row))
    };
    let counts = args[3].as_primitive::<Int64Type>();
    let bucket = |row: usize| -> Result<Option<i64>> {
        let (Some(value), Some(low), Some(high)) =
            (number(&values, row), number(&low, row), number(&high, row))
        else {
            return Ok(None);
        };
        if counts.is_null(row) {
            return Ok(None);
        }
        let count = counts.value(row);
        if count <= 0 {
            return exec_err!("WIDTH_BUCKET takes a number of buckets above 0 and not {count}");
        }
        if low >= high {
            return exec_err!(
                "WIDTH_BUCKET takes a lower bound, its second argument, that is below the upper one"
            );
        }
        Ok(Some(if value < low {
            0
        } else if value >= high {
            count.saturating_add(1)
        } else {
            (((value - low) * count as f64 / (high - low)).floor() as i64).min(count - 1) + 1
        }))
    };
    Ok(Arc::new((0..values.len()).map(bucket).collect::<Result<Int64Array>>()?))
}

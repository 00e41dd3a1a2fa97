//! `EXPONENTIAL_MOVING_AVERAGE`: a mean in which a value counts half as much for each span of time that it is older.

use crate::functions::conversion::convert::{to_datetime, to_real};
use crate::functions::nested::arrays::Lists;
use crate::functions::{MySqlFunction, Param};
use crate::types::kind::{Kind, kind};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{Float64Type, TimestampMicrosecondType};
use datafusion::common::Result;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Real};
    let real = crate::functions::float64;
    vec![
        MySqlFunction::new("__moment", &[Any], real, |args| moment(&args[0])),
        MySqlFunction::new("__moving_average", &[Any, Real], real, moving_average),
    ]
}

/// A number, or the seconds since 1970 of a time.
fn moment(array: &ArrayRef) -> Result<ArrayRef> {
    if !matches!(kind(array.data_type()), Kind::Date | Kind::DateTime) {
        return to_real(array);
    }
    let times = to_datetime(array)?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Ok(Arc::new(times.unary::<_, Float64Type>(|micros| micros as f64 / 1e6)))
}

/// Each value is halved for each half decay between its time and the last one.
fn moving_average(args: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = Lists::of(&args[0], "exponential_moving_average")?;
    let decays = args[1].as_primitive::<Float64Type>();
    let Some(pairs) = lists.values.as_struct_opt().filter(|pairs| pairs.num_columns() == 2) else {
        return Ok(Arc::new(Float64Array::new_null(lists.len)));
    };
    let (times, values) = (to_real(pairs.column(0))?, to_real(pairs.column(1))?);
    let (times, values) = (times.as_primitive::<Float64Type>(), values.as_primitive::<Float64Type>());
    let average = |row: usize| {
        let decay = decays.is_valid(row).then(|| decays.value(row))?;
        let range = lists.row(row)?.filter(|at| times.is_valid(*at) && values.is_valid(*at));
        let pairs: Vec<(f64, f64)> = range.map(|at| (times.value(at), values.value(at))).collect();
        let last = pairs.iter().map(|(time, _)| *time).reduce(f64::max)?;
        if decay == 0.0 {
            return Some(0.0);
        }
        let sum: f64 = pairs.iter().map(|(time, value)| value * ((time - last) / decay).exp2()).sum();
        Some(sum * (1.0 - (-1.0 / decay).exp2())).filter(|average| average.is_finite())
    };
    Ok(Arc::new((0..lists.len).map(average).collect::<Float64Array>()))
}

//! Times rounded to periods: `HOUR_FLOOR`, `MONTH_CEIL` and so on, for each unit from the second to the year.
//!
//! A period is a number of units; periods are counted from an origin, by default 0001-01-01, which is a Monday.
//!
//! Not here: `DATE_TRUNC`.

use crate::functions::conversion::convert::{safe_cast, to_datetime, to_integer};
use crate::functions::dates::datetime::{self, DAY_MICROS, Unit};
use crate::functions::dates::time::digits_at;
use crate::functions::{MySqlFunction, Param};
use crate::types::kind::DATETIME;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};
use chrono::Datelike;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ReturnFieldArgs;
use std::sync::Arc;

/// 0001-01-01.
const ORIGIN: i64 = -719_162 * DAY_MICROS;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// The functions `<unit>_floor` and `<unit>_ceil`.
macro_rules! periods {
    ($($floor:literal, $ceil:literal: $unit:expr;)*) => {
        vec![$(
            function($floor, |args| round(args, $floor, $unit, false), $unit),
            function($ceil, |args| round(args, $ceil, $unit, true), $unit),
        )*]
    };
}

pub(super) fn functions() -> Vec<MySqlFunction> {
    periods! {
        "second_floor", "second_ceil": Unit::Micros(SECOND);
        "minute_floor", "minute_ceil": Unit::Micros(MINUTE);
        "hour_floor", "hour_ceil": Unit::Micros(HOUR);
        "day_floor", "day_ceil": Unit::Micros(DAY_MICROS);
        "week_floor", "week_ceil": Unit::Micros(7 * DAY_MICROS);
        "month_floor", "month_ceil": Unit::Months(1);
        "quarter_floor", "quarter_ceil": Unit::Months(3);
        "year_floor", "year_ceil": Unit::Months(12);
    }
}

fn function(name: &'static str, body: fn(&[ArrayRef]) -> Result<ArrayRef>, unit: Unit) -> MySqlFunction {
    use Param::Any;
    let function = MySqlFunction::new(name, &[Any, Any, Any], crate::functions::datetime_type, body)
        .optional(2)
        .with_digits(most_digits);
    if has_whole_days(unit) { function.returning(day_or_time) } else { function }
}

fn has_whole_days(unit: Unit) -> bool {
    match unit {
        Unit::Micros(size) => size % DAY_MICROS == 0,
        Unit::Months(_) => true,
    }
}

/// DATE if the value and the origin are DATEs.
fn day_or_time(types: &[DataType]) -> DataType {
    let is_day = |data_type: &DataType| {
        *data_type == DataType::Date32 || *data_type == DataType::Null || data_type.is_integer()
    };
    if types[0] == DataType::Date32 && types.iter().all(is_day) { DataType::Date32 } else { DATETIME }
}

/// The digits of the seconds of the value or the origin, whichever has more.
fn most_digits(args: &ReturnFieldArgs<'_>) -> Option<u8> {
    let digits = (0..args.arg_fields.len()).map(|index| digits_at(args, index));
    digits.collect::<Option<Vec<u8>>>()?.into_iter().max()
}

/// The start of the period that contains each time, or with `is_up` of the first one that does not start before it.
fn round(args: &[ArrayRef], name: &str, unit: Unit, is_up: bool) -> Result<ArrayRef> {
    let (period, origin) = match &args[1..] {
        [] => (None, None),
        [one] if one.data_type().is_integer() => (Some(one), None),
        [one] => (None, Some(one)),
        [period, origin, ..] => (Some(period), Some(origin)),
    };
    if period.is_some_and(|period| period.data_type() == &DATETIME || period.data_type() == &DataType::Date32)
    {
        return plan_err!("{name} takes a time, a number of units and an origin, in this order");
    }
    let values = to_datetime(&args[0])?;
    let values = values.as_primitive::<TimestampMicrosecondType>();
    let period = period.map(to_integer).transpose()?;
    let period: Option<&Int64Array> = period.as_ref().map(AsArray::as_primitive::<Int64Type>);
    let origin = origin.map(to_datetime).transpose()?;
    let origin: Option<&TimestampMicrosecondArray> =
        origin.as_ref().map(AsArray::as_primitive::<TimestampMicrosecondType>);
    let rounded = (0..values.len()).map(|row| {
        let is_null = values.is_null(row)
            || period.is_some_and(|period| period.is_null(row))
            || origin.is_some_and(|origin| origin.is_null(row));
        if is_null {
            return Ok(None);
        }
        let value = values.value(row);
        let period = period.map_or(1, |period| period.value(row));
        let origin = origin.map_or(ORIGIN, |origin| origin.value(row));
        if period <= 0 {
            return exec_err!("{name} takes a number of units above 0 and not {period}");
        }
        match bound(value, period, origin, unit, is_up).filter(|bound| datetime::is_in_calendar(*bound)) {
            Some(bound) => Ok(Some(bound)),
            None => exec_err!("Operation {name} of {}, {period} out of range", datetime::to_text(value)),
        }
    });
    let rounded: ArrayRef = Arc::new(rounded.collect::<Result<TimestampMicrosecondArray>>()?);
    if has_whole_days(unit) {
        let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
        return safe_cast(&rounded, &day_or_time(&types));
    }
    Ok(rounded)
}

/// The bound of a period; `None` if it is not in the calendar.
fn bound(value: i64, period: i64, origin: i64, unit: Unit, is_up: bool) -> Option<i64> {
    let (count, start) = match unit {
        Unit::Micros(size) => {
            let step = size.checked_mul(period)?;
            let count = value.checked_sub(origin)?.div_euclid(step);
            (count.checked_mul(period)?, origin.checked_add(count.checked_mul(step)?)?)
        }
        Unit::Months(size) => {
            // The last period that begins in the month of the value or before it may begin after the value.
            let month = |micros: i64| {
                datetime::from_micros(micros).map(|at| i64::from(at.year()) * 12 + i64::from(at.month0()))
            };
            let between = month(value)?.checked_sub(month(origin)?)?;
            let step = period.checked_mul(size)?;
            let mut count = between.div_euclid(step).checked_mul(period)?;
            let mut start = datetime::add(origin, count, unit)?;
            if start > value {
                count = count.checked_sub(period)?;
                start = datetime::add(origin, count, unit)?;
            }
            (count, start)
        }
    };
    if !is_up || start == value {
        return Some(start);
    }
    datetime::add(origin, count.checked_add(period)?, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_contains_its_start_and_not_its_end() {
        let at = |text: &str| datetime::parse(text).unwrap();
        let origin = at("0001-01-01");
        assert_eq!(origin, ORIGIN);
        for (value, period, origin, unit, floor, ceil) in [
            (
                "2023-07-13 22:28:18",
                5,
                "0001-01-01",
                Unit::Micros(HOUR),
                "2023-07-13 18:00:00",
                "2023-07-13 23:00:00",
            ),
            (
                "2023-07-13 18:00:00",
                5,
                "0001-01-01",
                Unit::Micros(HOUR),
                "2023-07-13 18:00:00",
                "2023-07-13 18:00:00",
            ),
            (
                "2022-09-13 22:28:18",
                5,
                "2028-07-03 22:20:00",
                Unit::Months(1),
                "2022-09-03 22:20:00",
                "2023-02-03 22:20:00",
            ),
            (
                "2023-02-28 12:00:00",
                1,
                "2023-01-31",
                Unit::Months(1),
                "2023-02-28 00:00:00",
                "2023-03-31 00:00:00",
            ),
            (
                "2023-03-30 00:00:00",
                1,
                "2023-01-31",
                Unit::Months(1),
                "2023-02-28 00:00:00",
                "2023-03-31 00:00:00",
            ),
            (
                "2022-12-30 00:00:00",
                1,
                "2023-01-31",
                Unit::Months(1),
                "2022-11-30 00:00:00",
                "2022-12-31 00:00:00",
            ),
        ] {
            let of = |is_up| bound(at(value), period, at(origin), unit, is_up).map(datetime::to_text);
            assert_eq!(of(false).as_deref(), Some(floor), "{value}");
            assert_eq!(of(true).as_deref(), Some(ceil), "{value}");
        }
    }
}

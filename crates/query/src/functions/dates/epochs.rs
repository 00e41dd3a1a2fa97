//! Times as numbers: `FROM_SECOND`, `MICROSECOND_TIMESTAMP`, `TO_SECONDS`, and months as `PERIOD_ADD` counts them.

use crate::functions::dates::datetime;
use crate::functions::dates::time::{instants, zone};
use crate::functions::{Body, MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, TimestampMicrosecondArray};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use chrono::TimeZone;
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

/// `TO_DAYS('1970-01-01')` in seconds.
const EPOCH_SECONDS: i64 = 719_528 * 86_400;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{DateTime, Int, Text};
    let int = crate::functions::int64;
    let from = |name: &'static str, body: Body| {
        MySqlFunction::new(name, &[Int, Text], crate::functions::datetime_type, body)
    };
    vec![
        from("__from_second", |args| at(args, 1_000_000)).with_digits(|_| Some(0)),
        from("__from_millisecond", |args| at(args, 1_000)).with_digits(|_| Some(3)),
        from("__from_microsecond", |args| at(args, 1)).with_digits(|_| Some(6)),
        MySqlFunction::new("__second_timestamp", &[DateTime, Text], int, |args| counted(args, 1_000_000)),
        MySqlFunction::new("__millisecond_timestamp", &[DateTime, Text], int, |args| counted(args, 1_000)),
        MySqlFunction::new("__microsecond_timestamp", &[DateTime, Text], int, |args| counted(args, 1)),
        MySqlFunction::new("to_seconds", &[DateTime], int, |args| {
            let seconds = |micros: i64| micros.div_euclid(1_000_000) + EPOCH_SECONDS;
            Ok(Arc::new(args[0].as_primitive::<TimestampMicrosecondType>().unary::<_, Int64Type>(seconds)))
        }),
        MySqlFunction::new("period_add", &[Int, Int], int, |args| {
            of_periods(args, |period, count| Ok(period_of(months_of(period)?.saturating_add(count))))
        }),
        MySqlFunction::new("period_diff", &[Int, Int], int, |args| {
            of_periods(args, |to, from| Ok(months_of(to)? - months_of(from)?))
        }),
    ]
}

/// The local time at a number of units since 1970 began; NULL before that and behind the calendar.
fn at(args: &[ArrayRef], unit: i64) -> Result<ArrayRef> {
    let counts = args[0].as_primitive::<Int64Type>();
    let names = args[1].as_string::<i32>();
    let local = |row: usize| {
        if counts.is_null(row) || names.is_null(row) || counts.value(row) < 0 {
            return Ok(None);
        }
        let zone = zone(names.value(row))?;
        let utc = counts.value(row).checked_mul(unit).and_then(datetime::from_micros);
        let local = utc.map(|utc| datetime::to_micros(zone.from_utc_datetime(&utc).naive_local()));
        Ok(local.filter(|local| datetime::is_in_calendar(*local)))
    };
    Ok(Arc::new((0..counts.len()).map(local).collect::<Result<TimestampMicrosecondArray>>()?))
}

/// The units since 1970 began of local times.
fn counted(args: &[ArrayRef], unit: i64) -> Result<ArrayRef> {
    let counts = instants(args)?.into_iter().map(|micros| micros.map(|micros| micros / unit));
    Ok(Arc::new(counts.collect::<Int64Array>()))
}

fn of_periods(args: &[ArrayRef], of: impl Fn(i64, i64) -> Result<i64>) -> Result<ArrayRef> {
    let pairs = args[0].as_primitive::<Int64Type>().iter().zip(args[1].as_primitive::<Int64Type>());
    let numbers = pairs.map(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => of(a, b).map(Some),
        _ => Ok(None),
    });
    Ok(Arc::new(numbers.collect::<Result<Int64Array>>()?))
}

/// The year as MySQL reads it: up to 69 it is of this century, up to 99 of the last one.
const fn whole_year(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    }
}

/// The months of a period such as 202401 or 2401.
fn months_of(period: i64) -> Result<i64> {
    let (year, month) = (period / 100, period % 100);
    if !(0..=999_912).contains(&period) || !(1..=12).contains(&month) {
        return exec_err!("a period is a year and a month, such as 202401, and not {period}");
    }
    Ok(whole_year(year) * 12 + month - 1)
}

fn period_of(months: i64) -> i64 {
    whole_year(months.div_euclid(12)).saturating_mul(100).saturating_add(months.rem_euclid(12) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_a_century() {
        assert_eq!(period_of(months_of(200_801).unwrap() + 2), 200_803);
        assert_eq!(period_of(months_of(9_112).unwrap() + 1), 199_201);
        assert_eq!(period_of(months_of(6_912).unwrap()), 206_912);
        assert_eq!(months_of(200_802).unwrap() - months_of(200_703).unwrap(), 11);
        assert!(months_of(202_413).is_err() && months_of(-1).is_err() && months_of(202_400).is_err());
    }
}

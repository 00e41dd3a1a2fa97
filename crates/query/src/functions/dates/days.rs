//! Days of the calendar: `TO_MONDAY`, `NEXT_DAY`, `MONTHS_BETWEEN`, and dates of ISO 8601.

use crate::functions::conversion::convert::{to_datetime, to_text, to_truth};
use crate::functions::dates::datetime;
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, Weekday};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, DateTime, Text};
    let (text, int, date) = (crate::functions::utf8, crate::functions::int64, crate::functions::date32);
    vec![
        MySqlFunction::new("to_monday", &[DateTime], date, |args| to_monday(&args[0])),
        MySqlFunction::new("next_day", &[DateTime, Text], date, |args| other_day(args, "next_day")),
        MySqlFunction::new("previous_day", &[DateTime, Text], date, |args| other_day(args, "previous_day")),
        MySqlFunction::new(
            "months_between",
            &[DateTime, DateTime, Any],
            crate::functions::float64,
            months_between,
        )
        .optional(1),
        MySqlFunction::new("to_iso8601", &[Any], text, |args| to_iso8601(&args[0])),
        MySqlFunction::new("from_iso8601_date", &[Text], date, |args| {
            let days = args[0].as_string::<i32>().iter().map(|text| from_iso8601(text?));
            Ok(Arc::new(days.map(|day| day.map(datetime::to_days_since_epoch)).collect::<Date32Array>()))
        }),
        MySqlFunction::new("year_of_week", &[DateTime], int, |args| {
            Ok(number(&args[0], |at| i64::from(at.iso_week().year())))
        }),
        MySqlFunction::new("century", &[DateTime], int, |args| {
            Ok(number(&args[0], |at| i64::from((at.year() + 99) / 100)))
        }),
    ]
}

fn at(array: &ArrayRef, row: usize) -> Option<NaiveDateTime> {
    let array = array.as_primitive::<TimestampMicrosecondType>();
    array.is_valid(row).then(|| array.value(row)).and_then(datetime::from_micros)
}

fn number(array: &ArrayRef, of: impl Fn(NaiveDateTime) -> i64) -> ArrayRef {
    Arc::new((0..array.len()).map(|row| at(array, row).map(&of)).collect::<Int64Array>())
}

fn days(len: usize, of: impl Fn(usize) -> Result<Option<NaiveDate>>) -> Result<ArrayRef> {
    let days = (0..len).map(|row| Ok(of(row)?.map(datetime::to_days_since_epoch)));
    Ok(Arc::new(days.collect::<Result<Date32Array>>()?))
}

/// The Monday of the week. As in Doris, the first four days of 1970 are in a week that begins with the year.
fn to_monday(array: &ArrayRef) -> Result<ArrayRef> {
    let epoch = 0..4;
    days(array.len(), |row| {
        let Some(at) = at(array, row) else { return Ok(None) };
        let day = at.date();
        if epoch.contains(&datetime::to_days_since_epoch(day)) {
            return Ok(NaiveDate::from_ymd_opt(1970, 1, 1));
        }
        let back = u64::from(day.weekday().num_days_from_monday());
        Ok(day.checked_sub_days(Days::new(back)).filter(|monday| monday.year() >= 0))
    })
}

fn weekday(name: &str) -> Option<Weekday> {
    Some(match name.to_ascii_uppercase().as_str() {
        "MO" | "MON" | "MONDAY" => Weekday::Mon,
        "TU" | "TUE" | "TUESDAY" => Weekday::Tue,
        "WE" | "WED" | "WEDNESDAY" => Weekday::Wed,
        "TH" | "THU" | "THURSDAY" => Weekday::Thu,
        "FR" | "FRI" | "FRIDAY" => Weekday::Fri,
        "SA" | "SAT" | "SATURDAY" => Weekday::Sat,
        "SU" | "SUN" | "SUNDAY" => Weekday::Sun,
        _ => return None,
    })
}

/// The first such day of the week after a day, or the last one before it. The last day of the calendar has none after it and
/// remains.
fn other_day(args: &[ArrayRef], function: &str) -> Result<ArrayRef> {
    let names = args[1].as_string::<i32>();
    let is_next = function == "next_day";
    days(args[0].len(), |row| {
        let (Some(at), true) = (at(&args[0], row), names.is_valid(row)) else { return Ok(None) };
        let name = names.value(row);
        let Some(wanted) = weekday(name) else {
            return exec_err!(
                "{function} does not know the day of the week '{name}'; use MONDAY, MON or MO and so on"
            );
        };
        let day = at.date();
        if is_next && (day.year(), day.month(), day.day()) == (9999, 12, 31) {
            return Ok(Some(day));
        }
        let (wanted, is) = (wanted.num_days_from_monday(), day.weekday().num_days_from_monday());
        let moved = if is_next {
            day.checked_add_days(Days::new(u64::from((wanted + 6 - is) % 7 + 1)))
        } else {
            day.checked_sub_days(Days::new(u64::from((is + 6 - wanted) % 7 + 1)))
        };
        match moved.filter(|moved| (0..=9999).contains(&moved.year())) {
            Some(moved) => Ok(Some(moved)),
            None => exec_err!("Operation {function} of {day}, {name} out of range"),
        }
    })
}

/// The months from the second day to the first, with a 31st for each further day: a whole number for the same day of the month and
/// between last days of months.
fn months_between(args: &[ArrayRef]) -> Result<ArrayRef> {
    let rounds = args.get(2).map(to_truth).transpose()?;
    let between = |row: usize| {
        let is_rounded = match &rounds {
            Some(rounds) => {
                let rounds = rounds.as_boolean();
                rounds.is_valid(row).then(|| rounds.value(row))?
            }
            None => true,
        };
        let (to, from) = (at(&args[0], row)?.date(), at(&args[1], row)?.date());
        let months = (to.year() - from.year()) * 12 + to.month() as i32 - from.month() as i32;
        let is_last = |day: NaiveDate| day.succ_opt().is_none_or(|next| next.month() != day.month());
        if to.day() == from.day() || (is_last(to) && is_last(from)) {
            return Some(f64::from(months));
        }
        let exact = f64::from(months) + f64::from(to.day() as i32 - from.day() as i32) / 31.0;
        Some(if is_rounded { (exact * 1e8).round() / 1e8 } else { exact })
    };
    Ok(Arc::new((0..args[0].len()).map(between).collect::<Float64Array>()))
}

fn to_iso8601(array: &ArrayRef) -> Result<ArrayRef> {
    if *array.data_type() == DataType::Date32 {
        return to_text(array);
    }
    let values = to_datetime(array)?;
    let texts =
        (0..values.len()).map(|row| Some(at(&values, row)?.format("%Y-%m-%dT%H:%M:%S%.6f").to_string()));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// Reads `2024`, `2024-02`, `2024-02-29`, `2024-060`, `2024-W09` and `2024-W09-4`.
fn from_iso8601(text: &str) -> Option<NaiveDate> {
    fn digits(text: &str, len: usize) -> Option<u32> {
        (text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
    }
    let mut parts = text.split('-');
    let year = i32::try_from(digits(parts.next()?, 4)?).ok()?;
    let (second, third) = (parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    let found = match (second, third) {
        (None, _) => NaiveDate::from_ymd_opt(year, 1, 1),
        (Some(week), day) if week.starts_with('W') => {
            let day = day.map_or(Some(1), |day| digits(day, 1))?;
            let day = Weekday::try_from(u8::try_from(day.checked_sub(1)?).ok()?).ok()?;
            NaiveDate::from_isoywd_opt(year, digits(&week[1..], 2)?, day)
        }
        (Some(day), None) if day.len() == 3 => NaiveDate::from_yo_opt(year, digits(day, 3)?),
        (Some(month), None) => NaiveDate::from_ymd_opt(year, digits(month, 2)?, 1),
        (Some(month), Some(day)) => NaiveDate::from_ymd_opt(year, digits(month, 2)?, digits(day, 2)?),
    };
    found.filter(|day| (0..=9999).contains(&day.year()))
}

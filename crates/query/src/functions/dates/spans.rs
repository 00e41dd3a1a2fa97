//! Spans and parts of times in units of several parts, as in MySQL: `INTERVAL '1:30' HOUR_MINUTE`, `EXTRACT(DAY_HOUR FROM x)`.

use super::datetime;
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{Datelike, Timelike};
use datafusion::common::Result;
use std::sync::Arc;

/// The factors from each unit to the next smaller one, from days on.
const FROM_DAYS: [(&str, i64); 5] =
    [("DAY", 24), ("HOUR", 60), ("MINUTE", 60), ("SECOND", 1_000_000), ("MICROSECOND", 1)];
const FROM_YEARS: [(&str, i64); 2] = [("YEAR", 12), ("MONTH", 1)];

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{DateTime, Text};
    let int = crate::functions::int64;
    vec![
        MySqlFunction::new("__span", &[Text, Text], int, |args| {
            let (spans, units) = (args[0].as_string::<i32>(), args[1].as_string::<i32>());
            let count = spans.iter().zip(units).map(|(span, unit)| span_of(span?, unit?));
            Ok(Arc::new(count.collect::<Int64Array>()))
        }),
        MySqlFunction::new("__parts", &[DateTime, Text], int, parts),
    ]
}

/// The smallest part of a unit that has several.
#[must_use]
pub fn smallest(unit: &str) -> Option<&str> {
    let (first, last) = unit.split_once('_')?;
    units(first, last).map(|_| last)
}

/// The units from one to another, with the factors from each to the next.
fn units(first: &str, last: &str) -> Option<&'static [(&'static str, i64)]> {
    let all: &[(&str, i64)] = if first == "YEAR" { &FROM_YEARS } else { &FROM_DAYS };
    let place = |name: &str| all.iter().position(|(unit, _)| *unit == name);
    let (start, end) = (place(first)?, place(last)?);
    (start < end).then(|| &all[start..=end])
}

/// How many of its smallest unit a span is: `-1:30` in `HOUR_MINUTE` is -90. Parts that are missing are those on the left. `None` for a
/// text of more parts than the unit has, and beyond BIGINT.
fn span_of(text: &str, unit: &str) -> Option<i64> {
    let (first, last) = unit.split_once('_')?;
    let units = units(first, last)?;
    let text = text.trim_start();
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let parts = text.split(|letter: char| !letter.is_ascii_digit()).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    if parts.len() > units.len() {
        return None;
    }
    let mut count = 0_i64;
    let mut factor = 1;
    for (part, (unit, to_next)) in parts.iter().zip(&units[units.len() - parts.len()..]) {
        let value = match *unit {
            // The digits behind the point of a second.
            "MICROSECOND" => format!("{part:0<6.6}").parse::<i64>().ok()?,
            _ => part.parse::<i64>().ok()?,
        };
        count = count.checked_mul(factor)?.checked_add(value)?;
        factor = *to_next;
    }
    Some(count * sign)
}

/// The parts of a time, from the largest to the smallest, as the digits of one number.
fn parts(args: &[ArrayRef]) -> Result<ArrayRef> {
    let times = args[0].as_primitive::<TimestampMicrosecondType>();
    let names = args[1].as_string::<i32>();
    let number = |row: usize| {
        let unit = names.is_valid(row).then(|| names.value(row))?;
        let at = times.is_valid(row).then(|| datetime::from_micros(times.value(row)))??;
        let (first, last) = unit.split_once('_')?;
        let digits = units(first, last)?.iter().fold(0_i64, |digits, (unit, _)| match *unit {
            "YEAR" => i64::from(at.year()),
            "MONTH" => digits * 100 + i64::from(at.month()),
            "DAY" => i64::from(at.day()),
            "HOUR" => digits * 100 + i64::from(at.hour()),
            "MINUTE" => digits * 100 + i64::from(at.minute()),
            "SECOND" => digits * 100 + i64::from(at.second()),
            _ => digits * 1_000_000 + i64::from(at.nanosecond() / 1000),
        });
        Some(digits)
    };
    Ok(Arc::new((0..times.len()).map(number).collect::<Int64Array>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_counted_in_its_smallest_unit() {
        for (text, unit, expected) in [
            ("1:30", "HOUR_MINUTE", Some(90)),
            ("-1:30", "HOUR_MINUTE", Some(-90)),
            ("90", "HOUR_MINUTE", Some(90)),
            ("1-2", "YEAR_MONTH", Some(14)),
            ("1 10", "DAY_HOUR", Some(34)),
            ("1 1:1:1", "DAY_SECOND", Some(86_400 + 3_661)),
            ("1:1", "DAY_SECOND", Some(61)),
            ("1.5", "SECOND_MICROSECOND", Some(1_500_000)),
            ("5", "SECOND_MICROSECOND", Some(500_000)),
            ("1.1234567", "SECOND_MICROSECOND", Some(1_123_456)),
            ("1 02:03:04.5", "DAY_MICROSECOND", Some(93_784_500_000)),
            ("1:2:3", "HOUR_MINUTE", None),
            ("", "HOUR_MINUTE", Some(0)),
            ("99999999999999999999:1", "HOUR_MINUTE", None),
        ] {
            assert_eq!(span_of(text, unit), expected, "{text} {unit}");
        }
        assert_eq!(smallest("DAY_MICROSECOND"), Some("MICROSECOND"));
        assert_eq!(smallest("MINUTE_HOUR"), None);
        assert_eq!(smallest("MINUTE"), None);
    }
}

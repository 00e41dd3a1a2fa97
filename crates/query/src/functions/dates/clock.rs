//! Functions over times of day and durations, which are texts of TIME: `TIMEDIFF`, `SEC_TO_TIME`, `TIME_FORMAT` and so on.

use crate::functions::conversion::convert::{to_datetime, to_integer, to_real, to_text};
use crate::functions::dates::datetime::{self, DAY_MICROS};
use crate::functions::{MySqlFunction, Param, growth};
use crate::types::kind::{DATETIME, Kind, kind};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use datafusion::common::{Result, exec_err};
use std::fmt::Write;
use std::sync::Arc;

/// 838:59:59, the greatest TIME, in seconds and microseconds.
const MAX_SECONDS: i64 = 3_020_399;
const MAX_MICROS: i64 = MAX_SECONDS * 1_000_000;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Real, Text};
    let (text, int) = (crate::functions::utf8, crate::functions::int64);
    vec![
        MySqlFunction::new("timediff", &[Any, Any], text, timediff).clock(),
        MySqlFunction::new("sec_to_time", &[Any], text, |args| sec_to_time(&args[0])).clock(),
        MySqlFunction::new("time_to_sec", &[Any], int, |args| {
            let clocks = clocks(&args[0])?.into_iter();
            Ok(Arc::new(clocks.map(|micros| micros.map(|micros| micros / 1_000_000)).collect::<Int64Array>()))
        }),
        MySqlFunction::new("time_format", &[Any, Text], text, time_format),
        MySqlFunction::new("maketime", &[Int, Int, Real], text, maketime).clock(),
        MySqlFunction::new("add_time", &[Any, Any], text, |args| moved(args, "add_time"))
            .returning(moved_type)
            .clock(),
        MySqlFunction::new("sub_time", &[Any, Any], text, |args| moved(args, "sub_time"))
            .returning(moved_type)
            .clock(),
    ]
}

/// A value of a row as a point in time or as a duration.
#[derive(Clone, Copy)]
enum Moment {
    At(i64),
    Clock(i64),
}

fn moments(array: &ArrayRef) -> Result<Vec<Option<Moment>>> {
    if matches!(kind(array.data_type()), Kind::Date | Kind::DateTime) {
        let values = to_datetime(array)?;
        let values = values.as_primitive::<TimestampMicrosecondType>();
        return Ok(values.iter().map(|micros| micros.map(Moment::At)).collect());
    }
    let texts = to_text(array)?;
    let read = |text: &str| {
        datetime::parse_clock(text).map(Moment::Clock).or_else(|| datetime::parse(text).map(Moment::At))
    };
    Ok(texts.as_string::<i32>().iter().map(|text| text.and_then(read)).collect())
}

/// The times of day of points in time, and the TIMEs that texts spell.
fn clocks(array: &ArrayRef) -> Result<Vec<Option<i64>>> {
    let is_text = !matches!(kind(array.data_type()), Kind::Date | Kind::DateTime);
    let moments = moments(array)?.into_iter();
    Ok(moments
        .map(|moment| match moment? {
            Moment::Clock(micros) => Some(micros),
            Moment::At(_) if is_text => None,
            Moment::At(micros) => Some(micros.rem_euclid(DAY_MICROS)),
        })
        .collect())
}

/// The duration from the second value to the first; NULL if one is a point in time and the other a duration.
fn timediff(args: &[ArrayRef]) -> Result<ArrayRef> {
    let pairs = moments(&args[0])?.into_iter().zip(moments(&args[1])?);
    let difference = |pair: (Option<Moment>, Option<Moment>)| {
        let micros = match pair {
            (Some(Moment::At(to)), Some(Moment::At(from)))
            | (Some(Moment::Clock(to)), Some(Moment::Clock(from))) => to - from,
            _ => return Ok(None),
        };
        if !(-MAX_MICROS..=MAX_MICROS).contains(&micros) {
            return exec_err!(
                "TIMEDIFF: {} is not between -838:59:59 and 838:59:59",
                datetime::clock_text(micros)
            );
        }
        Ok(Some(datetime::clock_text(micros)))
    };
    Ok(Arc::new(pairs.map(difference).collect::<Result<StringArray>>()?))
}

/// The duration of that many seconds, or the greatest one; numbers that are not whole ones have six digits of a second.
fn sec_to_time(array: &ArrayRef) -> Result<ArrayRef> {
    if array.data_type().is_integer() {
        let seconds = to_integer(array)?;
        let spell = |seconds: i64| datetime::clock_text(seconds.clamp(-MAX_SECONDS, MAX_SECONDS) * 1_000_000);
        let texts = seconds.as_primitive::<Int64Type>().iter().map(|seconds| seconds.map(spell));
        return Ok(Arc::new(texts.collect::<StringArray>()));
    }
    let seconds = to_real(array)?;
    let spell = |seconds: f64| {
        let micros = ((seconds * 1e6).round() as i64).clamp(-MAX_MICROS, MAX_MICROS);
        let mut text = datetime::clock_text(micros);
        if micros % 1_000_000 == 0 {
            text.push_str(".000000");
        }
        text
    };
    let texts = seconds.as_primitive::<Float64Type>().iter().map(|seconds| seconds.map(spell));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// A TIME of its hours, minutes and seconds; NULL for minutes and seconds that a clock does not show.
fn maketime(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (hours, minutes) = (args[0].as_primitive::<Int64Type>(), args[1].as_primitive::<Int64Type>());
    let seconds = args[2].as_primitive::<Float64Type>();
    let made = (0..hours.len()).map(|row| {
        if hours.is_null(row) || minutes.is_null(row) || seconds.is_null(row) {
            return None;
        }
        let (hour, minute, second) = (hours.value(row), minutes.value(row), seconds.value(row));
        if !(0..60).contains(&minute) || !(0.0..60.0).contains(&second) {
            return None;
        }
        let below_hour = minute * 60_000_000 + (second * 1e6).round() as i64;
        let micros = hour.unsigned_abs().min(1000) as i64 * 3_600_000_000 + below_hour;
        let micros = if hour < 0 { -micros } else { micros };
        Some(datetime::clock_text(micros.clamp(-MAX_MICROS, MAX_MICROS)))
    });
    Ok(Arc::new(made.collect::<StringArray>()))
}

/// DATETIME for dates and times, else a TIME as a text.
fn moved_type(types: &[DataType]) -> DataType {
    match kind(&types[0]) {
        Kind::Date | Kind::DateTime => DATETIME,
        _ => DataType::Utf8,
    }
}

/// The first value with a TIME added or subtracted. A TIME ends at 838:59:59, a DATETIME with the calendar.
fn moved(args: &[ArrayRef], name: &str) -> Result<ArrayRef> {
    let (values, by) = (moments(&args[0])?, clocks(&args[1])?);
    let sum = |(value, by): (Option<Moment>, Option<i64>)| -> Result<Option<Moment>> {
        let (Some(value), Some(by)) = (value, by) else { return Ok(None) };
        let by = if name == "sub_time" { -by } else { by };
        Ok(Some(match value {
            Moment::Clock(micros) => Moment::Clock((micros + by).clamp(-MAX_MICROS, MAX_MICROS)),
            Moment::At(micros) if datetime::is_in_calendar(micros.saturating_add(by)) => {
                Moment::At(micros + by)
            }
            Moment::At(micros) => {
                let (at, by) = (datetime::to_text(micros), datetime::clock_text(by));
                return exec_err!("Operation {name} of {at}, {by} out of range");
            }
        }))
    };
    let sums = values.into_iter().zip(by).map(sum).collect::<Result<Vec<_>>>()?.into_iter();
    if moved_type(&[args[0].data_type().clone()]) == DATETIME {
        let micros = sums.map(|sum| match sum? {
            Moment::At(micros) | Moment::Clock(micros) => Some(micros),
        });
        return Ok(Arc::new(micros.collect::<TimestampMicrosecondArray>()));
    }
    let texts = sums.map(|sum| {
        Some(match sum? {
            Moment::At(micros) => datetime::to_text(micros),
            Moment::Clock(micros) => datetime::clock_text(micros),
        })
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

fn time_format(args: &[ArrayRef]) -> Result<ArrayRef> {
    let clocks = clocks(&args[0])?;
    let formats = args[1].as_string::<i32>();
    growth::texts("time_format", args, |row| {
        Ok(clocks[row]
            .filter(|_| formats.is_valid(row))
            .and_then(|micros| format(micros, formats.value(row))))
    })
}

/// A TIME in a pattern; `None` if the pattern has a field of a day that has no zero.
fn format(micros: i64, pattern: &str) -> Option<String> {
    let mut out = String::from(if micros < 0 { "-" } else { "" });
    let (seconds, fraction) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let half = (hour + 11) % 12 + 1;
    let noon = if hour % 24 < 12 { "AM" } else { "PM" };
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        // Writing to a text cannot fail.
        let _ = match letters.next() {
            Some('H') => write!(out, "{hour:02}"),
            Some('k') => write!(out, "{hour}"),
            Some('h' | 'I') => write!(out, "{half:02}"),
            Some('l') => write!(out, "{half}"),
            Some('i') => write!(out, "{minute:02}"),
            Some('s' | 'S') => write!(out, "{second:02}"),
            Some('f') => write!(out, "{fraction:06}"),
            Some('p') => write!(out, "{noon}"),
            Some('r') => write!(out, "{half:02}:{minute:02}:{second:02} {noon}"),
            Some('T') => write!(out, "{hour:02}:{minute:02}:{second:02}"),
            Some('Y') => write!(out, "0000"),
            Some('y' | 'm' | 'd') => write!(out, "00"),
            Some('c' | 'e') => write!(out, "0"),
            Some('a' | 'b' | 'D' | 'j' | 'M' | 'u' | 'U' | 'v' | 'V' | 'w' | 'W' | 'x' | 'X') => return None,
            Some(other) => write!(out, "{other}"),
            None => write!(out, "%"),
        };
    }
    Some(out)
}

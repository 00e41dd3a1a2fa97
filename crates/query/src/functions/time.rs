//! Functions over dates and times. None reads a clock: `NOW()` is a literal by the time a query
//! comes here.

use super::datetime::{self, Unit};
use super::{MySqlFunction, Param};
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, TimeZone, Timelike};
use datafusion::common::{Result, exec_err};
use std::fmt::Write;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, DateTime, Int, Real, Text};
    let (text, int, date, at) = (super::utf8, super::int64, super::date32, super::datetime_type);
    vec![
        MySqlFunction::new("__part", &[DateTime, Text], int, part),
        MySqlFunction::new("__date_add", &[DateTime, Int, Text], at, date_add),
        // A DATE plus days stays a DATE; the rewrite asks for this one with units of whole days.
        MySqlFunction::new("__day_add", &[Any, Int, Text], at, day_add).returning(day_add_type),
        MySqlFunction::new("__timestampdiff", &[Text, DateTime, DateTime], int, timestampdiff),
        MySqlFunction::new("__from_unixtime", &[Real, Text], at, from_unixtime),
        MySqlFunction::new("__unix_timestamp", &[DateTime, Text], int, unix_timestamp),
        MySqlFunction::new("__convert_tz", &[DateTime, Text, Text], at, convert_tz),
        MySqlFunction::new("date_format", &[DateTime, Text], text, date_format),
        MySqlFunction::new("str_to_date", &[Text, Text], at, str_to_date),
        MySqlFunction::new("datediff", &[DateTime, DateTime], int, datediff),
        MySqlFunction::new("date_trunc", &[Any, Any], at, date_trunc),
        MySqlFunction::new("last_day", &[DateTime], date, |args| last_day(&args[0])),
        MySqlFunction::new("from_days", &[Int], date, |args| from_days(&args[0])),
        MySqlFunction::new("makedate", &[Int, Int], date, makedate),
        MySqlFunction::new("dayname", &[DateTime], text, |args| {
            Ok(texts_of(&args[0], |v| v.format("%A").to_string()))
        }),
        MySqlFunction::new("monthname", &[DateTime], text, |args| {
            Ok(texts_of(&args[0], |v| v.format("%B").to_string()))
        }),
        MySqlFunction::new("__time", &[DateTime], text, |args| {
            Ok(texts_of(&args[0], |v| v.format("%H:%M:%S").to_string()))
        }),
    ]
}

fn micros(array: &ArrayRef) -> &TimestampMicrosecondArray {
    array.as_primitive::<TimestampMicrosecondType>()
}

fn at(array: &ArrayRef, row: usize) -> Option<NaiveDateTime> {
    let array = micros(array);
    array.is_valid(row).then(|| array.value(row)).and_then(datetime::from_micros)
}

fn texts_of(array: &ArrayRef, f: impl Fn(NaiveDateTime) -> String) -> ArrayRef {
    Arc::new((0..array.len()).map(|row| at(array, row).map(&f)).collect::<StringArray>())
}

fn text(array: &ArrayRef, row: usize) -> Option<&str> {
    let array = array.as_string::<i32>();
    array.is_valid(row).then(|| array.value(row))
}

fn int(array: &ArrayRef, row: usize) -> Option<i64> {
    let array = array.as_primitive::<Int64Type>();
    array.is_valid(row).then(|| array.value(row))
}

fn unit_of(name: &str) -> Result<Unit> {
    match datetime::unit(name) {
        Some(unit) => Ok(unit),
        None => exec_err!(
            "unknown unit of time '{name}'; use MICROSECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR"
        ),
    }
}

fn collect_micros(len: usize, f: impl Fn(usize) -> Result<Option<i64>>) -> Result<ArrayRef> {
    let values = (0..len).map(f).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(TimestampMicrosecondArray::from(values)))
}

fn collect_ints(len: usize, f: impl Fn(usize) -> Result<Option<i64>>) -> Result<ArrayRef> {
    Ok(Arc::new(Int64Array::from((0..len).map(f).collect::<Result<Vec<_>>>()?)))
}

fn collect_days(len: usize, f: impl Fn(usize) -> Option<NaiveDate>) -> ArrayRef {
    Arc::new((0..len).map(|row| f(row).map(datetime::to_days_since_epoch)).collect::<Date32Array>())
}

/// `__part(x, 'year')` and so on.
fn part(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_ints(args[0].len(), |row| {
        let (Some(value), Some(name)) = (at(&args[0], row), text(&args[1], row)) else { return Ok(None) };
        Ok(Some(match name {
            "year" => i64::from(value.year()),
            "quarter" => i64::from(value.month0() / 3 + 1),
            "month" => i64::from(value.month()),
            "week" => week_from_sunday(value.date()),
            "weekofyear" => i64::from(value.iso_week().week()),
            "yearweek" => year_week(value.date()),
            "day" => i64::from(value.day()),
            "dayofweek" => i64::from(value.weekday().num_days_from_sunday()) + 1,
            "weekday" => i64::from(value.weekday().num_days_from_monday()),
            "dayofyear" => i64::from(value.ordinal()),
            "hour" => i64::from(value.hour()),
            "minute" => i64::from(value.minute()),
            "second" => i64::from(value.second()),
            "microsecond" => i64::from(value.nanosecond() / 1000),
            "to_days" => i64::from(value.num_days_from_ce()) + 365,
            other => return exec_err!("unknown part of a date '{other}'"),
        }))
    })
}

/// MySQL's `WEEK(d)` mode 0: weeks begin on Sunday, 0 before the year's first Sunday.
fn week_from_sunday(date: NaiveDate) -> i64 {
    i64::from((date.ordinal() + 6 - date.weekday().num_days_from_sunday()) / 7)
}

/// `YEARWEEK(d)` mode 0.
fn year_week(date: NaiveDate) -> i64 {
    let week = week_from_sunday(date);
    if week > 0 {
        return i64::from(date.year()) * 100 + week;
    }
    let last = NaiveDate::from_ymd_opt(date.year() - 1, 12, 31).unwrap_or(date);
    i64::from(date.year() - 1) * 100 + week_from_sunday(last)
}

fn date_add(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_micros(args[0].len(), |row| {
        let Some(unit) = text(&args[2], row) else { return Ok(None) };
        let unit = unit_of(unit)?;
        let values = micros(&args[0]);
        let value = values.is_valid(row).then(|| values.value(row));
        Ok(value.zip(int(&args[1], row)).and_then(|(value, count)| datetime::add(value, count, unit)))
    })
}

fn day_add_type(types: &[DataType]) -> DataType {
    if types[0] == DataType::Date32 { DataType::Date32 } else { super::DATETIME }
}

fn day_add(args: &[ArrayRef]) -> Result<ArrayRef> {
    let sum =
        date_add(&[super::convert::to_datetime(&args[0])?, Arc::clone(&args[1]), Arc::clone(&args[2])])?;
    super::convert::safe_cast(&sum, &day_add_type(&[args[0].data_type().clone()]))
}

fn timestampdiff(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_ints(args[0].len(), |row| {
        let Some(unit) = text(&args[0], row) else { return Ok(None) };
        let unit = unit_of(unit)?;
        let (from, to) = (micros(&args[1]), micros(&args[2]));
        if from.is_null(row) || to.is_null(row) {
            return Ok(None);
        }
        Ok(datetime::difference(from.value(row), to.value(row), unit))
    })
}

fn zone(name: &str) -> Result<Tz> {
    match name.parse() {
        Ok(zone) => Ok(zone),
        Err(_) => exec_err!("Unknown or incorrect time zone: '{name}'"),
    }
}

fn from_unixtime(args: &[ArrayRef]) -> Result<ArrayRef> {
    let seconds = args[0].as_primitive::<Float64Type>();
    collect_micros(seconds.len(), |row| {
        let Some(name) = text(&args[1], row) else { return Ok(None) };
        let zone = zone(name)?;
        if seconds.is_null(row) || !(0.0..253_402_300_800.0).contains(&seconds.value(row)) {
            return Ok(None);
        }
        let utc = (seconds.value(row) * 1e6) as i64;
        Ok(datetime::from_micros(utc)
            .map(|value| datetime::to_micros(zone.from_utc_datetime(&value).naive_local())))
    })
}

/// The instant of a local time; the earlier of two, and the first after a gap.
fn instant(zone: Tz, local: NaiveDateTime) -> Option<i64> {
    let found = zone.from_local_datetime(&local).earliest();
    let found = found.or_else(|| zone.from_local_datetime(&(local + chrono::Duration::hours(1))).earliest());
    found.map(|value| value.timestamp_micros())
}

fn unix_timestamp(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_ints(args[0].len(), |row| {
        let (Some(local), Some(name)) = (at(&args[0], row), text(&args[1], row)) else { return Ok(None) };
        Ok(instant(zone(name)?, local).map(|micros| micros.div_euclid(1_000_000).max(0)))
    })
}

fn convert_tz(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_micros(args[0].len(), |row| {
        let (Some(from), Some(to)) = (text(&args[1], row), text(&args[2], row)) else { return Ok(None) };
        let (from, to) = (zone(from)?, zone(to)?);
        let utc = at(&args[0], row).and_then(|local| instant(from, local)).and_then(datetime::from_micros);
        Ok(utc.map(|utc| datetime::to_micros(to.from_utc_datetime(&utc).naive_local())))
    })
}

fn date_format(args: &[ArrayRef]) -> Result<ArrayRef> {
    let formatted = |row: usize| {
        let (value, format) = (at(&args[0], row)?, text(&args[1], row)?);
        Some(format_datetime(value, format))
    };
    Ok(Arc::new((0..args[0].len()).map(formatted).collect::<StringArray>()))
}

/// MySQL's `DATE_FORMAT` letters, and Doris's three names of formats.
fn format_datetime(value: NaiveDateTime, format: &str) -> String {
    let format = match format {
        "yyyyMMdd" => "%Y%m%d",
        "yyyy-MM-dd" => "%Y-%m-%d",
        "yyyy-MM-dd HH:mm:ss" => "%Y-%m-%d %H:%i:%s",
        other => other,
    };
    let mut out = String::with_capacity(format.len() + 8);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        match if letter == '%' { letters.next() } else { None } {
            Some(letter) => push_part(&mut out, value, letter),
            None => out.push(letter),
        }
    }
    out
}

fn push_part(out: &mut String, value: NaiveDateTime, letter: char) {
    let plain = match letter {
        'a' => "%a",
        'b' => "%b",
        'd' => "%d",
        'e' => "%-d",
        'f' => "%6f",
        'H' => "%H",
        'h' | 'I' => "%I",
        'i' => "%M",
        'j' => "%j",
        'k' => "%-H",
        'l' => "%-I",
        'M' => "%B",
        'm' => "%m",
        'c' => "%-m",
        'p' => "%p",
        'r' => "%I:%M:%S %p",
        'S' | 's' => "%S",
        'T' => "%H:%M:%S",
        'U' => "%U",
        'u' => "%W",
        'V' => "%U",
        'v' => "%V",
        'W' => "%A",
        'w' => "%w",
        'X' | 'Y' => "%Y",
        'x' => "%G",
        'y' => "%y",
        'D' => {
            let day = value.day();
            let suffix = match day {
                1 | 21 | 31 => "st",
                2 | 22 => "nd",
                3 | 23 => "rd",
                _ => "th",
            };
            let _ = write!(out, "{day}{suffix}");
            return;
        }
        other => return out.push(other),
    };
    let _ = write!(out, "{}", value.format(plain));
}

fn str_to_date(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_micros(args[0].len(), |row| {
        let (Some(value), Some(format)) = (text(&args[0], row), text(&args[1], row)) else { return Ok(None) };
        Ok(parse_with(value.trim(), format).map(datetime::to_micros))
    })
}

/// Reads `text` by a MySQL format through chrono's parser; missing parts are the smallest.
fn parse_with(text: &str, format: &str) -> Option<NaiveDateTime> {
    let mut pattern = String::with_capacity(format.len() + 4);
    let mut letters = format_alias(format).chars();
    while let Some(letter) = letters.next() {
        let Some(letter) = (if letter == '%' { letters.next() } else { None }) else {
            pattern.push(letter);
            continue;
        };
        if letter == 'f' && pattern.ends_with('.') {
            // chrono reads a fraction as one only together with its point.
            pattern.pop();
            pattern.push_str("%.f");
            continue;
        }
        pattern.push_str(match letter {
            'Y' => "%Y",
            'y' => "%y",
            'm' | 'c' => "%m",
            'd' | 'e' => "%d",
            'H' | 'k' => "%H",
            'h' | 'I' | 'l' => "%I",
            'i' => "%M",
            's' | 'S' => "%S",
            'f' => "%f",
            'p' => "%p",
            'T' => "%H:%M:%S",
            'r' => "%I:%M:%S %p",
            'M' => "%B",
            'b' => "%b",
            'j' => "%j",
            'W' => "%A",
            'a' => "%a",
            '%' => "%%",
            _ => return None,
        });
    }
    parse_chrono(text, &pattern)
}

fn format_alias(format: &str) -> &str {
    match format {
        "yyyyMMdd" => "%Y%m%d",
        "yyyy-MM-dd" => "%Y-%m-%d",
        "yyyy-MM-dd HH:mm:ss" => "%Y-%m-%d %H:%i:%s",
        other => other,
    }
}

fn parse_chrono(text: &str, pattern: &str) -> Option<NaiveDateTime> {
    use chrono::format::{Parsed, StrftimeItems, parse_and_remainder};
    let mut parsed = Parsed::new();
    parse_and_remainder(&mut parsed, text, StrftimeItems::new(pattern)).ok()?;
    if parsed.minute().is_none() {
        parsed.set_minute(0).ok()?;
    }
    if parsed.hour_mod_12().is_none() {
        parsed.set_hour(0).ok()?;
    }
    if parsed.month().is_some() && parsed.day().is_none() {
        parsed.set_day(1).ok()?;
    }
    let date = parsed.to_naive_date().ok()?;
    let time = parsed.to_naive_time().ok()?;
    Some(date.and_time(time))
}

fn datediff(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_ints(args[0].len(), |row| {
        let days = |array| at(array, row).map(|value| i64::from(value.num_days_from_ce()));
        Ok(days(&args[0]).zip(days(&args[1])).map(|(left, right)| left - right))
    })
}

/// Both `date_trunc(x, 'day')` (Doris) and `date_trunc('day', x)`.
fn date_trunc(args: &[ArrayRef]) -> Result<ArrayRef> {
    let is_unit = |array: &ArrayRef| {
        super::convert::is_text(array.data_type())
            && (0..array.len()).find(|&row| array.is_valid(row)).is_none_or(|row| {
                arrow::util::display::array_value_to_string(array, row)
                    .is_ok_and(|text| datetime::unit(&text).is_some())
            })
    };
    let (value, unit) = if is_unit(&args[1]) { (&args[0], &args[1]) } else { (&args[1], &args[0]) };
    let value = super::convert::to_datetime(value)?;
    let unit = super::convert::to_text(unit)?;
    collect_micros(value.len(), |row| {
        let (Some(value), Some(unit)) = (at(&value, row), text(&unit, row)) else { return Ok(None) };
        truncate(value, unit).map(|value| value.map(datetime::to_micros))
    })
}

fn truncate(value: NaiveDateTime, unit: &str) -> Result<Option<NaiveDateTime>> {
    let date = value.date();
    let midnight = |date: Option<NaiveDate>| date.and_then(|date| date.and_hms_opt(0, 0, 0));
    Ok(match unit.to_ascii_lowercase().as_str() {
        "second" => value.with_nanosecond(0),
        "minute" => date.and_hms_opt(value.hour(), value.minute(), 0),
        "hour" => date.and_hms_opt(value.hour(), 0, 0),
        "day" => midnight(Some(date)),
        "week" => {
            let back = u64::from(date.weekday().num_days_from_monday());
            midnight(date.checked_sub_days(chrono::Days::new(back)))
        }
        "month" => midnight(date.with_day(1)),
        "quarter" => midnight(date.with_day(1).and_then(|date| date.with_month(date.month0() / 3 * 3 + 1))),
        "year" => midnight(NaiveDate::from_ymd_opt(date.year(), 1, 1)),
        other => {
            return exec_err!(
                "date_trunc does not know the unit '{other}'; use second, minute, hour, day, week, month, quarter or year"
            );
        }
    })
}

fn last_day(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(collect_days(array.len(), |row| {
        let first = at(array, row)?.date().with_day(1)?;
        first.checked_add_months(Months::new(1))?.pred_opt()
    }))
}

/// MySQL counts days from year 0.
fn from_days(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(collect_days(array.len(), |row| {
        let days = i32::try_from(int(array, row)? - 365).ok()?;
        NaiveDate::from_num_days_from_ce_opt(days)
    }))
}

fn makedate(args: &[ArrayRef]) -> Result<ArrayRef> {
    Ok(collect_days(args[0].len(), |row| {
        let year = i32::try_from(int(&args[0], row)?).ok()?;
        let offset = u64::try_from(int(&args[1], row)? - 1).ok()?;
        NaiveDate::from_ymd_opt(year, 1, 1)?.checked_add_days(chrono::Days::new(offset))
    }))
}

//! Functions over dates and times. None reads a clock: `NOW()` is already a literal in the query.

use crate::functions::MySqlFunction;
use crate::functions::Param;
use crate::functions::cells::{int, value as text};
use crate::functions::conversion::convert::{to_datetime, to_text};
use crate::functions::dates::date_text;
use crate::functions::dates::datetime::{self, Unit};
use crate::functions::dates::weeks::{Mode, week_of};
use crate::functions::growth;
use crate::types::kind::{Kind, kind};
use crate::types::metadata;
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type, TimestampMicrosecondType};
use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, TimeZone, Timelike};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ReturnFieldArgs;
use std::sync::Arc;
use tributary_types::clock;

/// `TO_DAYS('9999-12-31')`.
const LAST_DAY_NUMBER: i64 = 3_652_424;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, DateTime, Int, Real, Text};
    let (text, int, date, at) = (
        crate::functions::utf8,
        crate::functions::int64,
        crate::functions::date32,
        crate::functions::datetime_type,
    );
    vec![
        MySqlFunction::new("__part", &[DateTime, Text], int, part),
        MySqlFunction::new("__clock_part", &[Any, Text], int, clock_part),
        MySqlFunction::new("__time_part", &[Any, Text], int, time_part),
        MySqlFunction::new("__date_add", &[DateTime, Int, Text], at, date_add).with_digits(digits_of_sum),
        // A DATE plus days remains a DATE; the rewrite uses this one with units of whole days.
        MySqlFunction::new("__day_add", &[Any, Int, Text], at, day_add)
            .returning(day_add_type)
            .with_digits(kept_digits),
        MySqlFunction::new("__timestampdiff", &[Text, DateTime, DateTime], int, timestampdiff),
        MySqlFunction::new("__from_unixtime", &[Real, Text], at, from_unixtime)
            .with_digits(|args| args.arg_fields[0].data_type().is_integer().then_some(0)),
        MySqlFunction::new("__unix_timestamp", &[DateTime, Text], exact_seconds, unix_timestamp)
            .returning_by_fields(unix_timestamp_type),
        MySqlFunction::new(
            "__unix_timestamp_of_text",
            &[Text, Text, Text],
            exact_seconds,
            unix_timestamp_of_text,
        ),
        MySqlFunction::new("week", &[DateTime, Int], int, |args| week(args, false)).optional(1),
        MySqlFunction::new("yearweek", &[DateTime, Int], int, |args| week(args, true)).optional(1),
        MySqlFunction::new("__convert_tz", &[DateTime, Text, Text], at, convert_tz).with_digits(kept_digits),
        MySqlFunction::new("date_format", &[DateTime, Text], text, date_format),
        MySqlFunction::new("str_to_date", &[Text, Text], at, str_to_date).with_digits(digits_of_format),
        MySqlFunction::new("datediff", &[DateTime, DateTime], int, datediff),
        MySqlFunction::new("__date_trunc", &[Any, Text], at, date_trunc)
            .returning(day_add_type)
            .with_digits(kept_digits),
        MySqlFunction::new("last_day", &[DateTime], date, |args| last_day(&args[0])),
        MySqlFunction::new("from_days", &[Int], date, |args| from_days(&args[0])),
        MySqlFunction::new("makedate", &[Int, Int], date, makedate),
        MySqlFunction::new("dayname", &[DateTime], text, |args| {
            Ok(texts_of(&args[0], date_text::weekday_name))
        }),
        MySqlFunction::new("monthname", &[DateTime], text, |args| {
            Ok(texts_of(&args[0], date_text::month_name))
        }),
        MySqlFunction::new("__time", &[Any], text, time_of).clock(),
        MySqlFunction::new("__time_micros", &[Text], int, time_micros),
        MySqlFunction::new("__time_to", &[Any, Int], text, time_to).clock().with_digits(asked_digits),
    ]
}

/// The digits of a second that a cast to TIME asks for.
fn asked_digits(args: &ReturnFieldArgs<'_>) -> Option<u8> {
    let digits = args.scalar_arguments.get(1).copied().flatten()?;
    digits.to_string().parse().ok()
}

fn micros(array: &ArrayRef) -> &TimestampMicrosecondArray {
    array.as_primitive::<TimestampMicrosecondType>()
}

fn at(array: &ArrayRef, row: usize) -> Option<NaiveDateTime> {
    let array = micros(array);
    array.is_valid(row).then(|| array.value(row)).and_then(datetime::from_micros)
}

fn texts_of(array: &ArrayRef, f: impl Fn(NaiveDateTime) -> &'static str) -> ArrayRef {
    Arc::new((0..array.len()).map(|row| at(array, row).map(&f)).collect::<StringArray>())
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
            "weekofyear" => i64::from(value.iso_week().week()),
            "day" => i64::from(value.day()),
            "dayofweek" => i64::from(value.weekday().num_days_from_sunday()) + 1,
            "weekday" => i64::from(value.weekday().num_days_from_monday()),
            "dayofyear" => i64::from(value.ordinal()),
            "hour" => i64::from(value.hour()),
            "minute" => i64::from(value.minute()),
            "second" => i64::from(value.second()),
            "microsecond" => i64::from(value.nanosecond() / 1000),
            "to_days" => day_number(value.date()),
            other => return exec_err!("unknown part of a date '{other}'"),
        }))
    })
}

/// `__time_part(x, 'hour')` and so on: of a TIME, which a text would have to be written like a point in time for.
fn time_part(args: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = to_text(&args[0])?;
    collect_ints(texts.len(), |row| {
        let micros = text(&texts, row).and_then(datetime::parse_clock);
        Ok(micros.zip(text(&args[1], row)).map(|(micros, name)| part_of_clock(micros, name)))
    })
}

fn part_of_clock(micros: i64, name: &str) -> i64 {
    let (seconds, micros) = (micros.abs() / 1_000_000, micros.abs() % 1_000_000);
    match name {
        "hour" => seconds / 3600,
        "minute" => seconds / 60 % 60,
        "second" => seconds % 60,
        _ => micros,
    }
}

/// `__clock_part(x, 'hour')` and so on: [`part`] of a point in time, or of a TIME, whose hours may be more than a day's.
fn clock_part(args: &[ArrayRef]) -> Result<ArrayRef> {
    let found = part(&[to_datetime(&args[0])?, Arc::clone(&args[1])])?;
    if found.null_count() == 0 || kind(args[0].data_type()) != Kind::Text {
        return Ok(found);
    }
    let (found, texts) = (found.as_primitive::<Int64Type>(), to_text(&args[0])?);
    collect_ints(found.len(), |row| {
        if found.is_valid(row) {
            return Ok(Some(found.value(row)));
        }
        let clock = text(&texts, row).filter(|text| text.contains(':')).and_then(datetime::parse_clock);
        let (Some(micros), Some(name)) = (clock, text(&args[1], row)) else { return Ok(None) };
        Ok(Some(part_of_clock(micros, name)))
    })
}

/// `WEEK(d, mode)`; with `of_year`, `YEARWEEK(d, mode)`.
fn week(args: &[ArrayRef], of_year: bool) -> Result<ArrayRef> {
    collect_ints(args[0].len(), |row| {
        let mode = match args.get(1) {
            Some(modes) => int(modes, row),
            None => Some(0),
        };
        let (Some(value), Some(mode)) = (at(&args[0], row), mode) else { return Ok(None) };
        let mode = Mode::of(mode);
        let mode = if of_year { mode.without_week_0() } else { mode };
        let found = week_of(value.date(), mode);
        Ok(found.map(|(year, week)| if of_year { i64::from(year) * 100 + week } else { week }))
    })
}

fn date_add(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_micros(args[0].len(), |row| {
        let Some(name) = text(&args[2], row) else { return Ok(None) };
        let unit = unit_of(name)?;
        let values = micros(&args[0]);
        let value = values.is_valid(row).then(|| values.value(row));
        let Some((value, count)) = value.zip(int(&args[1], row)) else { return Ok(None) };
        match datetime::add(value, count, unit).filter(|sum| datetime::is_in_calendar(*sum)) {
            Some(sum) => Ok(Some(sum)),
            None => {
                let name = name.to_lowercase();
                exec_err!(
                    "Operation {}s_add of {}, {count} out of range",
                    name.trim_end_matches('s'),
                    datetime::to_text(value)
                )
            }
        }
    })
}

fn day_add_type(types: &[DataType]) -> DataType {
    if types[0] == DataType::Date32 { DataType::Date32 } else { crate::types::kind::DATETIME }
}

fn day_add(args: &[ArrayRef]) -> Result<ArrayRef> {
    let sum = date_add(&[
        crate::functions::conversion::convert::to_datetime(&args[0])?,
        Arc::clone(&args[1]),
        Arc::clone(&args[2]),
    ])?;
    crate::functions::conversion::convert::safe_cast(&sum, &day_add_type(&[args[0].data_type().clone()]))
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

pub(super) fn zone(name: &str) -> Result<Tz> {
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
        let utc = (seconds.value(row) * 1e6).round() as i64;
        Ok(datetime::from_micros(utc)
            .map(|value| datetime::to_micros(zone.from_utc_datetime(&value).naive_local()))
            .filter(|local| datetime::is_in_calendar(*local)))
    })
}

/// The instant of a local time; the earlier of two, and the first after a gap.
fn instant(zone: Tz, local: NaiveDateTime) -> Option<i64> {
    let found = zone.from_local_datetime(&local).earliest();
    let found = found.or_else(|| zone.from_local_datetime(&(local + chrono::Duration::hours(1))).earliest());
    found.map(|value| value.timestamp_micros())
}

/// Microseconds since 1970 of the local times in column 0; 0 for those before.
pub(super) fn instants(args: &[ArrayRef]) -> Result<Vec<Option<i64>>> {
    let of = |row| {
        let (Some(local), Some(name)) = (at(&args[0], row), text(&args[1], row)) else { return Ok(None) };
        Ok(instant(zone(name)?, local).map(|micros| micros.max(0)))
    };
    (0..args[0].len()).map(of).collect()
}

fn exact_seconds() -> DataType {
    DataType::Decimal128(18, 6)
}

/// Whole seconds where the argument has no others, else as many digits as it has.
fn unix_timestamp_type(fields: &[FieldRef]) -> DataType {
    match (fields[0].data_type(), metadata::digits(&fields[0])) {
        (DataType::Timestamp(..), Some(0)) => DataType::Int64,
        (DataType::Timestamp(..), Some(digits)) => DataType::Decimal128(12 + digits, digits as i8),
        (DataType::Timestamp(..), None) => exact_seconds(),
        (data_type, _) if crate::types::kind::is_text(data_type) => exact_seconds(),
        _ => DataType::Int64,
    }
}

fn unix_timestamp(args: &[ArrayRef]) -> Result<ArrayRef> {
    let micros = instants(args)?.into_iter().map(|micros| micros.map(i128::from));
    let exact = micros.collect::<Decimal128Array>().with_data_type(exact_seconds());
    Ok(Arc::new(exact))
}

/// The digits of the first argument's seconds, as far as they are known.
fn kept_digits(args: &ReturnFieldArgs<'_>) -> Option<u8> {
    digits_at(args, 0)
}

/// The digits of the seconds of the argument with that index, as far as they are known.
pub(super) fn digits_at(args: &ReturnFieldArgs<'_>, index: usize) -> Option<u8> {
    match (args.arg_fields.get(index)?, args.scalar_arguments.get(index).copied().flatten()) {
        (_, Some(constant)) if constant.try_as_str().is_some() => {
            let text = constant.try_as_str().flatten()?;
            let fraction = text.trim().split_once('.').map_or("", |(_, fraction)| fraction);
            Some(fraction.len().min(6) as u8)
        }
        (field, _) if field.data_type().is_integer() || *field.data_type() == DataType::Date32 => Some(0),
        (field, _) => metadata::digits(field),
    }
}

fn digits_of_sum(args: &ReturnFieldArgs<'_>) -> Option<u8> {
    let unit = args.scalar_arguments.get(2).copied().flatten()?.try_as_str().flatten()?;
    match datetime::unit(unit)? {
        Unit::Micros(size) if size < 1000 => Some(6),
        Unit::Micros(size) if size < 1_000_000 => kept_digits(args).map(|digits| digits.max(3)),
        _ => kept_digits(args),
    }
}

fn digits_of_format(args: &ReturnFieldArgs<'_>) -> Option<u8> {
    let format = args.scalar_arguments.get(1).copied().flatten()?.try_as_str().flatten()?;
    Some(if format.contains("%f") { 6 } else { 0 })
}

/// `UNIX_TIMESTAMP(text, format)`.
fn unix_timestamp_of_text(args: &[ArrayRef]) -> Result<ArrayRef> {
    let parsed = collect_micros(args[0].len(), |row| {
        let (Some(value), Some(format)) = (text(&args[0], row), text(&args[1], row)) else { return Ok(None) };
        match date_text::parse(value, format) {
            Some(value) => Ok(Some(datetime::to_micros(value))),
            None => exec_err!("Operation unix_timestamp of {value}, {format} is invalid"),
        }
    })?;
    unix_timestamp(&[parsed, Arc::clone(&args[2])])
}

/// `TIME(x)`: the time of day of a DATETIME, or the time that a text or a number spells.
fn time_of(args: &[ArrayRef]) -> Result<ArrayRef> {
    let data_type = args[0].data_type();
    if crate::types::kind::is_text(data_type) || data_type.is_integer() {
        let texts = crate::functions::conversion::convert::to_text(&args[0])?;
        let read = |text: &str| match datetime::parse_clock(text) {
            Some(micros) => Some(datetime::clock_text(micros)),
            None => datetime::parse(text)
                .map(|micros| datetime::clock_text(micros.rem_euclid(datetime::DAY_MICROS))),
        };
        let times = texts.as_string::<i32>().iter().map(|text| text.and_then(read));
        return Ok(Arc::new(times.collect::<StringArray>()));
    }
    let values = crate::functions::conversion::convert::to_datetime(&args[0])?;
    let times = micros(&values)
        .iter()
        .map(|value| value.map(|value| datetime::clock_text(value.rem_euclid(datetime::DAY_MICROS))));
    Ok(Arc::new(times.collect::<StringArray>()))
}

/// The microseconds of a TIME, by which TIMEs are in order.
fn time_micros(args: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = args[0].as_string::<i32>().iter();
    Ok(Arc::new(texts.map(|text| text.and_then(clock::of_text)).collect::<Int64Array>()))
}

/// `CAST(x AS TIME(n))`: [`time_of`] with that many digits of a second, of which the last is rounded.
fn time_to(args: &[ArrayRef]) -> Result<ArrayRef> {
    let times = time_of(args)?;
    let digits = args[1].as_primitive::<Int64Type>();
    let rounded = times.as_string::<i32>().iter().enumerate().map(|(row, text)| {
        let micros = text.and_then(datetime::parse_clock)?;
        Some(clock::text_of(micros, u8::try_from(digits.value(row)).unwrap_or(0)))
    });
    Ok(Arc::new(rounded.collect::<StringArray>()))
}

fn convert_tz(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_micros(args[0].len(), |row| {
        let (Some(from), Some(to)) = (text(&args[1], row), text(&args[2], row)) else { return Ok(None) };
        let (from, to) = (zone(from)?, zone(to)?);
        let utc = at(&args[0], row).and_then(|local| instant(from, local)).and_then(datetime::from_micros);
        let local = utc.map(|utc| datetime::to_micros(to.from_utc_datetime(&utc).naive_local()));
        Ok(local.filter(|local| datetime::is_in_calendar(*local)))
    })
}

fn date_format(args: &[ArrayRef]) -> Result<ArrayRef> {
    let formatted = |row: usize| {
        let (value, format) = (at(&args[0], row)?, text(&args[1], row)?);
        Some(date_text::format(value, format))
    };
    growth::texts("date_format", args, |row| Ok(formatted(row)))
}

fn str_to_date(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_micros(args[0].len(), |row| {
        let (Some(value), Some(format)) = (text(&args[0], row), text(&args[1], row)) else { return Ok(None) };
        Ok(date_text::parse(value, format).map(datetime::to_micros))
    })
}

fn datediff(args: &[ArrayRef]) -> Result<ArrayRef> {
    collect_ints(args[0].len(), |row| {
        let days = |array| at(array, row).map(|value| i64::from(value.num_days_from_ce()));
        Ok(days(&args[0]).zip(days(&args[1])).map(|(left, right)| left - right))
    })
}

/// `__date_trunc(x, 'day')`; a DATE stays one.
fn date_trunc(args: &[ArrayRef]) -> Result<ArrayRef> {
    let values = crate::functions::conversion::convert::to_datetime(&args[0])?;
    let cut = collect_micros(values.len(), |row| {
        let (Some(value), Some(unit)) = (at(&values, row), text(&args[1], row)) else { return Ok(None) };
        truncate(value, unit).map(|value| value.map(datetime::to_micros))
    })?;
    crate::functions::conversion::convert::safe_cast(&cut, &day_add_type(&[args[0].data_type().clone()]))
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
                "date_trunc function time unit param only support argument is year|quarter|month|week|day|hour|minute|second, not '{other}'"
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

/// MySQL counts days from 0000-01-01 on, and year 0 has no 29 February to it.
fn day_number(date: NaiveDate) -> i64 {
    let before_march = date.year() == 0 && date.month() <= 2;
    i64::from(date.num_days_from_ce()) + if before_march { 366 } else { 365 }
}

fn from_days(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(collect_days(array.len(), |row| {
        let number = int(array, row).filter(|number| (1..=LAST_DAY_NUMBER).contains(number))?;
        let from_ce = number - if number < 60 { 366 } else { 365 };
        NaiveDate::from_num_days_from_ce_opt(i32::try_from(from_ce).ok()?)
    }))
}

fn makedate(args: &[ArrayRef]) -> Result<ArrayRef> {
    Ok(collect_days(args[0].len(), |row| {
        let year = i32::try_from(int(&args[0], row)?).ok().filter(|year| *year >= 0)?;
        let offset = u64::try_from(int(&args[1], row)? - 1).ok()?;
        let date = NaiveDate::from_ymd_opt(year, 1, 1)?.checked_add_days(chrono::Days::new(offset))?;
        (0..=9999).contains(&date.year()).then_some(date)
    }))
}

//! DATETIME values as microseconds since 1970 without a time zone: reading and writing MySQL's text.
//!
//! Nothing here reads a clock.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;

/// The calendar value of `micros`; `None` outside of the years 0 to 9999, which no DATETIME has.
#[must_use]
pub fn from_micros(micros: i64) -> Option<NaiveDateTime> {
    let value = DateTime::from_timestamp_micros(micros)?.naive_utc();
    (0..=9999).contains(&value.year()).then_some(value)
}

/// Microseconds since 1970.
#[must_use]
pub fn to_micros(value: NaiveDateTime) -> i64 {
    value.and_utc().timestamp_micros()
}

/// Days since 1970.
#[must_use]
pub fn to_days_since_epoch(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - 719_163
}

/// MySQL's text of a DATETIME: fraction only where there is one.
#[must_use]
pub fn to_text(micros: i64) -> String {
    let Some(value) = from_micros(micros) else { return String::new() };
    let fraction = micros.rem_euclid(1_000_000);
    if fraction == 0 {
        value.format("%Y-%m-%d %H:%M:%S").to_string()
    } else {
        value.format("%Y-%m-%d %H:%M:%S%.6f").to_string()
    }
}

/// The text of a DATETIME with that many digits of a second; more are cut.
#[must_use]
pub fn to_text_of(micros: i64, digits: u8) -> String {
    let Some(value) = from_micros(micros) else { return String::new() };
    let mut text = value.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
    let cut = if digits == 0 { 7 } else { usize::from(6 - digits.min(6)) };
    text.truncate(text.len() - cut);
    text
}

/// Reads a date or a date with time as MySQL does: any punctuation between parts, parts without
/// leading zeros, two-digit years, digits only (`20240131`, `20240131235959`), a fraction of any
/// length (cut to microseconds). A zone suffix is refused. `None` for anything that is no date.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == text.len() || text.as_bytes()[digits] == b'.' && digits > 8 {
        return parse_digits(&text[..digits], &text[digits..]);
    }
    let (date, time) = match text.find([' ', 'T']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, ""),
    };
    let mut parts = date.split(|c: char| c.is_ascii_punctuation());
    let year_text = parts.next()?;
    let year = two_digit_year(number(year_text)?, year_text.len());
    let (month, day) = (number(parts.next()?)?, number(parts.next()?)?);
    if parts.next().is_some() {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    Some(to_micros(date.and_time(parse_time(time)?)))
}

/// Whether the text names a day without a time.
#[must_use]
pub fn is_date_only(text: &str) -> bool {
    let text = text.trim();
    !text.contains([' ', 'T', ':']) && (text.len() <= 10)
}

fn parse_digits(digits: &str, fraction: &str) -> Option<i64> {
    let (year_len, has_time) = match digits.len() {
        6 => (2, false),
        8 => (4, false),
        12 => (2, true),
        14 => (4, true),
        _ => return None,
    };
    let part = |from: usize| number(&digits[from..from + 2]);
    let year = two_digit_year(number(&digits[..year_len])?, year_len);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, part(year_len)?, part(year_len + 2)?)?;
    let time = if has_time {
        NaiveTime::from_hms_micro_opt(
            part(year_len + 4)?,
            part(year_len + 6)?,
            part(year_len + 8)?,
            micros_of_fraction(fraction.strip_prefix('.').unwrap_or(""))?,
        )?
    } else {
        NaiveTime::MIN
    };
    Some(to_micros(date.and_time(time)))
}

/// `HH[:MM[:SS[.fraction]]]`; the empty text is midnight.
fn parse_time(text: &str) -> Option<NaiveTime> {
    if text.is_empty() {
        return Some(NaiveTime::MIN);
    }
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let hour = number(parts.next()?)?;
    let minute = parts.next().map_or(Some(0), number)?;
    let second = parts.next().map_or(Some(0), number)?;
    if parts.next().is_some() {
        return None;
    }
    NaiveTime::from_hms_micro_opt(hour, minute, second, micros_of_fraction(fraction)?)
}

fn micros_of_fraction(text: &str) -> Option<u32> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = &text[..text.len().min(6)];
    let value: u32 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(value * 10u32.pow(6 - digits.len() as u32))
}

fn number(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 4 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

const fn two_digit_year(year: u32, digits: usize) -> u32 {
    match (digits, year) {
        (2, 0..=69) => 2000 + year,
        (2, _) => 1900 + year,
        _ => year,
    }
}

/// Whether the day is one of the years 0 to 9999, which is all that a DATETIME holds.
#[must_use]
pub fn is_in_calendar(micros: i64) -> bool {
    from_micros(micros).is_some_and(|value| (0..=9999).contains(&value.year()))
}

/// The longest TIME, 838:59:59, in microseconds.
const CLOCK_MAX_MICROS: i64 = 3_020_399_000_000;

/// Reads a TIME in microseconds: `[-]H:MM[:SS[.fraction]]`, or the digits `HHMMSS`, of which those on the left may
/// be missing. `None` for anything else and beyond 838:59:59.
#[must_use]
pub fn parse_clock(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (hour, minute, second) = if clock.contains(':') {
        let mut parts = clock.split(':');
        let hour = number(parts.next()?)?;
        let minute = number(parts.next()?)?;
        let second = parts.next().map_or(Some(0), number)?;
        if parts.next().is_some() {
            return None;
        }
        (hour, minute, second)
    } else {
        if clock.is_empty() || clock.len() > 7 || !clock.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits: u32 = clock.parse().ok()?;
        (digits / 10_000, digits / 100 % 100, digits % 100)
    };
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    let micros = seconds * 1_000_000 + i64::from(micros_of_fraction(fraction)?);
    (micros <= CLOCK_MAX_MICROS).then_some(if negative { -micros } else { micros })
}

/// A TIME's text: the fraction only where there is one.
#[must_use]
pub fn clock_text(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let text = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 { text } else { format!("{text}.{fraction:06}") }
}

/// A unit of `INTERVAL` or `TIMESTAMPDIFF`, single ones only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Micros(i64),
    Months(i64),
}

/// The unit called `name` in any case, with or without a plural `s`.
#[must_use]
pub fn unit(name: &str) -> Option<Unit> {
    let upper = name.to_ascii_uppercase();
    let name = upper.strip_prefix("SQL_TSI_").unwrap_or(&upper);
    let single = if name.len() > 2 { name.strip_suffix('S').unwrap_or(name) } else { name };
    Some(match single {
        "MICROSECOND" => Unit::Micros(1),
        "MILLISECOND" => Unit::Micros(1_000),
        "SECOND" => Unit::Micros(1_000_000),
        "MINUTE" => Unit::Micros(60_000_000),
        "HOUR" => Unit::Micros(3_600_000_000),
        "DAY" => Unit::Micros(DAY_MICROS),
        "WEEK" => Unit::Micros(7 * DAY_MICROS),
        "MONTH" => Unit::Months(1),
        "QUARTER" => Unit::Months(3),
        "YEAR" => Unit::Months(12),
        _ => return None,
    })
}

/// `micros` + `count` units; a day past the month's end becomes its last one. `None` on overflow.
#[must_use]
pub fn add(micros: i64, count: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Micros(size) => {
            let sum = micros.checked_add(count.checked_mul(size)?)?;
            from_micros(sum).map(|_| sum)
        }
        Unit::Months(size) => {
            let value = from_micros(micros)?;
            let months = count.checked_mul(size)?;
            let amount = chrono::Months::new(u32::try_from(months.unsigned_abs()).ok()?);
            let moved = if months < 0 {
                value.checked_sub_months(amount)?
            } else {
                value.checked_add_months(amount)?
            };
            Some(to_micros(moved))
        }
    }
}

/// Whole units from `from` to `to`, cut towards zero.
#[must_use]
pub fn difference(from: i64, to: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Micros(size) => Some(to.checked_sub(from)? / size),
        Unit::Months(size) => Some(months_between(from_micros(from)?, from_micros(to)?) / size),
    }
}

fn months_between(from: NaiveDateTime, to: NaiveDateTime) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let months = i64::from(to.year() - from.year()) * 12 + i64::from(to.month()) - i64::from(from.month());
    let into = |value: NaiveDateTime| (value.day(), value.num_seconds_from_midnight(), value.nanosecond());
    months - i64::from(into(to) < into(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_that_mysql_takes_for_a_datetime_are_read() {
        for (text, expected) in [
            ("2024-01-31", "2024-01-31 00:00:00"),
            ("2024-1-5 3:4:5", "2024-01-05 03:04:05"),
            ("2024/01/31T23:59", "2024-01-31 23:59:00"),
            ("20240131", "2024-01-31 00:00:00"),
            ("20240131235958", "2024-01-31 23:59:58"),
            ("2024-01-31 00:00:00.5", "2024-01-31 00:00:00.500000"),
            ("99-12-31", "1999-12-31 00:00:00"),
        ] {
            assert_eq!(parse(text).map(to_text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_dates_are_refused() {
        for text in
            ["", "abc", "2024-02-30", "2024-01-01 25:00:00", "2024-01", "2024-01-01 00:00:00+08:00", "1"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_month_added_to_the_31st_gives_the_months_last_day() {
        let start = parse("2024-01-31 10:00:00").unwrap();
        assert_eq!(add(start, 1, Unit::Months(1)).map(to_text).as_deref(), Some("2024-02-29 10:00:00"));
        assert_eq!(add(start, i64::MAX, Unit::Months(12)), None);
        assert_eq!(add(start, i64::MAX, Unit::Micros(1_000_000)), None);
    }

    #[test]
    fn differences_count_whole_units_only() {
        let at = |text| parse(text).unwrap();
        assert_eq!(difference(at("2024-01-31"), at("2024-02-29"), Unit::Months(1)), Some(0));
        assert_eq!(difference(at("2024-03-01"), at("2024-01-01"), Unit::Months(1)), Some(-2));
        assert_eq!(
            difference(at("2024-01-01"), at("2024-01-01 23:59:59"), Unit::Micros(DAY_MICROS)),
            Some(0)
        );
    }
}

//! DATETIME values as microseconds since 1970 without a time zone: reading and writing MySQL's text.
//!
//! Nothing here reads a clock.

use super::zone;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Timelike};
pub use tributary_types::clock::{parse as parse_clock, text as clock_text};
use tributary_types::moment;

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

/// Reads a date or a date with time as loads do ([`moment::datetime`]), with up to six digits of a second. One that names a zone
/// is converted into the session's ([`zone`]). `None` for anything that is no date.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    moment::datetime(text.as_bytes(), 6, zone::utc_offset_seconds())
}

/// Whether the text names a day without a time.
#[must_use]
pub fn is_date_only(text: &str) -> bool {
    let text = text.trim();
    !text.contains([' ', 'T', ':']) && (text.len() <= 10)
}

/// Whether the day is in the years 0 to 9999, the range of a DATETIME.
#[must_use]
pub fn is_in_calendar(micros: i64) -> bool {
    from_micros(micros).is_some_and(|value| (0..=9999).contains(&value.year()))
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
            ["", "abc", "2024-02-30", "2024-01-01 25:00:00", "2024-01", "2024-01-01 00:00:00+99:00", "1"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_with_a_zone_is_converted_into_the_sessions() {
        let shown = |text| parse(text).map(to_text);
        assert_eq!(shown("2024-01-01T19:04:05Z").as_deref(), Some("2024-01-01 19:04:05"));
        let shown = zone::within(8 * 3600, || shown("2024-01-01T19:04:05Z"));
        assert_eq!(shown.as_deref(), Some("2024-01-02 03:04:05"));
        assert_eq!(zone::utc_offset_seconds(), 0);
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

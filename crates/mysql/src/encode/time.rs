//! Dates and times, as text and in the binary protocol.

use super::error::ValueError;
use crate::wire::put;
use arrow::datatypes::TimeUnit;
use tributary_types::calendar::Date;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Appends `YYYY-MM-DD`.
pub(super) fn write_date(out: &mut Vec<u8>, date: Date) {
    match date.year {
        0..=9999 => {
            two_digits(out, (date.year / 100) as u8);
            two_digits(out, (date.year % 100) as u8);
        }
        year => super::number::write_int(out, year),
    }
    out.push(b'-');
    two_digits(out, date.month);
    out.push(b'-');
    two_digits(out, date.day);
}

/// Appends the date's four bytes.
fn write_date_binary(out: &mut Vec<u8>, date: Date) -> Result<(), ValueError> {
    if !(0..=9999).contains(&date.year) {
        return Err(ValueError::YearOutOfRange(date.year));
    }
    put::u16(out, date.year as u16);
    out.extend_from_slice(&[date.month, date.day]);
    Ok(())
}

/// A point in time without a zone, or a duration: whole seconds and microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    seconds: i64,
    micros: u32,
}

impl Instant {
    /// `value` units after 1970-01-01, shown at `offset` seconds east of Greenwich.
    pub(super) fn new(value: i64, unit: TimeUnit, offset: i64) -> Self {
        let per_second: i64 = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => MICROS_PER_SECOND,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        let rest = value.rem_euclid(per_second);
        let micros = if per_second > MICROS_PER_SECOND {
            rest / (per_second / MICROS_PER_SECOND)
        } else {
            rest * (MICROS_PER_SECOND / per_second)
        };
        Self { seconds: value.div_euclid(per_second).saturating_add(offset), micros: micros as u32 }
    }

    pub(super) fn from_date(days: i64) -> Self {
        Self { seconds: days * SECONDS_PER_DAY, micros: 0 }
    }

    /// Cuts the fraction to `fraction` digits; `None`: to six.
    fn cut(self, fraction: Option<u8>) -> Self {
        let unit = 10_u32.pow(6 - u32::from(fraction.unwrap_or(6).min(6)));
        Self { micros: self.micros / unit * unit, ..self }
    }

    pub(super) fn date(self) -> Date {
        Date::from_days(self.seconds.div_euclid(SECONDS_PER_DAY))
    }

    fn clock(self) -> [u8; 3] {
        let second = self.seconds.rem_euclid(SECONDS_PER_DAY);
        [(second / 3600) as u8, (second / 60 % 60) as u8, (second % 60) as u8]
    }

    /// Appends `YYYY-MM-DD HH:MM:SS` and `fraction` digits of the fraction; `None`: six if it is not zero.
    pub(super) fn write_datetime(self, out: &mut Vec<u8>, fraction: Option<u8>) {
        write_date(out, self.date());
        out.push(b' ');
        self.write_time(out, fraction);
    }

    /// Appends `HH:MM:SS` and the fraction.
    pub(super) fn write_time(self, out: &mut Vec<u8>, fraction: Option<u8>) {
        let [hour, minute, second] = self.clock();
        two_digits(out, hour);
        out.push(b':');
        two_digits(out, minute);
        out.push(b':');
        two_digits(out, second);
        let digits = usize::from(fraction.unwrap_or(if self.micros == 0 { 0 } else { 6 }).min(6));
        if digits > 0 {
            out.push(b'.');
            let at = out.len();
            for part in [self.micros / 10_000, self.micros / 100 % 100, self.micros % 100] {
                two_digits(out, part as u8);
            }
            out.truncate(at + digits);
        }
    }

    /// Appends the binary form of a date: its length and 4 bytes.
    pub(super) fn write_binary_date(self, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.push(4);
        write_date_binary(out, self.date())
    }

    /// Appends the binary form of a date and time: its length and 4, 7 or 11 bytes.
    pub(super) fn write_binary_datetime(
        self,
        out: &mut Vec<u8>,
        fraction: Option<u8>,
    ) -> Result<(), ValueError> {
        let shown = self.cut(fraction);
        let clock = shown.clock();
        let length = match (clock, shown.micros) {
            ([0, 0, 0], 0) => 4,
            (_, 0) => 7,
            _ => 11,
        };
        out.push(length);
        write_date_binary(out, shown.date())?;
        if length > 4 {
            out.extend_from_slice(&clock);
        }
        if length > 7 {
            put::u32(out, shown.micros);
        }
        Ok(())
    }

    /// Appends the binary form of a time of day: its length and 0, 8 or 12 bytes.
    pub(super) fn write_binary_time(self, out: &mut Vec<u8>, fraction: Option<u8>) {
        let shown = self.cut(fraction);
        let clock = shown.clock();
        let length = match (clock, shown.micros) {
            ([0, 0, 0], 0) => 0,
            (_, 0) => 8,
            _ => 12,
        };
        out.push(length);
        if length > 0 {
            out.extend_from_slice(&[0; 5]);
            out.extend_from_slice(&clock);
        }
        if length > 8 {
            put::u32(out, shown.micros);
        }
    }
}

/// Appends the binary form of a TIME's text, such as `-34:05:06.500000`.
pub(super) fn write_binary_clock(text: &str, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':').map(str::parse::<u32>);
    let mut part = || parts.next().and_then(Result::ok).ok_or(ValueError::Type);
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    let micros: u32 = if fraction.is_empty() {
        0
    } else {
        format!("{fraction:0<6}").parse().map_err(|_| ValueError::Type)?
    };
    let length = match (hours, minutes, seconds, micros) {
        (0, 0, 0, 0) => 0,
        (.., 0) => 8,
        _ => 12,
    };
    out.push(length);
    if length > 0 {
        out.push(is_negative.into());
        put::u32(out, hours / 24);
        let byte = |part: u32| u8::try_from(part).map_err(|_| ValueError::Type);
        out.extend_from_slice(&[byte(hours % 24)?, byte(minutes)?, byte(seconds)?]);
    }
    if length > 8 {
        put::u32(out, micros);
    }
    Ok(())
}

/// Seconds east of Greenwich of `+08:00`, `-0330`, `Z` or `UTC`; names of other zones count as UTC.
pub(super) fn zone_offset(zone: &str) -> i64 {
    let (sign, digits) = match zone.split_at_checked(1) {
        Some(("+", digits)) => (1, digits),
        Some(("-", digits)) => (-1, digits),
        _ => return 0,
    };
    let number = |range: std::ops::Range<usize>| digits.get(range).and_then(|text| text.parse::<i64>().ok());
    let minutes = if digits.as_bytes().get(2) == Some(&b':') { number(3..5) } else { number(2..4) };
    sign * (number(0..2).unwrap_or(0) * 3600 + minutes.unwrap_or(0) * 60)
}

fn two_digits(out: &mut Vec<u8>, value: u8) {
    out.extend_from_slice(&[b'0' + value / 10, b'0' + value % 10]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(days: i64) -> String {
        let mut out = Vec::new();
        write_date(&mut out, Date::from_days(days));
        String::from_utf8(out).unwrap()
    }

    fn datetime(micros: i64, fraction: Option<u8>) -> String {
        let mut out = Vec::new();
        Instant::new(micros, TimeUnit::Microsecond, 0).write_datetime(&mut out, fraction);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_year_has_four_digits_or_more() {
        let table = [
            (0, "1970-01-01"),
            (-719_528, "0000-01-01"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "10000-01-01"),
        ];
        for (days, text) in table {
            assert_eq!(date(days), text);
        }
    }

    #[test]
    fn a_datetime_shows_as_many_digits_of_the_fraction_as_its_scale() {
        let at = 1_709_251_199_123_456;
        assert_eq!(datetime(at, Some(0)), "2024-02-29 23:59:59");
        assert_eq!(datetime(at, Some(3)), "2024-02-29 23:59:59.123");
        assert_eq!(datetime(at, Some(6)), "2024-02-29 23:59:59.123456");
        assert_eq!(datetime(at, None), "2024-02-29 23:59:59.123456");
        assert_eq!(datetime(at - 123_456, None), "2024-02-29 23:59:59");
        assert_eq!(datetime(-1, Some(6)), "1969-12-31 23:59:59.999999");
    }

    #[test]
    fn units_and_zones_give_the_same_instant() {
        let seconds = Instant::new(1_700_000_000, TimeUnit::Second, 0);
        assert_eq!(Instant::new(1_700_000_000_000, TimeUnit::Millisecond, 0), seconds);
        assert_eq!(Instant::new(1_700_000_000_000_000_999, TimeUnit::Nanosecond, 0), seconds);
        assert_eq!(Instant::new(1_699_971_200, TimeUnit::Second, zone_offset("+08:00")), seconds);
        assert_eq!((zone_offset("-0330"), zone_offset("UTC"), zone_offset("")), (-12_600, 0, 0));
    }

    #[test]
    fn the_binary_form_leaves_out_what_is_zero() {
        let binary = |micros: i64, fraction| {
            let mut out = Vec::new();
            Instant::new(micros, TimeUnit::Microsecond, 0).write_binary_datetime(&mut out, fraction).unwrap();
            out
        };
        assert_eq!(binary(0, Some(6)), [4, 0xb2, 7, 1, 1]);
        assert_eq!(binary(1_000_000, Some(6)), [7, 0xb2, 7, 1, 1, 0, 0, 1]);
        assert_eq!(binary(1_000_001, Some(6)), [11, 0xb2, 7, 1, 1, 0, 0, 1, 1, 0, 0, 0]);
        assert_eq!(binary(1_000_001, Some(3)), [7, 0xb2, 7, 1, 1, 0, 0, 1]);
    }

    #[test]
    fn a_year_that_the_binary_form_cannot_hold_is_an_error() {
        let mut out = Vec::new();
        let error = Instant::from_date(2_932_897).write_binary_date(&mut out).unwrap_err();
        assert_eq!(error.to_string(), "year 10000 is not in 0 to 9999");
    }
}

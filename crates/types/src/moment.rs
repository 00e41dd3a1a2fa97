//! DATE and DATETIME in the many shapes that texts have: the one reading of them for loads, queries and partitions.
//!
//! Accepted: `2024-05-01`, `20240501`, `240501`, one-digit months and days, any ASCII character that
//! is neither a letter nor a digit between them; then `T`, blanks or a colon; then
//! `HH[:MM[:SS[.fraction]]]`, `HHMM`, `HHMMSS`, or hour, minute and second with any separators, as
//! between the parts of the date; `20240501101112`; then a zone: `Z`, `ZULU`, `UTC`, `GMT`, `CST`
//! (+08:00), `+08`, `+08:00`, `+0800`, `+800`.

use crate::calendar::{self, Date};
use crate::number::trim;

/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;
const SECOND_MICROS: i64 = 1_000_000;
/// 0000-01-01 and 9999-12-31 in days since 1970-01-01.
pub const DAYS_MIN: i32 = calendar::days_of(0, 1, 1);
pub const DAYS_MAX: i32 = calendar::days_of(9999, 12, 31);

/// Days since 1970-01-01 of a DATE. A time of day is dropped; a zone is converted first, into the
/// one that is `utc_offset_seconds` ahead of UTC.
#[inline]
#[must_use]
pub fn date(text: &[u8], utc_offset_seconds: i32) -> Option<i32> {
    if let Some(days) = plain_date(text) {
        return days;
    }
    let micros = Parser::new(trim(text)).moment(6)?.micros(utc_offset_seconds)?;
    days_of(micros)
}

/// Microseconds since 1970-01-01 00:00:00 of a DATETIME with `scale` digits of a fraction, to
/// which longer fractions are rounded.
#[inline]
#[must_use]
pub fn datetime(text: &[u8], scale: u8, utc_offset_seconds: i32) -> Option<i64> {
    if let Some(micros) = plain_datetime(text) {
        return micros;
    }
    Parser::new(trim(text)).moment(scale)?.micros(utc_offset_seconds)
}

/// Reads a text as [`datetime`] does, if it names no zone.
#[must_use]
pub fn local_datetime(text: &[u8], scale: u8) -> Option<i64> {
    let moment = Parser::new(trim(text)).moment(scale)?;
    moment.zone_seconds.is_none().then(|| moment.micros(0)).flatten()
}

/// A DATETIME that is known to the microsecond, rounded to `scale` digits.
#[must_use]
pub fn rounded(micros: i64, scale: u8) -> Option<i64> {
    let unit = 10i64.pow(6 - u32::from(scale.min(6)));
    within_range(micros)?;
    within_range((micros + unit / 2).div_euclid(unit) * unit)
}

/// A DATETIME cut to `scale` digits.
#[must_use]
pub fn truncated(micros: i64, scale: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(scale.min(6)));
    micros.div_euclid(unit) * unit
}

/// The DATE of a DATETIME.
#[must_use]
pub fn days_of(micros: i64) -> Option<i32> {
    i32::try_from(micros.div_euclid(DAY_MICROS)).ok().filter(|days| (DAYS_MIN..=DAYS_MAX).contains(days))
}

fn within_range(micros: i64) -> Option<i64> {
    days_of(micros).map(|_| micros)
}

/// Exactly `YYYY-MM-DD`. The outer `None`: another shape. The inner: no such day.
#[inline]
fn plain_date(text: &[u8]) -> Option<Option<i32>> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let (year, month, day) = (four(y1, y2, y3, y4)?, two(m1, m2)?, two(d1, d2)?);
    Some(days(year, month, day))
}

/// Exactly `YYYY-MM-DD HH:MM:SS`.
#[inline]
fn plain_datetime(text: &[u8]) -> Option<Option<i64>> {
    let (date, rest) = text.split_at_checked(10)?;
    let &[b' ' | b'T', h1, h2, b':', m1, m2, b':', s1, s2] = rest else { return None };
    let days = plain_date(date)?;
    let time = time_micros(two(h1, h2)?, two(m1, m2)?, two(s1, s2)?);
    Some(days.and_then(|days| Some(i64::from(days) * DAY_MICROS + time?)))
}

#[inline]
fn two(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| u32::from(tens) * 10 + u32::from(ones))
}

#[inline]
fn four(a: u8, b: u8, c: u8, d: u8) -> Option<u32> {
    Some(two(a, b)? * 100 + two(c, d)?)
}

/// Days since 1970-01-01, if the calendar has the day.
#[inline]
#[must_use]
pub fn days(year: u32, month: u32, day: u32) -> Option<i32> {
    let legal =
        year <= 9999 && (1..=12).contains(&month) && day >= 1 && day <= calendar::days_in_month(year, month);
    legal.then(|| calendar::days_of(year as i32, month, day))
}

/// Microseconds since midnight, if a clock shows that time.
#[inline]
#[must_use]
pub fn time_micros(hour: u32, minute: u32, second: u32) -> Option<i64> {
    let legal = hour < 24 && minute < 60 && second < 60;
    legal.then(|| i64::from(hour * 3600 + minute * 60 + second) * SECOND_MICROS)
}

/// `YYYY-MM-DD`.
#[must_use]
pub fn show_date(days: i64) -> String {
    let Date { year, month, day } = Date::from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `YYYY-MM-DD HH:MM:SS`, with six digits of a fraction if there is one.
#[must_use]
pub fn show_datetime(micros: i64) -> String {
    let date = show_date(micros.div_euclid(DAY_MICROS));
    let (hour, minute, second, fraction) = clock(micros);
    match fraction {
        0 => format!("{date} {hour:02}:{minute:02}:{second:02}"),
        _ => format!("{date} {hour:02}:{minute:02}:{second:02}.{fraction:06}"),
    }
}

/// `YYYYMMDD` as a number.
#[must_use]
pub fn date_number(days: i64) -> i64 {
    let Date { year, month, day } = Date::from_days(days);
    year * 10_000 + i64::from(month) * 100 + i64::from(day)
}

/// `YYYYMMDDHHMMSS` as a number.
#[must_use]
pub fn datetime_number(micros: i64) -> i64 {
    let (hour, minute, second, _) = clock(micros);
    date_number(micros.div_euclid(DAY_MICROS)) * 1_000_000 + hour * 10_000 + minute * 100 + second
}

/// Hour, minute, second, microsecond.
fn clock(micros: i64) -> (i64, i64, i64, i64) {
    let of_day = micros.rem_euclid(DAY_MICROS);
    let seconds = of_day / SECOND_MICROS;
    (seconds / 3600, seconds / 60 % 60, seconds % 60, of_day % SECOND_MICROS)
}

/// A date and time as it was written.
struct Moment {
    days: i32,
    micros_of_day: i64,
    /// Seconds ahead of UTC, if a zone was written.
    zone_seconds: Option<i32>,
}

impl Moment {
    fn micros(&self, utc_offset_seconds: i32) -> Option<i64> {
        let local = i64::from(self.days) * DAY_MICROS + self.micros_of_day;
        let shift = self.zone_seconds.map_or(0, |zone| utc_offset_seconds - zone);
        within_range(local + i64::from(shift) * SECOND_MICROS)
    }
}

/// Reads the less common shapes.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn moment(mut self, scale: u8) -> Option<Moment> {
        let run = self.digit_run();
        let days = match run.len() {
            6 | 8 => packed_date(run),
            12 | 14 => {
                let (date, time) = run.split_at(run.len() - 6);
                let micros_of_day = packed_time(time)? + self.fraction(scale)?;
                return self.moment_at(packed_date(date)?, micros_of_day);
            }
            2 => self.month_and_day(short_year(number(run))),
            4 => self.month_and_day(number(run)),
            _ => None,
        }?;
        if !self.time_begins() {
            return self.is_at_end().then_some(Moment { days, micros_of_day: 0, zone_seconds: None });
        }
        // With colons first: there `10:11-05` and `10-05` end with a zone.
        let start = self.at;
        let with_colons = self.time(scale).and_then(|micros| self.moment_at(days, micros));
        with_colons.or_else(|| {
            self.at = start;
            let micros = self.separated_time(scale)?;
            self.moment_at(days, micros)
        })
    }

    /// The moment, if the rest of the text is a zone or empty.
    fn moment_at(&mut self, days: i32, micros_of_day: i64) -> Option<Moment> {
        let zone_seconds = self.zone()?;
        Some(Moment { days, micros_of_day, zone_seconds })
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn digit_run(&mut self) -> &'a [u8] {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// A number of one or two digits.
    fn short_number(&mut self) -> Option<u32> {
        let run = self.digit_run();
        matches!(run.len(), 1 | 2).then(|| number(run))
    }

    fn month_and_day(&mut self, year: u32) -> Option<i32> {
        self.separator()?;
        let month = self.short_number()?;
        self.separator()?;
        days(year, month, self.short_number()?)
    }

    /// Takes one ASCII character that is neither a letter nor a digit.
    fn separator(&mut self) -> Option<()> {
        self.peek().filter(|byte| byte.is_ascii_punctuation() || byte.is_ascii_whitespace())?;
        self.at += 1;
        Some(())
    }

    /// Takes the `T`, the colon or the blanks between date and time.
    fn time_begins(&mut self) -> bool {
        let start = self.at;
        if matches!(self.peek(), Some(b'T' | b't' | b':')) {
            self.at += 1;
        } else {
            while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
                self.at += 1;
            }
        }
        self.at > start
    }

    fn time(&mut self, scale: u8) -> Option<i64> {
        let run = self.digit_run();
        let hour = match run.len() {
            1 | 2 => number(run),
            4 => return time_micros(number(&run[..2]), number(&run[2..]), 0),
            6 => return Some(packed_time(run)? + self.fraction(scale)?),
            _ => return None,
        };
        let Some(minute) = self.after_colon()? else { return time_micros(hour, 0, 0) };
        let Some(second) = self.after_colon()? else { return time_micros(hour, minute, 0) };
        Some(time_micros(hour, minute, second)? + self.fraction(scale)?)
    }

    /// Hour, minute and second with any separators between them.
    fn separated_time(&mut self, scale: u8) -> Option<i64> {
        let hour = self.short_number()?;
        self.separator()?;
        let minute = self.short_number()?;
        self.separator()?;
        Some(time_micros(hour, minute, self.short_number()?)? + self.fraction(scale)?)
    }

    /// The number after a colon; `Some(None)` without a colon.
    fn after_colon(&mut self) -> Option<Option<u32>> {
        if self.peek() != Some(b':') {
            return Some(None);
        }
        self.at += 1;
        self.short_number().map(Some)
    }

    /// Microseconds of a fraction, rounded to `scale` digits; may be a whole second.
    fn fraction(&mut self, scale: u8) -> Option<i64> {
        if self.peek() != Some(b'.') {
            return Some(0);
        }
        self.at += 1;
        let digits = self.digit_run();
        let scale = usize::from(scale.min(6));
        let kept = digits.iter().copied().chain(std::iter::repeat(b'0')).take(scale);
        let value = kept.fold(0, |value, byte| value * 10 + i64::from(byte - b'0'));
        let up = i64::from(digits.get(scale).is_some_and(|&next| next >= b'5'));
        Some((value + up) * 10i64.pow(6 - scale as u32))
    }

    /// The zone's offset to UTC in seconds; `Some(None)` if there is no zone.
    fn zone(&mut self) -> Option<Option<i32>> {
        let rest = self.text[self.at..].trim_ascii_start();
        self.at = self.text.len();
        let (negative, digits) = match rest {
            [] => return Some(None),
            [b'+', digits @ ..] => (false, digits),
            [b'-', digits @ ..] => (true, digits),
            name => return named_zone(name).map(Some),
        };
        let seconds = offset_seconds(digits)?;
        Some(Some(if negative { -seconds } else { seconds }))
    }
}

/// The value of a short run of digits.
fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |value, byte| value * 10 + u32::from(byte - b'0'))
}

const fn short_year(year: u32) -> u32 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

/// The day of `YYMMDD` or `YYYYMMDD`.
fn packed_date(digits: &[u8]) -> Option<i32> {
    let (year, rest) = digits.split_at(digits.len() - 4);
    let year = if year.len() == 2 { short_year(number(year)) } else { number(year) };
    days(year, number(&rest[..2]), number(&rest[2..]))
}

/// Microseconds of `HHMMSS`.
fn packed_time(digits: &[u8]) -> Option<i64> {
    time_micros(number(&digits[..2]), number(&digits[2..4]), number(&digits[4..]))
}

fn named_zone(name: &[u8]) -> Option<i32> {
    let is = |zone: &str| name.eq_ignore_ascii_case(zone.as_bytes());
    if is("Z") || is("ZULU") || is("UTC") || is("GMT") {
        Some(0)
    } else if is("CST") {
        Some(8 * 3600)
    } else {
        None
    }
}

/// `8`, `08`, `08:00`, `8:00`, `0800` or `800`.
fn offset_seconds(text: &[u8]) -> Option<i32> {
    let (hours, minutes) = match text.iter().position(|&byte| byte == b':') {
        Some(colon) => (&text[..colon], &text[colon + 1..]),
        None if matches!(text.len(), 3 | 4) => text.split_at(text.len() - 2),
        None => (text, &b"0"[..]),
    };
    let part = |digits: &[u8]| {
        let legal = matches!(digits.len(), 1 | 2) && digits.iter().all(u8::is_ascii_digit);
        legal.then(|| number(digits) as i32)
    };
    let (hours, minutes) = (part(hours)?, part(minutes)?);
    (hours <= 14 && minutes < 60).then_some(hours * 3600 + minutes * 60)
}

//! TIME as a text: times of day, and durations of up to 838:59:59 either way.

use crate::moment::{self, DAY_MICROS};

/// The longest TIME, 838:59:59, in microseconds.
pub const MAX_MICROS: i64 = 3_020_399_000_000;

/// Reads a TIME in microseconds: `[-]H:MM[:SS[.fraction]]`, or the digits `HHMMSS`, of which those on the left may
/// be missing. `None` for anything else and beyond 838:59:59.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
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
    (micros <= MAX_MICROS).then_some(if negative { -micros } else { micros })
}

/// Reads a TIME as [`parse`], or the time of day of a point in time.
#[must_use]
pub fn of_text(text: &str) -> Option<i64> {
    let of_day = || moment::local_datetime(text.as_bytes(), 6).map(|micros| micros.rem_euclid(DAY_MICROS));
    parse(text).or_else(of_day)
}

/// A TIME's text: the fraction only where there is one.
#[must_use]
pub fn text(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let text = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 { text } else { format!("{text}.{fraction:06}") }
}

/// A TIME's text with that many digits of a second, of which the last is rounded.
#[must_use]
pub fn text_of(micros: i64, digits: u8) -> String {
    let digits = digits.min(6);
    let step = 10_i64.pow(6 - u32::from(digits));
    let nearest = (micros.abs() + step / 2) / step * step;
    let text = text(nearest.min(MAX_MICROS) * micros.signum());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "000000"));
    if digits == 0 { whole.to_owned() } else { format!("{whole}.{}", &fraction[..usize::from(digits)]) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_times_and_times_texts_of_some_digits() {
        for (written, digits, expected) in [
            ("9:05", 0, Some("09:05:00")),
            ("23:59:59.9994", 3, Some("23:59:59.999")),
            ("23:59:59.9995", 3, Some("24:00:00.000")),
            ("-1:02:03.5", 1, Some("-01:02:03.5")),
            ("838:59:59.5", 0, None),
            ("838:59:59", 2, Some("838:59:59.00")),
            ("101112", 6, Some("10:11:12.000000")),
            ("2024-02-29 10:11:12.25", 2, Some("10:11:12.25")),
            ("2024-02-30 10:11:12", 0, None),
            ("", 0, None),
            ("10:60", 0, None),
            ("noon", 0, None),
        ] {
            let text = of_text(written).map(|micros| text_of(micros, digits));
            assert_eq!(text.as_deref(), expected, "{written}");
        }
    }
}

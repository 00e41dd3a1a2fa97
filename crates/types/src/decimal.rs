//! Texts as DECIMAL(p, s), the one reading of them for loads and queries: exact, excess digits rounded half up (away from zero).

use crate::number::{sign, trim};

/// The reason why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalFault {
    /// Not a number.
    Text,
    /// More digits before the point than precision and scale allow.
    Range,
}

/// Digits that are always preserved exactly.
const KEPT_DIGITS: u32 = 38;
/// Digits that, and one more, a `u64` holds whatever they are.
const PLAIN_DIGITS: usize = 18;

const POWERS: [i128; KEPT_DIGITS as usize + 1] = {
    let mut powers = [1; KEPT_DIGITS as usize + 1];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Ten to the `exponent`, at most 38.
#[inline]
#[must_use]
pub const fn pow10(exponent: u32) -> i128 {
    POWERS[exponent as usize]
}

/// A number's digits: `mantissa × 10^exponent`, rounded up at the mantissa's end or not.
struct Digits {
    mantissa: i128,
    exponent: i64,
    /// The first digit that did not fit into the mantissa was 5 or more.
    dropped_half: bool,
}

/// The value times ten to the `scale`. Sign, digits, point and exponent are understood.
///
/// # Errors
/// The text is no number, or has too many digits before its point.
#[inline]
pub fn decimal(text: &[u8], precision: u8, scale: u8) -> Result<i128, DecimalFault> {
    match plain_decimal(text, scale) {
        Some(value) => within(value, precision),
        None => any_decimal(text, precision, scale),
    }
}

/// The common shape: at most 18 digits after an optional minus, no more of them behind the point
/// than the scale has.
#[inline]
#[must_use]
pub fn plain_decimal(text: &[u8], scale: u8) -> Option<i128> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if text.len() > PLAIN_DIGITS + 1 {
        return None;
    }
    let (mut value, mut digits, mut point) = (0u64, 0usize, None);
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + u64::from(digit);
            digits += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(digits);
        } else {
            return None;
        }
    }
    let fraction = digits - point.unwrap_or(digits);
    let missing = usize::from(scale).checked_sub(fraction)?;
    if digits == 0 || digits > PLAIN_DIGITS || digits + missing > KEPT_DIGITS as usize {
        return None;
    }
    let value = i128::from(value) * POWERS[missing];
    Some(if negative { -value } else { value })
}

fn any_decimal(text: &[u8], precision: u8, scale: u8) -> Result<i128, DecimalFault> {
    let (negative, text) = sign(trim(text));
    let digits = read_digits(text).ok_or(DecimalFault::Text)?;
    let value = rescale(&digits, i64::from(scale)).ok_or(DecimalFault::Range)?;
    within(if negative { -value } else { value }, precision)
}

/// `value × 10^-from_scale` at another scale.
///
/// # Errors
/// Too many digits before the point.
pub fn rescaled(value: i128, from_scale: i8, precision: u8, scale: u8) -> Result<i128, DecimalFault> {
    let digits = Digits { mantissa: value.abs(), exponent: -i64::from(from_scale), dropped_half: false };
    let rescaled = rescale(&digits, i64::from(scale)).ok_or(DecimalFault::Range)?;
    within(if value < 0 { -rescaled } else { rescaled }, precision)
}

/// Checks the number of digits.
///
/// # Errors
/// There are more than `precision`.
#[inline]
pub fn within(value: i128, precision: u8) -> Result<i128, DecimalFault> {
    let limit = pow10(u32::from(precision));
    if -limit < value && value < limit { Ok(value) } else { Err(DecimalFault::Range) }
}

fn read_digits(text: &[u8]) -> Option<Digits> {
    let (mut mantissa, mut kept, mut dropped, mut fraction) = (0i128, 0u32, 0i64, 0i64);
    let (mut any, mut point, mut dropped_half) = (false, false, false);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => {
                any = true;
                fraction += i64::from(point);
                if kept < KEPT_DIGITS {
                    mantissa = mantissa * 10 + i128::from(byte - b'0');
                    kept += u32::from(mantissa != 0);
                } else {
                    dropped_half |= dropped == 0 && byte >= b'5';
                    dropped += 1;
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' if any => break,
            _ => return None,
        }
        at += 1;
    }
    if !any {
        return None;
    }
    let exponent = if at < text.len() { read_exponent(&text[at + 1..])? } else { 0 };
    Some(Digits { mantissa, exponent: exponent - fraction + dropped, dropped_half })
}

fn read_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let cap = |value: i64, digit: i64| (value * 10 + digit).min(1_000_000);
    let value = digits.iter().fold(0, |value, byte| cap(value, i64::from(byte - b'0')));
    Some(if negative { -value } else { value })
}

fn rescale(digits: &Digits, scale: i64) -> Option<i128> {
    let shift = digits.exponent + scale;
    if digits.mantissa == 0 {
        return Some(0);
    }
    if shift >= 0 {
        let factor = pow10(u32::try_from(shift).ok().filter(|&shift| shift <= KEPT_DIGITS)?);
        return digits
            .mantissa
            .checked_mul(factor)?
            .checked_add(i128::from(digits.dropped_half && shift == 0));
    }
    let cut = u32::try_from(-shift).ok().filter(|&cut| cut <= KEPT_DIGITS);
    let Some(cut) = cut else { return Some(0) };
    let divisor = pow10(cut);
    Some(digits.mantissa / divisor + i128::from(digits.mantissa % divisor >= divisor / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_from_every_form_of_a_number() {
        for (text, precision, scale, expected) in [
            ("12", 5, 2, Some(1200)),
            (" -1.5 ", 5, 2, Some(-150)),
            (".5", 5, 2, Some(50)),
            ("5.", 5, 2, Some(500)),
            ("+1.005", 5, 2, Some(101)),
            ("0.0049", 5, 2, Some(0)),
            ("0.005", 5, 2, Some(1)),
            ("1.2e3", 8, 2, Some(120_000)),
            ("125e-3", 5, 2, Some(13)),
            ("1e-40", 5, 2, Some(0)),
            ("0e999", 5, 2, Some(0)),
            ("000012.50", 5, 2, Some(1250)),
            ("999.99", 5, 2, Some(99_999)),
            ("999.995", 5, 2, None),
            ("1e400", 38, 0, None),
            ("1e2147483648", 38, 0, None),
            ("99999999999999999999999999999999999999", 38, 0, Some(10_i128.pow(38) - 1)),
            ("100000000000000000000000000000000000000", 38, 0, None),
            ("", 5, 2, None),
            (".", 5, 2, None),
            ("1.2.3", 5, 2, None),
            ("--1", 5, 2, None),
            ("12a", 5, 2, None),
            ("1e", 5, 2, None),
        ] {
            assert_eq!(decimal(text.as_bytes(), precision, scale).ok(), expected, "'{text}'");
        }
    }
}

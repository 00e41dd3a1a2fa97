//! Texts as integers, floating point numbers and booleans: the one reading of them for loads, CAST, comparisons and generated
//! columns, in the lenient way of Doris.
//!
//! Invariant: a text either has a value that is legal for the type, or none; a function here never guesses. Its caller decides
//! whether none is NULL or an error.

use crate::data_type::LARGEINT_DIGITS_MAX;

/// Without blanks at both ends: spaces, tabs, line ends, form feeds and vertical tabs.
#[inline]
#[must_use]
pub fn trim(text: &[u8]) -> &[u8] {
    match (text.first(), text.last()) {
        (Some(first), Some(last)) if !is_blank(*first) && !is_blank(*last) => text,
        _ => trim_blanks(text),
    }
}

fn trim_blanks(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// The first number beyond LARGEINT, which is stored as a decimal of 38 digits.
pub const LARGEINT_LIMIT: i128 = 10i128.pow(LARGEINT_DIGITS_MAX as u32);

/// An integer with an optional sign; a fraction is cut, an exponent is none. Blanks around it are allowed.
#[inline]
#[must_use]
pub fn int(text: &[u8]) -> Option<i64> {
    match plain_int(text) {
        Some(value) => Some(value),
        None => i64::try_from(any_int(text)?).ok(),
    }
}

/// Like [`int`] for all 128-bit integers, which exceed the range of a LARGEINT ([`LARGEINT_LIMIT`]).
#[must_use]
pub fn large_int(text: &[u8]) -> Option<i128> {
    match plain_int(text) {
        Some(value) => Some(i128::from(value)),
        None => any_int(text),
    }
}

/// The common shape: at most 18 digits after an optional minus.
#[inline]
#[must_use]
pub fn plain_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

fn any_int(text: &[u8]) -> Option<i128> {
    let (negative, text) = sign(trim(text));
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let fraction = match text.get(digits) {
        None => &[],
        Some(b'.') => &text[digits + 1..],
        Some(_) => return None,
    };
    if (digits == 0 && fraction.is_empty()) || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut value = 0i128;
    for &byte in &text[..digits] {
        let digit = i128::from(byte - b'0');
        value = value.checked_mul(10)?.checked_add(if negative { -digit } else { digit })?;
    }
    Some(value)
}

/// Splits a sign off and returns whether it is a minus.
#[inline]
#[must_use]
pub fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

/// A DOUBLE: decimal or exponent form, `inf`, `nan`. Beyond the range it is infinite, or no value if
/// `strict`.
#[inline]
#[must_use]
pub fn double(text: &[u8], strict: bool) -> Option<f64> {
    let text = unsigned_plus(trim(text))?;
    let value: f64 = fast_float2::parse(text).ok()?;
    (value.is_finite() || !strict || names_no_number(text)).then_some(value)
}

/// A FLOAT, with the same forms and the same rule beyond its range.
#[inline]
#[must_use]
pub fn float(text: &[u8], strict: bool) -> Option<f32> {
    let text = unsigned_plus(trim(text))?;
    let value: f32 = fast_float2::parse(text).ok()?;
    (value.is_finite() || !strict || names_no_number(text)).then_some(value)
}

/// Without a leading `+`, after which another sign is not a number.
fn unsigned_plus(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'+', b'-' | b'+', ..] => None,
        [b'+', rest @ ..] => Some(rest),
        rest => Some(rest),
    }
}

/// `inf` and `nan` in their spellings, as against digits that are too large.
fn names_no_number(text: &[u8]) -> bool {
    !text.iter().any(u8::is_ascii_digit)
}

/// A BOOLEAN: `1`, `true`, `t`, `yes` or `on`, `0`, `false`, `f`, `no` or `off`, in any case. Other numbers are none.
#[inline]
#[must_use]
pub fn boolean(text: &[u8]) -> Option<bool> {
    const TRUE: [&[u8]; 5] = [b"1", b"true", b"t", b"yes", b"on"];
    const FALSE: [&[u8]; 5] = [b"0", b"false", b"f", b"no", b"off"];
    let text = trim(text);
    let is_one_of = |words: &[&[u8]]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(&TRUE) {
        Some(true)
    } else if is_one_of(&FALSE) {
        Some(false)
    } else {
        None
    }
}

//! `CONV`: integers in other bases.

use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::common::Result;
use std::sync::Arc;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Int, Text};
    vec![MySqlFunction::new("conv", &[Text, Int, Int], crate::functions::utf8, conv)]
}

fn conv(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (texts, from, to) = (
        args[0].as_string::<i32>(),
        args[1].as_primitive::<Int64Type>(),
        args[2].as_primitive::<Int64Type>(),
    );
    let converted = (0..texts.len()).map(|row| {
        if texts.is_null(row) || from.is_null(row) || to.is_null(row) {
            return None;
        }
        let (from, to) = (from.value(row), to.value(row));
        Some(spell(read(texts.value(row), base(from)?), base(to)?, to < 0))
    });
    Ok(Arc::new(converted.collect::<StringArray>()))
}

fn base(number: i64) -> Option<u32> {
    u32::try_from(number.unsigned_abs()).ok().filter(|base| (2..=36).contains(base))
}

/// The number at the start of a text, as 64 bits; all are set if it is too large.
fn read(text: &str, base: u32) -> u64 {
    let text = text.trim_start();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut value = 0_u64;
    for digit in digits.chars().map_while(|digit| digit.to_digit(base)) {
        let next = value.checked_mul(u64::from(base)).and_then(|value| value.checked_add(u64::from(digit)));
        let Some(next) = next else { return u64::MAX };
        value = next;
    }
    if is_negative { value.wrapping_neg() } else { value }
}

fn spell(bits: u64, base: u32, is_signed: bool) -> String {
    let is_negative = is_signed && (bits as i64) < 0;
    let mut rest = if is_negative { (bits as i64).unsigned_abs() } else { bits };
    let mut digits = Vec::new();
    loop {
        let digit = char::from_digit((rest % u64::from(base)) as u32, base).unwrap_or('0');
        digits.push(digit.to_ascii_uppercase());
        rest /= u64::from(base);
        if rest == 0 {
            break;
        }
    }
    if is_negative {
        digits.push('-');
    }
    digits.into_iter().rev().collect()
}

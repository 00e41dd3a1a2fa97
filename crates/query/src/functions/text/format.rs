//! `FORMAT`: MySQL's over a number (`1,234.50`), Doris's over a text with places (`'{}-{:>5}'`).

use crate::functions::conversion::convert::{to_integer, to_real, to_text};
use crate::functions::{MySqlFunction, Param, growth};
use crate::types::kind::is_text;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::sync::Arc;

/// Digits behind the point, and widths of places.
const DIGITS_MAX: usize = 30;
const WIDTH_MAX: usize = 4096;

pub(super) fn functions() -> Vec<MySqlFunction> {
    let text = crate::functions::utf8;
    vec![
        MySqlFunction::new("format", &[Param::Any, Param::Any], text, format).variadic(),
        MySqlFunction::new("format_round", &[Param::Any, Param::Int], text, format_round),
        MySqlFunction::new("money_format", &[Param::Any], text, money_format),
    ]
}

fn format(args: &[ArrayRef]) -> Result<ArrayRef> {
    if is_text(args[0].data_type()) {
        return fill_places(args);
    }
    if args.len() != 2 {
        return exec_err!("FORMAT of a number takes the number and its digits behind the point");
    }
    grouped_numbers(args)
}

/// `FORMAT_ROUND(x, digits)`: MySQL's `FORMAT` of a number, even if a text spells it.
fn format_round(args: &[ArrayRef]) -> Result<ArrayRef> {
    let bad = args[1]
        .as_primitive::<Int64Type>()
        .iter()
        .flatten()
        .find(|digits| !(0..=DIGITS_MAX as i64).contains(digits));
    if let Some(digits) = bad {
        return exec_err!("FORMAT_ROUND takes 0 to {DIGITS_MAX} digits behind the point and not {digits}");
    }
    let number = if args[0].data_type().is_numeric() { Arc::clone(&args[0]) } else { to_real(&args[0])? };
    grouped_numbers(&[number, Arc::clone(&args[1])])
}

/// `MONEY_FORMAT(x)`: a number with commas and two digits behind the point.
fn money_format(args: &[ArrayRef]) -> Result<ArrayRef> {
    format_round(&[Arc::clone(&args[0]), Arc::new(Int64Array::from(vec![2; args[0].len()]))])
}

fn grouped_numbers(args: &[ArrayRef]) -> Result<ArrayRef> {
    let digits = to_integer(&args[1])?;
    let digits = digits.as_primitive::<Int64Type>();
    let digits =
        |row: usize| digits.is_valid(row).then(|| digits.value(row).clamp(0, DIGITS_MAX as i64) as usize);
    let plain: Vec<Option<String>> = match args[0].data_type() {
        DataType::Decimal128(_, scale) => {
            let (values, scale) =
                (args[0].as_primitive::<Decimal128Type>(), usize::try_from(*scale).unwrap_or(0));
            (0..values.len())
                .map(|row| {
                    Some(decimal(values.is_valid(row).then(|| values.value(row))?, scale, digits(row)?))
                })
                .collect()
        }
        data_type if data_type.is_integer() => {
            let values =
                crate::functions::conversion::convert::safe_cast(&args[0], &DataType::Decimal128(38, 0))?;
            let values = values.as_primitive::<Decimal128Type>();
            (0..values.len())
                .map(|row| Some(decimal(values.is_valid(row).then(|| values.value(row))?, 0, digits(row)?)))
                .collect()
        }
        _ => {
            let values = to_real(&args[0])?;
            let values = values.as_primitive::<Float64Type>();
            (0..values.len())
                .map(|row| Some(real(values.is_valid(row).then(|| values.value(row))?, digits(row)?)))
                .collect()
        }
    };
    Ok(Arc::new(plain.into_iter().map(|plain| plain.map(|plain| grouped(&plain))).collect::<StringArray>()))
}

/// A decimal with that many digits behind the point, rounded half away from zero.
fn decimal(value: i128, scale: usize, digits: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let mut all = value.unsigned_abs();
    let kept = scale.min(digits);
    if scale > digits {
        let step = 10u128.pow((scale - digits) as u32);
        all = all / step + u128::from(all % step >= step / 2);
    }
    let plain = format!("{all:0>width$}", width = kept + 1);
    let (whole, fraction) = plain.split_at(plain.len() - kept);
    let sign = if all == 0 { "" } else { sign };
    if digits == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction:0<digits$}") }
}

/// A float likewise; missing digits are not invented.
fn real(value: f64, digits: usize) -> String {
    /// Whole numbers up to here are exact.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let factor = 10f64.powi(digits as i32);
    let scaled = (value * factor).round();
    let rounded = if scaled.abs() < EXACT_MAX { scaled / factor } else { value };
    let text = format!("{rounded:.digits$}");
    if rounded == 0.0 { text.trim_start_matches('-').to_owned() } else { text }
}

fn grouped(plain: &str) -> String {
    let (sign, plain) = plain.strip_prefix('-').map_or(("", plain), |rest| ("-", rest));
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// A value that a place shows.
enum Shown<'a> {
    Integer(i64),
    Real(f64),
    Text(&'a str),
}

fn fill_places(args: &[ArrayRef]) -> Result<ArrayRef> {
    let formats = to_text(&args[0])?;
    let formats = formats.as_string::<i32>();
    let mut columns = Vec::with_capacity(args.len() - 1);
    for arg in &args[1..] {
        let data_type = arg.data_type();
        columns.push(if data_type.is_integer() {
            to_integer(arg)?
        } else if data_type.is_numeric() {
            to_real(arg)?
        } else {
            to_text(arg)?
        });
    }
    growth::texts("format", args, |row| {
        if formats.is_null(row) || columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let values = columns.iter().map(|column| match column.data_type() {
            DataType::Int64 => Shown::Integer(column.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => Shown::Real(column.as_primitive::<Float64Type>().value(row)),
            _ => Shown::Text(column.as_string::<i32>().value(row)),
        });
        fill(formats.value(row), &values.collect::<Vec<_>>()).map(Some)
    })
}

fn fill(format: &str, values: &[Shown<'_>]) -> Result<String> {
    let bad = |what: &str| exec_datafusion_err!("FORMAT cannot read '{format}': {what}");
    let mut out = String::with_capacity(format.len() + 16);
    let mut next = 0;
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        let Some((place, after)) = after.split_once('}').filter(|_| brace == "{") else {
            return Err(bad("a brace has no other"));
        };
        let (index, spec) = place.split_once(':').unwrap_or((place, ""));
        let index = if index.is_empty() {
            next += 1;
            next - 1
        } else {
            index.parse().map_err(|_| bad("a place is named by no number"))?
        };
        let value = values.get(index).ok_or_else(|| bad("it has more places than values"))?;
        out.push_str(&Spec::parse(spec).and_then(|spec| spec.show(value)).ok_or_else(|| {
            bad("a place takes [fill][<^>][+][0][width][.digits][d|x|X|o|b|f|e|g|s], as its value allows")
        })?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// How a place shows its value: `[[fill]align][sign][0][width][.precision][kind]`.
struct Spec {
    fill: char,
    align: Option<char>,
    plus: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Option<Self> {
        let mut letters = text.chars().peekable();
        let is_align = |letter: char| matches!(letter, '<' | '>' | '^');
        let mut spec =
            Self { fill: ' ', align: None, plus: false, zeros: false, width: 0, precision: None, kind: None };
        let second = text.chars().nth(1);
        if second.is_some_and(is_align) {
            spec.fill = letters.next()?;
            spec.align = letters.next();
        } else if letters.peek().copied().is_some_and(is_align) {
            spec.align = letters.next();
        }
        spec.plus = letters.next_if(|letter| matches!(letter, '+' | '-')) == Some('+');
        spec.zeros = letters.next_if_eq(&'0').is_some();
        let number = |letters: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut digits = String::new();
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits
        };
        let width = number(&mut letters);
        spec.width =
            if width.is_empty() { 0 } else { width.parse().ok().filter(|width| *width <= WIDTH_MAX)? };
        if letters.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(&mut letters).parse().ok().filter(|digits| *digits <= DIGITS_MAX)?);
        }
        spec.kind = letters.next();
        letters.next().is_none().then_some(spec)
    }

    fn show(&self, value: &Shown<'_>) -> Option<String> {
        let (body, is_number) = match value {
            Shown::Integer(value) => (self.integer(*value)?, true),
            Shown::Real(value) => (self.real(*value)?, true),
            Shown::Text(text) if matches!(self.kind, None | Some('s')) && !self.plus && !self.zeros => {
                (text.chars().take(self.precision.unwrap_or(usize::MAX)).collect(), false)
            }
            Shown::Text(_) => return None,
        };
        let body = if self.plus && is_number && !body.starts_with('-') { format!("+{body}") } else { body };
        let missing = self.width.saturating_sub(body.chars().count());
        if self.zeros && self.align.is_none() {
            let sign = usize::from(body.starts_with(['-', '+']));
            return Some(format!("{}{}{}", &body[..sign], "0".repeat(missing), &body[sign..]));
        }
        let before = match (self.align, is_number) {
            (Some('>'), _) | (None, true) => missing,
            (Some('^'), _) => missing / 2,
            _ => 0,
        };
        let fill = |count: usize| std::iter::repeat_n(self.fill, count).collect::<String>();
        Some(format!("{}{body}{}", fill(before), fill(missing - before)))
    }

    fn integer(&self, value: i64) -> Option<String> {
        let (sign, abs) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
        match (self.kind, self.precision) {
            (None | Some('d'), None) => Some(value.to_string()),
            (Some('x'), None) => Some(format!("{sign}{abs:x}")),
            (Some('X'), None) => Some(format!("{sign}{abs:X}")),
            (Some('o'), None) => Some(format!("{sign}{abs:o}")),
            (Some('b'), None) => Some(format!("{sign}{abs:b}")),
            (Some('f' | 'e' | 'g'), _) => self.real(value as f64),
            _ => None,
        }
    }

    fn real(&self, value: f64) -> Option<String> {
        match (self.kind, self.precision) {
            (None, None) => Some(tributary_types::text::float(value)),
            (None | Some('g'), digits) => Some(significant(value, digits.unwrap_or(6).max(1))),
            (Some('f'), digits) => Some(format!("{value:.digits$}", digits = digits.unwrap_or(6))),
            (Some('e'), digits) => Some(exponential(value, digits.unwrap_or(6))),
            _ => None,
        }
    }
}

/// C's `%e`: an exponent has a sign and two digits.
fn exponential(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// C's `%g`: the given number of significant digits, without trailing zeros.
fn significant(value: f64, digits: usize) -> String {
    let text = exponential(value, digits - 1);
    let exponent = text.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    let trim = |number: &str| {
        let trimmed =
            if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        trimmed.to_owned()
    };
    if exponent < -4 || exponent >= digits as i32 {
        let (mantissa, tail) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{tail}", trim(mantissa));
    }
    let behind = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    trim(&format!("{value:.behind$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_show_their_values_as_their_letters_say() {
        let pi = std::f64::consts::PI;
        for (format, value, expected) in [
            ("{}", Shown::Integer(-7), "-7"),
            ("{:>10}|", Shown::Integer(123), "       123|"),
            ("{:<5}|", Shown::Integer(12), "12   |"),
            ("{:*^7}", Shown::Text("né"), "**né***"),
            ("{:05}", Shown::Integer(-42), "-0042"),
            ("{:+d}", Shown::Integer(4), "+4"),
            ("{:x} {0:X}", Shown::Integer(255), "ff FF"),
            ("{:.2}", Shown::Real(pi), "3.1"),
            ("{:.3f}", Shown::Real(pi), "3.142"),
            ("{:e}", Shown::Real(1234.5), "1.234500e+03"),
            ("{:.3}", Shown::Real(1_234_567.0), "1.23e+06"),
            ("{:.2}", Shown::Text("abc"), "ab"),
            ("{{{}}}", Shown::Text("a"), "{a}"),
        ] {
            assert_eq!(fill(format, std::slice::from_ref(&value)).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn places_that_cannot_be_filled_are_errors() {
        for format in ["{", "}", "{1}", "{a}", "{:d}", "{:?}", "{:99999}", "{}{}"] {
            assert!(fill(format, &[Shown::Text("a")]).is_err(), "{format}");
        }
    }

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        assert_eq!(grouped(&decimal(12_345, 1, 0)), "1,235");
        assert_eq!(grouped(&decimal(-12_345, 1, 0)), "-1,235");
        assert_eq!(grouped(&decimal(1_234_567_891, 3, 2)), "1,234,567.89");
        assert_eq!(grouped(&decimal(-4, 1, 0)), "0");
        assert_eq!(grouped(&decimal(5, 0, 3)), "5.000");
        assert_eq!(grouped(&real(1234.5, 0)), "1,235");
        assert_eq!(grouped(&real(-0.001, 2)), "0.00");
        assert_eq!(grouped(&real(1e20, 1)), "100,000,000,000,000,000,000.0");
    }
}

//! Numbers as text, as MySQL's clients see them: in results, and where a query converts them to
//! text.

use std::fmt::{LowerExp, Write};

/// Floats whose decimal point would be farther away than this many digits get an exponent.
const POINT_MAX: i32 = 15;

/// A float as [`write_float`] writes it.
#[must_use]
pub fn float(value: impl LowerExp + Into<f64> + Copy) -> String {
    let mut out = Vec::new();
    write_float(&mut out, value);
    out.into_iter().map(char::from).collect()
}

/// Appends a float in the shortest form that reads back as the same float: `1.5`, `100`, `1e20`.
pub fn write_float(out: &mut Vec<u8>, value: impl LowerExp + Into<f64> + Copy) {
    let wide: f64 = value.into();
    if !wide.is_finite() {
        let text: &[u8] = match wide {
            wide if wide.is_nan() => b"NaN",
            wide if wide > 0.0 => b"Infinity",
            _ => b"-Infinity",
        };
        return out.extend_from_slice(text);
    }
    let mut text = Scratch::default();
    // Cannot fail: the shortest form of any float fits.
    if write!(text, "{value:e}").is_err() {
        return;
    }
    let (mantissa, exponent) = text.mantissa_and_exponent();
    let (sign, mantissa) = match mantissa.strip_prefix(b"-") {
        Some(rest) => (b"-" as &[u8], rest),
        None => (b"" as &[u8], mantissa),
    };
    out.extend_from_slice(sign);
    let (first, fraction) = mantissa.split_at(1);
    let fraction = fraction.strip_prefix(b".").unwrap_or(fraction);
    write_digits(out, first, fraction, exponent);
}

/// Appends `first.fraction × 10^exponent`.
fn write_digits(out: &mut Vec<u8>, first: &[u8], fraction: &[u8], exponent: i32) {
    match usize::try_from(exponent) {
        Ok(point) if exponent < POINT_MAX => {
            out.extend_from_slice(first);
            let (whole, rest) = fraction.split_at(point.min(fraction.len()));
            out.extend_from_slice(whole);
            out.resize(out.len() + point - whole.len(), b'0');
            if !rest.is_empty() {
                out.push(b'.');
                out.extend_from_slice(rest);
            }
        }
        Err(_) if exponent > -POINT_MAX => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + exponent.unsigned_abs() as usize - 1, b'0');
            out.extend_from_slice(first);
            out.extend_from_slice(fraction);
        }
        _ => {
            out.extend_from_slice(first);
            if !fraction.is_empty() {
                out.push(b'.');
                out.extend_from_slice(fraction);
            }
            out.push(b'e');
            out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
        }
    }
}

/// A float's text on the stack.
#[derive(Default)]
struct Scratch {
    bytes: [u8; 32],
    length: usize,
}

impl Scratch {
    fn mantissa_and_exponent(&self) -> (&[u8], i32) {
        let text = &self.bytes[..self.length];
        let Some(at) = text.iter().position(|byte| *byte == b'e') else { return (text, 0) };
        let (negative, digits) = match &text[at + 1..] {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let exponent = digits.iter().fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0'));
        (&text[..at], if negative { -exponent } else { exponent })
    }
}

impl Write for Scratch {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_printed_as_mysql_prints_them() {
        let table = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (-2.25, "-2.25"),
            (100.0, "100"),
            (0.1, "0.1"),
            (0.001, "0.001"),
            (1234567.875, "1234567.875"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1e20, "1e20"),
            (1.25e100, "1.25e100"),
            (1e-5, "0.00001"),
            (1e-20, "1e-20"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, text) in table {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn a_float_has_the_digits_of_a_float_not_of_a_double() {
        let mut out = Vec::new();
        write_float(&mut out, 0.1_f32);
        assert_eq!(out, b"0.1");
    }

    #[test]
    fn every_printed_double_reads_back_as_itself() {
        let mut seed = 7_u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(seed);
            if value.is_finite() {
                assert_eq!(float(value).parse::<f64>().unwrap(), value);
            }
        }
    }
}

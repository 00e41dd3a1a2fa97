//! Whole numbers and decimals as MySQL prints them; floats are in [`tributary_types::text`].

/// Appends an integer.
pub(super) fn write_int(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends `value / 10^scale`.
pub(super) fn write_decimal(out: &mut Vec<u8>, value: i128, scale: i8) {
    if value < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value.unsigned_abs()).as_bytes();
    let Ok(scale) = usize::try_from(scale) else {
        out.extend_from_slice(digits);
        let zeros = if value == 0 { 0 } else { usize::from(scale.unsigned_abs()) };
        out.resize(out.len() + zeros, b'0');
        return;
    };
    if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        if scale > 0 {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: i128, scale: i8) -> String {
        let mut out = Vec::new();
        write_decimal(&mut out, value, scale);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_decimal_has_as_many_digits_after_the_point_as_its_scale() {
        let table = [
            (12345, 2, "123.45"),
            (-5, 2, "-0.05"),
            (0, 2, "0.00"),
            (7, 0, "7"),
            (12, -3, "12000"),
            (0, -3, "0"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
            (99, 2, "0.99"),
            (100, 2, "1.00"),
        ];
        for (value, scale, text) in table {
            assert_eq!(decimal(value, scale), text);
        }
    }
}

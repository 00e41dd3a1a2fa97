//! Separators as users write them: plain text, `\x` and hex digits, or `\t`, `\n`, `\r`.

use super::FormatError;

/// Parses a separator. `\x0102` and `\x01\x02` are both two bytes; a backslash before anything else is literal.
///
/// # Errors
/// [`FormatError::Invalid`] with Doris's text: digits after `\x` that are not hexadecimal, an odd number of them, or no byte at
/// all.
pub fn decode(text: &str) -> Result<Vec<u8>, FormatError> {
    if text.is_empty() {
        return Err(FormatError::Invalid("Column separator or line delimiter is empty".to_owned()));
    }
    if text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("\\x")) {
        return decode_hex(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let named = match (byte, after.first()) {
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            _ => None,
        };
        bytes.push(named.unwrap_or(byte));
        rest = if named.is_some() { &after[1..] } else { after };
    }
    Ok(bytes)
}

fn decode_hex(text: &str) -> Result<Vec<u8>, FormatError> {
    let mut digits = Vec::with_capacity(text.len());
    for run in text.split("\\x").flat_map(|run| run.split("\\X")) {
        if run.len() % 2 != 0 {
            return Err(invalid(text, "hex length must be a even number"));
        }
        for digit in run.chars() {
            digits.push(digit.to_digit(16).ok_or_else(|| invalid(text, "invalid hex format"))? as u8);
        }
    }
    if digits.is_empty() {
        return Err(invalid(text, "empty hex string"));
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn invalid(text: &str, what: &str) -> FormatError {
    FormatError::Invalid(format!("Invalid separator '{text}': {what}; write bytes as \\x01 or \\x0102"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_is_text_hex_or_a_named_control_byte() {
        let cases: [(&str, &[u8]); 11] = [
            (",", b","),
            ("||", b"||"),
            ("\\x01", b"\x01"),
            ("\\X0A", b"\n"),
            ("\\x0d0a", b"\r\n"),
            ("\\x01\\x02", b"\x01\x02"),
            ("\\xff", b"\xff"),
            ("\\t", b"\t"),
            ("\\r\\n", b"\r\n"),
            ("\\", b"\\"),
            ("a\\q·", "a\\q·".as_bytes()),
        ];
        for (text, bytes) in cases {
            assert_eq!(decode(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn an_empty_separator_is_refused() {
        assert_eq!(decode("").unwrap_err().to_string(), "Column separator or line delimiter is empty");
    }

    #[test]
    fn bad_hex_is_refused_with_the_value_and_the_form() {
        for (text, what) in [
            ("\\x", "empty hex string"),
            ("\\x1", "hex length must be a even number"),
            ("\\xzz", "invalid hex format"),
            ("\\x0·1", "invalid hex format"),
        ] {
            let error = decode(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("Invalid separator '{text}': {what}")), "{error}");
        }
    }
}

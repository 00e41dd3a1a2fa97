//! Separators as users write them: plain text, `\x` and hex digits, or `\t`, `\n`, `\r`.

use crate::headers::HeaderError;
use tributary_types::{ErrorCode, SqlError};

/// The bytes that a separator's text stands for, wherever it was written (headers, properties of
/// `http_stream(…)`): plain text, `\x01` or `\x0102` in hex, `\t`, `\n`, `\r`. An empty text
/// is refused, a separator has at least one byte.
///
/// # Errors
/// [`ErrorCode::Unknown`] with Doris's text: digits that are no hex, an odd count, no byte at all.
pub fn separator(text: &str) -> Result<Vec<u8>, SqlError> {
    if text.is_empty() {
        return Err(SqlError::detail(ErrorCode::Unknown, "Column separator or line delimiter is empty"));
    }
    decode(text).map_err(|error| SqlError::detail(ErrorCode::Unknown, error.text))
}

/// The bytes that `text` stands for. `\x0102` and `\x01\x02` are both two bytes; a backslash
/// before anything else stands for itself.
///
/// # Errors
/// Digits after `\x` that are no hex, or an odd count of them.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, HeaderError> {
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

fn decode_hex(text: &str) -> Result<Vec<u8>, HeaderError> {
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

fn invalid(text: &str, what: &str) -> HeaderError {
    HeaderError::invalid(format!("Invalid separator '{text}': {what}; write bytes as \\x01 or \\x0102"))
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
    fn an_empty_separator_is_refused_and_a_bad_one_keeps_its_text() {
        assert_eq!(separator("\\x01").unwrap(), b"\x01");
        assert_eq!(separator("").unwrap_err().detail_text(), "Column separator or line delimiter is empty");
        assert!(
            separator("\\x0").unwrap_err().detail_text().starts_with("Invalid separator '\\x0': hex length")
        );
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
            assert!(
                error.starts_with(&format!("[INVALID_ARGUMENT]Invalid separator '{text}': {what}")),
                "{error}"
            );
        }
    }
}

//! JSON's escapes in strings, which texts of nested values have, too.

/// Appends a string's characters to `out`.
///
/// # Errors
/// Where a half character is, from the beginning of `raw`.
pub fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + length]);
        at += length;
        let plain = match raw[at + 1] {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (character, length) = unicode(&raw[at..]).ok_or(at)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
                continue;
            }
            itself => itself,
        };
        out.push(plain);
        at += 2;
    }
    out.extend_from_slice(&raw[at..]);
    Ok(())
}

/// The character at the beginning of `escape`, and its length in bytes.
fn unicode(escape: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = escape.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
    };
    let first = unit(0)?;
    if (0xd800..0xdc00).contains(&first) {
        let second = unit(6).filter(|unit| (0xdc00..0xe000).contains(unit))?;
        let character = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return Some((char::from_u32(character)?, 12));
    }
    Some((char::from_u32(first)?, 6))
}

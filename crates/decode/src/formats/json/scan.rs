//! The grammar of JSON: tokens and values, over bytes, without recursion and without allocation.
//!
//! Invariant: it accepts RFC 8259's grammar and nothing more. Bytes that end too early are [`Stop::End`], wherever they end, so
//! that a value can be retried when more of it has arrived.
//!
//! Not its business: UTF-8, and the use of a value.

use std::fmt;
use std::ops::Range;

/// The nesting limit of objects and arrays.
pub(super) const DEPTH_MAX: usize = 512;

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes end before the value does.
    End,
    Bad(Defect),
}

/// A fault of a text, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Defect {
    pub(super) at: usize,
    pub(super) flaw: Flaw,
}

/// The kinds of faults of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Something else was expected.
    Expected(&'static str),
    /// The text ends inside a value.
    CutOff,
    /// Something follows the value.
    Trailing,
    TooDeep,
    Escape,
    /// `\ud800` without its other half: no character, so no text can hold it.
    HalfCharacter,
    Control,
    Number,
    Encoding,
}

impl Flaw {
    /// The number that Doris's parser has for it.
    fn code(self) -> u8 {
        match self {
            Self::Expected(_) | Self::CutOff | Self::Trailing => 3,
            Self::TooDeep => 4,
            Self::Escape | Self::HalfCharacter => 5,
            Self::Number => 9,
            Self::Encoding => 10,
            Self::Control => 13,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected(what) => write!(f, "{what} is expected"),
            Self::CutOff => f.write_str("the text ends inside a value"),
            Self::Trailing => f.write_str(
                "something follows the value (several objects are one to a line with read_json_by_line, or one \
                 array with strip_outer_array)",
            ),
            Self::TooDeep => write!(f, "objects and arrays stand more than {DEPTH_MAX} levels deep in each other"),
            Self::Escape => f.write_str("an escape that JSON does not have"),
            Self::HalfCharacter => f.write_str("an escaped surrogate without its other half"),
            Self::Control => f.write_str("a control character in a string is not escaped"),
            Self::Number => f.write_str("not a number as JSON writes it"),
            Self::Encoding => f.write_str("the text is not UTF-8"),
        }
    }
}

impl Defect {
    /// The reason, in Doris's words where it has them; `place` names the unit of the position.
    pub(super) fn reason(self, place: &str) -> String {
        let Self { at, flaw } = self;
        format!(
            "Parse json data for JsonDoc failed. code: {}, error info: {flaw}, at byte {at} of {place}",
            flaw.code()
        )
    }
}

/// A string's content, and whether it has escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    pub(super) raw: &'a [u8],
    pub(super) is_escaped: bool,
}

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    /// The blank that a line end is; another blank where lines end rows.
    newline: u8,
    /// Nothing follows the bytes, so that a number may end with them.
    is_whole: bool,
    levels_max: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor over bytes that others may follow.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, newline: b'\n', is_whole: false, levels_max: DEPTH_MAX }
    }

    /// A cursor over lines: a value does not continue after a line end.
    pub(super) fn over_lines(bytes: &'a [u8], at: usize) -> Self {
        Self { newline: b' ', ..Self::new(bytes, at) }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn bad(&self, flaw: Flaw) -> Stop {
        Stop::Bad(Defect { at: self.at, flaw })
    }

    pub(super) fn expected(&self, what: &'static str) -> Stop {
        self.bad(Flaw::Expected(what))
    }

    /// The next byte that is not a blank, without consuming it.
    #[inline]
    pub(super) fn token(&mut self) -> Result<u8, Stop> {
        loop {
            match self.bytes.get(self.at) {
                Some(&byte) if byte > b' ' => return Ok(byte),
                Some(&byte) if matches!(byte, b' ' | b'\t' | b'\r') || byte == self.newline => self.at += 1,
                Some(&byte) => return Ok(byte),
                None => return Err(Stop::End),
            }
        }
    }

    /// Takes the colon behind a key.
    #[inline]
    pub(super) fn colon(&mut self) -> Result<(), Stop> {
        if self.token()? != b':' {
            return Err(self.expected("':' behind a key"));
        }
        self.at += 1;
        Ok(())
    }

    /// Takes a string whose quote is next.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'a>, Stop> {
        let start = self.at + 1;
        let mut at = start;
        let mut is_escaped = false;
        loop {
            at = special(self.bytes, at).ok_or(Stop::End)?;
            match self.bytes[at] {
                b'"' => {
                    self.at = at + 1;
                    return Ok(Text { raw: &self.bytes[start..at], is_escaped });
                }
                b'\\' => {
                    is_escaped = true;
                    at = self.escape(at)?;
                }
                _ => return Err(Stop::Bad(Defect { at, flaw: Flaw::Control })),
            }
        }
    }

    /// The place behind the escape at `at`.
    fn escape(&self, at: usize) -> Result<usize, Stop> {
        let bad = Err(Stop::Bad(Defect { at, flaw: Flaw::Escape }));
        match self.bytes.get(at + 1) {
            None => Err(Stop::End),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => {
                let end = self.bytes.len().min(at + 6);
                match self.bytes[at + 2..end].iter().all(u8::is_ascii_hexdigit) {
                    false => bad,
                    true if end < at + 6 => Err(Stop::End),
                    true => Ok(end),
                }
            }
            Some(_) => bad,
        }
    }

    /// Takes a number whose first byte is next.
    #[inline]
    pub(super) fn number(&mut self) -> Result<&'a [u8], Stop> {
        let start = self.at;
        let mut at = start + usize::from(self.bytes[start] == b'-');
        let digits = |at: usize| self.bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let some_digits = |at: usize| match (digits(at), self.bytes.get(at)) {
            (0, None) => Err(Stop::End),
            (0, Some(_)) => Err(Stop::Bad(Defect { at, flaw: Flaw::Number })),
            (count, _) => Ok(at + count),
        };
        at = match self.bytes.get(at) {
            Some(b'0') => at + 1,
            _ => some_digits(at)?,
        };
        if self.bytes.get(at) == Some(&b'.') {
            at = some_digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(at) {
            let has_sign = matches!(self.bytes.get(at + 1), Some(b'-' | b'+'));
            at = some_digits(at + 1 + usize::from(has_sign))?;
        }
        if at == self.bytes.len() && !self.is_whole {
            return Err(Stop::End);
        }
        self.at = at;
        Ok(&self.bytes[start..at])
    }

    /// Takes `true`, `false` or `null`.
    #[inline]
    pub(super) fn word(&mut self, word: &'static str) -> Result<(), Stop> {
        let rest = self.rest();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        if word.as_bytes().starts_with(rest) { Err(Stop::End) } else { Err(self.expected("a value")) }
    }

    /// Takes a value, whatever it is.
    #[inline]
    pub(super) fn skip_value(&mut self) -> Result<(), Stop> {
        match self.token()? {
            b'{' | b'[' => self.nested().map(|_| ()),
            byte => self.scalar(byte),
        }
    }

    #[inline]
    fn scalar(&mut self, first: u8) -> Result<(), Stop> {
        match first {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number().map(|_| ()),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => Err(self.expected("a value")),
        }
    }

    /// Takes a key and its colon.
    pub(super) fn key(&mut self) -> Result<Text<'a>, Stop> {
        if self.token()? != b'"' {
            return Err(self.expected("a key in double quotes"));
        }
        let key = self.string()?;
        self.colon()?;
        Ok(key)
    }

    /// Takes an object or array whose bracket is next.
    pub(super) fn nested(&mut self) -> Result<&'a [u8], Stop> {
        let start = self.at;
        let mut open = Levels::default();
        loop {
            // A value is next.
            match self.token()? {
                byte @ (b'{' | b'[') => {
                    if open.depth == self.levels_max {
                        return Err(self.bad(Flaw::TooDeep));
                    }
                    open.push(byte == b'{');
                    self.at += 1;
                    match (self.token()?, byte) {
                        (b'}', b'{') | (b']', b'[') => {
                            self.at += 1;
                            open.pop();
                        }
                        (_, b'{') => {
                            self.key()?;
                            continue;
                        }
                        _ => continue,
                    }
                }
                byte => self.scalar(byte)?,
            }
            // A value is complete, and its parents may be, too.
            loop {
                let Some(in_object) = open.top() else { return Ok(&self.bytes[start..self.at]) };
                match (self.token()?, in_object) {
                    (b',', _) => {
                        self.at += 1;
                        if in_object {
                            self.key()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        open.pop();
                    }
                    (_, true) => return Err(self.expected("',' or '}' behind a value")),
                    (_, false) => return Err(self.expected("',' or ']' behind a value")),
                }
            }
        }
    }
}

/// The open brackets: a bit each, set for `{`.
#[derive(Default)]
struct Levels {
    /// Room for one level more than in a row's values: the row itself.
    bits: [u64; DEPTH_MAX / 64 + 1],
    depth: usize,
}

impl Levels {
    #[inline]
    fn push(&mut self, is_object: bool) {
        let word = &mut self.bits[self.depth / 64];
        let bit = 1 << (self.depth % 64);
        *word = if is_object { *word | bit } else { *word & !bit };
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }

    #[inline]
    fn top(&self) -> Option<bool> {
        let top = self.depth.checked_sub(1)?;
        Some(self.bits[top / 64] >> (top % 64) & 1 == 1)
    }
}

/// The first quote, backslash or control character from `at` on.
#[inline]
fn special(bytes: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    while let Some(eight) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslashes = below(word ^ (ONES * u64::from(b'\\')), 1);
        // A bit that a borrow sets by mistake is above one that is right.
        let found = (quotes | backslashes | below(word, 0x20)) & HIGHS;
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).map(|offset| at + offset)
}

/// Checks one text, whole and alone. `None`: it is blank; else where its value is.
pub(super) fn check(text: &[u8]) -> Result<Option<Range<usize>>, Defect> {
    // The row itself is a level, which the levels of its values do not count.
    let mut cursor = Cursor { is_whole: true, levels_max: DEPTH_MAX + 1, ..Cursor::new(text, 0) };
    let defect = |stop| match stop {
        Stop::End => Defect { at: text.len(), flaw: Flaw::CutOff },
        Stop::Bad(defect) => defect,
    };
    if cursor.token().is_err() {
        return Ok(None);
    }
    let start = cursor.at;
    cursor.skip_value().map_err(defect)?;
    let end = cursor.at;
    match cursor.token() {
        Err(_) => Ok(Some(start..end)),
        Ok(_) => Err(Defect { at: cursor.at, flaw: Flaw::Trailing }),
    }
}

/// Appends a value to `out` without the blanks between its tokens, and optionally with its numbers in quotes. `raw` is legal
/// JSON.
pub(super) fn compact(raw: &[u8], quotes_numbers: bool, out: &mut Vec<u8>) {
    let mut cursor = Cursor { is_whole: true, ..Cursor::new(raw, 0) };
    while let Ok(byte) = cursor.token() {
        let start = cursor.at;
        match byte {
            b'"' => {
                if cursor.string().is_err() {
                    return;
                }
                out.extend_from_slice(&raw[start..cursor.at]);
            }
            b'-' | b'0'..=b'9' if quotes_numbers => {
                let Ok(number) = cursor.number() else { return };
                out.push(b'"');
                out.extend_from_slice(number);
                out.push(b'"');
            }
            other => {
                out.push(other);
                cursor.at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::escapes::unescape;

    fn flaw(text: &str) -> Option<(usize, Flaw)> {
        check(text.as_bytes()).err().map(|defect| (defect.at, defect.flaw))
    }

    #[test]
    fn each_flaw_has_its_place() {
        for (text, at, found) in [
            ("{\"a\":1", 6, Flaw::CutOff),
            ("[1,2", 4, Flaw::CutOff),
            ("\"a", 2, Flaw::CutOff),
            ("{\"a\" 1}", 5, Flaw::Expected("':' behind a key")),
            ("{\"a\":1 \"b\":2}", 7, Flaw::Expected("',' or '}' behind a value")),
            ("[1 2]", 3, Flaw::Expected("',' or ']' behind a value")),
            ("[1,]", 3, Flaw::Expected("a value")),
            ("{\"a\":1,}", 7, Flaw::Expected("a key in double quotes")),
            ("{a:1}", 1, Flaw::Expected("a key in double quotes")),
            ("{\"a\":1]", 6, Flaw::Expected("',' or '}' behind a value")),
            ("[tr]", 1, Flaw::Expected("a value")),
            ("[01]", 2, Flaw::Expected("',' or ']' behind a value")),
            ("[1.]", 3, Flaw::Number),
            ("[-]", 2, Flaw::Number),
            ("[1e+]", 4, Flaw::Number),
            ("[\"\\x\"]", 2, Flaw::Escape),
            ("[\"\\u12g4\"]", 2, Flaw::Escape),
            ("[\"a\tb\"]", 3, Flaw::Control),
            ("[\"a\u{0}\"]", 3, Flaw::Control),
            ("{} {}", 3, Flaw::Trailing),
            ("{}x", 2, Flaw::Trailing),
            ("\u{feff}{}", 0, Flaw::Expected("a value")),
        ] {
            assert_eq!(flaw(text), Some((at, found)), "{text}");
        }
    }

    #[test]
    fn legal_texts_are_taken_whole() {
        for text in [
            "{}",
            " [ ] ",
            "0",
            "-0",
            "1.5e-3",
            "1E400",
            "\"\"",
            "true",
            "null",
            "\"\\ud800\"",
            "\"\u{7f}é漢\"",
            "{\"a\":[1,{\"b\":null},[],{}],\"\":\"x\\\"y\"}",
        ] {
            let start = text.len() - text.trim_start().len();
            assert_eq!(check(text.as_bytes()), Ok(Some(start..start + text.trim().len())), "{text}");
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok(), "{text}");
        }
        assert_eq!(check(b" \t\r\n"), Ok(None));
    }

    #[test]
    fn levels_are_limited_and_take_no_stack() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(flaw(&nested(DEPTH_MAX + 1)), None);
        assert_eq!(flaw(&nested(DEPTH_MAX + 2)), Some((DEPTH_MAX + 1, Flaw::TooDeep)));
        assert_eq!(flaw(&"{\"a\":".repeat(1_000_000)), Some(((DEPTH_MAX + 1) * 5, Flaw::TooDeep)));
    }

    #[test]
    fn a_text_that_is_cut_anywhere_only_ends_early() {
        let text =
            "{\"k\\u00e9\": [1.5e+3, true, false, null, \"a\\\\b\", {\"x\":-0}] , \"z\":\"漢\"}".as_bytes();
        for end in 0..text.len() {
            assert_eq!(Cursor::new(&text[..end], 0).skip_value(), Err(Stop::End), "cut at {end}");
        }
        assert_eq!(Cursor::new(text, 0).skip_value(), Ok(()));
    }

    #[test]
    fn escapes_become_characters() {
        let unescaped = |raw: &str| {
            let mut out = Vec::new();
            unescape(raw.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(unescaped("a\\\"\\\\\\/\\b\\f\\n\\r\\tz"), Ok("a\"\\/\u{8}\u{c}\n\r\tz".to_owned()));
        assert_eq!(unescaped("\\u0000\\u00E9\\u6f22\\ud83d\\uDE00!"), Ok("\0é漢😀!".to_owned()));
        assert_eq!(unescaped("ab\\ud83d"), Err(2));
        assert_eq!(unescaped("\\ude00"), Err(0));
        assert_eq!(unescaped("\\ud83d\\u0041"), Err(0));
        assert_eq!(unescaped("\\ud83dx\\ude00"), Err(0));
    }

    #[test]
    fn specials_are_found_at_each_place() {
        for special_byte in [b'"', b'\\', 0, 0x1f] {
            for place in 0..40 {
                let mut bytes = vec![0xff_u8; 40];
                bytes[place] = special_byte;
                assert_eq!(special(&bytes, 0), Some(place));
                assert_eq!(special(&bytes, place + 1), None);
            }
        }
        assert_eq!(special(" !#[]\u{7f}é".as_bytes(), 0), None);
    }

    #[test]
    fn blanks_between_tokens_go_and_others_stay() {
        let compacted = |raw: &str, quotes| {
            let mut out = Vec::new();
            compact(raw.as_bytes(), quotes, &mut out);
            String::from_utf8(out).unwrap()
        };
        let raw = "{ \"a b\" :\t[ 1.50 , -2e3,true ],\n\"c\": \"x \\\" 7\" }";
        assert_eq!(compacted(raw, false), "{\"a b\":[1.50,-2e3,true],\"c\":\"x \\\" 7\"}");
        assert_eq!(compacted(raw, true), "{\"a b\":[\"1.50\",\"-2e3\",true],\"c\":\"x \\\" 7\"}");
    }
}

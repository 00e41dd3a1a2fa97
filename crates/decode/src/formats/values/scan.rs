//! The scanner: blanks, words, names and literals of MySQL's SQL, one byte after the other.
//!
//! Every function returns `None` for input that it does not understand; the scan must not continue from there.

use crate::cells::cell::Cell;
use memchr::{memchr, memchr2, memmem};
use std::borrow::Cow;

/// Words that are not names where the general parser expects TABLE, a query or VALUES.
const NOT_NAMES: [&str; 4] = ["TABLE", "SELECT", "WITH", "VALUES"];

/// The nesting limit of array and map literals.
const NESTED_DEPTH_MAX: u32 = 32;

/// A place in a statement.
pub(crate) struct Scanner<'a> {
    sql: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(sql: &'a [u8]) -> Self {
        Self { sql, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.sql.get(self.at).copied()
    }

    /// Skips blanks and comments. `None` at a comment that does not end or that MySQL executes.
    #[inline]
    fn skip_blanks(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c) => self.at += 1,
                Some(b'-' | b'/' | b'#') => {
                    if !self.skip_comment()? {
                        return Some(());
                    }
                }
                _ => return Some(()),
            }
        }
    }

    /// Whether there was a comment, which is skipped then.
    fn skip_comment(&mut self) -> Option<bool> {
        let rest = &self.sql[self.at..];
        let skipped = match rest {
            [b'#', ..] => line_end(rest),
            [b'-', b'-'] => 2,
            [b'-', b'-', blank, ..] if blank.is_ascii_whitespace() => line_end(rest),
            [b'/', b'*', b'!', ..] => return None,
            [b'/', b'*', body @ ..] => memmem::find(body, b"*/")? + 4,
            _ => return Some(false),
        };
        self.at += skipped;
        Some(true)
    }

    /// Takes `byte` if it is next after blanks.
    #[inline]
    pub(crate) fn take_byte(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks()?;
        if self.peek() != Some(byte) {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Takes a keyword in any case.
    pub(crate) fn keyword(&mut self, word: &str) -> Option<()> {
        self.skip_blanks()?;
        let end = self.at + word.len();
        let found = self.sql.get(self.at..end)?;
        if !found.eq_ignore_ascii_case(word.as_bytes())
            || self.sql.get(end).copied().is_some_and(is_name_byte)
        {
            return None;
        }
        self.at = end;
        Some(())
    }

    /// Takes a name, bare or in backticks. Bare ones that might be something else (a number, a word that the
    /// general parser looks for, a character that it has no name of) are not understood here.
    pub(crate) fn identifier(&mut self) -> Option<Cow<'a, str>> {
        self.skip_blanks()?;
        if self.peek()? == b'`' {
            return self.quoted_identifier();
        }
        let start = self.at;
        while self.peek().is_some_and(is_name_byte) {
            self.at += 1;
        }
        let name = &self.sql[start..self.at];
        let is_doubtful = name.first()?.is_ascii_digit()
            || name.iter().any(|byte| *byte == b'@' || *byte >= 0xf0)
            || NOT_NAMES.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()));
        if is_doubtful {
            return None;
        }
        std::str::from_utf8(name).ok().map(Cow::Borrowed)
    }

    fn quoted_identifier(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at + 1;
        let mut end = start + memchr(b'`', &self.sql[start..])?;
        let mut has_doubled = false;
        while self.sql.get(end + 1) == Some(&b'`') {
            has_doubled = true;
            end += 2 + memchr(b'`', &self.sql[end + 2..])?;
        }
        self.at = end + 1;
        let name = std::str::from_utf8(&self.sql[start..end]).ok().filter(|name| !name.is_empty())?;
        Some(if has_doubled { Cow::Owned(name.replace("``", "`")) } else { Cow::Borrowed(name) })
    }

    /// Skips to the first row, over an optional word VALUES.
    pub(crate) fn begin_values(&mut self) -> Option<()> {
        self.skip_blanks()?;
        if matches!(self.peek(), Some(b'v' | b'V')) { self.keyword("VALUES") } else { Some(()) }
    }

    #[inline]
    pub(crate) fn open_row(&mut self) -> Option<()> {
        self.take_byte(b'(')
    }

    /// Takes the `)` right after a `(`.
    #[inline]
    pub(crate) fn close_empty_row(&mut self) -> bool {
        self.take_byte(b')').is_some()
    }

    /// Takes what follows a literal: `Some(true)` for the row's end.
    #[inline]
    pub(crate) fn after_literal(&mut self) -> Option<bool> {
        self.skip_blanks()?;
        let is_last = match self.peek()? {
            b',' => false,
            b')' => true,
            _ => return None,
        };
        self.at += 1;
        Some(is_last)
    }

    /// Takes what follows a row: `Some(false)` for the statement's end.
    #[inline]
    pub(crate) fn another_row(&mut self) -> Option<bool> {
        self.skip_blanks()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Some(true)
            }
            Some(b';') => {
                self.at += 1;
                self.another_row().filter(|another| !another)
            }
            None => Some(false),
            Some(_) => None,
        }
    }

    /// Takes `?`.
    pub(crate) fn placeholder(&mut self) -> bool {
        self.take_byte(b'?').is_some()
    }

    /// Takes a text in single quotes, right here or after one blank, that has no escape and no doubled
    /// quote in it. Takes nothing if there is something else.
    #[inline]
    pub(crate) fn plain_text(&mut self) -> Option<&'a [u8]> {
        let mut start = self.at;
        if self.sql.get(start) == Some(&b' ') {
            start += 1;
        }
        if self.sql.get(start) != Some(&b'\'') {
            return None;
        }
        start += 1;
        let end = start + end_of_plain(&self.sql[start..])?;
        if self.sql[end] != b'\'' || self.sql.get(end + 1) == Some(&b'\'') {
            return None;
        }
        self.at = end + 1;
        Some(&self.sql[start..end])
    }

    /// Takes a number of digits with at most a minus before and a point among them, right here or after
    /// one blank, if a comma or the row's end is right behind it. Takes nothing if there is something
    /// else.
    #[inline]
    pub(crate) fn plain_number(&mut self) -> Option<&'a [u8]> {
        let mut start = self.at;
        if self.sql.get(start) == Some(&b' ') {
            start += 1;
        }
        let mut at = start + usize::from(self.sql.get(start) == Some(&b'-'));
        let first = at;
        let mut points = 0;
        loop {
            let byte = *self.sql.get(at)?;
            if byte.is_ascii_digit() {
                at += 1;
            } else if byte == b'.' {
                points += 1;
                at += 1;
            } else if matches!(byte, b',' | b')') {
                break;
            } else {
                return None;
            }
        }
        if points > 1 || at - first <= points {
            return None;
        }
        self.at = at;
        Some(&self.sql[start..at])
    }

    /// Takes a literal. Texts with escapes are decoded into `scratch`.
    #[inline]
    pub(crate) fn literal<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<Cell<'s>>
    where
        'a: 's,
    {
        self.skip_blanks()?;
        match self.peek()? {
            b'0' if matches!(self.sql.get(self.at + 1), Some(b'x')) => self.hex_digits(scratch),
            b'0'..=b'9' | b'.' => self.number(self.at).map(Cell::Number),
            b'-' | b'+' => self.signed_number(scratch),
            quote @ (b'\'' | b'"') => self.text(quote, scratch).map(Cell::Text),
            byte if byte.is_ascii_alphabetic() => self.word(scratch),
            b'_' => self.introduced(scratch),
            _ => None,
        }
    }

    /// Whether an ARRAY or MAP of literals may follow.
    #[inline]
    pub(crate) fn begins_nested(&mut self) -> bool {
        self.skip_blanks().is_some() && matches!(self.peek(), Some(b'[' | b'{'))
    }

    /// Reads `[…]` or `{key: value, …}` of literals, and writes it as the text from which such a value is loaded. Numbers with a
    /// point are accepted only if the type `takes_points`.
    pub(crate) fn nested(&mut self, out: &mut Vec<u8>, takes_points: bool) -> Option<()> {
        out.clear();
        self.nested_value(out, takes_points, NESTED_DEPTH_MAX)
    }

    fn nested_value(&mut self, out: &mut Vec<u8>, takes_points: bool, levels_left: u32) -> Option<()> {
        let levels_left = levels_left.checked_sub(1)?;
        let open = self.peek().filter(|byte| matches!(byte, b'[' | b'{'))?;
        let close = if open == b'[' { b']' } else { b'}' };
        self.at += 1;
        out.push(open);
        self.skip_blanks()?;
        if self.peek()? != close {
            loop {
                self.nested_part(out, takes_points, levels_left)?;
                if open == b'{' {
                    self.take_byte(b':')?;
                    out.push(b':');
                    self.nested_part(out, takes_points, levels_left)?;
                }
                self.skip_blanks()?;
                match self.peek()? {
                    b',' => out.push(b','),
                    byte if byte == close => break,
                    _ => return None,
                }
                self.at += 1;
            }
        }
        self.at += 1;
        out.push(close);
        Some(())
    }

    fn nested_part(&mut self, out: &mut Vec<u8>, takes_points: bool, levels_left: u32) -> Option<()> {
        if self.begins_nested() {
            return self.nested_value(out, takes_points, levels_left);
        }
        let mut scratch = Vec::new();
        match self.literal(&mut scratch)? {
            Cell::Null => out.extend_from_slice(b"null"),
            Cell::Bool(value) => out.push(if value { b'1' } else { b'0' }),
            Cell::Number(literal) => {
                let digits = literal.strip_prefix(b"-").unwrap_or(literal);
                let is_plain =
                    digits.iter().all(|byte| byte.is_ascii_digit() || (takes_points && *byte == b'.'));
                let ends = digits.first()?.is_ascii_digit() && digits.last()?.is_ascii_digit();
                if !is_plain || !ends {
                    return None;
                }
                out.extend_from_slice(literal);
            }
            Cell::Text(text) => {
                out.push(b'"');
                for &byte in text {
                    if matches!(byte, b'"' | b'\\') {
                        out.push(b'\\');
                    }
                    out.push(byte);
                }
                out.push(b'"');
            }
            _ => return None,
        }
        Some(())
    }

    /// A number that begins at `start`, whose sign is consumed already.
    #[inline]
    fn number(&mut self, start: usize) -> Option<&'a [u8]> {
        let mut digits = self.take_digits();
        if self.peek() == Some(b'.') {
            self.at += 1;
            digits += self.take_digits();
        }
        if digits == 0 {
            return None;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'-' | b'+')) {
                self.at += 1;
            }
            if self.take_digits() == 0 {
                return None;
            }
        }
        Some(&self.sql[start..self.at])
    }

    #[inline]
    fn take_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn signed_number<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<Cell<'s>>
    where
        'a: 's,
    {
        let is_minus = self.peek() == Some(b'-');
        let sign = self.at;
        self.at += 1;
        self.skip_blanks()?;
        if !matches!(self.peek()?, b'0'..=b'9' | b'.') || self.sql[self.at..].starts_with(b"0x") {
            return None;
        }
        let digits = self.at;
        if !is_minus {
            return self.number(digits).map(Cell::Number);
        }
        if digits == sign + 1 {
            return self.number(sign).map(Cell::Number);
        }
        let number = self.number(digits)?;
        scratch.clear();
        scratch.push(b'-');
        scratch.extend_from_slice(number);
        Some(Cell::Number(scratch))
    }

    /// NULL, TRUE, FALSE, DATE '…', TIMESTAMP '…', x'…'.
    fn word<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<Cell<'s>>
    where
        'a: 's,
    {
        let start = self.at;
        while self.peek().is_some_and(is_name_byte) {
            self.at += 1;
        }
        let word = &self.sql[start..self.at];
        let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
        if is("NULL") {
            Some(Cell::Null)
        } else if is("TRUE") {
            Some(Cell::Bool(true))
        } else if is("FALSE") {
            Some(Cell::Bool(false))
        } else if is("DATE") || is("TIMESTAMP") || is("DATETIME") {
            self.skip_blanks()?;
            let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'))?;
            self.text(quote, scratch).map(Cell::Text)
        } else if is("x") && self.peek() == Some(b'\'') {
            self.quoted_hex(scratch)
        } else {
            None
        }
    }

    /// Takes a text in quotes, after blanks.
    pub(crate) fn quoted<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        self.skip_blanks()?;
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'))?;
        self.text(quote, scratch)
    }

    /// `_binary '…'`, whose bytes are those of the text.
    #[cold]
    fn introduced<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<Cell<'s>>
    where
        'a: 's,
    {
        self.keyword("_binary")?;
        self.skip_blanks()?;
        match self.peek()? {
            quote @ (b'\'' | b'"') => self.text(quote, scratch).map(Cell::Text),
            b'0' | b'x' | b'X' => self.literal(scratch).filter(|cell| matches!(cell, Cell::Hex(_))),
            _ => None,
        }
    }

    /// A text in quotes.
    #[inline]
    fn text<'s>(&mut self, quote: u8, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        let start = self.at + 1;
        let end = start + memchr2(quote, b'\\', &self.sql[start..])?;
        if self.sql[end] == quote && self.sql.get(end + 1) != Some(&quote) {
            self.at = end + 1;
            return Some(&self.sql[start..end]);
        }
        self.escaped_text(quote, start, end, scratch)
    }

    /// A text of which `start..stop` is plain and an escape or doubled quote follows.
    fn escaped_text<'s>(
        &mut self,
        quote: u8,
        start: usize,
        mut stop: usize,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        scratch.clear();
        scratch.extend_from_slice(&self.sql[start..stop]);
        loop {
            let next = self.sql.get(stop + 1).copied();
            let resume = if self.sql[stop] == b'\\' {
                push_escape(scratch, next?);
                stop + 2
            } else if next == Some(quote) {
                scratch.push(quote);
                stop + 2
            } else {
                self.at = stop + 1;
                return Some(scratch);
            };
            stop = resume + memchr2(quote, b'\\', &self.sql[resume..])?;
            scratch.extend_from_slice(&self.sql[resume..stop]);
        }
    }

    /// `0x…`.
    fn hex_digits<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<Cell<'s>> {
        let start = self.at + 2;
        let length = self.sql[start..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        self.at = start + length;
        decode_hex(&self.sql[start..self.at], scratch).filter(|_| length > 0)
    }

    /// `'…'` behind an x.
    fn quoted_hex<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<Cell<'s>> {
        let start = self.at + 1;
        let length = memchr(b'\'', &self.sql[start..])?;
        self.at = start + length + 1;
        decode_hex(&self.sql[start..start + length], scratch).filter(|_| length % 2 == 0)
    }
}

/// The position of the first single quote or backslash. Most texts are short: the first bytes are checked here, eight at once.
#[inline]
fn end_of_plain(text: &[u8]) -> Option<usize> {
    const NEAR_WORDS: usize = 4;
    let mut words = text.chunks_exact(8);
    for index in 0..NEAR_WORDS {
        let Some(word) = words.next() else { break };
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let found = bytes_equal(word, b'\'') | bytes_equal(word, b'\\');
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let near = text.len().min(NEAR_WORDS * 8) / 8 * 8;
    memchr2(b'\'', b'\\', &text[near..]).map(|at| near + at)
}

/// The lowest set bit is in the first byte of `word` equal to `byte`; 0 if there is none.
#[inline]
const fn bytes_equal(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let differences = word ^ (ONES * byte as u64);
    differences.wrapping_sub(ONES) & !differences & (ONES << 7)
}

#[inline]
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || byte >= 0x80
}

/// The length of a line with its end.
fn line_end(text: &[u8]) -> usize {
    memchr(b'\n', text).map_or(text.len(), |at| at + 1)
}

/// MySQL's escapes: `\%` and `\_` keep their backslash, unknown ones lose it.
fn push_escape(out: &mut Vec<u8>, escaped: u8) {
    if matches!(escaped, b'%' | b'_') {
        out.push(b'\\');
    }
    out.push(match escaped {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 0x1a,
        other => other,
    });
}

fn decode_hex<'s>(digits: &[u8], out: &'s mut Vec<u8>) -> Option<Cell<'s>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|value| value as u8);
    out.clear();
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    if let [first] = odd {
        out.push(digit(*first)?);
    }
    for pair in pairs.chunks_exact(2) {
        out.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(Cell::Hex(out))
}

//! Lines whose fields may be enclosed: separators and delimiters inside are data.
//!
//! The first mark in an enclosed field that is neither doubled nor escaped closes it. If text follows, and not a separator or the
//! line's end, that mark was data, and so is all text up to the next separator or line's end. The field then counts as enclosed
//! if its last byte is a mark (`"a"b"c"` is `a"b"c`), and otherwise it is taken literally (`"a"b`).
//!
//! An incomplete line is scanned again when twice as much of it has arrived, so a long line costs no more than a constant number
//! of scans.

use super::CsvFormat;
use super::row::{Field, LineRules, Row, RowSink};
use memchr::{memchr, memchr2};

/// Splits lines with enclosed fields.
#[derive(Debug)]
pub(super) struct EnclosedSplitter {
    delimiter: Vec<u8>,
    separator: Vec<u8>,
    enclose: u8,
    escape: Option<u8>,
    rules: LineRules,
    fields: Vec<Field>,
    scratch: Vec<u8>,
    /// An incomplete line is looked at again when the buffer has this many bytes.
    retry_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Break {
    Field,
    Line,
    /// The end of the body.
    End,
}

/// A complete line.
struct Line {
    /// Bytes without the delimiter.
    length: usize,
    /// Bytes including it.
    consumed: usize,
}

impl EnclosedSplitter {
    pub(super) fn new(format: &CsvFormat, enclose: u8, rules: LineRules) -> Self {
        Self {
            delimiter: format.line_delimiter.clone(),
            separator: format.column_separator.clone(),
            enclose,
            escape: format.escape.filter(|&escape| escape != enclose),
            rules,
            fields: Vec::new(),
            scratch: Vec::new(),
            retry_bytes: 0,
        }
    }

    pub(super) fn consume(&mut self, buffer: &[u8], sink: &mut impl RowSink) -> usize {
        if buffer.len() < self.retry_bytes {
            return 0;
        }
        let mut start = 0;
        while let Some(line) = self.split(&buffer[start..], false) {
            self.give(&buffer[start..start + line.length], sink);
            start += line.consumed;
        }
        self.retry_bytes = (buffer.len() - start) * 2;
        start
    }

    /// The rest of the body, which needs no delimiter at its end.
    pub(super) fn finish(&mut self, rest: &[u8], sink: &mut impl RowSink) {
        let mut start = 0;
        while start < rest.len() {
            let Some(line) = self.split(&rest[start..], true) else { return };
            self.give(&rest[start..start + line.length], sink);
            start += line.consumed;
        }
    }

    /// Gives the line that was split last.
    fn give(&mut self, line: &[u8], sink: &mut impl RowSink) {
        if self.rules.skips() || self.is_empty() {
            return;
        }
        let line = self.without_carriage_return(line);
        let row = Row::new(line, &self.scratch, &self.fields);
        if !self.rules.is_text(&row) && !sink.holds(&row) {
            return sink.bad_encoding(line);
        }
        sink.row(row);
    }

    /// The line without a `\r` at its end, unless that is a field's or a separator.
    fn without_carriage_return<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let last = self.fields.last().filter(|field| !field.is_unescaped);
        match line.strip_suffix(b"\r") {
            Some(short)
                if self.ends_lines_with_newline()
                    && last.is_none_or(|field| field.end as usize <= short.len()) =>
            {
                short
            }
            _ => line,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(&self.fields[..], [field] if field.start == field.end && !field.is_enclosed)
    }

    fn ends_lines_with_newline(&self) -> bool {
        self.delimiter == b"\n"
    }

    /// Finds the fields of the first line of `buffer`; `None` if it is not complete.
    fn split(&mut self, buffer: &[u8], is_final: bool) -> Option<Line> {
        self.fields.clear();
        self.scratch.clear();
        if buffer.is_empty() {
            return None;
        }
        let mut at = self.rules.mark_bytes(buffer);
        loop {
            let (end, found) = if buffer.get(at) == Some(&self.enclose) {
                self.enclosed_field(buffer, at + 1, is_final)?
            } else {
                self.plain_field(buffer, at, is_final)?
            };
            match found {
                Break::Field => at = end + self.separator.len(),
                Break::Line => return Some(Line { length: end, consumed: end + self.delimiter.len() }),
                Break::End => return Some(Line { length: end, consumed: end }),
            }
        }
    }

    fn plain_field(&mut self, buffer: &[u8], start: usize, is_final: bool) -> Option<(usize, Break)> {
        let (end, found) = self.find_break(buffer, start, is_final)?;
        let text_end = self.text_end(buffer, start, end, found);
        self.push_field(start, text_end, false, false);
        Some((end, found))
    }

    /// A field behind its opening mark, which is at `start - 1`.
    fn enclosed_field(&mut self, buffer: &[u8], start: usize, is_final: bool) -> Option<(usize, Break)> {
        let escape = self.escape.unwrap_or(self.enclose);
        let scratch_start = self.scratch.len();
        let mut segment = start;
        let mut at = start;
        loop {
            let Some(offset) = memchr2(self.enclose, escape, &buffer[at..]) else {
                // The mark is never closed: the rest of the body is the field.
                return is_final
                    .then(|| self.end_enclosed(buffer, start, segment, buffer.len(), scratch_start));
            };
            at += offset;
            let next = buffer.get(at + 1).copied();
            if next.is_none() && !is_final {
                return None;
            }
            let is_escape = buffer[at] != self.enclose;
            let is_data_next = if is_escape { next.is_some() } else { next == Some(self.enclose) };
            if is_data_next {
                self.scratch.extend_from_slice(&buffer[segment..at]);
                segment = at + 1;
                at += 2;
            } else if is_escape {
                at += 1;
            } else {
                break;
            }
        }
        let (end, found) = self.find_break(buffer, at + 1, is_final)?;
        let text_end = self.text_end(buffer, at + 1, end, found);
        if text_end > at + 1 {
            self.scratch.truncate(scratch_start);
            self.push_unclosed(buffer, start, text_end);
        } else if segment == start {
            self.push_field(start, at, false, true);
        } else {
            self.scratch.extend_from_slice(&buffer[segment..at]);
            self.push_field(scratch_start, self.scratch.len(), true, true);
        }
        Some((end, found))
    }

    /// A field with text behind the mark that should have closed it: marks between the first and the last
    /// byte are data, doubled or not, and only escapes are undone.
    #[cold]
    fn push_unclosed(&mut self, buffer: &[u8], start: usize, text_end: usize) {
        let Some(text) = buffer[start..text_end].strip_suffix(&[self.enclose]) else {
            return self.push_field(start - 1, text_end, false, false);
        };
        let scratch_start = self.scratch.len();
        let mut rest = text;
        while let Some(at) =
            self.escape.and_then(|escape| memchr(escape, rest)).filter(|&at| at + 1 < rest.len())
        {
            self.scratch.extend_from_slice(&rest[..at]);
            self.scratch.push(rest[at + 1]);
            rest = &rest[at + 2..];
        }
        self.scratch.extend_from_slice(rest);
        self.push_field(scratch_start, self.scratch.len(), true, true);
    }

    fn end_enclosed(
        &mut self,
        buffer: &[u8],
        start: usize,
        segment: usize,
        end: usize,
        scratch_start: usize,
    ) -> (usize, Break) {
        if segment == start {
            self.push_field(start, end, false, true);
        } else {
            self.scratch.extend_from_slice(&buffer[segment..end]);
            self.push_field(scratch_start, self.scratch.len(), true, true);
        }
        (end, Break::End)
    }

    /// The end of a field's text: before the `\r` of a line's end.
    fn text_end(&self, buffer: &[u8], start: usize, end: usize, found: Break) -> usize {
        let drops = found != Break::Field && self.ends_lines_with_newline();
        end - usize::from(drops && end > start && buffer[end - 1] == b'\r')
    }

    fn push_field(&mut self, start: usize, end: usize, is_unescaped: bool, is_enclosed: bool) {
        self.fields.push(Field { start: start as u32, end: end as u32, is_unescaped, is_enclosed });
    }

    /// The next separator or delimiter; of two that fit the longer one. `None`: more of the body is needed.
    fn find_break(&self, buffer: &[u8], from: usize, is_final: bool) -> Option<(usize, Break)> {
        let (separator, delimiter) = (self.separator.as_slice(), self.delimiter.as_slice());
        let mut at = from;
        while let Some(offset) = memchr2(separator[0], delimiter[0], &buffer[at..]) {
            at += offset;
            let rest = &buffer[at..];
            let (is_field, is_line) = (rest.starts_with(separator), rest.starts_with(delimiter));
            // The longer one may still become whole.
            let may_grow =
                is_field != is_line && (separator.starts_with(rest) || delimiter.starts_with(rest));
            if may_grow && !is_final {
                return None;
            }
            if is_line && (!is_field || delimiter.len() > separator.len()) {
                return Some((at, Break::Line));
            }
            if is_field {
                return Some((at, Break::Field));
            }
            at += 1;
        }
        is_final.then_some((buffer.len(), Break::End))
    }
}

//! Chunks into lines, lines into fields.
//!
//! Without `enclose` the last line delimiter of a chunk is searched for once, from the end;
//! everything before it is complete lines, which are split in place, and only the rest of a line is
//! carried to the next chunk. If one byte ends a line and one a field, both are found in one pass. With `enclose` see
//! [`super::enclosed`].

use super::enclosed::EnclosedSplitter;
use super::marks::Marks;
use super::row::{Field, LineRules, Row, RowSink};
use super::{CsvFormat, LINE_BYTES_MAX};
use crate::formats::body::held_bytes;
use memchr::{memchr, memchr_iter, memmem, memrchr};
use tributary_types::{ErrorCode, SqlError};

/// Splits a body that arrives in chunks.
#[derive(Debug)]
pub(super) struct Splitter {
    carry: Vec<u8>,
    lines: Lines,
}

#[derive(Debug)]
enum Lines {
    Plain(PlainSplitter),
    Enclosed(EnclosedSplitter),
}

impl Splitter {
    /// A splitter that skips the first `skip_lines` lines.
    pub(super) fn new(format: &CsvFormat, skip_lines: u64) -> Self {
        Self::with_rules(format, LineRules::new(format, skip_lines))
    }

    /// A splitter of lines in the middle of a body.
    pub(super) fn of_later_lines(format: &CsvFormat) -> Self {
        Self::with_rules(format, LineRules::later(format))
    }

    fn with_rules(format: &CsvFormat, rules: LineRules) -> Self {
        let lines = match format.enclose {
            None => Lines::Plain(PlainSplitter::new(format, rules)),
            Some(enclose) => Lines::Enclosed(EnclosedSplitter::new(format, enclose, rules)),
        };
        Self { carry: Vec::new(), lines }
    }

    /// The byte that ends each of the following lines and is in none of them, with the beginning of the next one, which the
    /// splitter gives up.
    pub(super) fn fork(&mut self) -> Option<(u8, Vec<u8>)> {
        match &self.lines {
            Lines::Plain(PlainSplitter { delimiter: Separator::Byte(delimiter), rules, .. })
                if rules.are_later() =>
            {
                Some((*delimiter, std::mem::take(&mut self.carry)))
            }
            _ => None,
        }
    }

    /// The bytes held of an incomplete line.
    pub(super) fn held_bytes(&self) -> usize {
        held_bytes(&self.carry)
    }

    /// Gives the rows that `chunk` completes to `sink`.
    pub(super) fn push(&mut self, chunk: &[u8], sink: &mut impl RowSink) -> Result<(), SqlError> {
        let rest = if self.carry.is_empty() { chunk } else { self.push_carried(chunk, sink) };
        if !rest.is_empty() {
            let consumed = self.lines.consume(rest, 0, sink);
            self.carry.extend_from_slice(&rest[consumed..]);
        }
        if self.carry.len() > LINE_BYTES_MAX {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "a line of the csv data has more than {LINE_BYTES_MAX} bytes; check line_delimiter and enclose"
                ),
            ));
        }
        Ok(())
    }

    /// Completes the split line, and returns the rest after it.
    fn push_carried<'a>(&mut self, chunk: &'a [u8], sink: &mut impl RowSink) -> &'a [u8] {
        let known = self.carry.len();
        let (line, rest) = chunk.split_at(self.lines.end_of_line(chunk).unwrap_or(chunk.len()));
        self.carry.extend_from_slice(line);
        let consumed = self.lines.consume(&self.carry, known, sink);
        self.carry.drain(..consumed);
        rest
    }

    /// Gives the last row to `sink`.
    pub(super) fn finish(&mut self, sink: &mut impl RowSink) -> Result<(), SqlError> {
        let rest = std::mem::take(&mut self.carry);
        if !rest.is_empty() {
            match &mut self.lines {
                Lines::Plain(splitter) => splitter.line(&rest, false, sink),
                Lines::Enclosed(splitter) => splitter.finish(&rest, sink),
            }
        }
        Ok(())
    }
}

impl Lines {
    /// The end of the first line, if one byte marks it.
    fn end_of_line(&self, chunk: &[u8]) -> Option<usize> {
        match self {
            Self::Plain(PlainSplitter { delimiter: Separator::Byte(byte), .. }) => {
                memchr(*byte, chunk).map(|at| at + 1)
            }
            _ => None,
        }
    }

    /// Consumes the complete lines of `buffer`, whose first `known` bytes contain none; returns their bytes.
    fn consume(&mut self, buffer: &[u8], known: usize, sink: &mut impl RowSink) -> usize {
        match self {
            Self::Plain(splitter) => splitter.consume(buffer, known, sink),
            Self::Enclosed(splitter) => splitter.consume(buffer, sink),
        }
    }
}

/// A separator of one byte or of several.
#[derive(Debug)]
enum Separator {
    Byte(u8),
    Bytes(Box<memmem::Finder<'static>>),
}

impl Separator {
    fn new(bytes: &[u8]) -> Self {
        match bytes {
            [byte] => Self::Byte(*byte),
            bytes => Self::Bytes(Box::new(memmem::Finder::new(bytes).into_owned())),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Bytes(finder) => finder.needle().len(),
        }
    }

    #[inline]
    fn find(&self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Byte(byte) => memchr(*byte, text),
            Self::Bytes(finder) => finder.find(text),
        }
    }

    fn is_in(&self, text: &[u8]) -> bool {
        match self {
            Self::Byte(byte) => memrchr(*byte, text).is_some(),
            Self::Bytes(finder) => finder.find(text).is_some(),
        }
    }
}

/// Lines without enclosed fields.
#[derive(Debug)]
struct PlainSplitter {
    delimiter: Separator,
    separator: Separator,
    drops_carriage_return: bool,
    rules: LineRules,
    fields: Vec<Field>,
}

impl PlainSplitter {
    fn new(format: &CsvFormat, rules: LineRules) -> Self {
        Self {
            delimiter: Separator::new(&format.line_delimiter),
            separator: Separator::new(&format.column_separator),
            drops_carriage_return: format.line_delimiter == b"\n",
            rules,
            fields: Vec::new(),
        }
    }

    fn consume(&mut self, buffer: &[u8], known: usize, sink: &mut impl RowSink) -> usize {
        let new_from = known.saturating_sub(self.delimiter.len() - 1);
        if !self.delimiter.is_in(&buffer[new_from..]) {
            return 0;
        }
        let complete = match self.delimiter {
            Separator::Byte(byte) => memrchr(byte, buffer).map_or(0, |at| at + 1),
            Separator::Bytes(_) => buffer.len(),
        };
        let is_text = !self.rules.cuts_characters() && std::str::from_utf8(&buffer[..complete]).is_ok();
        if let Some(marks) = self.marks() {
            self.marked_lines(marks, &buffer[..complete], is_text, sink);
            return complete;
        }
        let mut start = 0;
        while let Some(length) = self.delimiter.find(&buffer[start..]) {
            self.line(&buffer[start..start + length], is_text, sink);
            start += length + self.delimiter.len();
        }
        start
    }

    /// The bytes that end a field and a line, if these are one each.
    fn marks(&self) -> Option<Marks> {
        match (&self.separator, &self.delimiter) {
            // One that ends fields is none of a line's end.
            (Separator::Byte(b'\r'), _) => None,
            (&Separator::Byte(one), &Separator::Byte(other)) => Some(Marks { one, other }),
            _ => None,
        }
    }

    /// Complete lines, which are found together with their fields.
    fn marked_lines(&mut self, marks: Marks, lines: &[u8], is_text: bool, sink: &mut impl RowSink) {
        let (mut line, mut field) = (0, 0);
        self.fields.clear();
        marks.each(lines, |at| {
            if lines[at] != marks.other {
                self.fields.push(Field::plain(field, at - line));
                field = at + 1 - line;
                return;
            }
            self.marked_line(&lines[line..at], field, is_text, sink);
            self.fields.clear();
            (line, field) = (at + 1, 0);
        });
    }

    /// One line, of which all fields but the last are known; that one begins at `last`.
    #[inline]
    fn marked_line(&mut self, line: &[u8], last: usize, is_text: bool, sink: &mut impl RowSink) {
        if !self.rules.are_later() {
            return self.line(line, is_text, sink);
        }
        let line = self.without_carriage_return(line);
        if line.is_empty() {
            return;
        }
        self.fields.push(Field::plain(last, line.len()));
        self.give(line, is_text, sink);
    }

    #[inline]
    fn without_carriage_return<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        if self.drops_carriage_return { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
    }

    /// One line. `is_text`: it is known to be UTF-8.
    #[inline]
    fn line(&mut self, line: &[u8], is_text: bool, sink: &mut impl RowSink) {
        let line = &line[self.rules.mark_bytes(line)..];
        if self.rules.skips() {
            return;
        }
        let line = self.without_carriage_return(line);
        if line.is_empty() {
            return;
        }
        self.split(line);
        self.give(line, is_text, sink);
    }

    /// Gives a line, whose fields are known, to `sink`.
    #[inline]
    fn give(&self, line: &[u8], is_text: bool, sink: &mut impl RowSink) {
        let row = Row::new(line, &[], &self.fields);
        if !is_text && !self.rules.is_text(&row) && !sink.holds(&row) {
            return sink.bad_encoding(line);
        }
        sink.row(row);
    }

    /// Finds the fields of a line.
    #[inline]
    fn split(&mut self, line: &[u8]) {
        self.fields.clear();
        let mut start = 0;
        let width = self.separator.len();
        let fields = &mut self.fields;
        let mut field = |end: usize| {
            fields.push(Field::plain(start, end));
            start = end + width;
        };
        match &self.separator {
            Separator::Byte(byte) => memchr_iter(*byte, line).for_each(&mut field),
            Separator::Bytes(finder) => finder.find_iter(line).for_each(&mut field),
        }
        field(line.len());
    }
}

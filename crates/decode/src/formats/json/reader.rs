//! A body in chunks becomes objects: lines, the elements of one array, or one whole text.
//!
//! Lines are found like those of CSV: the last line end of a chunk is searched for once, and only the rest is carried to the next
//! chunk. The elements of an array are decoded in place; one that is split by a chunk's end is carried until [`Tracker`] has seen
//! its end.
//!
//! Invariant: the result does not depend on where the body is cut into chunks.

use super::JsonFormat;
use super::rows::{RowSink, Rows, encoding};
use super::scan::{Cursor, Defect, Flaw, Stop, check};
use crate::cells::reject::{Reject, RejectCode};
use crate::formats::body::held_bytes;
use memchr::{memchr, memmem, memrchr};
use tributary_types::{ErrorCode, SqlError};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes of a body refused as a whole that are stored: more than a reason shows.
const REFUSED_BYTES_KEPT: usize = 2048;

const NEEDS_STRIP: &str = "JSON data is array-object, `strip_outer_array` must be TRUE.";
const NO_OBJECT: &str = "Not an json object or json array";
const NO_ROOT: &str = "JSON Root not found.";
const NEEDS_NO_STRIP: &str = "JSON data is not an array-object, `strip_outer_array` must be FALSE.";

/// Reads one body.
#[derive(Debug)]
pub(super) struct Reader {
    format: JsonFormat,
    pub(super) rows: Rows,
    state: State,
    /// The incomplete part.
    carry: Vec<u8>,
    /// Bytes of the body that were read and are not in `carry`.
    position: u64,
    /// The longest row or text, in bytes.
    pub(super) row_bytes_max: usize,
}

#[derive(Debug)]
enum State {
    Lines {
        is_first: bool,
        delimiter: Delimiter,
    },
    /// Before the first byte that determines the kind.
    Start,
    Array {
        next: Next,
        elements: u64,
        /// Follows the element in `carry`.
        tracker: Tracker,
    },
    /// The array is closed.
    Closed,
    /// One text up to the body's end.
    Whole,
    /// One text up to the body's end, of which only the beginning is stored.
    Refused(&'static str),
}

#[derive(Debug)]
enum Delimiter {
    Newline,
    Bytes(Box<memmem::Finder<'static>>),
}

/// The permitted next token in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    FirstOrEnd,
    Element,
    CommaOrEnd,
}

impl Reader {
    pub(super) fn new(format: JsonFormat, rows: Rows, row_bytes_max: usize) -> Self {
        let state = match &format.line_delimiter[..] {
            _ if !format.read_by_line => State::Start,
            b"\n" => State::Lines { is_first: true, delimiter: Delimiter::Newline },
            bytes => {
                let finder = Box::new(memmem::Finder::new(bytes).into_owned());
                State::Lines { is_first: true, delimiter: Delimiter::Bytes(finder) }
            }
        };
        Self { format, rows, state, carry: Vec::new(), position: 0, row_bytes_max }
    }

    /// The byte that ends each of the following lines, with the beginning of the next one, which the reader gives up. `None` if the
    /// rows are not lines, or if only the beginning was read.
    pub(super) fn fork(&mut self) -> Option<(u8, Vec<u8>)> {
        match self.state {
            State::Lines { is_first: false, delimiter: Delimiter::Newline } if !self.rows.is_unnamed() => {
                Some((b'\n', std::mem::take(&mut self.carry)))
            }
            _ => None,
        }
    }

    /// Declares that the lines are in the middle of a body.
    pub(super) fn begin_later(&mut self) {
        if let State::Lines { is_first, .. } = &mut self.state {
            *is_first = false;
        }
    }

    /// The bytes held of an incomplete row.
    pub(super) fn held_bytes(&self) -> usize {
        held_bytes(&self.carry)
    }

    /// Gives the rows that `chunk` completes to `sink`.
    pub(super) fn push(&mut self, chunk: &[u8], sink: &mut impl RowSink) -> Result<(), SqlError> {
        match self.state {
            State::Lines { .. } => self.push_lines(chunk, sink),
            State::Start => self.push_start(chunk, sink)?,
            State::Array { .. } => self.push_array(chunk, sink)?,
            State::Closed => self.push_closed(chunk)?,
            State::Whole => self.carry.extend_from_slice(chunk),
            State::Refused(_) => {
                let space = REFUSED_BYTES_KEPT.saturating_sub(self.carry.len());
                self.carry.extend_from_slice(&chunk[..chunk.len().min(space)]);
            }
        }
        if self.carry.len() > self.row_bytes_max {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "a row of the json data has more than {} bytes; check line_delimiter, read_json_by_line and \
                     strip_outer_array",
                    self.row_bytes_max
                ),
            ));
        }
        Ok(())
    }

    /// Gives the last row to `sink`.
    pub(super) fn finish(&mut self, sink: &mut impl RowSink) -> Result<(), SqlError> {
        let rest = std::mem::take(&mut self.carry);
        match &self.state {
            State::Lines { .. } => self.lines(&rest, sink),
            State::Whole => self.text(&rest, sink),
            State::Refused(reason) => {
                sink.reject(|place| Reject::of_row(place, RejectCode::BadJson, (*reason).to_owned(), &rest));
            }
            State::Start if !rest.is_empty() => self.text(&rest, sink),
            State::Array { .. } => {
                // The tracker may have waited in vain for text that is broken long before the body's end.
                let consumed = self.array(&rest, sink)?;
                let defect = Defect { at: rest.len() - consumed, flaw: Flaw::CutOff };
                return Err(self.broken(defect, 0));
            }
            State::Start | State::Closed => {}
        }
        Ok(())
    }

    fn push_lines(&mut self, chunk: &[u8], sink: &mut impl RowSink) {
        let rest = if self.carry.is_empty() { chunk } else { self.push_carried(chunk, sink) };
        if !rest.is_empty() {
            let consumed = self.complete_lines(rest, 0, sink);
            self.carry.extend_from_slice(&rest[consumed..]);
        }
    }

    /// Completes the split line, and returns the rest after it.
    fn push_carried<'a>(&mut self, chunk: &'a [u8], sink: &mut impl RowSink) -> &'a [u8] {
        let known = self.carry.len();
        let is_newline = matches!(self.state, State::Lines { delimiter: Delimiter::Newline, .. });
        let end = memchr(b'\n', chunk).filter(|_| is_newline).map_or(chunk.len(), |at| at + 1);
        let (line, rest) = chunk.split_at(end);
        self.carry.extend_from_slice(line);
        let mut carry = std::mem::take(&mut self.carry);
        let consumed = self.complete_lines(&carry, known, sink);
        carry.drain(..consumed);
        self.carry = carry;
        rest
    }

    /// Consumes the complete lines of `buffer`, whose first `known` bytes contain none; returns their bytes.
    fn complete_lines(&mut self, buffer: &[u8], known: usize, sink: &mut impl RowSink) -> usize {
        let State::Lines { delimiter, .. } = &self.state else { return 0 };
        let complete = match delimiter {
            Delimiter::Newline => memrchr(b'\n', &buffer[known..]).map_or(0, |at| known + at + 1),
            Delimiter::Bytes(finder) => {
                let length = finder.needle().len();
                let mut end = 0;
                let mut from = known.saturating_sub(length - 1);
                while let Some(at) = finder.find(&buffer[from..]) {
                    end = from + at + length;
                    from = end;
                }
                end
            }
        };
        self.lines(&buffer[..complete], sink);
        complete
    }

    /// Whole lines.
    fn lines(&mut self, lines: &[u8], sink: &mut impl RowSink) {
        let State::Lines { is_first, delimiter } = &mut self.state else { return };
        if lines.is_empty() {
            return;
        }
        let mark = if std::mem::take(is_first) { BYTE_ORDER_MARK } else { b"" };
        let lines = lines.strip_prefix(mark).unwrap_or(lines);
        let finder = match delimiter {
            Delimiter::Newline => None,
            Delimiter::Bytes(finder) => Some(finder.clone()),
        };
        if let Some(finder) = finder {
            let mut start = 0;
            while let Some(length) = finder.find(&lines[start..]) {
                self.text(&lines[start..start + length], sink);
                start += length + finder.needle().len();
            }
            self.text(&lines[start..], sink);
        } else if self.is_plain() && std::str::from_utf8(lines).is_ok() {
            self.plain_lines(lines, sink);
        } else {
            lines.split(|&byte| byte == b'\n').for_each(|line| self.text(line, sink));
        }
    }

    /// Rows appear directly in the text, with nothing around them.
    fn is_plain(&self) -> bool {
        self.format.root.is_none() && !self.format.strip_outer_array && self.rows.is_direct()
    }

    /// Lines that are UTF-8, each of them an object most likely.
    fn plain_lines(&mut self, lines: &[u8], sink: &mut impl RowSink) {
        let mut cursor = Cursor::over_lines(lines, 0);
        loop {
            while lines.get(cursor.at).is_some_and(|&byte| is_blank(byte)) {
                cursor.at += 1;
            }
            let start = cursor.at;
            let Some(&first) = lines.get(start) else { return };
            if first == b'{' {
                let row = self.rows.object(&mut cursor, sink);
                let end = cursor.at;
                let is_line = matches!(cursor.token(), Err(Stop::End) | Ok(b'\n'));
                if let (Ok(found), true) = (row, is_line) {
                    self.rows.settle(found, (start, &lines[start..end]), true, sink);
                    continue;
                }
                sink.undo_row();
            }
            let end = memchr(b'\n', &lines[start..]).map_or(lines.len(), |at| start + at);
            self.text(&lines[start..end], sink);
            cursor.at = end;
        }
    }

    /// One text: a line, or a whole body.
    fn text(&mut self, text: &[u8], sink: &mut impl RowSink) {
        let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
        let text = &text[blanks..];
        if std::str::from_utf8(text).is_err() {
            return refuse(text, sink, || encoding(text).reason("the row"));
        }
        let top = match check(text) {
            Ok(Some(value)) => value.start,
            Ok(None) => return,
            Err(defect) => return refuse(text, sink, || defect.reason("the row")),
        };
        let strips = self.format.strip_outer_array;
        let is_array = text[top] == b'[';
        let at = match &self.format.root {
            _ if !is_array && text[top] != b'{' => return refuse(text, sink, || NO_OBJECT.to_owned()),
            _ if is_array && !strips => return refuse(text, sink, || NEEDS_STRIP.to_owned()),
            // The root is applied to each element.
            Some(_) if is_array => top,
            Some(root) => match root.find(text, top) {
                Some(at) => at,
                None => return refuse(text, sink, || NO_ROOT.to_owned()),
            },
            None => top,
        };
        match (text[at], strips) {
            (b'[', false) => refuse(text, sink, || NEEDS_STRIP.to_owned()),
            (b'[', true) => self.elements(text, at, is_array, sink),
            (_, true) => refuse(text, sink, || NEEDS_NO_STRIP.to_owned()),
            (b'{', false) => self.row(text, at, true, sink),
            (_, false) => refuse(text, sink, || NO_OBJECT.to_owned()),
        }
    }

    /// The elements of the array at `at` of a legal text.
    fn elements(&mut self, text: &[u8], at: usize, has_roots: bool, sink: &mut impl RowSink) {
        let mut cursor = Cursor::new(text, at + 1);
        while cursor.token().is_ok_and(|byte| byte != b']') {
            let start = cursor.at;
            if cursor.skip_value().is_err() {
                return;
            }
            self.element((text, start, cursor.at), has_roots, true, sink);
            if cursor.token() == Ok(b',') {
                cursor.at += 1;
            }
        }
    }

    /// A legal element from `start` to `end` of `bytes`.
    fn element(
        &mut self,
        (bytes, start, end): (&[u8], usize, usize),
        has_root: bool,
        is_text: bool,
        sink: &mut impl RowSink,
    ) {
        let mut at = Some(start);
        if let Some(root) = self.format.root.as_ref().filter(|_| has_root) {
            at = root.find(bytes, start);
        }
        let refused = match at {
            Some(at) if bytes[at] == b'{' => return self.row(bytes, at, is_text, sink),
            Some(_) => "Not object item",
            None => NO_ROOT,
        };
        refuse(&bytes[start..end], sink, || refused.to_owned());
    }

    /// The object at `at` of a legal text.
    fn row(&mut self, bytes: &[u8], at: usize, is_text: bool, sink: &mut impl RowSink) {
        let mut cursor = Cursor::new(bytes, at);
        match self.rows.object(&mut cursor, sink) {
            Ok(found) => self.rows.settle(found, (at, &bytes[at..cursor.at]), is_text, sink),
            Err(stop) => {
                // Only a text that is too deep is legal for `check` and not here.
                sink.undo_row();
                let Stop::Bad(defect) = stop else { return };
                let defect = Defect { at: defect.at - at, ..defect };
                sink.reject(|place| {
                    Reject::of_row(place, RejectCode::BadJson, defect.reason("the row"), &bytes[at..])
                });
            }
        }
    }

    fn push_start(&mut self, chunk: &[u8], sink: &mut impl RowSink) -> Result<(), SqlError> {
        self.carry.extend_from_slice(chunk);
        if self.position == 0 {
            let is_mark = BYTE_ORDER_MARK.starts_with(&self.carry[..self.carry.len().min(3)]);
            match self.carry.len() {
                0..3 if is_mark => return Ok(()),
                _ if is_mark => {
                    self.carry.drain(..3);
                    self.position = 3;
                }
                _ => {}
            }
        }
        let blanks = self.carry.iter().take_while(|&&byte| is_blank(byte)).count();
        self.carry.drain(..blanks);
        self.position += blanks as u64;
        let Some(&first) = self.carry.first() else { return Ok(()) };
        let strips = self.format.strip_outer_array;
        self.state = match first {
            b'[' if strips => {
                let body = std::mem::take(&mut self.carry);
                self.state =
                    State::Array { next: Next::FirstOrEnd, elements: 0, tracker: Tracker::default() };
                self.position += 1;
                return self.push_array(&body[1..], sink);
            }
            b'[' => State::Refused(NEEDS_STRIP),
            b'{' if strips && self.format.root.is_none() => State::Refused(NEEDS_NO_STRIP),
            _ => State::Whole,
        };
        if matches!(self.state, State::Refused(_)) {
            self.carry.truncate(REFUSED_BYTES_KEPT);
        }
        Ok(())
    }

    fn push_array(&mut self, chunk: &[u8], sink: &mut impl RowSink) -> Result<(), SqlError> {
        let mut rest = chunk;
        if !self.carry.is_empty() {
            let State::Array { tracker, .. } = &mut self.state else { return Ok(()) };
            let Some(end) = tracker.feed(chunk) else {
                self.carry.extend_from_slice(chunk);
                return Ok(());
            };
            self.carry.extend_from_slice(&chunk[..end]);
            rest = &chunk[end..];
            let mut carry = std::mem::take(&mut self.carry);
            let consumed = self.array(&carry, sink)?;
            if consumed < carry.len() {
                return Err(self.broken(Defect { at: carry.len() - consumed, flaw: Flaw::CutOff }, 0));
            }
            carry.clear();
            self.carry = carry;
            if matches!(self.state, State::Closed) {
                return self.push_closed(rest);
            }
        }
        let consumed = self.array(rest, sink)?;
        rest = &rest[consumed..];
        if let State::Array { tracker, .. } = &mut self.state {
            *tracker = Tracker::default();
            tracker.feed(rest);
            self.carry.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Consumes the complete part of `bytes`, which begin between an array's tokens; returns its length.
    fn array(&mut self, bytes: &[u8], sink: &mut impl RowSink) -> Result<usize, SqlError> {
        let text_end = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let is_direct = self.format.root.is_none() && self.rows.is_direct();
        let mut cursor = Cursor::new(bytes, 0);
        let mut start = 0;
        while let State::Array { next, elements, .. } = &mut self.state {
            let Ok(first) = cursor.token() else {
                start = bytes.len();
                break;
            };
            start = cursor.at;
            match (*next, first) {
                (Next::FirstOrEnd | Next::CommaOrEnd, b']') => {
                    cursor.at += 1;
                    self.position += cursor.at as u64;
                    self.state = State::Closed;
                    self.push_closed(cursor.rest())?;
                    return Ok(bytes.len());
                }
                (Next::CommaOrEnd, b',') => {
                    cursor.at += 1;
                    *next = Next::Element;
                    continue;
                }
                (Next::CommaOrEnd, _) => {
                    let flaw = Flaw::Expected("',' or ']' behind an element");
                    return Err(self.broken(Defect { at: cursor.at, flaw }, 0));
                }
                (Next::FirstOrEnd | Next::Element, _) => {}
            }
            *next = Next::CommaOrEnd;
            let number = *elements + 1;
            let read = if is_direct && first == b'{' {
                self.rows.object(&mut cursor, sink)
            } else {
                cursor.skip_value().map(|()| 0)
            };
            let end = cursor.at;
            let is_text = |end: usize| end <= text_end || std::str::from_utf8(&bytes[start..end]).is_ok();
            match read {
                Ok(found) if is_direct && first == b'{' => {
                    self.rows.settle(found, (start, &bytes[start..end]), is_text(end), sink);
                }
                Ok(_) => self.element((bytes, start, end), true, is_text(end), sink),
                Err(stop) => {
                    sink.undo_row();
                    if let Stop::Bad(defect) = stop {
                        return Err(self.broken(defect, number));
                    }
                    if let State::Array { next, .. } = &mut self.state {
                        *next = if number == 1 { Next::FirstOrEnd } else { Next::Element };
                    }
                    break;
                }
            }
            if let State::Array { elements, .. } = &mut self.state {
                *elements = number;
            }
        }
        self.position += start as u64;
        Ok(start)
    }

    /// Only blanks may follow the array.
    fn push_closed(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        match chunk.iter().position(|&byte| !is_blank(byte)) {
            Some(at) => Err(self.broken(Defect { at, flaw: Flaw::Trailing }, 0)),
            None => {
                self.position += chunk.len() as u64;
                Ok(())
            }
        }
    }

    /// The error for an array that can't be read any further: the number of rows after the defect is unknown.
    fn broken(&self, defect: Defect, element: u64) -> SqlError {
        let place = match element {
            0 => "the body".to_owned(),
            number => format!("the body, in element {number} of the array"),
        };
        let at = usize::try_from(self.position).unwrap_or(usize::MAX).saturating_add(defect.at);
        let reason = Defect { at, ..defect }.reason(&place);
        SqlError::detail(
            ErrorCode::Unknown,
            format!("{reason}; what follows can't be read, so no row is loaded"),
        )
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Rejects a text.
fn refuse(text: &[u8], sink: &mut impl RowSink, reason: impl FnOnce() -> String) {
    sink.reject(|place| Reject::of_row(place, RejectCode::BadJson, reason(), text));
}

/// Follows the brackets and quotes of a value that arrives in pieces, to detect its end.
#[derive(Clone, Copy, Debug, Default)]
struct Tracker {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Tracker {
    /// The end of the value, if it is in `bytes`. A number or word ends with the byte behind it.
    fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                if std::mem::take(&mut self.is_escaped) {
                    at += 1;
                    continue;
                }
                at += memchr::memchr2(b'"', b'\\', &bytes[at..])?;
                self.is_escaped = bytes[at] == b'\\';
                self.in_string = self.is_escaped;
                at += 1;
                if !self.in_string && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth <= 1 => return Some(at),
                b'}' | b']' => self.depth -= 1,
                b',' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => return Some(at),
                _ => {}
            }
        }
        None
    }
}

//! The output of both splitters: lines and the positions of their fields, and the rules for lines.

use super::CsvFormat;
use crate::cells::reject::shown;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Takes rows as they are found.
pub(super) trait RowSink {
    fn row(&mut self, row: Row<'_>);
    /// Whether the fields that are not UTF-8 are of columns that hold any bytes.
    fn holds(&self, _row: &Row<'_>) -> bool {
        false
    }
    /// A line that is not UTF-8.
    fn bad_encoding(&mut self, line: &[u8]);
}

/// The position of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) start: u32,
    pub(super) end: u32,
    /// In the scratch, with escapes resolved, rather than in the line.
    pub(super) is_unescaped: bool,
    pub(super) is_enclosed: bool,
}

impl Field {
    /// A field as it is in the line.
    #[inline]
    pub(super) fn plain(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32, is_unescaped: false, is_enclosed: false }
    }
}

/// A line and its fields.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    line: &'a [u8],
    scratch: &'a [u8],
    fields: &'a [Field],
}

impl<'a> Row<'a> {
    pub(super) fn new(line: &'a [u8], scratch: &'a [u8], fields: &'a [Field]) -> Self {
        Self { line, scratch, fields }
    }

    /// The line without its delimiter.
    pub(super) fn line(&self) -> &'a [u8] {
        self.line
    }

    /// The number of fields.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field's text and whether it was enclosed.
    #[inline]
    pub(super) fn field(&self, index: usize) -> (&'a [u8], bool) {
        let field = self.fields[index];
        let from = if field.is_unescaped { self.scratch } else { self.line };
        (&from[field.start as usize..field.end as usize], field.is_enclosed)
    }

    /// Whether every field is UTF-8.
    fn are_fields_text(&self) -> bool {
        (0..self.len()).all(|index| std::str::from_utf8(self.field(index).0).is_ok())
    }

    /// The values with a blank between them: the form of a row in a reason.
    pub(super) fn dump(&self, format: &CsvFormat) -> String {
        let value = |index| {
            let (field, is_enclosed) = self.field(index);
            format.value(field, is_enclosed).unwrap_or(b"NULL")
        };
        let values: Vec<&[u8]> = (0..self.len()).map(value).collect();
        shown(&values.join(&b' '))
    }
}

/// The treatment of lines before they become rows.
#[derive(Debug)]
pub(super) struct LineRules {
    skip_lines: u64,
    is_first: bool,
    /// The separator or delimiter is not UTF-8: it may split a character, and a line with it is not UTF-8 as a whole. Others
    /// split UTF-8 into pieces of UTF-8.
    cuts_characters: bool,
}

impl LineRules {
    pub(super) fn new(format: &CsvFormat, skip_lines: u64) -> Self {
        let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
        let cuts_characters = !is_text(&format.column_separator) || !is_text(&format.line_delimiter);
        Self { skip_lines, is_first: true, cuts_characters }
    }

    /// The rules for lines that are not the first ones of a body.
    pub(super) fn later(format: &CsvFormat) -> Self {
        Self { is_first: false, ..Self::new(format, 0) }
    }

    /// Whether the line that is next is treated as all later ones are.
    pub(super) fn are_later(&self) -> bool {
        !self.is_first && self.skip_lines == 0
    }

    #[inline]
    pub(super) fn cuts_characters(&self) -> bool {
        self.cuts_characters
    }

    /// Whether the texts of a row are UTF-8.
    #[inline]
    pub(super) fn is_text(&self, row: &Row<'_>) -> bool {
        if self.cuts_characters { row.are_fields_text() } else { std::str::from_utf8(row.line()).is_ok() }
    }

    /// The bytes of a byte order mark at the beginning of the first line.
    #[inline]
    pub(super) fn mark_bytes(&self, line: &[u8]) -> usize {
        if self.is_first && line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
    }

    /// Counts a line; returns whether to skip it.
    #[inline]
    pub(super) fn skips(&mut self) -> bool {
        self.is_first = false;
        let skips = self.skip_lines > 0;
        self.skip_lines -= u64::from(skips);
        skips
    }
}

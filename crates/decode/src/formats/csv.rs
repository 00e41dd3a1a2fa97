//! CSV, streamed: chunks of any size in, blocks out.
//!
//! Invariant: the result does not depend on where the input is cut into chunks; memory is bounded
//! by the blocks that were not taken yet and one line.
//!
//! Not its business: compression, the `columns` header, `where`; loads that need expressions take
//! [`CsvStrings`] through the query engine.

mod enclosed;
mod marks;
mod row;
mod split;
mod strings;

pub use strings::CsvStrings;

use crate::blocks::block::Block;
use crate::blocks::builder::BlockBuilder;
use crate::cells::cell::Cell;
use crate::cells::reject::{Counts, Place, Reject, RejectCode, Source, shown};
use crate::formats::body::BodyDecoder;
use crate::formats::fork::LineFork;
use crate::rows::loader::{Decoded, LoadRules, Loader, Progress};
use crate::rows::target::{Target, Wording};
use row::{Row, RowSink};
use split::Splitter;
use std::borrow::Cow;
use tributary_types::{ErrorCode, SqlError};

/// The longest line, in bytes.
pub const LINE_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The header lines at the beginning of a CSV body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvHeader {
    /// `csv`
    #[default]
    None,
    /// `csv_with_names`: a line with the names of the fields.
    Names,
    /// `csv_with_names_and_types`: a second line, of types, which is skipped.
    NamesAndTypes,
}

/// How a CSV body is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFormat {
    pub header: CsvHeader,
    /// One byte or more.
    pub column_separator: Vec<u8>,
    /// One byte or more. With `\n` a `\r` before it is dropped.
    pub line_delimiter: Vec<u8>,
    /// Separators and delimiters between two of these are data.
    pub enclose: Option<u8>,
    /// Makes the next byte of an enclosed field data.
    pub escape: Option<u8>,
    /// Drop the outermost `"` of each field that is not enclosed; an enclosed one has lost them already.
    pub trim_double_quotes: bool,
    /// Number of leading lines to skip if there is no [`CsvFormat::header`].
    pub skip_lines: u64,
    /// An empty field is NULL, not an empty text.
    pub empty_field_as_null: bool,
}

impl Default for CsvFormat {
    fn default() -> Self {
        Self {
            header: CsvHeader::None,
            column_separator: b"\t".to_vec(),
            line_delimiter: b"\n".to_vec(),
            enclose: None,
            escape: None,
            trim_double_quotes: false,
            skip_lines: 0,
            empty_field_as_null: false,
        }
    }
}

impl CsvFormat {
    /// Lines at the beginning that are not rows. `skip_lines` has no effect with a header, as in Doris.
    #[must_use]
    pub const fn lines_to_skip(&self) -> u64 {
        match self.header {
            CsvHeader::None => self.skip_lines,
            CsvHeader::Names => 1,
            CsvHeader::NamesAndTypes => 2,
        }
    }

    fn check(&self) -> Result<(), SqlError> {
        for (name, value) in
            [("column_separator", &self.column_separator), ("line_delimiter", &self.line_delimiter)]
        {
            if value.is_empty() {
                return Err(SqlError::detail(
                    ErrorCode::Unknown,
                    format!("{name} is empty; give at least one byte"),
                ));
            }
        }
        Ok(())
    }

    /// A field's text, `None` for NULL. Only `\N` outside of quotes is NULL.
    #[inline]
    fn value<'a>(&self, field: &'a [u8], is_enclosed: bool) -> Option<&'a [u8]> {
        if !is_enclosed && field == b"\\N" {
            return None;
        }
        let field = match field {
            [b'"', inner @ .., b'"'] if self.trim_double_quotes && !is_enclosed => inner,
            field => field,
        };
        if self.empty_field_as_null && field.is_empty() { None } else { Some(field) }
    }

    fn column_count_reason(&self, expected: usize, row: &Row<'_>) -> String {
        let actual = row.len();
        let relation = if actual > expected { "more" } else { "less" };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mark = |name: &str, byte: Option<u8>| {
            byte.map_or_else(String::new, |byte| format!("{name}:[{}] ", text(&[byte])))
        };
        let values: String = (0..actual.min(1000)).map(|field| shown(row.field(field).0) + ", ").collect();
        format!(
            "actual column number in csv file is  {relation} than  schema column number.actual number: \
             {actual}, schema column number: {expected}; line delimiter: [{}], column separator: [{}], \
             {}{}result values:[{}]",
            text(&self.line_delimiter),
            text(&self.column_separator),
            mark("enclose", self.enclose),
            mark("escape", self.escape),
            shown(values.as_bytes())
        )
    }
}

/// A line that is not UTF-8.
fn bad_encoding(place: Place, line: &[u8]) -> Reject {
    let reason = "Unable to display, only support csv data in utf8 codec, please check the data encoding";
    Reject {
        source_line: "Unable to display".into(),
        ..Reject::of_row(place, RejectCode::NotUtf8, reason.into(), line)
    }
}

/// A row with more or fewer fields than columns.
fn wrong_count(place: Place, format: &CsvFormat, expected: usize, row: &Row<'_>) -> Reject {
    let reason = format.column_count_reason(expected, row);
    Reject::of_row(place, RejectCode::ColumnCount, reason, row.line())
}

/// A row whose line the error log shows by its values.
struct ByValues<'a>(&'a Row<'a>, &'a CsvFormat);

impl Source for ByValues<'_> {
    fn line(&self) -> String {
        self.0.dump(self.1)
    }

    fn raw(&self, max: usize) -> String {
        self.0.line().raw(max)
    }
}

/// Decodes a CSV body straight into blocks.
#[derive(Debug)]
pub struct CsvDecoder {
    target: Target,
    format: CsvFormat,
    rules: LoadRules,
    splitter: Splitter,
    builder: BlockBuilder,
    progress: Progress,
}

impl CsvDecoder {
    /// A decoder whose fields are the target's.
    ///
    /// # Errors
    /// If a separator is empty.
    pub fn new(target: Target, format: CsvFormat, rules: LoadRules) -> Result<Self, SqlError> {
        let builder = BlockBuilder::new(target.schema());
        Self::with_builder(target, format, rules, builder)
    }

    /// Like [`CsvDecoder::new`], with the buffers of an earlier load, of whatever table.
    ///
    /// # Errors
    /// See [`CsvDecoder::new`].
    pub fn with_builder(
        target: Target,
        format: CsvFormat,
        rules: LoadRules,
        mut builder: BlockBuilder,
    ) -> Result<Self, SqlError> {
        format.check()?;
        builder.reset(target.schema());
        let splitter = Splitter::new(&format, format.lines_to_skip());
        Ok(Self { target, format, rules, splitter, builder, progress: Progress::default() })
    }

    /// A decoder of lines in the middle of a body, with `progress`.
    fn of_later_lines(
        target: Target,
        format: CsvFormat,
        rules: LoadRules,
        builder: BlockBuilder,
        progress: Progress,
    ) -> Result<Self, SqlError> {
        let splitter = Splitter::of_later_lines(&format);
        Ok(Self { splitter, progress, ..Self::with_builder(target, format, rules, builder)? })
    }

    /// Decodes the lines that `chunk` completes.
    ///
    /// # Errors
    /// If a line is longer than [`LINE_BYTES_MAX`]; the load must be given up then.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        let (splitter, mut sink) = self.parts();
        splitter.push(chunk, &mut sink)
    }

    /// Decodes the last line, which needs no delimiter, and completes the last block.
    ///
    /// # Errors
    /// See [`CsvDecoder::push`].
    pub fn finish(&mut self) -> Result<(), SqlError> {
        let (splitter, mut sink) = self.parts();
        splitter.finish(&mut sink)?;
        sink.loader.end_block();
        Ok(())
    }

    /// The bytes held of an incomplete line.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.splitter.held_bytes()
    }

    /// The blocks that are complete.
    pub fn take_blocks(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.progress.decoded.blocks)
    }

    /// The rows so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.progress.decoded.counts
    }

    /// Takes the buffers for a later load; rows that are in no finished block go with them. The decoder
    /// can decode no more.
    pub fn take_builder(&mut self) -> BlockBuilder {
        self.builder.take()
    }

    /// The first rejected rows, at most [`crate::REJECTS_KEPT_MAX`].
    #[must_use]
    pub fn rejects(&self) -> &[Reject] {
        &self.progress.decoded.rejects
    }

    /// Everything decoded and not taken: call [`CsvDecoder::finish`] first.
    #[must_use]
    pub fn into_decoded(self) -> Decoded {
        self.progress.decoded
    }

    fn parts(&mut self) -> (&mut Splitter, BlockSink<'_>) {
        let rules = self.rules.worded(Wording::File);
        let now_micros = self.rules.clock.now_micros;
        let loader = Loader::new(&self.target, &mut self.builder, rules, now_micros, &mut self.progress);
        (&mut self.splitter, BlockSink { loader, format: &self.format })
    }
}

impl BodyDecoder for CsvDecoder {
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        self.push(chunk)
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        self.finish()
    }

    fn fork(&mut self) -> Option<LineFork> {
        let (delimiter, rest) = self.splitter.fork()?;
        let (target, format, rules) = (self.target.clone(), self.format.clone(), self.rules);
        let decoder = move |builder, rejects| {
            let progress = Progress::after(rejects);
            Self::of_later_lines(target.clone(), format.clone(), rules, builder, progress)
        };
        Some(LineFork::new(delimiter, rest, decoder))
    }

    fn held_bytes(&self) -> usize {
        Self::held_bytes(self)
    }

    fn take_blocks(&mut self) -> Vec<Block> {
        self.take_blocks()
    }

    fn counts(&self) -> Counts {
        self.counts()
    }

    fn rejects(&self) -> Cow<'_, [Reject]> {
        Cow::Borrowed(self.rejects())
    }

    fn take_builder(&mut self) -> BlockBuilder {
        self.take_builder()
    }
}

/// Rows into a loader.
struct BlockSink<'a> {
    loader: Loader<'a>,
    format: &'a CsvFormat,
}

impl RowSink for BlockSink<'_> {
    #[inline]
    fn row(&mut self, row: Row<'_>) {
        let expected = self.loader.target.field_count();
        if row.len() != expected {
            return self.loader.reject_row(|place| wrong_count(place, self.format, expected, &row));
        }
        for index in 0..expected {
            let (field, is_enclosed) = row.field(index);
            match self.format.value(field, is_enclosed) {
                Some(text) => self.loader.put_text(index, text),
                None => self.loader.put(index, Cell::Null),
            }
        }
        self.loader.end_row(ByValues(&row, self.format));
    }

    #[cold]
    fn holds(&self, row: &Row<'_>) -> bool {
        let target = self.loader.target;
        let takes_bytes = |index| target.column_of(index).is_some_and(|column| column.data_type.is_bytes());
        row.len() == target.field_count()
            && (0..row.len())
                .all(|index| takes_bytes(index) || std::str::from_utf8(row.field(index).0).is_ok())
    }

    fn bad_encoding(&mut self, line: &[u8]) {
        self.loader.reject_row(|place| bad_encoding(place, line));
    }
}

#[cfg(test)]
mod tests;

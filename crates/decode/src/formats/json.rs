//! JSON, streamed: chunks of any size in, blocks out.
//!
//! The values of an object go from the bytes into the columns, without a tree of values in between and without
//! an allocation per row: [`scan`] is the grammar, [`keys`] finds the field of a key, [`rows`] turns an object
//! into values and [`reader`] a body into objects. What needs more than that (`jsonpaths` that lead deeper,
//! `json_root`) finds its values in the bytes too, in a second pass.
//!
//! Invariant: the result does not depend on where the input is cut into chunks; memory is bounded by the blocks
//! that were not taken yet and one row. Numbers reach their column as they are written.
//!
//! Not its business: compression, expressions; loads that need those take [`JsonStrings`] through the query
//! engine.

mod keys;
mod path;
mod reader;
mod rows;
mod scan;
mod strings;

pub use path::JsonPath;
pub use strings::JsonStrings;

use crate::blocks::block::Block;
use crate::blocks::builder::BlockBuilder;
use crate::cells::cell::Cell;
use crate::cells::reject::{Counts, Place, Reject};
use crate::formats::body::BodyDecoder;
use crate::formats::csv::LINE_BYTES_MAX;
use crate::formats::fork::LineFork;
use crate::formats::format::FormatError;
use crate::rows::loader::{Decoded, LoadRules, Loader, Progress};
use crate::rows::target::{Fill, Target, Wording};
use reader::Reader;
use rows::{RowSink, Rows};
use std::borrow::Cow;
use std::collections::HashMap;
use tributary_types::{DataType, ErrorCode, SqlError};

/// The longest row, and the longest text that is one document, in bytes.
const ROW_BYTES_MAX: usize = LINE_BYTES_MAX;

/// How a JSON body is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFormat {
    /// A text per line; else the body is one text.
    pub read_by_line: bool,
    /// A text is an array, whose elements are rows.
    pub strip_outer_array: bool,
    /// The end of a line: one byte or more.
    pub line_delimiter: Vec<u8>,
    /// `json_root`: where in a text (or in each element of its array) the row is.
    pub root: Option<JsonPath>,
    /// `jsonpaths`: where in a row each field is; else its key is its name.
    pub paths: Option<JsonPaths>,
    /// Numbers that are stored as JSON, alone or in a nested value, become strings.
    pub num_as_string: bool,
}

/// The paths of `jsonpaths`, one for each of the first fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPaths {
    /// The text as given, for reasons.
    pub(crate) text: String,
    pub(crate) paths: Vec<JsonPath>,
}

impl Default for JsonFormat {
    /// A row per line.
    fn default() -> Self {
        Self {
            read_by_line: true,
            strip_outer_array: false,
            line_delimiter: b"\n".to_vec(),
            root: None,
            paths: None,
            num_as_string: false,
        }
    }
}

impl JsonPaths {
    /// Reads a JSON array of paths.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] with the fault and its position.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        Ok(Self { text: text.to_owned(), paths: JsonPath::parse_list(text)? })
    }
}

impl JsonFormat {
    fn check(&self) -> Result<(), SqlError> {
        if self.line_delimiter.is_empty() {
            let text = "line_delimiter is empty; give at least one byte";
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        Ok(())
    }
}

/// Decodes a JSON body straight into blocks.
#[derive(Debug)]
pub struct JsonDecoder {
    target: Target,
    rules: LoadRules,
    fields: Vec<FieldRule>,
    format: JsonFormat,
    reader: Reader,
    builder: BlockBuilder,
    progress: Progress,
    /// There where each row says which columns it gives.
    given: Option<GivenInRow>,
}

/// The fields that the unfinished row lacks.
#[derive(Debug)]
struct GivenInRow {
    is_absent: Vec<bool>,
    /// The texts for rows that lack certain fields; few are different.
    texts: HashMap<Vec<bool>, Option<Box<[u8]>>>,
}

impl GivenInRow {
    fn of(target: &Target) -> Option<Self> {
        let is_absent = vec![false; target.field_count()];
        target.is_flexible().then(|| Self { is_absent, texts: HashMap::new() })
    }

    /// Records in the current row which columns it gives.
    fn put(&mut self, loader: &mut Loader<'_>) {
        if let Some(text) = self.texts.get(&self.is_absent) {
            loader.put_given(text.as_deref());
        } else {
            let given = loader.target.given_without(&self.is_absent);
            let text = given.map(|given| given.text().into_bytes().into_boxed_slice());
            loader.put_given(text.as_deref());
            self.texts.insert(self.is_absent.clone(), text);
        }
        self.is_absent.fill(false);
    }
}

/// A field's rules besides its column.
#[derive(Debug)]
struct FieldRule {
    /// Its column contains JSON, so values are stored as in the text.
    is_json: bool,
    /// Its column's values consist of values.
    is_nested: bool,
    /// Its value in a row without it.
    fill: Fill,
}

impl JsonDecoder {
    /// A decoder whose fields are the target's.
    ///
    /// # Errors
    /// If the line delimiter is empty, or a column's default is not a value of its type.
    pub fn new(target: Target, format: &JsonFormat, rules: LoadRules) -> Result<Self, SqlError> {
        let builder = BlockBuilder::new(target.schema());
        Self::with_builder(target, format, rules, builder)
    }

    /// Like [`JsonDecoder::new`], with the buffers of an earlier load, of whatever table.
    ///
    /// # Errors
    /// See [`JsonDecoder::new`].
    pub fn with_builder(
        target: Target,
        format: &JsonFormat,
        rules: LoadRules,
        mut builder: BlockBuilder,
    ) -> Result<Self, SqlError> {
        format.check()?;
        builder.reset(target.schema());
        let field = |field: usize| {
            let Some(column) = target.column_of(field) else {
                return Ok(FieldRule { is_json: false, is_nested: false, fill: Fill::Null });
            };
            let fill = target.fill_if_absent(column)?;
            let data_type = column.data_type;
            let (is_json, is_nested) =
                (matches!(data_type, DataType::Json | DataType::Variant), data_type.is_nested());
            Ok::<_, SqlError>(FieldRule { is_json, is_nested, fill })
        };
        let fields = (0..target.field_count()).map(field).collect::<Result<_, _>>()?;
        let rows = Rows::new(Some(target.field_names()), format);
        let reader = Reader::new(format.clone(), rows, ROW_BYTES_MAX);
        let (format, progress) = (format.clone(), Progress::default());
        let given = GivenInRow::of(&target);
        Ok(Self { target, rules, fields, format, reader, builder, progress, given })
    }

    /// Declares that the lines are in the middle of a body, with `progress`.
    fn begin_later(mut self, progress: Progress) -> Self {
        self.reader.begin_later();
        Self { progress, ..self }
    }

    /// Everything decoded and not taken: call [`BodyDecoder::finish`] first.
    #[must_use]
    pub fn into_decoded(self) -> Decoded {
        self.progress.decoded
    }

    fn parts(&mut self) -> (&mut Reader, BlockSink<'_>) {
        let rules = self.rules.worded(Wording::File);
        let now_micros = self.rules.clock.now_micros;
        let loader = Loader::new(&self.target, &mut self.builder, rules, now_micros, &mut self.progress);
        let (fields, given) = (&self.fields, self.given.as_mut());
        let sink = BlockSink { loader, fields, num_as_string: self.format.num_as_string, given };
        (&mut self.reader, sink)
    }
}

impl BodyDecoder for JsonDecoder {
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        let (reader, mut sink) = self.parts();
        reader.push(chunk, &mut sink)
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        let (reader, mut sink) = self.parts();
        reader.finish(&mut sink)?;
        sink.loader.end_block();
        Ok(())
    }

    fn fork(&mut self) -> Option<LineFork> {
        let (delimiter, rest) = self.reader.fork()?;
        let (target, format, rules) = (self.target.clone(), self.format.clone(), self.rules);
        let decoder = move |builder, rejects| {
            let decoder = Self::with_builder(target.clone(), &format, rules, builder)?;
            Ok(decoder.begin_later(Progress::after(rejects)))
        };
        Some(LineFork::new(delimiter, rest, decoder))
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }

    fn take_blocks(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.progress.decoded.blocks)
    }

    fn counts(&self) -> Counts {
        self.progress.decoded.counts
    }

    fn rejects(&self) -> Cow<'_, [Reject]> {
        Cow::Borrowed(&self.progress.decoded.rejects)
    }

    fn take_builder(&mut self) -> BlockBuilder {
        self.builder.take()
    }
}

/// Rows into a loader.
struct BlockSink<'a> {
    loader: Loader<'a>,
    fields: &'a [FieldRule],
    num_as_string: bool,
    given: Option<&'a mut GivenInRow>,
}

impl RowSink for BlockSink<'_> {
    /// A string in a column of JSON is the document that it spells, if it spells one (as writers that quote every
    /// value send it), and else a JSON string.
    #[inline]
    fn text(&mut self, field: usize, text: &[u8], token: &[u8]) {
        let is_string =
            self.fields[field].is_json && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_err();
        self.loader.put_text(field, if is_string { token } else { text });
    }

    #[inline]
    fn number(&mut self, field: usize, literal: &[u8]) {
        if self.num_as_string && self.fields[field].is_json {
            return self.loader.put_text(field, &[b"\"", literal, b"\""].concat());
        }
        self.loader.put_text(field, literal);
    }

    #[inline]
    fn bool(&mut self, field: usize, value: bool) {
        let text: &[u8] = match (value, self.fields[field].is_json) {
            (true, true) => b"true",
            (false, true) => b"false",
            (true, false) => b"1",
            (false, false) => b"0",
        };
        self.loader.put_text(field, text);
    }

    fn null(&mut self, field: usize) {
        self.loader.put_null(field, |column| {
            format!("Json value is null, but the column `{column}` is not nullable.")
        });
    }

    fn nested(&mut self, field: usize, json: &[u8]) {
        if self.fields[field].is_nested {
            return self.loader.put(field, Cell::Document(json));
        }
        self.loader.put_text(field, json);
    }

    fn missing(&mut self, field: usize) {
        if let Some(given) = &mut self.given {
            given.is_absent[field] = true;
        }
        self.loader.put_fill(field, &self.fields[field].fill, |column| {
            format!("The column `{column}` is not nullable, but it's not found in jsondata.")
        });
    }

    #[inline]
    fn end_row(&mut self, source: &[u8]) {
        if let Some(given) = &mut self.given {
            given.put(&mut self.loader);
        }
        self.loader.end_row(source);
    }

    fn undo_row(&mut self) {
        if let Some(given) = &mut self.given {
            given.is_absent.fill(false);
        }
        self.loader.undo_row();
    }

    fn reject(&mut self, reject: impl FnOnce(Place) -> Reject) {
        self.loader.reject_row(reject);
    }
}

#[cfg(test)]
mod tests;

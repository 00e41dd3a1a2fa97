//! CSV as columns of text, for loads whose values are computed by the query engine.

use super::split::{Row, RowSink, Splitter};
use super::{CsvOptions, bad_encoding, wrong_count};
use crate::loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET, Decoded};
use crate::reject::{Counts, Reject};
use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// Splits a CSV body into batches of nullable text columns.
#[derive(Debug)]
pub struct CsvStrings {
    options: CsvOptions,
    splitter: Splitter,
    text: TextColumns,
}

/// The columns under construction.
#[derive(Debug, Default)]
struct TextColumns {
    /// `None` until the first line tells how many columns there are.
    schema: Option<SchemaRef>,
    /// A row must have exactly as many fields as there are columns.
    is_exact: bool,
    columns: Vec<StringBuilder>,
    rows: usize,
    bytes: usize,
    batches: Vec<RecordBatch>,
    decoded: Decoded,
}

impl CsvStrings {
    /// Columns with these names; rows with more or fewer fields are rejected (Stream Load).
    ///
    /// # Errors
    /// If a separator is empty.
    pub fn with_names(names: &[String], options: CsvOptions) -> Result<Self, SqlError> {
        let mut strings = Self::inferred(options)?;
        strings.text.is_exact = true;
        strings.text.set_columns(names.iter().map(String::as_str));
        Ok(strings)
    }

    /// Columns `c1`, `c2`, … as many as the first line has; later lines may have fewer (NULL) or
    /// more (ignored), as in a table function (HTTP Stream).
    ///
    /// # Errors
    /// If a separator is empty.
    pub fn inferred(options: CsvOptions) -> Result<Self, SqlError> {
        options.check()?;
        let splitter = Splitter::new(&options);
        Ok(Self { options, splitter, text: TextColumns::default() })
    }

    /// Splits the lines that `chunk` completes.
    ///
    /// # Errors
    /// If a line is too long; the load must be given up then.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        let mut sink = TextSink { text: &mut self.text, options: &self.options };
        self.splitter.push(chunk, &mut sink)
    }

    /// Splits the last line and completes the last batch.
    ///
    /// # Errors
    /// As [`CsvStrings::push`].
    pub fn finish(&mut self) -> Result<(), SqlError> {
        let mut sink = TextSink { text: &mut self.text, options: &self.options };
        self.splitter.finish(&mut sink)?;
        self.text.end_batch();
        Ok(())
    }

    /// The columns; `None` if they are inferred and no line was complete yet.
    #[must_use]
    pub fn schema(&self) -> Option<SchemaRef> {
        self.text.schema.clone()
    }

    /// The columns, which the first line must have told by now.
    ///
    /// # Errors
    /// Doris's text for a body without a line.
    pub fn known_schema(&self) -> Result<SchemaRef, SqlError> {
        self.schema().ok_or_else(|| {
            let text = "The first line is empty, can not parse column numbers";
            SqlError::detail(ErrorCode::Unknown, text)
        })
    }

    /// The batches that are complete.
    pub fn take_batches(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.text.batches)
    }

    /// The rows so far; `loaded` are those in batches.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.text.decoded.counts
    }

    /// The first rejected rows.
    #[must_use]
    pub fn rejects(&self) -> &[Reject] {
        &self.text.decoded.rejects
    }
}

impl TextColumns {
    fn set_columns<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let fields: Vec<Field> = names.map(|name| Field::new(name, DataType::Utf8, true)).collect();
        self.columns = fields.iter().map(|_| StringBuilder::new()).collect();
        self.schema = Some(Arc::new(Schema::new(fields)));
    }

    fn infer_columns(&mut self, count: usize) {
        let names: Vec<String> = (1..=count).map(|number| format!("c{number}")).collect();
        self.set_columns(names.iter().map(String::as_str));
    }

    fn append(&mut self, row: &Row<'_>, options: &CsvOptions) {
        for (index, column) in self.columns.iter_mut().enumerate() {
            let value = (index < row.len())
                .then(|| row.field(index))
                .and_then(|(field, is_enclosed)| options.value(field, is_enclosed));
            let text = value.map(|bytes| std::str::from_utf8(bytes).unwrap_or_default());
            column.append_option(text);
        }
        self.rows += 1;
        self.bytes += row.line().len();
        self.decoded.counts.loaded += 1;
        if self.rows >= BLOCK_ROWS_TARGET || self.bytes >= BLOCK_BYTES_TARGET {
            self.end_batch();
        }
    }

    fn end_batch(&mut self) {
        let Some(schema) = self.schema.clone().filter(|_| self.rows > 0) else { return };
        let arrays = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let batch = RecordBatch::try_new(schema, arrays);
        self.batches.push(batch.expect("all columns are nullable text of one length"));
        (self.rows, self.bytes) = (0, 0);
    }
}

struct TextSink<'a> {
    text: &'a mut TextColumns,
    options: &'a CsvOptions,
}

impl RowSink for TextSink<'_> {
    fn row(&mut self, row: Row<'_>) {
        self.text.decoded.counts.total += 1;
        if self.text.schema.is_none() {
            self.text.infer_columns(row.len());
        }
        let expected = self.text.columns.len();
        if self.text.is_exact && row.len() != expected {
            return self.text.decoded.count_reject(|| wrong_count(self.options, expected, &row));
        }
        self.text.append(&row, self.options);
    }

    fn bad_encoding(&mut self) {
        self.text.decoded.counts.total += 1;
        self.text.decoded.count_reject(bad_encoding);
    }
}

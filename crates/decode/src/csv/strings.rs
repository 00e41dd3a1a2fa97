//! CSV as columns of text, for loads whose values are computed by the query engine.

use super::row::{Row, RowSink};
use super::split::Splitter;
use super::{CsvFormat, CsvHeader, bad_encoding, wrong_count};
use crate::body::{FieldDecoder, FieldNames};
use crate::loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET, Decoded};
use crate::reject::{Counts, Reject};
use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// Splits a CSV body into batches of nullable text columns.
#[derive(Debug)]
pub struct CsvStrings {
    format: CsvFormat,
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
    header: Header,
    columns: Vec<StringBuilder>,
    rows: usize,
    bytes: usize,
    batches: Vec<RecordBatch>,
    decoded: Decoded,
}

/// What the next line is, when the body names its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Header {
    Names {
        and_types: bool,
    },
    Types,
    /// The names were not UTF-8.
    Garbled,
    /// Over: a row.
    #[default]
    Over,
}

impl CsvStrings {
    /// A decoder of fields with these names.
    ///
    /// # Errors
    /// If a separator is empty.
    pub fn new(names: FieldNames<'_>, format: CsvFormat) -> Result<Self, SqlError> {
        format.check()?;
        let mut text = TextColumns::default();
        let mut skip_lines = format.lines_to_skip();
        match (names, format.header) {
            (FieldNames::Given(names), _) => {
                text.is_exact = true;
                text.set_columns(names.iter().map(String::as_str));
            }
            (FieldNames::OfBody, header @ (CsvHeader::Names | CsvHeader::NamesAndTypes)) => {
                skip_lines = 0;
                text.header = Header::Names { and_types: header == CsvHeader::NamesAndTypes };
            }
            (FieldNames::OfBody | FieldNames::Numbered, _) => {}
        }
        let splitter = Splitter::new(&format, skip_lines);
        Ok(Self { format, splitter, text })
    }
}

impl FieldDecoder for CsvStrings {
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        let mut sink = TextSink { text: &mut self.text, format: &self.format };
        self.splitter.push(chunk, &mut sink)
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        let mut sink = TextSink { text: &mut self.text, format: &self.format };
        self.splitter.finish(&mut sink)?;
        if self.text.header == Header::Garbled {
            let text = "the line with the names of the fields is not UTF-8, please check the data encoding";
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        self.text.end_batch();
        Ok(())
    }

    fn schema(&self) -> Result<SchemaRef, SqlError> {
        self.text.schema.clone().ok_or_else(|| {
            let text = "The first line is empty, can not parse column numbers";
            SqlError::detail(ErrorCode::Unknown, text)
        })
    }

    fn take_batches(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.text.batches)
    }

    fn counts(&self) -> Counts {
        self.text.decoded.counts
    }

    fn rejects(&self) -> &[Reject] {
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

    /// Takes a line of the header; whether it was one.
    fn take_header(&mut self, row: &Row<'_>, format: &CsvFormat) -> bool {
        let was = self.header;
        self.header = match was {
            Header::Names { and_types } => {
                let name = |index| {
                    let (field, is_enclosed) = row.field(index);
                    let text = format.value(field, is_enclosed).unwrap_or_default();
                    std::str::from_utf8(text).unwrap_or_default().trim()
                };
                self.set_columns((0..row.len()).map(name));
                if and_types { Header::Types } else { Header::Over }
            }
            Header::Types | Header::Over => Header::Over,
            Header::Garbled => Header::Garbled,
        };
        was != Header::Over
    }

    fn append(&mut self, row: &Row<'_>, format: &CsvFormat) {
        for (index, column) in self.columns.iter_mut().enumerate() {
            let value = (index < row.len())
                .then(|| row.field(index))
                .and_then(|(field, is_enclosed)| format.value(field, is_enclosed));
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
    format: &'a CsvFormat,
}

impl RowSink for TextSink<'_> {
    fn row(&mut self, row: Row<'_>) {
        if self.text.header != Header::Over && self.text.take_header(&row, self.format) {
            return;
        }
        self.text.decoded.counts.total += 1;
        if self.text.schema.is_none() {
            self.text.infer_columns(row.len());
        }
        let expected = self.text.columns.len();
        if self.text.is_exact && row.len() != expected {
            return self.text.decoded.count_reject(|| wrong_count(self.format, expected, &row));
        }
        self.text.append(&row, self.format);
    }

    fn bad_encoding(&mut self) {
        match self.text.header {
            Header::Names { .. } => self.text.header = Header::Garbled,
            Header::Types => self.text.header = Header::Over,
            Header::Garbled => {}
            Header::Over => {
                self.text.decoded.counts.total += 1;
                self.text.decoded.count_reject(bad_encoding);
            }
        }
    }
}

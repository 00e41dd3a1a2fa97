//! CSV as columns of text, for loads whose values are computed by the query engine.

use super::row::{Row, RowSink};
use super::split::Splitter;
use super::{CsvFormat, CsvHeader, bad_encoding, wrong_count};
use crate::cells::reject::{Counts, Reject};
use crate::formats::body::{FieldDecoder, FieldNames};
use crate::rows::text_batches::TextBatches;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tributary_types::{ErrorCode, SqlError};

/// Splits a CSV body into batches of nullable text columns.
#[derive(Debug)]
pub struct CsvStrings {
    format: CsvFormat,
    splitter: Splitter,
    text: TextColumns,
}

/// The state of lines, and the columns.
#[derive(Debug, Default)]
struct TextColumns {
    out: TextBatches,
    /// A row must have exactly as many fields as there are columns.
    is_exact: bool,
    header: Header,
}

/// The next line, if the body names its fields.
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
                text.out.set_columns(names.iter().map(String::as_str));
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
        self.splitter.push(chunk, &mut sink)?;
        self.text.out.check_columns()
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        let mut sink = TextSink { text: &mut self.text, format: &self.format };
        self.splitter.finish(&mut sink)?;
        if self.text.header == Header::Garbled {
            let text = "the line with the names of the fields is not UTF-8, please check the data encoding";
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        self.text.out.check_columns()?;
        self.text.out.end_batch();
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.splitter.held_bytes()
    }

    fn schema(&self) -> Result<SchemaRef, SqlError> {
        self.text.out.schema.clone().ok_or_else(|| {
            let text = "The first line is empty, can not parse column numbers";
            SqlError::detail(ErrorCode::Unknown, text)
        })
    }

    fn take_batches(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.text.out.batches)
    }

    fn counts(&self) -> Counts {
        self.text.out.decoded.counts
    }

    fn rejects(&self) -> &[Reject] {
        &self.text.out.decoded.rejects
    }
}

impl TextColumns {
    fn infer_columns(&mut self, count: usize) {
        let names: Vec<String> = (1..=count).map(|number| format!("c{number}")).collect();
        self.out.set_columns(names.iter().map(String::as_str));
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
                self.out.set_columns((0..row.len()).map(name));
                if and_types { Header::Types } else { Header::Over }
            }
            Header::Types | Header::Over => Header::Over,
            Header::Garbled => Header::Garbled,
        };
        was != Header::Over
    }

    fn append(&mut self, row: &Row<'_>, format: &CsvFormat) {
        let values = (0..self.out.column_count()).map(|index| {
            let (field, is_enclosed) = (index < row.len()).then(|| row.field(index))?;
            format.value(field, is_enclosed)
        });
        self.out.append(values, row.line().len());
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
        self.text.out.decoded.counts.total += 1;
        if self.text.out.schema.is_none() {
            self.text.infer_columns(row.len());
        }
        let expected = self.text.out.column_count();
        if self.text.is_exact && row.len() != expected {
            let wrong = |place| wrong_count(place, self.format, expected, &row);
            return self.text.out.decoded.count_reject(wrong);
        }
        self.text.append(&row, self.format);
    }

    fn bad_encoding(&mut self, line: &[u8]) {
        match self.text.header {
            Header::Names { .. } => self.text.header = Header::Garbled,
            Header::Types => self.text.header = Header::Over,
            Header::Garbled => {}
            Header::Over => {
                self.text.out.decoded.counts.total += 1;
                self.text.out.decoded.count_reject(|place| bad_encoding(place, line));
            }
        }
    }
}

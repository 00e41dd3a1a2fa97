//! JSON as columns of text, for loads whose values are computed by the query engine.

use super::reader::Reader;
use super::rows::{RowSink, Rows};
use super::{JsonFormat, ROW_BYTES_MAX};
use crate::cells::reject::{Counts, Place, Reject};
use crate::formats::body::{FieldDecoder, FieldNames};
use crate::rows::text_batches::TextBatches;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::ops::Range;
use tributary_types::{ErrorCode, SqlError};

/// Reads a JSON body into batches of nullable text columns.
#[derive(Debug)]
pub struct JsonStrings {
    reader: Reader,
    text: TextColumns,
}

/// The row under construction, and the columns.
#[derive(Debug, Default)]
struct TextColumns {
    out: TextBatches,
    /// A field's value in a row without it.
    absent: Vec<Option<String>>,
    /// The row under construction: where in `scratch` each field is.
    slots: Vec<Option<Range<usize>>>,
    scratch: Vec<u8>,
}

impl JsonStrings {
    /// A decoder of fields with these names; without given names they are the keys of the first row, or of the paths.
    /// `absent` has the texts of the first fields in rows without them.
    ///
    /// # Errors
    /// If the line delimiter is empty.
    pub fn new(
        names: FieldNames<'_>,
        absent: &[Option<String>],
        format: &JsonFormat,
    ) -> Result<Self, SqlError> {
        format.check()?;
        let given = match names {
            FieldNames::Given(names) => Some(names.to_vec()),
            FieldNames::Numbered | FieldNames::OfBody => None,
        };
        let rows = Rows::new(given, format);
        let mut text = TextColumns { absent: absent.to_vec(), ..TextColumns::default() };
        if !rows.is_unnamed() {
            text.name_fields(rows.names().to_vec());
        }
        Ok(Self { reader: Reader::new(format.clone(), rows, ROW_BYTES_MAX), text })
    }
}

impl FieldDecoder for JsonStrings {
    fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        self.reader.push(chunk, &mut self.text)?;
        self.text.out.check_columns()
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        self.reader.finish(&mut self.text)?;
        self.text.out.check_columns()?;
        self.text.out.end_batch();
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }

    fn schema(&self) -> Result<SchemaRef, SqlError> {
        let text = "Empty first json line";
        self.text.out.schema.clone().ok_or_else(|| SqlError::detail(ErrorCode::Unknown, text))
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
    fn put(&mut self, field: usize, text: &[u8]) {
        let start = self.scratch.len();
        self.scratch.extend_from_slice(text);
        self.slots[field] = Some(start..self.scratch.len());
    }
}

impl RowSink for TextColumns {
    fn text(&mut self, field: usize, text: &[u8], _token: &[u8]) {
        self.put(field, text);
    }

    fn number(&mut self, field: usize, literal: &[u8]) {
        self.put(field, literal);
    }

    fn bool(&mut self, field: usize, value: bool) {
        self.put(field, if value { b"1" } else { b"0" });
    }

    fn null(&mut self, field: usize) {
        self.slots[field] = None;
    }

    fn nested(&mut self, field: usize, json: &[u8]) {
        self.put(field, json);
    }

    fn missing(&mut self, field: usize) {
        self.slots[field] = None;
        if let Some(Some(text)) = self.absent.get(field) {
            let start = self.scratch.len();
            self.scratch.extend_from_slice(text.as_bytes());
            self.slots[field] = Some(start..self.scratch.len());
        }
    }

    fn end_row(&mut self, source: &[u8]) {
        self.out.decoded.counts.total += 1;
        let scratch = &self.scratch;
        let values = self.slots.iter_mut().map(|slot| slot.take().map(|place| &scratch[place]));
        self.out.append(values, source.len());
        self.scratch.clear();
    }

    fn undo_row(&mut self) {
        self.slots.fill(None);
        self.scratch.clear();
    }

    fn reject(&mut self, reject: impl FnOnce(Place) -> Reject) {
        self.out.decoded.counts.total += 1;
        self.out.decoded.count_reject(reject);
    }

    fn name_fields(&mut self, names: Vec<String>) {
        self.out.set_columns(names.iter().map(String::as_str));
        self.slots = vec![None; names.len()];
    }
}

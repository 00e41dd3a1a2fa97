//! JSON as columns of text, for loads whose values are computed by the query engine.

use super::reader::Reader;
use super::rows::{RowSink, Rows};
use super::{JsonFormat, ROW_BYTES_MAX};
use crate::body::{FieldDecoder, FieldNames};
use crate::loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET, Decoded};
use crate::reject::{Counts, Reject};
use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::ops::Range;
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// Reads a JSON body into batches of nullable text columns.
#[derive(Debug)]
pub struct JsonStrings {
    reader: Reader,
    text: TextColumns,
}

/// The columns under construction.
#[derive(Debug, Default)]
struct TextColumns {
    /// `None` until the first row tells which columns there are.
    schema: Option<SchemaRef>,
    /// What a field is in a row without it.
    absent: Vec<Option<String>>,
    columns: Vec<StringBuilder>,
    /// The row under construction: where in `scratch` each field is.
    slots: Vec<Option<Range<usize>>>,
    scratch: Vec<u8>,
    rows: usize,
    bytes: usize,
    batches: Vec<RecordBatch>,
    decoded: Decoded,
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
        self.reader.push(chunk, &mut self.text)
    }

    fn finish(&mut self) -> Result<(), SqlError> {
        self.reader.finish(&mut self.text)?;
        self.text.end_batch();
        Ok(())
    }

    fn schema(&self) -> Result<SchemaRef, SqlError> {
        let text = "Empty first json line";
        self.text.schema.clone().ok_or_else(|| SqlError::detail(ErrorCode::Unknown, text))
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
    fn put(&mut self, field: usize, text: &[u8]) {
        let start = self.scratch.len();
        self.scratch.extend_from_slice(text);
        self.slots[field] = Some(start..self.scratch.len());
    }

    fn end_batch(&mut self) {
        let Some(schema) = self.schema.clone().filter(|_| self.rows > 0) else { return };
        let arrays = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let batch = RecordBatch::try_new(schema, arrays);
        self.batches.push(batch.expect("all columns are nullable text of one length"));
        (self.rows, self.bytes) = (0, 0);
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
        self.decoded.counts.total += 1;
        self.decoded.counts.loaded += 1;
        for (column, slot) in self.columns.iter_mut().zip(&mut self.slots) {
            let bytes = slot.take().map(|place| &self.scratch[place]);
            column.append_option(bytes.map(|bytes| std::str::from_utf8(bytes).unwrap_or_default()));
        }
        self.scratch.clear();
        self.rows += 1;
        self.bytes += source.len();
        if self.rows >= BLOCK_ROWS_TARGET || self.bytes >= BLOCK_BYTES_TARGET {
            self.end_batch();
        }
    }

    fn undo_row(&mut self) {
        self.slots.fill(None);
        self.scratch.clear();
    }

    fn reject(&mut self, reject: impl FnOnce() -> Reject) {
        self.decoded.counts.total += 1;
        self.decoded.count_reject(reject);
    }

    fn name_fields(&mut self, names: Vec<String>) {
        let fields: Vec<Field> = names.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
        self.columns = fields.iter().map(|_| StringBuilder::new()).collect();
        self.slots = vec![None; fields.len()];
        self.schema = Some(Arc::new(Schema::new(fields)));
    }
}

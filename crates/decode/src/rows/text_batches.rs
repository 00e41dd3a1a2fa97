//! Builds batches of nullable text columns, for loads whose values the query engine computes.
//!
//! Not its business: the source of a row's texts.

use crate::rows::loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET, Decoded};
use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// The maximum columns of a body whose fields are not named by the load.
const COLUMNS_MAX: usize = 16_384;

/// The columns under construction, the complete batches, and the counts.
#[derive(Debug, Default)]
pub(crate) struct TextBatches {
    /// `None` until it is known which columns there are.
    pub schema: Option<SchemaRef>,
    columns: Vec<StringBuilder>,
    rows: usize,
    bytes: usize,
    pub batches: Vec<RecordBatch>,
    pub decoded: Decoded,
    /// The number of columns, if they are too many.
    refused_columns: Option<usize>,
}

impl TextBatches {
    /// Names the columns. Called before any row. Only the first [`COLUMNS_MAX`] are created, see [`TextBatches::check_columns`].
    pub fn set_columns<'a>(&mut self, names: impl ExactSizeIterator<Item = &'a str>) {
        let count = names.len();
        self.refused_columns = Some(count).filter(|&count| count > COLUMNS_MAX);
        let names = names.take(COLUMNS_MAX);
        let fields: Vec<Field> = names.map(|name| Field::new(name, DataType::Utf8, true)).collect();
        // They grow with their contents: a line of only separators has many.
        self.columns = fields.iter().map(|_| StringBuilder::with_capacity(0, 0)).collect();
        self.schema = Some(Arc::new(Schema::new(fields)));
    }

    /// # Errors
    /// If there are more columns than a body may have.
    pub fn check_columns(&self) -> Result<(), SqlError> {
        let Some(count) = self.refused_columns else { return Ok(()) };
        let text = format!(
            "the first row has {count} fields, the limit is {COLUMNS_MAX}; check column_separator and line_delimiter"
        );
        Err(SqlError::detail(ErrorCode::Unknown, text))
    }

    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Appends a row of this many bytes of the body: one text per column, in UTF-8.
    pub fn append<'a>(&mut self, values: impl Iterator<Item = Option<&'a [u8]>>, bytes: usize) {
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.append_option(value.map(|bytes| std::str::from_utf8(bytes).unwrap_or_default()));
        }
        self.rows += 1;
        self.bytes += bytes;
        self.decoded.counts.loaded += 1;
        if self.rows >= BLOCK_ROWS_TARGET || self.bytes >= BLOCK_BYTES_TARGET {
            self.end_batch();
        }
    }

    /// Completes a batch of the rows so far, if there are any.
    pub fn end_batch(&mut self) {
        let Some(schema) = self.schema.clone().filter(|_| self.rows > 0) else { return };
        let arrays = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let batch = RecordBatch::try_new(schema, arrays);
        self.batches.push(batch.expect("all columns are nullable text of one length"));
        (self.rows, self.bytes) = (0, 0);
    }
}

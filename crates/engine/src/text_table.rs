//! A small result of texts, for the SHOWs that the server answers itself.

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use std::sync::Arc;
use tributary_mysql::{Column, ResultWriter};
use tributary_types::{DataType, ErrorCode, SqlError};

/// Titles and rows.
#[derive(Clone, Debug)]
pub(crate) struct TextTable {
    titles: Vec<&'static str>,
    rows: Vec<Vec<Option<String>>>,
}

impl TextTable {
    pub fn new(titles: &[&'static str]) -> Self {
        Self { titles: titles.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; it has a cell for each title.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Option<String>>) -> Self {
        self.rows.push(cells.into_iter().collect());
        debug_assert_eq!(self.rows.last().map(Vec::len), Some(self.titles.len()));
        self
    }

    /// Sends the table as one result set.
    pub async fn send(self, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let columns: Vec<Column> =
            self.titles.iter().map(|title| Column::new(*title, DataType::String)).collect();
        let fields: Vec<Field> =
            self.titles.iter().map(|title| Field::new(*title, ArrowType::Utf8, true)).collect();
        let arrays = (0..self.titles.len())
            .map(|index| {
                let cells = self.rows.iter().map(|row| row.get(index).and_then(Option::as_deref));
                Arc::new(cells.collect::<StringArray>()) as ArrayRef
            })
            .collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?;
        out.result_set(&columns, &[batch]).await
    }
}

//! Rows in memory: SHOW, DESC, EXPLAIN, `information_schema`.

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use std::sync::Arc;

/// A value of a [`Grid`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    Null,
    Text(String),
    Int(i64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A table of names, types and rows.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Name, and whether the column holds whole numbers (else text).
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    /// A table without rows; a name that ends in `#` is a column of whole numbers.
    #[must_use]
    pub fn new<S: AsRef<str>>(names: &[S]) -> Self {
        let columns = names.iter().map(|name| {
            let name = name.as_ref();
            name.strip_suffix('#').map_or((name.to_owned(), false), |name| (name.to_owned(), true))
        });
        Self { columns: columns.collect(), rows: Vec::new() }
    }

    /// The table with one more row.
    #[must_use]
    pub fn with_row(mut self, row: Vec<Cell>) -> Self {
        self.push(row);
        self
    }

    /// Appends a row; it has a value for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "row {row:?} of {:?}", self.columns);
        self.rows.push(row);
    }

    /// Retains the rows for which `keep` is true, in order.
    pub fn retain(&mut self, keep: impl FnMut(&Vec<Cell>) -> bool) {
        self.rows.retain(keep);
    }

    /// Sorts by one column, with a stable order.
    pub fn sort(&mut self, column: usize, descending: bool) {
        self.rows.sort_by(|left, right| {
            let order = left[column].cmp(&right[column]);
            if descending { order.reverse() } else { order }
        });
    }

    /// Keeps `limit` rows after the first `offset`.
    pub fn slice(&mut self, offset: usize, limit: usize) {
        self.rows.drain(..offset.min(self.rows.len()));
        self.rows.truncate(limit);
    }

    #[must_use]
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// The names of the columns.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The rows as one batch, with fields of the declared names.
    ///
    /// # Errors
    /// Never for rows of the columns' types.
    pub fn batch(&self) -> Result<RecordBatch, arrow::error::ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let mut fields = Vec::with_capacity(self.columns.len());
        for (index, (name, is_number)) in self.columns.iter().enumerate() {
            let cells = self.rows.iter().map(|row| &row[index]);
            if *is_number {
                arrays.push(Arc::new(cells.map(as_int).collect::<Int64Array>()));
                fields.push(Field::new(name, DataType::Int64, true));
            } else {
                arrays.push(Arc::new(cells.map(as_text).collect::<StringArray>()));
                fields.push(Field::new(name, DataType::Utf8, true));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
    }
}

fn as_int(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Null => None,
        Cell::Int(value) => Some(*value),
        Cell::Text(text) => text.parse().ok(),
    }
}

fn as_text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Int(value) => Some(value.to_string()),
        Cell::Text(text) => Some(text.clone()),
    }
}

//! Rows of Arrow batches as packets, text or binary.
//!
//! Each column's array is looked at once per run of rows and becomes a [`Cell`], which then writes
//! one value after another without allocating. The announced [`Column`] decides the form: integers
//! have its width, times its fraction; a text column takes any array, as text.

mod error;
mod number;
mod texts;
mod time;
mod value;

use crate::column::Column;
use crate::wire::out::Pending;
use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType as ArrowType;
use arrow::record_batch::RecordBatch;
pub use texts::{TextRows, for_each_text};
use tributary_types::{ErrorCode, SqlError};
use value::{Cell, Form};

/// The rows of one batch, and how to write them.
pub(crate) struct Rows<'a> {
    columns: &'a [Column],
    arrays: Vec<ArrayRef>,
    count: usize,
    binary: bool,
}

impl<'a> Rows<'a> {
    /// # Errors
    /// The batch has another number of columns than was announced.
    pub(crate) fn new(columns: &'a [Column], batch: &RecordBatch, binary: bool) -> Result<Self, SqlError> {
        if columns.len() != batch.num_columns() {
            return Err(SqlError::new(
                ErrorCode::Unknown,
                format!(
                    "internal error: {} columns were announced, a batch has {}",
                    columns.len(),
                    batch.num_columns()
                ),
            ));
        }
        let arrays = batch.columns().iter().map(plain_array).collect::<Result<_, _>>()?;
        Ok(Self { columns, arrays, count: batch.num_rows(), binary })
    }

    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Writes rows from `first` on until `limit` bytes wait to be sent; returns the next row.
    ///
    /// # Errors
    /// A column's values do not fit the announced type; the row in question is left open.
    pub(crate) fn encode(
        &self,
        first: usize,
        pending: &mut Pending,
        limit: usize,
    ) -> Result<usize, SqlError> {
        let cells = self.cells()?;
        let mut row = first;
        while row < self.count && (row == first || pending.buffer.len() < limit) {
            pending.begin_packet();
            if self.binary {
                write_binary_row(&cells, row, &mut pending.buffer)?;
            } else {
                write_text_row(&cells, row, &mut pending.buffer)?;
            }
            pending.end_packet();
            row += 1;
        }
        Ok(row)
    }

    fn cells(&self) -> Result<Vec<ColumnCells<'_>>, SqlError> {
        self.columns
            .iter()
            .zip(&self.arrays)
            .map(|(column, array)| ColumnCells::new(column, array.as_ref(), self.binary))
            .collect()
    }
}

/// A dictionary is written as its values, half floats as floats.
fn plain_array(array: &ArrayRef) -> Result<ArrayRef, SqlError> {
    let plain_type = match array.data_type() {
        ArrowType::Dictionary(_, values) => values.as_ref().clone(),
        ArrowType::RunEndEncoded(_, values) => values.data_type().clone(),
        ArrowType::Float16 => ArrowType::Float32,
        _ => return Ok(array.clone()),
    };
    let plain = cast(array, &plain_type).map_err(|error| {
        SqlError::new(
            ErrorCode::Unknown,
            format!("a result of type {} cannot be sent: {error}", array.data_type()),
        )
    })?;
    plain_array(&plain)
}

/// One column of the rows being written.
struct ColumnCells<'a> {
    array: &'a dyn Array,
    /// NULLs are rare: they are looked up only if there are any.
    may_be_null: bool,
    cell: Cell<'a>,
    form: Form,
    column: &'a Column,
}

impl<'a> ColumnCells<'a> {
    fn new(column: &'a Column, array: &'a dyn Array, binary: bool) -> Result<Self, SqlError> {
        let cell = Cell::new(array).map_err(|error| does_not_fit(column, array, &error.to_string()))?;
        let form = if binary { Form::of(column) } else { Form::Text };
        if !cell.can_be(form) {
            return Err(does_not_fit(column, array, "the types differ"));
        }
        let may_be_null = array.is_nullable();
        Ok(Self { array, may_be_null, cell, form, column })
    }

    fn is_null(&self, row: usize) -> bool {
        self.may_be_null && (matches!(self.cell, Cell::Null) || self.array.is_null(row))
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.cell
            .write(row, self.form, self.column.fraction, out)
            .map_err(|error| does_not_fit(self.column, self.array, &error.to_string()))
    }
}

fn does_not_fit(column: &Column, array: &dyn Array, why: &str) -> SqlError {
    let (name, wire_type) = (&column.name, column.wire_type);
    let message =
        format!("column '{name}' of type {} cannot be sent as {wire_type:?}: {why}", array.data_type());
    SqlError::new(ErrorCode::Unknown, message)
}

fn write_text_row(cells: &[ColumnCells<'_>], row: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
    for column in cells {
        if column.is_null(row) {
            out.push(0xfb);
        } else {
            column.write(row, out)?;
        }
    }
    Ok(())
}

/// Writes a zero byte, a bitmap of the NULLs that begins at bit 2, and the values that are not NULL.
fn write_binary_row(cells: &[ColumnCells<'_>], row: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
    out.push(0);
    let bitmap = out.len();
    out.resize(bitmap + (cells.len() + 2).div_ceil(8), 0);
    for (index, column) in cells.iter().enumerate() {
        if column.is_null(row) {
            out[bitmap + (index + 2) / 8] |= 1 << ((index + 2) % 8);
        } else {
            column.write(row, out)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

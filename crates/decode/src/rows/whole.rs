//! Columns of Arrow batches into columns of a table: whole arrays at a time where every value fits, else row by row.
//!
//! Invariant: both paths give the same rows. A whole array is taken only if no value of it changes, or if its conversion equals
//! that of cells; a single value that does not fit sends its batch through the cells, which judge it and word its reason.
//!
//! Not its business: which array is which field.

mod arrays;
mod texts;

use crate::blocks::batch_block::batch_to_block;
use crate::blocks::builder::BlockBuilder;
use crate::cells::array_cells::ArrayCells;
use crate::cells::cell;
use crate::cells::reject::Source;
use crate::rows::constant::constant;
use crate::rows::loader::{Loader, Progress};
use crate::rows::target::{Fill, Strictness, Target, TargetColumn};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use tributary_types::{ColumnDef, ErrorCode, SqlError};

/// The longest text of a row in the log of rejected rows, in bytes.
const ROW_TEXT_BYTES_MAX: usize = 1024;

/// A field of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    /// The table does not have it.
    Ignored,
    Array(ArrayRef),
    /// The load does not have it; never [`Fill::Missing`].
    Absent(Fill),
}

/// Rows of a load: for each field of the target its values. At most as many as a block should have.
pub(crate) struct Rows<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) count: usize,
    /// The number of the first row in the load's body, from 0, if there is one.
    pub(crate) first_row: Option<u64>,
}

/// Adds rows to the blocks of a load. `now_micros` is the wall-clock time for defaults that ask for it.
///
/// # Errors
/// A column's type has no text form.
pub(crate) fn load(
    rows: &Rows<'_>,
    target: &Target,
    rules: Strictness,
    now_micros: i64,
    builder: &mut BlockBuilder,
    progress: &mut Progress,
) -> Result<(), SqlError> {
    if let Some(batch) = whole(rows, target, now_micros) {
        let block = batch_to_block(&batch, target.schema())?;
        progress.decoded.blocks.push(block);
        progress.decoded.counts.total += rows.count as u64;
        progress.decoded.counts.loaded += rows.count as u64;
        return Ok(());
    }
    row_by_row(rows, target, rules, now_micros, builder, progress)
}

/// An array as one of the column's type; `None` if values must be looked at one by one.
pub(crate) fn whole_column(array: &ArrayRef, column: &ColumnDef) -> Option<ArrayRef> {
    whole_values(array, &TargetColumn::of(column, 0))
}

/// [`whole_column`] for a column of a target.
pub(crate) fn whole_values(array: &ArrayRef, column: &TargetColumn) -> Option<ArrayRef> {
    arrays::whole(array, column)
}

/// The rows as a batch of the table, if all values fit as they are.
fn whole(rows: &Rows<'_>, target: &Target, now_micros: i64) -> Option<RecordBatch> {
    let schema = target.schema();
    let mut columns: Vec<Option<ArrayRef>> = vec![None; schema.columns.len()];
    for (number, field) in rows.fields.iter().enumerate() {
        let Some(column) = target.column_of(number) else { continue };
        columns[column.index] = Some(match field {
            Field::Ignored => return None,
            Field::Array(array) => arrays::whole(array, column)?,
            Field::Absent(fill) => {
                constant(&schema.columns[column.index], fill, rows.count, now_micros).ok()?
            }
        });
    }
    for (column, fill) in target.filled() {
        let filled = constant(&schema.columns[column.index], fill, rows.count, now_micros).ok()?;
        columns[column.index] = Some(filled);
    }
    let columns = columns.into_iter().collect::<Option<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
    let arrow = schema.as_decoded().map_or_else(|| schema.arrow(), |decoded| decoded.arrow());
    let batch = RecordBatch::try_new_with_options(arrow, columns, &options).ok()?;
    // Rows without a partition are rejected one by one.
    let have_partitions = target.partitions().is_none_or(|check| check.takes_all(&batch, schema));
    have_partitions.then_some(batch)
}

fn row_by_row(
    rows: &Rows<'_>,
    target: &Target,
    rules: Strictness,
    now_micros: i64,
    builder: &mut BlockBuilder,
    progress: &mut Progress,
) -> Result<(), SqlError> {
    let cells = |(number, field): (usize, &Field)| {
        let Field::Array(array) = field else { return Ok(None) };
        let cells = ArrayCells::new(array, rules.utc_offset_seconds);
        cells.map(Some).map_err(|error| unreadable(number, target, &error))
    };
    let columns = rows.fields.iter().enumerate().map(cells).collect::<Result<Vec<_>, _>>()?;
    let mut loader = Loader::new(target, builder, rules, now_micros, progress);
    for row in 0..rows.count {
        for (number, (field, column)) in rows.fields.iter().zip(&columns).enumerate() {
            match (field, column) {
                (_, Some(cells)) => loader.put(number, cells.cell(row)),
                (Field::Absent(fill), None) => loader.put_fill(number, fill, |name| {
                    format!("column({name}) values is null while columns is not nullable")
                }),
                _ => {}
            }
        }
        loader.end_row(RowOf {
            number: rows.first_row.map(|first| first + row as u64 + 1),
            row,
            columns: &columns,
        });
    }
    loader.end_block();
    Ok(())
}

/// A row of columns.
struct RowOf<'a> {
    /// Its number in the body, for users.
    number: Option<u64>,
    row: usize,
    columns: &'a [Option<ArrayCells>],
}

impl Source for RowOf<'_> {
    /// Its number and its values.
    fn line(&self) -> String {
        let Some(number) = self.number else { return String::new() };
        let mut text = format!("row {number}:");
        push_values(&mut text, self.row, self.columns.iter().flatten());
        text
    }

    fn raw(&self, _: usize) -> String {
        let mut text = String::new();
        push_values(&mut text, self.row, self.columns.iter().flatten());
        text.trim_start().to_owned()
    }
}

/// The values of a row, each after a blank, as many as the log shows.
pub(crate) fn push_values<'a>(
    text: &mut String,
    row: usize,
    columns: impl IntoIterator<Item = &'a ArrayCells>,
) {
    for cells in columns {
        if text.len() > ROW_TEXT_BYTES_MAX {
            text.push_str(" …");
            break;
        }
        text.push(' ');
        text.push_str(&cell::shown(&cells.cell(row)));
    }
}

fn unreadable(field: usize, target: &Target, error: &arrow::error::ArrowError) -> SqlError {
    let name = target
        .column_of(field)
        .map_or_else(|| (field + 1).to_string(), |column| target.name_of(column).to_owned());
    SqlError::detail(ErrorCode::Unknown, format!("value for column '{name}': {error}"))
}

#[cfg(test)]
mod tests;

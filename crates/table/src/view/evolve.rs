//! Rows of one schema version as rows of another.
//!
//! Columns are matched by id, so a rename costs nothing, and a new column with a dropped one's name
//! does not inherit its values. An added column gets its default. Which schema changes a client may
//! ask for is not decided here, only whether rows can follow.

use crate::error::TableError;
use arrow::array::{
    ArrayRef, BinaryArray, FixedSizeBinaryArray, ListArray, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{DataType as ArrowType, Field, SchemaRef};
use std::sync::Arc;
use tributary_types::change::grows;
use tributary_types::widen::widened;
use tributary_types::{
    ColumnDef, DataType, DefaultValue, TableDef, TableSchema, address, clock, host, state,
};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Converts `batch`, whose columns are those of `from`, to rows of `to`, whose Arrow schema is `arrow`. `now_micros` is the wall
/// clock's civil time for defaults such as `CURRENT_TIMESTAMP`, in microseconds since 1970-01-01. Unchanged columns are shared,
/// not copied.
///
/// # Errors
/// [`TableError::SchemaMismatch`] when the rows do not have the columns of `from` or a NULL meets
/// a NOT NULL column; [`TableError::BadDefault`] when a default is not of its column's type.
pub(crate) fn adapt(
    batch: &RecordBatch,
    from: &TableSchema,
    to: &TableSchema,
    arrow: &SchemaRef,
    now_micros: i64,
) -> Result<RecordBatch, TableError> {
    if batch.num_columns() != from.columns.len() {
        let detail = format!("{} columns instead of {}", batch.num_columns(), from.columns.len());
        return Err(mismatch("", to, detail));
    }
    let mut columns = Vec::with_capacity(to.columns.len());
    for column in &to.columns {
        columns.push(match from.index_of_id(column.id) {
            Some(index) => as_type(batch.column(index), column)?,
            None => default_array(column, batch.num_rows(), now_micros)?,
        });
    }
    assemble(arrow, columns, batch.num_rows(), to)
}

/// A batch of `columns`, checked against the schema.
pub(crate) fn assemble(
    arrow: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
    schema: &TableSchema,
) -> Result<RecordBatch, TableError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(arrow), columns, &options)
        .map_err(|error| mismatch("", schema, error.to_string()))
}

pub(crate) fn mismatch(table: &str, schema: &TableSchema, detail: String) -> TableError {
    TableError::SchemaMismatch { table: table.to_owned(), schema_version: schema.version.0, detail }
}

/// `array` in the column's Arrow type; fields that were added to it are NULL. Values that do not fit are an error, never NULL.
pub(crate) fn as_type(array: &ArrayRef, column: &ColumnDef) -> Result<ArrayRef, TableError> {
    let wanted = column.data_type.to_arrow();
    if array.data_type() == &wanted {
        return Ok(Arc::clone(array));
    }
    widened(array, &wanted)
        .map_err(TableError::arrow(format!("converting column '{}' to {}", column.name, column.data_type)))
}

/// The value of rows from before the column was added, repeated `rows` times: its default, if that was not changed since.
pub(crate) fn default_array(
    column: &ColumnDef,
    rows: usize,
    now_micros: i64,
) -> Result<ArrayRef, TableError> {
    let wanted = column.data_type.to_arrow();
    if let Some(empty) = state::empty(column.data_type) {
        return Ok(Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(empty, rows))));
    }
    let text = match column.value_of_old_rows() {
        None | Some(DefaultValue::Null) => return Ok(arrow::array::new_null_array(&wanted, rows)),
        // The only one that such a column may have.
        Some(DefaultValue::Literal(text)) if text == "[]" && column.data_type.is_nested() => {
            return empty_lists(&wanted, rows);
        }
        Some(DefaultValue::Literal(text)) => text.clone(),
        Some(DefaultValue::CurrentTimestamp { scale }) => now_text(now_micros, *scale)?,
        Some(DefaultValue::CurrentDate) => now_text(now_micros, 0)?.chars().take(10).collect(),
    };
    let one = StringArray::from(vec![text.clone()]);
    let value = match column.data_type {
        DataType::Time { scale } => clock::of_text(&text)
            .map(|micros| Arc::new(StringArray::from(vec![clock::text_of(micros, scale)])) as ArrayRef),
        DataType::Ipv4 | DataType::Ipv6 => address(&text, column.data_type),
        _ => cast_with_options(&one, &wanted, &CastOptions { safe: false, ..CastOptions::default() }).ok(),
    };
    let value = value.ok_or_else(|| TableError::BadDefault {
        column: column.name.clone(),
        value: text,
        data_type: column.data_type.to_string(),
    })?;
    take(&value, &UInt32Array::from(vec![0_u32; rows]), None)
        .map_err(TableError::arrow(format!("repeating the default of column '{}'", column.name)))
}

/// Columns of rows as data files have them.
pub(crate) fn stored(columns: &[ArrayRef], physical: &SchemaRef) -> Result<Vec<ArrayRef>, TableError> {
    let column = |(array, field): (&ArrayRef, &Arc<Field>)| {
        if array.data_type() == field.data_type() {
            return Ok(Arc::clone(array));
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, field.data_type(), &options)
            .map_err(TableError::arrow(format!("storing column '{}'", field.name())))
    };
    columns.iter().zip(physical.fields()).map(column).collect()
}

/// An address in the column's Arrow type; `None` if the text is not one.
fn address(text: &str, data_type: DataType) -> Option<ArrayRef> {
    Some(match data_type {
        DataType::Ipv4 => Arc::new(UInt32Array::from(vec![address::parse_ipv4(text)?])),
        _ => {
            let bytes = Some(address::parse_ipv6(text)?);
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size([bytes].into_iter(), 16).ok()?)
        }
    })
}

/// `rows` arrays without elements.
fn empty_lists(data_type: &ArrowType, rows: usize) -> Result<ArrayRef, TableError> {
    let ArrowType::List(item) = data_type else { return Ok(arrow::array::new_null_array(data_type, rows)) };
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(0, rows));
    let items = arrow::array::new_empty_array(item.data_type());
    let lists = ListArray::try_new(Arc::clone(item), offsets, items, None);
    lists.map(|lists| Arc::new(lists) as ArrayRef).map_err(TableError::arrow("making empty arrays"))
}

fn now_text(now_micros: i64, scale: u8) -> Result<String, TableError> {
    let unit = MICROS_PER_SECOND / 10_i64.pow(u32::from(scale.min(6)));
    let array = TimestampMicrosecondArray::from(vec![now_micros - now_micros.rem_euclid(unit)]);
    let doing = "writing the current time as text";
    let text = arrow::compute::cast(&array, &ArrowType::Utf8).map_err(TableError::arrow(doing))?;
    let text = text.as_any().downcast_ref::<StringArray>().map(|array| array.value(0).replace('T', " "));
    Ok(text.unwrap_or_default())
}

/// The wall clock's civil time in microseconds since 1970-01-01.
pub(crate) fn civil_now_micros() -> i64 {
    if host::is_simulated() {
        return host::unix_ms() * 1000;
    }
    chrono::Local::now().naive_local().and_utc().timestamp_micros()
}

/// Whether rows that were written before `column` was added get a value other than NULL for it.
pub(crate) fn fills_old_rows(column: &ColumnDef) -> bool {
    column.data_type.is_state() || !matches!(column.value_of_old_rows(), None | Some(DefaultValue::Null))
}

/// Checks that rows of `old` can follow to `new`.
///
/// # Errors
/// [`TableError::TypeChange`], [`TableError::BadDefault`], and when `has_rows`
/// [`TableError::AddedColumnNeedsDefault`].
pub(crate) fn check_change(old: &TableDef, new: &TableDef, has_rows: bool) -> Result<(), TableError> {
    for column in &new.schema.columns {
        match old.schema.index_of_id(column.id).map(|index| &old.schema.columns[index]) {
            Some(before)
                if before.data_type.to_arrow() != column.data_type.to_arrow()
                    && !grows(before.data_type, column.data_type) =>
            {
                return Err(TableError::TypeChange {
                    table: new.name.clone(),
                    column: column.name.clone(),
                    from: before.data_type.to_string(),
                    to: column.data_type.to_string(),
                });
            }
            Some(_) => {}
            None if has_rows && !column.nullable && !fills_old_rows(column) => {
                return Err(TableError::AddedColumnNeedsDefault {
                    table: new.name.clone(),
                    column: column.name.clone(),
                });
            }
            None => drop(default_array(column, 1, civil_now_micros())?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! The values of a column whose type changes.
//!
//! Invariant: a value becomes what a load of the same value would store, or the whole change fails; none becomes NULL. The same
//! array gives the same result wherever it is computed: in data files, in the memtable, in a replay of the log.
//!
//! Not its business: which types may become which.

use crate::blocks::block::Block;
use crate::blocks::builder::{BlockBuilder, ColumnBuffer};
use crate::blocks::columns::blocks_to_batches;
use crate::blocks::error::BadValue;
use crate::cells::array_cells::ArrayCells;
use crate::cells::cell::{self, Fault, push_cell};
use crate::rows::loader::{BLOCK_BYTES_TARGET, BLOCK_ROWS_TARGET};
use crate::rows::whole::whole_column;
use arrow::array::{ArrayRef, new_empty_array};
use arrow::compute::concat;
use arrow::error::ArrowError;
use std::sync::Arc;
use tributary_types::change::keeps_values;
use tributary_types::widen::widened;
use tributary_types::{ColumnDef, SchemaVersion, TableSchema};

/// The values of the column `from` as values of `to`.
///
/// # Errors
/// The first value that can't be converted.
pub fn recast(array: &ArrayRef, from: &ColumnDef, to: &ColumnDef) -> Result<ArrayRef, BadValue> {
    if keeps_values(&from.data_type, &to.data_type) {
        // Only for nested values: others have the same representation.
        let wide = widened(array, &to.data_type.to_arrow());
        return wide.map_err(|error| unreadable(&error, from, to));
    }
    if array.is_empty() {
        return Ok(new_empty_array(&to.data_type.to_arrow()));
    }
    match whole_column(array, to) {
        Some(whole) => Ok(whole),
        None => by_cells(array, from, to),
    }
}

fn bad(row: usize, value: String, from: &ColumnDef, to: &ColumnDef, reason: &'static str) -> BadValue {
    BadValue {
        row,
        value,
        column: to.name.clone(),
        from: from.data_type.to_string(),
        to: to.data_type.to_string(),
        reason,
    }
}

fn unreadable(error: &ArrowError, from: &ColumnDef, to: &ColumnDef) -> BadValue {
    bad(0, error.to_string(), from, to, "it can't be read")
}

fn by_cells(array: &ArrayRef, from: &ColumnDef, to: &ColumnDef) -> Result<ArrayRef, BadValue> {
    let cells = ArrayCells::new(array, 0).map_err(|error| unreadable(&error, from, to))?;
    gathered(array.len(), to, |row, column| {
        let cell = cells.cell(row);
        match push_cell(column, to.data_type, cell, true, 0) {
            Ok(()) => Ok(()),
            Err(Fault::Null) if to.nullable => {
                column.push_null();
                Ok(())
            }
            Err(fault) => Err(bad(row, cell::shown(&cell), from, to, reason(fault))),
        }
    })
}

/// The values of a column that `push` gives row by row, at least one.
///
/// # Errors
/// The first one of `push`.
pub(crate) fn gathered<E>(
    rows: usize,
    to: &ColumnDef,
    mut push: impl FnMut(usize, &mut ColumnBuffer) -> Result<(), E>,
) -> Result<ArrayRef, E> {
    let column = ColumnDef { nullable: true, default: None, ..to.clone() };
    let schema = Arc::new(TableSchema::new(SchemaVersion(1), vec![column]));
    let mut builder = BlockBuilder::new(&schema);
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for row in 0..rows {
        push(row, builder.column_mut(0))?;
        builder.finish_row();
        let is_full =
            builder.row_count() >= BLOCK_ROWS_TARGET || builder.stored_bytes() >= BLOCK_BYTES_TARGET;
        if is_full || row + 1 == rows {
            let block = builder.finish().expect("it ends with a row at the target");
            arrays.push(column_of(&schema, &block));
        }
    }
    let arrays: Vec<_> = arrays.iter().map(AsRef::as_ref).collect();
    Ok(concat(&arrays).expect("the pieces are of one type"))
}

fn column_of(schema: &TableSchema, block: &Block) -> ArrayRef {
    let batches = blocks_to_batches(schema, std::slice::from_ref(block)).expect("a block of this schema");
    let columns: Vec<_> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    concat(&columns).expect("the pieces are of one type")
}

const fn reason(fault: Fault) -> &'static str {
    match fault {
        Fault::Null => "it is NULL, and the column is NOT NULL",
        Fault::Bad | Fault::IntRange => "it is no value of that type, or out of its range",
        Fault::DecimalRange => "it has too many digits",
        Fault::LargeIntRange => "a LARGEINT keeps 38 digits",
        Fault::TooLong { .. } | Fault::TooLongString { .. } => "it is too long",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};
    use arrow::compute::cast;
    use arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type};
    use tributary_types::DataType;

    fn column(data_type: DataType) -> ColumnDef {
        ColumnDef::new(1, "c", data_type)
    }

    fn texts(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn integers_widen_and_nulls_stay() {
        let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(i32::MIN)]));
        let wide = recast(&ints, &column(DataType::Int), &column(DataType::BigInt)).unwrap();
        let wide: Vec<_> = wide.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(wide, [Some(1), None, Some(i64::from(i32::MIN))]);
        let wider = recast(&ints, &column(DataType::Int), &column(DataType::LargeInt)).unwrap();
        assert_eq!(wider.as_primitive::<Decimal128Type>().value(2), i128::from(i32::MIN));
        let text = recast(&ints, &column(DataType::Int), &column(DataType::Varchar { bytes: 11 })).unwrap();
        assert_eq!(
            text.as_string::<i32>().iter().collect::<Vec<_>>(),
            [Some("1"), None, Some("-2147483648")]
        );
    }

    #[test]
    fn numbers_become_days_and_texts_become_numbers() {
        let days: ArrayRef = Arc::new(Int32Array::from(vec![20_240_229]));
        let days = recast(&days, &column(DataType::Int), &column(DataType::Date)).unwrap();
        assert_eq!(days.as_primitive::<Date32Type>().value(0), 19_782);
        let from = column(DataType::Varchar { bytes: 10 });
        let numbers =
            recast(&texts(&[Some("12"), None, Some(" -7 ")]), &from, &column(DataType::Int)).unwrap();
        assert_eq!(
            numbers.as_primitive::<Int32Type>().iter().collect::<Vec<_>>(),
            [Some(12), None, Some(-7)]
        );
        let doubles = recast(&texts(&[Some("1.5e3")]), &from, &column(DataType::Double)).unwrap();
        assert_eq!(doubles.as_primitive::<Float64Type>().value(0), 1500.0);
    }

    #[test]
    fn a_value_that_is_none_is_named_with_its_place() {
        let from = column(DataType::Varchar { bytes: 10 });
        let bad = recast(&texts(&[Some("1"), None, Some("x1")]), &from, &column(DataType::Int)).unwrap_err();
        assert_eq!((bad.row, bad.value.as_str()), (2, "x1"));
        assert_eq!(
            bad.to_string(),
            "the value 'x1' of column 'c' can't be converted from varchar(10) to int: \
             it is no value of that type, or out of its range"
        );
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.25]));
        let short = recast(&doubles, &column(DataType::Double), &column(DataType::Varchar { bytes: 2 }));
        assert_eq!(short.unwrap_err().reason, "it is too long");
        let json =
            recast(&texts(&[Some("{}"), Some("{")]), &column(DataType::String), &column(DataType::Json));
        assert_eq!(json.unwrap_err().row, 1);
    }

    #[test]
    fn times_lose_what_days_do_not_have() {
        let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![86_400_000_001, -1]));
        let from = column(DataType::DateTime { scale: 6 });
        let days = recast(&micros, &from, &column(DataType::Date)).unwrap();
        assert_eq!(days.as_primitive::<Date32Type>().values(), &[1, -1]);
        let back = recast(&days, &column(DataType::Date), &column(DataType::DateTime { scale: 0 })).unwrap();
        let back = cast(&back, &arrow::datatypes::DataType::Int64).unwrap();
        assert_eq!(back.as_primitive::<Int64Type>().values(), &[86_400_000_000, -86_400_000_000]);
    }

    #[test]
    fn many_texts_take_several_blocks() {
        let rows = BLOCK_ROWS_TARGET + 10;
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows as i32));
        let long = recast(&numbers, &column(DataType::Int), &column(DataType::String)).unwrap();
        assert_eq!(long.len(), rows);
        assert_eq!(long.as_string::<i32>().value(rows - 1), (rows - 1).to_string());
    }
}

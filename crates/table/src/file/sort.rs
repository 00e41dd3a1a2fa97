//! A run of rows in the order of the key columns.

use crate::error::TableError;
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use std::sync::Arc;

/// All rows of `batches` in the order of the columns `keys`. Rows with equal keys keep their
/// order of arrival. Takes a run that fits 32-bit offsets: callers bound it by bytes.
pub(crate) fn sorted_run(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    keys: &[usize],
) -> Result<RecordBatch, TableError> {
    let failed = || TableError::arrow("sorting rows by the key columns");
    let run = match batches {
        [one] => one.clone(),
        many => concat_batches(schema, many).map_err(failed())?,
    };
    if keys.is_empty() || run.num_rows() < 2 {
        return Ok(run);
    }
    let columns: Vec<_> = keys.iter().map(|&key| Arc::clone(run.column(key))).collect();
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields)
        .and_then(|converter| converter.convert_columns(&columns))
        .map_err(failed())?;
    let count = u32::try_from(run.num_rows()).map_err(|_| TableError::Worker {
        doing: "sorting rows by the key columns".to_owned(),
        reason: format!("a run of {} rows is over the limit of {}", run.num_rows(), u32::MAX),
    })?;
    if (1..run.num_rows()).all(|row| rows.row(row - 1) <= rows.row(row)) {
        return Ok(run);
    }
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_unstable_by(|&left, &right| {
        rows.row(left as usize).cmp(&rows.row(right as usize)).then(left.cmp(&right))
    });
    take_record_batch(&run, &UInt32Array::from(order)).map_err(failed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    #[test]
    fn rows_are_sorted_by_key_and_equal_keys_keep_their_arrival_order() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::Int32, true),
            Field::new("v", DataType::Utf8, false),
        ]));
        let batch = |keys: Vec<Option<i32>>, values: Vec<&str>| {
            let columns: Vec<arrow::array::ArrayRef> =
                vec![Arc::new(Int32Array::from(keys)), Arc::new(StringArray::from(values))];
            RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
        };
        let batches = [
            batch(vec![Some(2), None, Some(1)], vec!["a", "b", "c"]),
            batch(vec![Some(1), Some(2)], vec!["d", "e"]),
        ];
        let sorted = sorted_run(&schema, &batches, &[0]).unwrap();
        assert_eq!(
            sorted,
            batch(vec![None, Some(1), Some(1), Some(2), Some(2)], vec!["b", "c", "d", "a", "e"])
        );
        let unsorted = sorted_run(&schema, &batches, &[]).unwrap();
        assert_eq!(unsorted.num_rows(), 5);
    }
}

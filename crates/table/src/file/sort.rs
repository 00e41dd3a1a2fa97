//! Rows in the order of the key columns.

use crate::error::TableError;
use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::row::{RowConverter, Rows, SortField};
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes of a row's keys that are compared first.
const PREFIX_BYTES: usize = size_of::<u128>();
/// Rows that are copied at a time into the new order.
const GATHERED_ROWS: usize = 8192;
/// Rows that stay neighbours are not copied if there are so many of them together on average.
const NEIGHBOURS_MIN: usize = 128;
const DOING: &str = "sorting rows by the key columns";

/// A row's place in the batches.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The first bytes of its keys.
    prefix: u128,
    batch: u32,
    row: u32,
}

/// All rows of `batches` in the order of the columns `keys`, as batches that follow one another.
/// Rows with equal keys keep their order of arrival. What is in order already is not copied.
pub(crate) fn sorted(batches: Vec<RecordBatch>, keys: &[usize]) -> Result<Vec<RecordBatch>, TableError> {
    if keys.is_empty() {
        return Ok(batches);
    }
    let keys = key_rows(&batches, keys)?;
    let mut order = places(&keys)?;
    // The first bytes decide nearly always, and are compared as one number.
    let is_decided = keys.iter().all(|rows| rows.lengths().all(|bytes| bytes <= PREFIX_BYTES));
    let compare = |left: &Place, right: &Place| match left.prefix.cmp(&right.prefix) {
        Ordering::Equal if !is_decided => row(&keys, left).cmp(row(&keys, right)),
        order => order,
    };
    if order.is_sorted_by(|left, right| compare(left, right).is_le()) {
        return Ok(batches);
    }
    // Stable, and quick where the loads were sorted each in itself.
    order.sort_by(compare);
    gather(&batches, &order)
}

fn key_rows(batches: &[RecordBatch], keys: &[usize]) -> Result<Vec<Rows>, TableError> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let fields = keys.iter().map(|&key| SortField::new(first.column(key).data_type().clone())).collect();
    let converter = RowConverter::new(fields).map_err(TableError::arrow(DOING))?;
    let convert = |batch: &RecordBatch| {
        let columns: Vec<_> = keys.iter().map(|&key| Arc::clone(batch.column(key))).collect();
        converter.convert_columns(&columns).map_err(TableError::arrow(DOING))
    };
    batches.iter().map(convert).collect()
}

fn places(keys: &[Rows]) -> Result<Vec<Place>, TableError> {
    let too_many = |number: usize| TableError::Worker {
        doing: DOING.to_owned(),
        reason: format!("{number} is over the limit of {}", u32::MAX),
    };
    let mut places = Vec::with_capacity(keys.iter().map(Rows::num_rows).sum());
    for (number, rows) in keys.iter().enumerate() {
        let batch = u32::try_from(number).map_err(|_| too_many(number))?;
        let count = u32::try_from(rows.num_rows()).map_err(|_| too_many(rows.num_rows()))?;
        places.extend((0..count).map(|row| Place {
            prefix: prefix(rows.row(row as usize).as_ref()),
            batch,
            row,
        }));
    }
    Ok(places)
}

fn row<'a>(keys: &'a [Rows], place: &Place) -> &'a [u8] {
    keys[place.batch as usize].row(place.row as usize).data()
}

/// The first bytes of a row's keys as a number that is ordered like them.
fn prefix(row: &[u8]) -> u128 {
    let mut bytes = [0; PREFIX_BYTES];
    let known = row.len().min(PREFIX_BYTES);
    bytes[..known].copy_from_slice(&row[..known]);
    u128::from_be_bytes(bytes)
}

fn gather(batches: &[RecordBatch], order: &[Place]) -> Result<Vec<RecordBatch>, TableError> {
    let neighbours = || {
        order.chunk_by(|left, right| left.batch == right.batch && left.row.checked_add(1) == Some(right.row))
    };
    if neighbours().count() * NEIGHBOURS_MIN <= order.len() {
        let slice = |run: &[Place]| batches[run[0].batch as usize].slice(run[0].row as usize, run.len());
        return Ok(neighbours().map(slice).collect());
    }
    let sources: Vec<&RecordBatch> = batches.iter().collect();
    let copy = |part: &[Place]| {
        let places: Vec<_> = part.iter().map(|place| (place.batch as usize, place.row as usize)).collect();
        interleave_record_batch(&sources, &places).map_err(TableError::arrow(DOING))
    };
    order.chunks(GATHERED_ROWS).map(copy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray, Int32Array, StringArray};
    use arrow::compute::concat_batches;
    use arrow::datatypes::Int32Type;

    type Row = (Option<i32>, String);

    fn batch(rows: &[(Option<i32>, &str)]) -> RecordBatch {
        let keys: ArrayRef = Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.0)));
        let values: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
        RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, false)]).unwrap()
    }

    fn rows(batches: &[RecordBatch]) -> Vec<Row> {
        let all = concat_batches(batches[0].schema_ref(), batches).unwrap();
        let (keys, values) = (all.column(0).as_primitive::<Int32Type>(), all.column(1).as_string::<i32>());
        keys.iter().zip(values).map(|(key, value)| (key, value.unwrap().to_owned())).collect()
    }

    #[test]
    fn rows_are_sorted_by_key_and_equal_keys_keep_their_arrival_order() {
        let batches = vec![
            batch(&[(Some(2), "a"), (None, "b"), (Some(1), "c")]),
            batch(&[(Some(1), "d"), (Some(2), "e")]),
        ];
        let expected = batch(&[(None, "b"), (Some(1), "c"), (Some(1), "d"), (Some(2), "a"), (Some(2), "e")]);
        assert_eq!(rows(&sorted(batches.clone(), &[0]).unwrap()), rows(&[expected]));
        assert_eq!(sorted(batches.clone(), &[]).unwrap(), batches);
    }

    #[test]
    fn keys_that_differ_late_are_compared_whole() {
        let long = |ends: [&str; 4]| {
            let texts = ends.map(|end| format!("the same first bytes {end}"));
            batch(&texts.each_ref().map(|text| (None, text.as_str())))
        };
        let sorted = sorted(vec![long(["d", "b", "", "a"])], &[1]).unwrap();
        assert_eq!(rows(&sorted), rows(&[long(["", "a", "b", "d"])]));
    }

    #[test]
    fn runs_of_rows_are_put_in_order_without_copies() {
        let run = |numbers: std::ops::Range<i32>| {
            let texts: Vec<_> = numbers.clone().map(|number| number.to_string()).collect();
            let rows: Vec<_> =
                numbers.zip(&texts).map(|(number, text)| (Some(number), text.as_str())).collect();
            batch(&rows)
        };
        let batches = vec![run(1000..2000), run(0..500), run(2000..2500), run(500..1000)];
        let all = sorted(batches.clone(), &[0]).unwrap();
        assert_eq!(rows(&all), rows(&[run(0..2500)]));
        let place = |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().as_ptr();
        assert_eq!(
            all.iter().map(place).collect::<Vec<_>>(),
            [1, 3, 0, 2].map(|at: usize| place(&batches[at]))
        );
    }

    #[test]
    fn many_mixed_rows_are_gathered_in_parts() {
        let numbers: Vec<i32> = (0..20_000).map(|number| (number * 7919) % 20_000).collect();
        let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        let all: Vec<_> =
            numbers.iter().zip(&texts).map(|(&number, text)| (Some(number), text.as_str())).collect();
        let batches: Vec<_> = all.chunks(1000).map(batch).collect();
        let found = rows(&sorted(batches, &[0]).unwrap());
        let expected: Vec<Row> = (0..20_000).map(|number| (Some(number), number.to_string())).collect();
        assert_eq!(found, expected);
    }
}

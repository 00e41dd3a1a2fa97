//! Rows in the order of the key columns.

use crate::error::TableError;
use crate::keys::side_by_side::{in_turn, sorted_by, threads_for};
use crate::view::memtable::array_bytes;
use arrow::array::{Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat, take};
use arrow::row::{RowConverter, Rows, SortField};
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// Bytes of a row's keys that are compared first.
const PREFIX_BYTES: usize = 2 * size_of::<u64>();
/// Rows that are copied at a time into the new order.
const GATHERED_ROWS: usize = 8192;
/// Rows that stay neighbours are not copied if runs of them have at least this length on average.
const NEIGHBOURS_MIN: usize = 128;
const DOING: &str = "sorting rows by the key columns";

/// A row's place in the batches.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The first bytes of its keys. Not one `u128`, whose alignment would enlarge a place by a third.
    prefix: (u64, u64),
    batch: u32,
    row: u32,
}

/// Rows that are in order already.
#[derive(Clone, Copy, Debug)]
struct Run {
    batch: usize,
    start: usize,
    end: usize,
}

/// Sorts all rows of `batches` stably by the columns `keys` into consecutive batches. Rows already in order are not copied.
pub(crate) fn sorted(batches: Vec<RecordBatch>, keys: &[usize]) -> Result<Vec<RecordBatch>, TableError> {
    if keys.is_empty() {
        return Ok(batches);
    }
    let keys = key_rows(&batches, keys)?;
    if let Some(runs) = runs_in_order(&keys) {
        let slice = |run: Run| batches[run.batch].slice(run.start, run.end - run.start);
        return Ok(runs.into_iter().map(slice).collect());
    }
    let order = places(&keys)?;
    // The first bytes decide nearly always, and are compared as one number.
    let is_decided = keys.iter().all(|rows| rows.lengths().all(|bytes| bytes <= PREFIX_BYTES));
    let compare = |left: &Place, right: &Place| match left.prefix.cmp(&right.prefix) {
        Ordering::Equal if !is_decided => row(&keys, left).cmp(row(&keys, right)),
        order => order,
    };
    gather(&batches, &sorted_by(order, |place| place.prefix.0, compare))
}

fn key_rows(batches: &[RecordBatch], keys: &[usize]) -> Result<Vec<Rows>, TableError> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let fields = keys.iter().map(|&key| SortField::new(first.column(key).data_type().clone())).collect();
    let converter = RowConverter::new(fields).map_err(TableError::arrow(DOING))?;
    let convert = |batch: &RecordBatch| {
        let columns: Vec<_> = keys.iter().map(|&key| Arc::clone(batch.column(key))).collect();
        converter.convert_columns(&columns).map_err(TableError::arrow(DOING))
    };
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    in_turn(batches.iter().collect(), threads_for(rows), convert).into_iter().collect()
}

/// The rows as a few long runs, one after another in the order of the keys; `None` for many runs, or if two of them overlap.
fn runs_in_order(keys: &[Rows]) -> Option<Vec<Run>> {
    let most = keys.iter().map(Rows::num_rows).sum::<usize>() / NEIGHBOURS_MIN;
    let mut runs = Vec::new();
    for (batch, rows) in keys.iter().enumerate() {
        let mut start = 0;
        for end in 1..=rows.num_rows() {
            if end == rows.num_rows() || rows.row(end) < rows.row(end - 1) {
                runs.push(Run { batch, start, end });
                start = end;
            }
        }
        if runs.len() > most.max(1) {
            return None;
        }
    }
    let first = |run: &Run| keys[run.batch].row(run.start);
    let last = |run: &Run| keys[run.batch].row(run.end - 1);
    runs.sort_by(|left, right| first(left).cmp(&first(right)));
    let follows = |left: &Run, right: &Run| match last(left).cmp(&first(right)) {
        Ordering::Less => true,
        // The order of arrival.
        Ordering::Equal => (left.batch, left.start) < (right.batch, right.start),
        Ordering::Greater => false,
    };
    runs.is_sorted_by(follows).then_some(runs)
}

fn places(keys: &[Rows]) -> Result<Vec<Place>, TableError> {
    let mut places = Vec::with_capacity(keys.iter().map(Rows::num_rows).sum());
    for (batch, rows) in keys.iter().enumerate() {
        let batch = number(batch)?;
        places.extend((0..number(rows.num_rows())?).map(|row| Place {
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

/// The first bytes of a row's keys as numbers that are ordered like them.
fn prefix(row: &[u8]) -> (u64, u64) {
    let mut bytes = [0; PREFIX_BYTES];
    let known = row.len().min(PREFIX_BYTES);
    bytes[..known].copy_from_slice(&row[..known]);
    let number = u128::from_be_bytes(bytes);
    ((number >> 64) as u64, number as u64)
}

fn gather(batches: &[RecordBatch], order: &[Place]) -> Result<Vec<RecordBatch>, TableError> {
    let neighbours = || {
        order.chunk_by(|left, right| left.batch == right.batch && left.row.checked_add(1) == Some(right.row))
    };
    if neighbours().count() * NEIGHBOURS_MIN <= order.len() {
        let slice = |run: &[Place]| batches[run[0].batch as usize].slice(run[0].row as usize, run.len());
        return Ok(neighbours().map(slice).collect());
    }
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let rows = rows_of(batches, order)?;
    let pieces: Vec<UInt32Array> = (0..rows.len())
        .step_by(GATHERED_ROWS)
        .map(|start| rows.slice(start, GATHERED_ROWS.min(rows.len() - start)))
        .collect();
    // One column at a time is in the processor's cache, whichever row is next.
    let copy = |column: usize| {
        let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
        let all = concat(&arrays)?;
        pieces.iter().map(|piece| take(&all, piece, None)).collect::<Result<Vec<_>, _>>()
    };
    // The largest first: the threads are done at about the same time.
    let mut numbers: Vec<usize> = (0..first.num_columns()).collect();
    numbers.sort_by_key(|column| Reverse(array_bytes(first.column(*column))));
    let copied = in_turn(numbers.clone(), threads_for(order.len()), copy);
    let copied = copied.into_iter().collect::<Result<Vec<_>, _>>().map_err(TableError::arrow(DOING))?;
    let mut columns: Vec<_> = numbers.into_iter().zip(copied).collect();
    columns.sort_unstable_by_key(|(column, _)| *column);
    let mut columns: Vec<_> = columns.into_iter().map(|(_, pieces)| pieces.into_iter()).collect();
    let batch = |piece: &UInt32Array| {
        let of_piece = columns.iter_mut().filter_map(Iterator::next).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(piece.len()));
        RecordBatch::try_new_with_options(first.schema(), of_piece, &options)
            .map_err(TableError::arrow(DOING))
    };
    pieces.iter().map(batch).collect()
}

/// The places as numbers of rows, counted through all batches.
fn rows_of(batches: &[RecordBatch], order: &[Place]) -> Result<UInt32Array, TableError> {
    let mut rows = 0;
    let mut starts = Vec::with_capacity(batches.len());
    for batch in batches {
        starts.push(number(rows)?);
        rows += batch.num_rows();
    }
    number(rows)?;
    Ok(order.iter().map(|place| starts[place.batch as usize] + place.row).collect::<Vec<_>>().into())
}

/// A number that fits into a place.
fn number(number: usize) -> Result<u32, TableError> {
    u32::try_from(number).map_err(|_| TableError::Worker {
        doing: DOING.to_owned(),
        reason: format!("{number} is over the limit of {}", u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray, Int32Array, StringArray};
    use arrow::compute::concat_batches;
    use arrow::datatypes::Int32Type;

    type Row = (Option<i32>, String);

    fn batch(rows: &[(Option<i32>, &str)]) -> RecordBatch {
        let keys: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int32Array>());
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
    fn runs_that_overlap_or_meet_out_of_turn_are_merged() {
        let key = |key: i32, count: usize, text: &'static str| vec![(Some(key), text); count];
        let of = |parts: &[Vec<(Option<i32>, &str)>]| batch(&parts.concat());
        // 300 rows and more in a run: only their keys decide.
        let late = of(&[key(1, 150, "late 1"), key(2, 150, "late 2")]);
        let early = of(&[key(2, 150, "early 2"), key(3, 150, "early 3")]);
        let found = rows(&sorted(vec![early.clone(), late.clone()], &[0]).unwrap());
        let expected = of(&[
            key(1, 150, "late 1"),
            key(2, 150, "early 2"),
            key(2, 150, "late 2"),
            key(3, 150, "early 3"),
        ]);
        assert_eq!(found, rows(&[expected]), "equal keys in the order of arrival");
        let within = of(&[key(0, 150, "a"), key(9, 150, "b")]);
        let found = rows(&sorted(vec![within, late.clone()], &[0]).unwrap());
        let expected =
            of(&[key(0, 150, "a"), key(1, 150, "late 1"), key(2, 150, "late 2"), key(9, 150, "b")]);
        assert_eq!(found, rows(&[expected]));
        let all = sorted(vec![late.clone(), early.clone()], &[0]).unwrap();
        assert_eq!(all, [late, early], "what meets in the order of arrival is not copied");
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

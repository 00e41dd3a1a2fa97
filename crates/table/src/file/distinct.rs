//! Columns whose values are nearly all different, such as ids of requests: a dictionary would have a value for each row or two, and
//! filling it takes longer than anything else about the column. Judged by a sample of a row group.
//!
//! Not here: the sizes at which a dictionary ends that was begun.

use crate::keys::side_by_side::{in_turn, threads_for};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use std::collections::HashSet;

/// Rows of a sample, and rows of it that follow one another: equal values may be neighbours, or far apart.
const SAMPLE_ROWS: usize = 4096;
const NEIGHBOURS: usize = 64;
/// Among `n` of `rows` rows whose values recur seldom, there are `n² / (2 · rows) · (rows / values - 1)` that recur. A third of them in
/// addition is the limit: three values for four rows.
const SELDOM: usize = 6;

/// The columns of a row group that need no dictionary.
pub(super) fn distinct_columns(batches: &[RecordBatch]) -> Vec<usize> {
    let columns = batches.first().map_or(0, RecordBatch::num_columns);
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let are_distinct =
        in_turn((0..columns).collect(), threads_for(rows), |column| is_distinct(batches, column));
    (0..columns).filter(|column| are_distinct[*column]).collect()
}

/// Whether a dictionary of this column's values is of no use: three rows of four have a value of their own, as far as a sample tells.
fn is_distinct(batches: &[RecordBatch], column: usize) -> bool {
    let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(column)).collect();
    let Some(values) = arrays.iter().map(|array| Values::of(array)).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let rows: usize = arrays.iter().map(|array| array.len() - array.null_count()).sum();
    let may_recur = |sampled: usize| sampled * sampled / (SELDOM * rows.max(1));
    let (mut seen, mut sampled, mut recur) = (HashSet::with_capacity(NEIGHBOURS), 0, 0);
    for (batch, row) in sample(&arrays) {
        if arrays[batch].is_null(row) {
            continue;
        }
        sampled += 1;
        recur += usize::from(!seen.insert(values[batch].at(row)));
        if recur > may_recur(SAMPLE_ROWS.min(rows)) {
            return false;
        }
    }
    // Of a column that is nearly always NULL too little is seen.
    sampled > NEIGHBOURS && recur <= may_recur(sampled)
}

/// Places of rows, in their order: pieces of neighbours in equal distances, or all rows.
fn sample<'a>(arrays: &'a [&ArrayRef]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let rows: usize = arrays.iter().copied().map(Array::len).sum();
    let pieces = SAMPLE_ROWS / NEIGHBOURS;
    let distance = (rows / pieces).max(NEIGHBOURS);
    let mut before = 0;
    arrays.iter().enumerate().flat_map(move |(batch, array)| {
        let start = before;
        before += array.len();
        let is_sampled = move |row: &usize| (start + row) % distance < NEIGHBOURS;
        (0..array.len()).filter(is_sampled).map(move |row| (batch, row))
    })
}

/// The bytes of an array's values.
enum Values<'a> {
    /// Numbers of this width in bytes, from this one on.
    Numbers(Buffer, usize, usize),
    Texts(&'a arrow::array::StringArray),
    Bytes(&'a arrow::array::BinaryArray),
}

impl<'a> Values<'a> {
    /// `None`: values of this type are not looked at.
    fn of(array: &'a ArrayRef) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8 => Some(Self::Texts(array.as_string())),
            DataType::Binary => Some(Self::Bytes(array.as_binary())),
            other => {
                let width = other.primitive_width()?;
                let data = array.to_data();
                Some(Self::Numbers(data.buffers().first()?.clone(), width, data.offset()))
            }
        }
    }

    fn at(&self, row: usize) -> &[u8] {
        match self {
            Self::Numbers(bytes, width, first) => {
                let start = (first + row) * width;
                &bytes[start..start + width]
            }
            Self::Texts(texts) => texts.value(row).as_bytes(),
            Self::Bytes(bytes) => bytes.value(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;

    /// Rows of a column in batches of different sizes.
    fn batches(rows: &ArrayRef) -> Vec<RecordBatch> {
        let (mut batches, mut start, mut size) = (Vec::new(), 0, 5);
        while start < rows.len() {
            let taken = size.min(rows.len() - start);
            let column = rows.slice(start, taken);
            batches.push(RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap());
            (start, size) = (start + taken, size * 3);
        }
        batches
    }

    fn numbers(values: impl Iterator<Item = i64>) -> bool {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        is_distinct(&batches(&values), 0)
    }

    fn texts(values: impl Iterator<Item = i64>) -> bool {
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values(values.map(|value| format!("text {value}"))));
        is_distinct(&batches(&texts), 0)
    }

    /// Numbers without an order, below `limit`, a power of two.
    fn mixed(rows: i64, limit: i64) -> impl Iterator<Item = i64> {
        (0..rows).map(move |row| {
            let mixed = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as i64 & (limit - 1)
        })
    }

    #[test]
    fn values_of_their_own_are_distinct() {
        for rows in [100, 5000, 300_000] {
            assert!(numbers(0..rows) && texts(0..rows), "{rows} rows");
            assert!(texts(mixed(rows, 1 << 40)), "{rows} rows");
        }
    }

    #[test]
    fn values_that_recur_are_not_whether_neighbours_or_far_apart() {
        for rows in [100, 5000, 300_000] {
            // Each ten times, as in a column that is sorted.
            assert!(!numbers((0..rows).map(|row| row / 10)), "{rows} rows, neighbours");
            assert!(!texts((0..rows).map(|row| row % (rows / 10))), "{rows} rows, far apart");
            assert!(!texts((0..rows).map(|row| row / 2)), "{rows} rows, pairs");
        }
        assert!(!texts(mixed(300_000, 1 << 16)), "five of each");
        assert!(!numbers(mixed(1_000_000, 1 << 17)), "eight of each");
    }

    #[test]
    fn few_values_beside_nulls_say_nothing() {
        let values = |every: i64| (0..200_000).map(move |row| (row % every == 0).then_some(row));
        let distinct =
            |every| is_distinct(&batches(&(Arc::new(values(every).collect::<Int64Array>()) as _)), 0);
        assert!(distinct(2));
        assert!(!distinct(10_000));
        assert!(!is_distinct(&[], 0));
    }
}

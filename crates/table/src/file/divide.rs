//! Rows of a run by their partitions.

use crate::error::TableError;
use arrow::array::RecordBatch;
use arrow::compute::{concat_batches, interleave_record_batch};
use std::ops::Range;
use tributary_types::{PartitionId, Partitions, TableSchema};

/// Rows of one partition, in their order. `None`: the definition has no partition for them.
pub(super) type OfPartition = (Option<PartitionId>, Vec<RecordBatch>);

/// Rows that are ordered by partition in one step: few enough for the processor's cache, whichever partition is next, and enough
/// for each partition to have some.
const PIECE_ROWS: usize = 16 * 1024;
const DOING: &str = "gathering rows of a partition";

/// The rows of each partition, in the order of the partitions' ids. Rows that are all of one partition are not copied.
///
/// # Errors
/// [`TableError::Arrow`]
pub(super) fn divided(
    batches: Vec<RecordBatch>,
    partitions: &Partitions,
    schema: &TableSchema,
) -> Result<Vec<OfPartition>, TableError> {
    // The last one is of those without a partition.
    let none = partitions.list.len();
    let found: Vec<Vec<usize>> = batches
        .iter()
        .map(|batch| {
            let of_rows = partitions.of_rows(batch, schema).into_iter();
            of_rows.map(|found| found.unwrap_or(none)).collect()
        })
        .collect();
    let mut are_there = vec![false; none + 1];
    found.iter().flatten().for_each(|place| are_there[*place] = true);
    let id = |place: usize| partitions.list.get(place).map(|partition| partition.id);
    let mut places: Vec<usize> = (0..=none).filter(|place| are_there[*place]).collect();
    places.sort_unstable_by_key(|place| id(*place));
    if let [only] = places[..] {
        return Ok(vec![(id(only), batches)]);
    }
    let mut ranks = vec![0; none + 1];
    places.iter().enumerate().for_each(|(rank, place)| ranks[*place] = rank);
    let mut divided: Vec<OfPartition> = places.iter().map(|place| (id(*place), Vec::new())).collect();
    for piece in pieces(&batches) {
        let rank_of = |&(source, row): &(usize, usize)| {
            let (batch, rows) = &piece[source];
            ranks[found[*batch][rows.start + row]]
        };
        let mut order: Vec<(usize, usize)> = Vec::with_capacity(PIECE_ROWS);
        for (source, (_, rows)) in piece.iter().enumerate() {
            order.extend((0..rows.len()).map(|row| (source, row)));
        }
        let counts = sort_by_rank(&mut order, rank_of, divided.len());
        let sources: Vec<RecordBatch> =
            piece.iter().map(|(batch, rows)| batches[*batch].slice(rows.start, rows.len())).collect();
        let sources: Vec<&RecordBatch> = sources.iter().collect();
        let in_order = interleave_record_batch(&sources, &order).map_err(TableError::arrow(DOING))?;
        let mut start = 0;
        for ((_, rows), count) in divided.iter_mut().zip(counts).filter(|(_, count)| *count > 0) {
            rows.push(in_order.slice(start, count));
            start += count;
        }
    }
    Ok(divided)
}

/// All rows of the batches, a piece after the other: rows of batches, by the batches' numbers.
fn pieces(batches: &[RecordBatch]) -> Vec<Vec<(usize, Range<usize>)>> {
    let (mut pieces, mut piece, mut room) = (Vec::new(), Vec::new(), PIECE_ROWS);
    for (number, batch) in batches.iter().enumerate() {
        let mut start = 0;
        while start < batch.num_rows() {
            let end = batch.num_rows().min(start + room);
            piece.push((number, start..end));
            room -= end - start;
            start = end;
            if room == 0 {
                pieces.push(std::mem::take(&mut piece));
                room = PIECE_ROWS;
            }
        }
    }
    pieces.extend(Some(piece).filter(|piece| !piece.is_empty()));
    pieces
}

/// Sorts rows stably by rank, all below `ranks`. Returns the number of rows of each rank.
fn sort_by_rank<T: Copy>(rows: &mut Vec<T>, rank_of: impl Fn(&T) -> usize, ranks: usize) -> Vec<usize> {
    let mut counts = vec![0; ranks];
    rows.iter().for_each(|row| counts[rank_of(row)] += 1);
    let mut next: Vec<usize> = counts
        .iter()
        .scan(0, |start, count| {
            *start += count;
            Some(*start - count)
        })
        .collect();
    let Some(&first) = rows.first() else { return counts };
    let mut sorted = vec![first; rows.len()];
    for row in rows.iter() {
        let place = &mut next[rank_of(row)];
        sorted[*place] = *row;
        *place += 1;
    }
    *rows = sorted;
    counts
}

/// Rows of a partition as one batch.
pub(super) fn gathered(batches: &[RecordBatch]) -> Result<RecordBatch, TableError> {
    concat_batches(batches[0].schema_ref(), batches).map_err(TableError::arrow(DOING))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{rows, two_columns};
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use std::collections::BTreeMap;
    use tributary_types::partition::{Bound, PartitionRows, PartitionValue};
    use tributary_types::{ColumnId, PartitionMethod};

    fn ids(batch: &RecordBatch) -> Vec<i64> {
        batch.column(0).as_primitive::<Int64Type>().values().to_vec()
    }

    /// Partitions of ten ids each, from 0 on, the later ones listed first.
    fn tens(count: i128) -> Partitions {
        let mut partitions = Partitions::new(PartitionMethod::Range, vec![ColumnId(1)]);
        let bound = |value| vec![Bound::Value(PartitionValue::Int(value))];
        for number in (0..count).rev() {
            let rows = PartitionRows::Range { lower: bound(number * 10), upper: bound(number * 10 + 10) };
            partitions.add(&format!("p{number}"), rows, BTreeMap::new());
        }
        partitions
    }

    #[test]
    fn rows_keep_their_order_in_their_partitions_whatever_batches_they_come_in() {
        let partitions = tens(7);
        // A third of the ids are of no partition.
        let all: Vec<i64> = (0..2 * PIECE_ROWS as i64 + 77).map(|number| number * 37 % 105).collect();
        let (mut batches, mut rest, mut size) = (Vec::new(), &all[..], 1);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(size.min(rest.len()));
            batches.push(rows(now.iter().copied()));
            (rest, size) = (later, size * 3 % 20_011);
        }
        let divided = divided(batches, &partitions, &two_columns().schema).unwrap();
        assert_eq!(divided.len(), 8);
        assert!(divided.is_sorted_by_key(|(partition, _)| *partition));
        for (partition, batches) in divided {
            let named = partitions.list.iter().find(|it| Some(it.id) == partition).map(|it| it.name.clone());
            let name = |id: i64| (id < 70).then(|| format!("p{}", id / 10));
            let is_its = |id: &&i64| name(**id) == named;
            let expected: Vec<i64> = all.iter().filter(is_its).copied().collect();
            assert_eq!(ids(&gathered(&batches).unwrap()), expected, "{partition:?}");
        }
    }

    #[test]
    fn rows_of_one_partition_are_not_copied() {
        let batch = rows(20..30);
        let divided = divided(vec![batch.clone()], &tens(7), &two_columns().schema).unwrap();
        let [(Some(_), batches)] = &divided[..] else { panic!("{divided:?}") };
        assert!(std::ptr::eq(batches[0].column(0).as_ref(), batch.column(0).as_ref()));
    }
}

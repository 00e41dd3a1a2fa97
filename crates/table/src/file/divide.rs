//! Rows of a run by their partitions.

use crate::error::TableError;
use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use tributary_types::{PartitionId, Partitions, TableSchema};

/// Where rows of one partition are, in their order: `(batch, row)`. `None`: the definition has no partition for them.
pub(super) type Places = (Option<PartitionId>, Vec<(usize, usize)>);

/// Where the rows of each partition are, in the order of the partitions' ids.
pub(super) fn divided(batches: &[RecordBatch], partitions: &Partitions, schema: &TableSchema) -> Vec<Places> {
    // The last one is of those without a partition.
    let none = partitions.list.len();
    let mut places: Vec<Vec<(usize, usize)>> = vec![Vec::new(); none + 1];
    for (number, batch) in batches.iter().enumerate() {
        for (row, found) in partitions.of_rows(batch, schema).into_iter().enumerate() {
            places[found.unwrap_or(none)].push((number, row));
        }
    }
    let id = |place: usize| partitions.list.get(place).map(|partition| partition.id);
    let known = places.into_iter().enumerate().filter(|(_, places)| !places.is_empty());
    let mut divided: Vec<Places> = known.map(|(place, places)| (id(place), places)).collect();
    divided.sort_unstable_by_key(|(partition, _)| *partition);
    divided
}

/// These rows.
pub(super) fn gathered(
    batches: &[RecordBatch],
    places: &[(usize, usize)],
) -> Result<RecordBatch, TableError> {
    let all: Vec<&RecordBatch> = batches.iter().collect();
    interleave_record_batch(&all, places).map_err(TableError::arrow("gathering rows of a partition"))
}

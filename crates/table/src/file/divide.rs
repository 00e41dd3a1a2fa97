//! Rows of a run by their partitions.

use crate::error::TableError;
use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use std::collections::BTreeMap;
use tributary_types::{PartitionId, Partitions, TableSchema};

/// Rows of one partition, in their order. `None`: the definition has no partition for them.
pub(super) type Divided = (Option<PartitionId>, Vec<RecordBatch>);

/// The rows of each partition, in the order of the partitions' ids. Rows of a single one are not copied.
pub(super) fn divided(
    batches: Vec<RecordBatch>,
    partitions: &Partitions,
    schema: &TableSchema,
) -> Result<Vec<Divided>, TableError> {
    let mut places: BTreeMap<Option<PartitionId>, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, batch) in batches.iter().enumerate() {
        for (row, found) in partitions.of_rows(batch, schema).into_iter().enumerate() {
            let id = found.map(|place| partitions.list[place].id);
            places.entry(id).or_default().push((number, row));
        }
    }
    if let (1, Some(id)) = (places.len(), places.keys().next()) {
        return Ok(vec![(*id, batches)]);
    }
    let all: Vec<&RecordBatch> = batches.iter().collect();
    let of_partition = |(id, rows): (Option<PartitionId>, Vec<(usize, usize)>)| {
        let gathered = interleave_record_batch(&all, &rows);
        gathered.map(|batch| (id, vec![batch])).map_err(TableError::arrow("dividing rows by partitions"))
    };
    places.into_iter().map(of_partition).collect()
}

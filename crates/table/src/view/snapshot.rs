//! A query's view: all rows of a table at one version, immutable.

use crate::error::TableError;
use crate::file::{LiveFile, Settled};
use crate::view::memtable::MemPart;
use arrow::datatypes::SchemaRef;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tributary_types::{PartitionId, TableDef, Version};

/// Data files and memtable of a table at one version. Holding one keeps its rows readable: files
/// that leave the table are deleted only after the store's `keep_removed_files_ms`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The table's definition at this version.
    pub def: Arc<TableDef>,
    /// The Arrow schema of the memtable's batches: declared names, in the order of `def`.
    pub schema: SchemaRef,
    pub version: Version,
    /// Parquet files whose columns have physical names. Not all need be in the Delta log yet.
    pub files: Arc<Vec<LiveFile>>,
    pub memtable: Vec<Arc<MemPart>>,
    /// The version of the Delta log that was last written or read.
    pub delta_version: i64,
}

/// The contents of a partition in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionFacts {
    pub rows: u64,
    /// Bytes of data files and, approximately, of its rows in memory.
    pub bytes: u64,
    /// The last publication that it has rows of, as far as that is known; 0 if it is empty.
    pub version: Version,
}

impl PartitionFacts {
    fn add(&mut self, rows: u64, bytes: u64, version: Version) {
        self.rows += rows;
        self.bytes += bytes;
        self.version = self.version.max(version);
    }
}

impl Snapshot {
    /// The snapshot with the rows of some partitions only, by the partitions' places.
    ///
    /// # Errors
    /// Names a data file of another writer, whose rows are in no partition that is known.
    pub fn in_partitions(&self, places: &[bool]) -> Result<Self, TableError> {
        let Some(partitions) = self.def.partitioning.partitions() else { return Ok(self.clone()) };
        let chosen: HashSet<PartitionId> = partitions
            .list
            .iter()
            .zip(places)
            .filter(|(_, is_chosen)| **is_chosen)
            .map(|(partition, _)| partition.id)
            .collect();
        if let Some(live) = self.files.iter().find(|live| live.file.partition.is_none()) {
            return Err(TableError::Undivided { file: live.path().to_owned() });
        }
        let is_in = |live: &&LiveFile| live.file.partition.is_some_and(|id| chosen.contains(&id));
        let files = self.files.iter().filter(is_in).cloned().collect();
        let memtable = self.memtable.iter().map(|part| {
            let places_of_rows = partitions.of_rows(&part.batch, &self.def.schema);
            let is_out = |place: &Option<usize>| !place.is_some_and(|place| places[place]);
            let others = places_of_rows.iter().zip(0u64..).filter(|(place, _)| is_out(place));
            Arc::new(part.without(others.map(|(_, row)| row)))
        });
        Ok(Self { files: Arc::new(files), memtable: memtable.collect(), ..self.clone() })
    }

    /// The facts of each partition, in their order. Empty for a table without partitions.
    #[must_use]
    pub fn partition_facts(&self) -> Vec<PartitionFacts> {
        let Some(partitions) = self.def.partitioning.partitions() else { return Vec::new() };
        let mut facts = vec![PartitionFacts::default(); partitions.list.len()];
        let places: HashMap<PartitionId, usize> =
            partitions.list.iter().enumerate().map(|(place, partition)| (partition.id, place)).collect();
        for live in self.files.iter() {
            if let Some(place) = live.file.partition.and_then(|id| places.get(&id)) {
                facts[*place].add(live.live_rows(), live.size_bytes(), live.version());
            }
        }
        for part in &self.memtable {
            let row_bytes = part.bytes as u64 / (part.batch.num_rows() as u64).max(1);
            let of_rows = partitions.of_rows(&part.batch, &self.def.schema);
            for (place, row) in of_rows.into_iter().zip(0u64..) {
                let is_live = part.superseded.as_ref().is_none_or(|rows| !rows.contains(row));
                if let Some(place) = place.filter(|_| is_live) {
                    facts[place].add(1, row_bytes, part.version);
                }
            }
        }
        facts
    }

    /// How many rows the snapshot has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files.iter().map(LiveFile::live_rows).sum::<u64>() + self.memtable_rows()
    }

    #[must_use]
    pub fn memtable_rows(&self) -> u64 {
        self.memtable.iter().map(|part| part.live_rows()).sum()
    }

    /// Whether it is known of all rows which others they supersede. Else rows may be shown that should not be.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.def.keys.keeps_all_rows()
            || (self.memtable.iter().all(|part| part.is_settled)
                && self.files.iter().all(|file| file.settled == Settled::Yes))
    }

    /// Bytes of Arrow memory in the memtable.
    #[must_use]
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable.iter().map(|part| part.bytes as u64).sum()
    }
}

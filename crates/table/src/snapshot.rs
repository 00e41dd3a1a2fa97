//! What a query reads: all rows of a table at one version, immutable.

use crate::file::{LiveFile, Settled};
use crate::memtable::MemPart;
use arrow::datatypes::SchemaRef;
use std::sync::Arc;
use tributary_types::{TableDef, Version};

/// Data files and memtable of a table at one version. Holding one keeps its rows readable: files
/// that leave the table are deleted only after the store's `keep_removed_files_ms`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The table's definition at this moment.
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

impl Snapshot {
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

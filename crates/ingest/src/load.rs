//! A load as it enters this room, and what it is told.

use std::sync::Arc;
use tributary_decode::Block;
use tributary_table::DataFile;
use tributary_types::{Label, TableSchema, TxnId, Version};

/// The rows of one load, decoded: small ones as blocks in memory, large ones as data files that
/// are durable and not yet visible.
#[derive(Clone, Debug)]
pub struct LoadRows {
    /// The schema that the blocks were decoded for.
    pub schema: Arc<TableSchema>,
    pub blocks: Vec<Block>,
    pub files: Vec<DataFile>,
    pub rows: u64,
    /// Bytes of the blocks and files.
    pub bytes: u64,
}

impl LoadRows {
    /// Rows in memory.
    #[must_use]
    pub fn of_blocks(schema: Arc<TableSchema>, blocks: Vec<Block>) -> Self {
        let rows = blocks.iter().map(|block| block.row_count() as u64).sum();
        let bytes = blocks.iter().map(|block| block.len_bytes() as u64).sum();
        Self { schema, blocks, files: Vec::new(), rows, bytes }
    }

    /// Rows in data files that were written ahead.
    #[must_use]
    pub fn of_files(schema: Arc<TableSchema>, files: Vec<DataFile>) -> Self {
        let rows = files.iter().map(|file| file.rows).sum();
        let bytes = files.iter().map(|file| file.size_bytes).sum();
        Self { schema, blocks: Vec::new(), files, rows, bytes }
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes that stay in memory until a flush.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        if self.blocks.is_empty() { 0 } else { self.bytes }
    }
}

/// What a load is told when it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub label: Label,
    pub txn: TxnId,
    /// The table's version that shows the rows; `None` in async mode, where the group is open.
    pub version: Option<Version>,
}

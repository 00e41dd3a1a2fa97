//! A load as it enters this crate, and its answer.

pub mod backlog;
pub mod facts;
pub mod right;
pub mod route;
pub mod stages;

use crate::error::IngestError;
use crate::group::CloseReason;
use crate::memory::InFlight;
use facts::LoadFacts;
use right::LoadRight;
use stages::Stages;
use std::sync::Arc;
use std::time::Instant;
use tributary_decode::Block;
use tributary_table::{DataFile, Replaced, Table, UnpublishedFiles};
use tributary_types::{Label, Partitions, TableDef, TableSchema, TxnId, UserKey, Version};

/// Memory of a load beyond its blocks, in bytes: for loads of one row this is most of it.
pub(crate) const LOAD_OVERHEAD_BYTES: u64 = 256;

/// The rows of one load, decoded: small ones as blocks in memory, large ones as data files that
/// are durable and not yet visible.
///
/// They own what the load holds: its share of the memory budget, until a group or a transaction counts it, and its data files, until they
/// are published. Dropped before, they give back the memory and leave the files to the next sweep.
#[derive(Clone, Debug)]
pub struct LoadRows {
    /// The schema that the blocks were decoded for.
    pub schema: Arc<TableSchema>,
    pub blocks: Vec<Block>,
    /// Data files that were written ahead.
    pub unpublished: Option<Arc<UnpublishedFiles>>,
    pub rows: u64,
    /// Bytes of the blocks and files.
    pub bytes: u64,
    /// The rows that it replaces; never set for a load of a group or a two-phase one.
    pub replaces: Option<Arc<Replaced>>,
    /// Each row of the blocks was found in one of these partitions. `None`: the table is not partitioned, or they are unknown.
    pub partitions: Option<Arc<Partitions>>,
    /// The load's share of the memory budget so far.
    pub in_flight: Option<Arc<InFlight>>,
    /// Its key and its rejected rows, if it has any.
    pub facts: LoadFacts,
    /// The user with whom it shares the memory and the log when they are short.
    pub user: UserKey,
    /// The user's right, which must hold when the load's waiting is over. `None`: it is the server's own, or was checked.
    pub right: Option<Arc<LoadRight>>,
}

impl LoadRows {
    /// Rows in memory.
    #[must_use]
    pub fn of_blocks(schema: Arc<TableSchema>, blocks: Vec<Block>) -> Self {
        let rows = blocks.iter().map(|block| block.row_count() as u64).sum();
        let bytes = blocks.iter().map(|block| block.len_bytes() as u64).sum();
        let (unpublished, replaces, partitions, in_flight) = (None, None, None, None);
        let (facts, user, right) = (LoadFacts::default(), UserKey::default(), None);
        Self { schema, blocks, unpublished, rows, bytes, replaces, partitions, in_flight, facts, user, right }
    }

    /// Rows in data files that were written ahead.
    #[must_use]
    pub fn of_files(schema: Arc<TableSchema>, files: UnpublishedFiles) -> Self {
        let rows = files.iter().map(|file| file.rows).sum();
        let bytes = files.iter().map(|file| file.size_bytes).sum();
        Self { unpublished: Some(Arc::new(files)), rows, bytes, ..Self::of_blocks(schema, Vec::new()) }
    }

    /// Refuses the load if its user may not load into the table any more.
    ///
    /// # Errors
    /// [`IngestError::RightRevoked`].
    pub(crate) fn refuse_if_revoked(&self, table: &Table) -> Result<(), IngestError> {
        match &self.right {
            Some(right) if !right.holds() => {
                Err(IngestError::RightRevoked { table: table.with_def(TableDef::table_ref) })
            }
            _ => Ok(()),
        }
    }

    /// The data files with rows of the load.
    #[must_use]
    pub fn files(&self) -> &[DataFile] {
        self.unpublished.as_deref().map_or(&[], |files| &files[..])
    }

    /// The load's data files and its key are in an entry of the log from now on, or may be.
    pub(crate) fn is_submitted(&self) {
        if let Some(files) = &self.unpublished {
            files.are_submitted();
        }
        self.facts.are_submitted();
    }

    /// The log has refused the entry with the load's data files and its key for sure.
    pub(crate) fn is_refused(&self) {
        if let Some(files) = &self.unpublished {
            files.are_refused();
        }
        self.facts.are_refused();
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0 && self.facts.are_none()
    }

    /// Bytes that the load takes of the memory budget until its group is published, or less from when it is gathered.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        if self.blocks.is_empty() { 0 } else { self.bytes + LOAD_OVERHEAD_BYTES }
    }
}

/// The answer to a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub label: Label,
    pub txn: TxnId,
    /// The table's version that shows the rows; `None` in async mode, where the group is open.
    pub version: Option<Version>,
    /// Where the time went.
    pub stages: Stages,
    /// Why its group closed, if it has closed.
    pub closed_by: Option<CloseReason>,
    /// When its group closes at the latest, if that is known: the rows are visible then, but for the time that the commit takes.
    pub closes_by: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::{ColumnDef, DataType, SchemaVersion};

    #[test]
    fn a_load_of_one_row_counts_with_what_it_takes_besides_the_row() {
        let column = ColumnDef::new(0, "id", DataType::Int).key().not_null();
        let schema = Arc::new(TableSchema::new(SchemaVersion(1), vec![column]));
        let mut builder = tributary_decode::BlockBuilder::new(&schema);
        builder.push_i32(0, 1);
        builder.finish_row();
        let load = LoadRows::of_blocks(Arc::clone(&schema), vec![builder.finish().unwrap()]);
        assert!(load.bytes < 20);
        assert_eq!(load.memory_bytes(), load.bytes + LOAD_OVERHEAD_BYTES);
        assert_eq!(LoadRows::of_files(schema, UnpublishedFiles::default()).memory_bytes(), 0);
    }
}

//! Tables and partitions that are dropped and can be recovered.
//!
//! Invariant: everything acknowledged before is in data files when a table or partition is dropped, and the write-ahead log has
//! no row after the version of the Delta log. So a recovery needs no log, and a replay after it finds no missing rows. A waiting
//! two-phase load would be such a row: its table is not dropped, unless by force.
//!
//! While a table comes to rest its loads wait, those of Group Commit as well.

use crate::changes::halt::Halt;
use crate::changes::schema_change::{Stopping, Switched};
use crate::ingest::Ingest;
use crate::queue::{Held, Loads};
use std::future::Future;
use std::sync::Arc;
use tributary_table::{CopiedFiles, KeptFile, Leaving, Table, TableError};
use tributary_types::{PartitionId, Partitions, TableDef};

/// A table whose rows are all in data files. No row arrives while this value lives.
#[derive(Debug)]
#[must_use]
pub struct AtRest {
    _held: Held,
}

/// Partitions of a table that are dropped and retained, or one that is recovered.
#[derive(Clone, Copy)]
pub struct Recycling<'a> {
    /// No change of the table had this number.
    pub id: u64,
    /// The table's partitions after it.
    pub partitions: &'a Arc<Partitions>,
    /// Records the files of dropped partitions.
    pub leaving: Option<&'a dyn Leaving>,
    /// The files of the recovered partition.
    pub recovered: Option<(PartitionId, &'a [KeptFile])>,
}

impl Ingest {
    /// Whether a two-phase load of the table waits for its commit or abort.
    #[must_use]
    pub fn has_prepared(&self, table: &Table) -> bool {
        self.queue(table.id()).is_some_and(|queue| queue.has_prepared())
    }

    /// Moves all rows of the table into data files, and holds its loads. `None` if an operation on the table takes too long.
    ///
    /// # Errors
    /// The table is dropped, or can't be flushed.
    pub async fn bring_to_rest(&self, table: &Table) -> Result<Option<AtRest>, TableError> {
        let queue = self.open_queue(table)?;
        // So that hardly anything is left to do while loads are held.
        table.flush().await?;
        let Some(held) = queue.hold_when_drained(Loads::Wait).await else { return Ok(None) };
        table.flush().await?;
        Ok(table.is_flushed().then_some(AtRest { _held: held }))
    }

    /// Gives the table its new partitions in the Delta log and in memory, and updates the catalog through `keep`, which returns
    /// whether the catalog has them durably. Nothing else may change the definition meanwhile, and it must not be cancelled.
    ///
    /// # Errors
    /// Nothing has changed; only after [`TableError::Unsure`] the next start finds out, and no load of the table is taken until then.
    pub async fn recycle_partitions<K: Future<Output = bool>>(
        &self,
        table: &Table,
        recycling: Recycling<'_>,
        halt: &Arc<Halt>,
        keep: impl FnOnce(Arc<TableDef>) -> K,
    ) -> Result<Switched, TableError> {
        let stopping = Stopping(Arc::clone(halt));
        let queue = self.open_queue(table)?;
        let files = match recycling.recovered {
            Some((partition, kept)) => table.kept_files(kept, partition).await?,
            None => CopiedFiles::default(),
        };
        table.flush().await?;
        let Some(held) = queue.hold_when_drained(Loads::Wait).await else { return Ok(Switched::NotYet) };
        let Recycling { id, partitions, leaving, .. } = recycling;
        let switched = table.switch_partitions(id, partitions, &files, leaving, &stopping).await;
        held.end(switched, keep).await
    }
}

//! Replaces partitions by others with their rows from a table beside.
//!
//! Invariant: while files are copied and the Delta log is written, no load of either table is under way: no group is open, no
//! commit is in flight, no two-phase load is prepared, and the memtables are empty. So a row is in a copied file or arrives after
//! the replacement, and the write-ahead log has no row after the version of the Delta log. Loads continue once the catalog has
//! the new partitions, too; loads whose rows have no partition then are refused as after a dropped partition.
//!
//! While loads are held they wait, those of Group Commit as well.

use crate::changes::halt::Halt;
use crate::changes::schema_change::{Stopping, Switched};
use crate::ingest::Ingest;
use crate::queue::Loads;
use std::future::Future;
use std::sync::Arc;
use tributary_table::{Table, TableError};
use tributary_types::{PartitionId, Partitions, TableDef};

/// Partitions that are to take the place of others.
#[derive(Clone, Debug)]
pub struct PartitionSwitch {
    /// No change of the table had this number.
    pub id: u64,
    /// The table's partitions after it.
    pub partitions: Arc<Partitions>,
    /// Partitions of the table beside, with their new ids.
    pub moved: Vec<(PartitionId, PartitionId)>,
}

impl Ingest {
    /// Gives the table its new partitions in the Delta log and in memory, with the rows of the partitions of `beside`, and
    /// updates the catalog through `keep`, which returns whether the catalog has them durably; from then on `beside` has no such
    /// partitions. Nothing else may change the definitions meanwhile, and it must not be cancelled.
    ///
    /// # Errors
    /// Nothing has changed; only after [`TableError::Unsure`] the next start finds out, and no load of the table is taken until then.
    pub async fn replace_partitions<K: Future<Output = bool>>(
        &self,
        table: &Table,
        beside: &Table,
        switch: &PartitionSwitch,
        halt: &Arc<Halt>,
        keep: impl FnOnce(Arc<TableDef>) -> K,
    ) -> Result<Switched, TableError> {
        let stopping = Stopping(Arc::clone(halt));
        let (queue, queue_beside) = (self.open_queue(table)?, self.open_queue(beside)?);
        // So that hardly anything is left to do while loads are held.
        beside.flush().await?;
        table.flush().await?;
        let Some(held_beside) = queue_beside.hold_when_drained(Loads::Wait).await else {
            return Ok(Switched::NotYet);
        };
        let copies = match table.copy_partitions(beside, &switch.moved).await {
            Ok(copies) => copies,
            Err(TableError::Busy { .. }) => return Ok(Switched::NotYet),
            Err(error) => return Err(error),
        };
        let Some(held) = queue.hold_when_drained(Loads::Wait).await else {
            table.discard_copies(copies).await;
            return Ok(Switched::NotYet);
        };
        let switched = table.switch_partitions(switch.id, &switch.partitions, &copies, None, &stopping).await;
        if switched.as_ref().is_err_and(|error| !matches!(error, TableError::Unsure { .. })) {
            table.discard_copies(copies).await;
        }
        let ended = held.end(switched, keep).await;
        if matches!(ended, Err(TableError::Unsure { .. })) {
            // Whether the rows have moved is not known.
            std::mem::forget(held_beside);
        }
        ended
    }
}

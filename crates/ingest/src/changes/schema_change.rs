//! Heavy schema changes beside loads: data files are converted while loads continue, then loads are held briefly, and the table
//! gets its new schema.
//!
//! Invariant: when the Delta log gets the new schema, no load of the table is under way: no group is open, no commit is in
//! flight, no two-phase load is prepared, and the memtable is empty. So the write-ahead log has no rows of the old schema after
//! the version of the Delta log, and a replay needs none. Loads continue once the catalog has the new schema, too. Loads whose
//! rows were decoded before are converted before their commit.
//!
//! While loads are held, those of Group Commit are refused, as in Doris; others wait.

use crate::changes::halt::Halt;
use crate::error::IngestError;
use crate::group::CloseReason;
use crate::ingest::Ingest;
use crate::queue::{Held, Loads, TableQueue};
use crate::tasks;
use arrow::array::ArrayRef;
use futures::future::BoxFuture;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tributary_decode::recast;
use tributary_table::{Recast, SchemaChange, Table, TableError, Watch};
use tributary_types::{ColumnDef, TableDef, TxnId, host};

/// Loads are held when files of less than this many bytes remain to be converted, or after a number of rounds.
const LEFT_BYTES_MAX: u64 = 16 << 20;
const ROUNDS_MAX: usize = 8;
/// The longest time that loads are held to wait for the end of earlier ones; then they continue, and the switch is retried.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// How long it is waited before something is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How a switch to a new schema ended that did not fail.
#[derive(Debug)]
pub enum Switched {
    Yes(Arc<TableDef>),
    /// An operation on the table takes too long, a two-phase load perhaps. Nothing has changed.
    NotYet,
}

struct ByLoads;

impl Recast for ByLoads {
    fn recast(&self, array: &ArrayRef, from: &ColumnDef, to: &ColumnDef) -> Result<ArrayRef, String> {
        recast(array, from, to).map_err(|bad| bad.to_string())
    }
}

pub(crate) struct Stopping(pub Arc<Halt>);

impl Watch for Stopping {
    fn is_stopped(&self) -> bool {
        self.0.is_asked()
    }

    fn leaves_doubt(&self) -> bool {
        self.0.is_at_once()
    }

    fn doubts(&self, reason: &str) {
        self.0.doubts(reason);
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(tasks::sleep(LOOK_AGAIN))
    }
}

impl Stopping {
    fn check(&self, table: &Table) -> Result<(), TableError> {
        match self.is_stopped() {
            true => Err(TableError::Stopped { table: table.def().name.clone() }),
            false => Ok(()),
        }
    }
}

impl Ingest {
    /// Begins the heavy schema change `id`, a number that no change of the table had, to the columns and keys of `to`.
    ///
    /// # Errors
    /// [`Table::begin_schema_change`]'s.
    pub async fn begin_schema_change(
        &self,
        table: &Table,
        id: u64,
        to: Arc<TableDef>,
    ) -> Result<SchemaChange, TableError> {
        table.begin_schema_change(id, to, Arc::new(ByLoads)).await
    }

    /// The id of the next transaction.
    #[must_use]
    pub fn next_transaction(&self) -> TxnId {
        self.core.transactions.peek_next()
    }

    /// Waits until no two-phase load of the table waits for its commit.
    ///
    /// # Errors
    /// [`TableError::Stopped`], [`TableError::Closed`].
    pub async fn wait_for_prepared(&self, table: &Table, halt: &Arc<Halt>) -> Result<(), TableError> {
        let stopping = Stopping(Arc::clone(halt));
        loop {
            stopping.check(table)?;
            if !self.open_queue(table)?.has_prepared() {
                return Ok(());
            }
            stopping.pause().await;
        }
    }

    pub(crate) fn open_queue(&self, table: &Table) -> Result<Arc<TableQueue>, TableError> {
        self.queue(table.id()).ok_or_else(|| TableError::Closed { table: table.def().name.clone() })
    }

    /// Converts the table's data files until few are left. Loads continue meanwhile.
    ///
    /// # Errors
    /// The errors of [`Table::convert_files`]; the change has to be abandoned.
    pub async fn convert(
        &self,
        table: &Table,
        change: &mut SchemaChange,
        halt: &Arc<Halt>,
    ) -> Result<(), TableError> {
        let stopping = Stopping(Arc::clone(halt));
        let left_max = host::limit(LEFT_BYTES_MAX, 1 << 10);
        for _ in 0..ROUNDS_MAX {
            stopping.check(table)?;
            if table.convert_files(change, &stopping).await? < left_max {
                break;
            }
        }
        Ok(())
    }

    /// Waits a little, before a switch is tried again.
    pub async fn pause(&self) {
        tasks::sleep(LOOK_AGAIN).await;
    }

    /// Pins loads, and gives the table its new schema in the Delta log, in memory, and, through `keep`, in the catalog; `keep`
    /// returns whether the catalog has it durably. Nothing else may change the definition meanwhile, and it must not be
    /// cancelled.
    ///
    /// # Errors
    /// The errors of [`Table::switch_schema`]. Nothing has changed, and the change has to be abandoned; only after
    /// [`TableError::Unsure`] the next start finds out, and no load of the table is accepted until then.
    pub async fn switch_schema<K: Future<Output = bool>>(
        &self,
        table: &Arc<Table>,
        change: &mut SchemaChange,
        halt: &Arc<Halt>,
        keep: impl FnOnce(Arc<TableDef>) -> K,
    ) -> Result<Switched, TableError> {
        let queue = self.open_queue(table)?;
        let stopping = Stopping(Arc::clone(halt));
        let Some(held) = queue.hold_when_drained(Loads::Refused).await else { return Ok(Switched::NotYet) };
        let switched = table.switch_schema(change, &stopping).await;
        if let Ok(def) = &switched {
            held.schema_is(def.schema.version);
        }
        held.end(switched, keep).await
    }
}

impl Held {
    /// Updates the catalog to the Delta log, and releases loads, unless the state that they would meet is unknown.
    pub(crate) async fn end<K: Future<Output = bool>>(
        self,
        switched: Result<Arc<TableDef>, TableError>,
        keep: impl FnOnce(Arc<TableDef>) -> K,
    ) -> Result<Switched, TableError> {
        let error = match switched {
            Ok(def) if keep(Arc::clone(&def)).await => return Ok(Switched::Yes(def)),
            Ok(def) => TableError::Unsure {
                table: def.name.clone(),
                reason: "the catalog could not be told".to_owned(),
            },
            Err(TableError::Busy { .. }) => return Ok(Switched::NotYet),
            Err(error) => error,
        };
        if matches!(error, TableError::Unsure { .. }) {
            std::mem::forget(self);
        }
        Err(error)
    }
}

impl TableQueue {
    /// Pins loads, if everything before them ends soon.
    pub(crate) async fn hold_when_drained(self: &Arc<Self>, loads: Loads) -> Option<Held> {
        if self.has_prepared() {
            return None;
        }
        let held = self.hold(loads);
        let drained = tasks::timeout(DRAIN_MAX, self.drain(CloseReason::SchemaChange)).await;
        (drained.is_some() && self.is_at_rest()).then_some(held)
    }
}

impl IngestError {
    /// Loads of Group Commit meanwhile; Doris's text, and its clients retry.
    pub(crate) fn blocked(table: &Table) -> Self {
        Self::Blocked { table: table.with_def(|def| def.name.clone()) }
    }
}

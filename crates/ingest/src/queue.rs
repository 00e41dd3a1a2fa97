//! One table's path from loads to visible versions: the open group, the closed groups that wait, and the commits that the log is
//! making durable.
//!
//! A group of interval 0 is open only while commits are in flight; the end of the last one closes it.
//!
//! | file | purpose |
//! | --- | --- |
//! | `state` | open and closed groups, versions: a state machine under one lock |
//! | `turn` | the obligation to commit closed groups |
//! | `join` | loads join the open group, which closes |
//! | `commit` | groups are built, submitted, published, answered |
//! | `dropped` | loads whose partition was dropped after their rows were decoded |
//! | `timer` | closes groups at their time |
//! | `own` | transactions that are not groups |
//! | `flight` | a commit between its submission and the log's answer |
//! | `held` | loads wait while the schema is changed |
//! | `pins` | the part of the log that unpublished transactions need |
//! | `view` | a queue as operators see it |

mod commit;
pub(crate) mod dropped;
mod entries;
mod flight;
mod held;
mod join;
mod own;
mod pins;
mod state;
pub(crate) mod timer;
mod turn;
pub mod view;

use crate::error::IngestError;
use crate::group::appends::Appends;
use crate::group::finished::FinishedGroups;
use crate::group::member::Member;
use crate::group::{CloseReason, Group};
use crate::keys::LoadKeys;
use crate::load::LoadRows;
use crate::maintenance::wal_space::WalSpace;
use crate::memory::MemoryBudget;
use crate::metrics::IngestMetrics;
use crate::queue::dropped::Checked;
use crate::queue::timer::Timer;
use crate::rejects::RejectedRows;
use crate::tasks::{self, Tasks};
use crate::transactions::Transactions;
pub(crate) use held::{Held, Loads};
pub(crate) use own::{OwnCommit, OwnTransaction, commit_own};
use pins::Why;
use state::{Closed, Next, State};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tributary_table::Table;
use tributary_types::lock::{Rank, Ranked, RankedGuard};
use tributary_types::{Lsn, TransactionStatus, TxnId, Version};
pub(crate) use turn::CommitTurn;

/// How long a wait for a transaction goes on without a look at it.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// State shared by all tables.
#[derive(Debug)]
pub(crate) struct Core {
    pub transactions: Arc<Transactions>,
    pub metrics: Arc<IngestMetrics>,
    pub memory: Arc<MemoryBudget>,
    pub keys: Arc<LoadKeys>,
    pub rejected: Arc<RejectedRows>,
    pub finished: FinishedGroups,
    pub timer: std::sync::OnceLock<Timer>,
    pub tasks: Tasks,
}

/// A table's groups and commits.
pub(crate) struct TableQueue {
    pub table: Arc<Table>,
    pub space: Arc<WalSpace>,
    core: Arc<Core>,
    state: Ranked<State>,
    /// Something has become visible, or never will.
    published: Notify,
    /// Loads are held no longer.
    released: Notify,
}

impl fmt::Debug for TableQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableQueue").field("table", &self.table.def().table_ref()).finish_non_exhaustive()
    }
}

impl TableQueue {
    pub fn new(core: Arc<Core>, table: Arc<Table>, space: Arc<WalSpace>) -> Self {
        let next_version = table.snapshot().version.next();
        Self {
            table,
            space,
            core,
            state: Ranked::new(Rank::TableQueue, State::new(next_version)),
            published: Notify::new(),
            released: Notify::new(),
        }
    }

    /// The next step of the holder of the turn.
    fn next(self: &Arc<Self>) -> Next {
        self.state.lock().next(self)
    }

    /// Closes the open group and waits until everything that had joined by now is visible.
    pub async fn drain(self: &Arc<Self>, reason: CloseReason) {
        self.close_now(reason);
        let awaited = self.state.lock().pins.running();
        loop {
            let published = self.published.notified();
            tokio::pin!(published);
            published.as_mut().enable();
            {
                let state = self.state.lock();
                let is_running = |txn: &TxnId| state.pins.is(*txn, Why::Running);
                if state.is_dropped() || !awaited.iter().any(is_running) {
                    return;
                }
            }
            published.await;
        }
    }

    /// Waits until the transaction has an end, or waits for the next start.
    ///
    /// # Errors
    /// It will not become visible, or not before the next start.
    pub async fn visible(&self, txn: TxnId) -> Result<(), IngestError> {
        loop {
            let published = self.published.notified();
            tokio::pin!(published);
            published.as_mut().enable();
            let not_visible = |reason: String| Err(IngestError::NotVisible { txn, reason });
            let Some(info) = self.core.transactions.by_id(txn) else { return Ok(()) };
            match info.status {
                TransactionStatus::Visible => return Ok(()),
                TransactionStatus::Aborted => return not_visible(info.reason),
                TransactionStatus::Precommitted => {
                    return not_visible("it is prepared, and waits for its commit".to_owned());
                }
                TransactionStatus::Prepare if self.is_stranded(txn) => {
                    return not_visible(
                        "its group failed, the next start of the server commits it".to_owned(),
                    );
                }
                TransactionStatus::Prepare => self.refuse_if_dropped()?,
            }
            // A load that fails before its commit tells nobody.
            let _ = tasks::timeout(LOOK_AGAIN, published).await;
        }
    }

    /// The lock on the state, taken when no row of the load lacks one of the table's partitions, and these.
    ///
    /// # Errors
    /// [`IngestError::PartitionDropped`].
    fn lock_with_partitions(
        &self,
        check: impl Fn(&Checked) -> Result<(), IngestError>,
    ) -> Result<(RankedGuard<'_, State>, Checked), IngestError> {
        loop {
            let checked = Checked::of(&self.table);
            check(&checked)?;
            let state = self.state.lock();
            if checked.holds(&self.table) {
                return Ok((state, checked));
            }
        }
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    /// An error if the table was dropped.
    pub fn refuse_if_dropped(&self) -> Result<(), IngestError> {
        self.state.lock().refuse_if_dropped(&self.table)
    }

    /// Whether the group could not be committed and its acknowledged rows wait for the next start.
    pub fn is_stranded(&self, txn: TxnId) -> bool {
        self.state.lock().pins.is(txn, Why::Stranded)
    }

    /// Refuses further loads and answers the waiting ones with an error.
    pub fn drop_table(self: &Arc<Self>) {
        let groups = self.state.lock().drop_table(self);
        let error = IngestError::TableDropped(self.table.def().table_ref());
        for group in groups {
            self.fail_group(group, &error);
        }
        self.published.notify_waiters();
        self.released.notify_waiters();
    }

    /// Restores the hold of a prepared load that recovery found.
    pub fn pin_prepared(&self, txn: TxnId, low: Lsn) {
        self.state.lock().pins.pin(txn, low, Why::Prepared);
    }

    /// An aborted transaction's rows are no longer needed in the log.
    pub fn unpin(&self, txn: TxnId) {
        self.state.lock().pins.unpin(txn);
    }

    /// The lowest place in the log that the table's unpublished transactions need.
    pub fn lowest_pin(&self) -> Option<Lsn> {
        self.state.lock().pins.lowest()
    }

    /// Groups that are not visible yet.
    pub fn open_groups(&self) -> u64 {
        self.state.lock().groups() as u64
    }

    /// Sets the version that the next commit gets, after recovery.
    pub fn continue_after(&self, version: Version) {
        self.state.lock().continue_after(version);
    }

    /// Commits a group that recovery found uncommitted.
    pub async fn commit_recovered(self: &Arc<Self>, group: Group) {
        self.state.lock().pins.pin(group.txn, group.low, Why::Running);
        self.core.memory.enter_group(group.memory_bytes);
        self.commit_group(Closed::now(group, CloseReason::Recovery)).await;
    }
}

/// Members of a group that recovery rebuilt.
pub(crate) fn recovered_member(load: u32, rows: LoadRows) -> Member {
    Member { load, rows, is_logged: true, is_async: true }
}

/// The appends of a group whose rows are in the log already; the loads `without` do not count, now and in any
/// later replay.
pub(crate) fn recovered_appends(without: Vec<u32>) -> Arc<Appends> {
    Arc::new(Appends::answered_without(without))
}

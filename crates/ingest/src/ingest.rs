//! The crate's interface: loads in, answers out.

use crate::error::IngestError;
use crate::group::CloseReason;
use crate::group::finished::{FinishedGroup, FinishedGroups};
use crate::keys::{ChannelState, Claim, Claimed, FirstAnswer, KeyFigures, LoadKeys, NamedLoad};
use crate::load::facts::LoadFacts;
use crate::load::route::switch_of_rows;
use crate::load::stages::{Moments, Stages};
use crate::load::{Answered, LoadRows};
use crate::maintenance::stalled::{FlushFailures, StalledFlushes};
use crate::maintenance::table_work::{TableWork, TableWorks};
use crate::maintenance::wal_space::WalSpace;
use crate::maintenance::watched::Watcher;
use crate::memory::{Admitted, MemoryBudget};
use crate::metrics::IngestMetrics;
use crate::options::{IngestOptions, LabelStore, SchemaHistory};
use crate::queue::timer::Timer;
use crate::queue::view::GroupQueue;
use crate::queue::{CommitTurn, Core, OwnCommit, OwnTransaction, TableQueue, commit_own};
use crate::recovery::{self, Recovered, RecoveryReport};
use crate::rejects::{HeldRejects, LoadRejects, RejectFigures, RejectedLoad, RejectedRows};
use crate::tasks::{self, Tasks};
use crate::transactions::prepared::PreparedLoads;
use crate::transactions::{NewTransaction, Reservation, Transactions};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tributary_decode::Counts;
use tributary_table::{Table, TableError, UnpublishedFiles};
use tributary_types::lock::{Rank, Ranked};
use tributary_types::{
    GroupCommitMode, Label, LoadName, Partitions, TableDef, TableId, TransactionKind, TransactionStatus,
    TxnId, UserKey, Version, host,
};
use tributary_wal::Disk;

/// How often a shutdown flushes, a second apart, to free space for groups that wait for it.
const SHUTDOWN_ROUNDS_MAX: usize = 30;
const SHUTDOWN_ROUND: Duration = Duration::from_secs(1);

/// Loads, groups and transactions of all tables.
#[derive(Debug)]
pub struct Ingest {
    pub(crate) core: Arc<Core>,
    pub(crate) spaces: Vec<Arc<WalSpace>>,
    pub(crate) queues: RwLock<HashMap<TableId, Arc<TableQueue>>>,
    pub(crate) prepared: Arc<Ranked<PreparedLoads>>,
    /// Tables that were flushed and may have small files.
    pub(crate) to_compact: Mutex<BTreeSet<TableId>>,
    pub(crate) flushed: Notify,
    pub(crate) flush_failures: FlushFailures,
    pub(crate) table_work: TableWorks,
    /// A flush has ended, so the logs may be released further.
    pub(crate) to_release: Notify,
    pub(crate) watcher: Watcher,
    pub(crate) labels: Arc<dyn LabelStore>,
    /// Read-locked while logs are released, or files with what was in them are removed; write-locked by a backup.
    pub(crate) releasing: tokio::sync::RwLock<()>,
    /// Held while the store of labels is updated.
    pub(crate) storing_labels: tokio::sync::Mutex<()>,
    pub(crate) options: IngestOptions,
    /// The logs, by their place in `spaces`, of tables that have rows there and nowhere else yet: all of
    /// such a table's rows go to one log, or that log would be released without regard to it.
    homes: HashMap<TableId, usize>,
    pub(crate) is_stopping: AtomicBool,
}

impl Ingest {
    /// Opens the logs and restores tables and transactions: every acknowledged row is in its table, once, when this returns.
    ///
    /// # Errors
    /// A log that is locked or damaged, rows that can't be read, a disk without space for the
    /// commits of groups that a crash left open.
    pub async fn open(
        mut options: IngestOptions,
        disk: Arc<dyn Disk>,
        metrics: Arc<IngestMetrics>,
        labels: Arc<dyn LabelStore>,
        history: &dyn SchemaHistory,
        tables: Vec<Arc<Table>>,
    ) -> Result<(Arc<Self>, RecoveryReport), IngestError> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Threads that wait for their logs' disks must leave one for the clients.
        options.wal.may_write_here.get_or_insert(processors > options.wal_dirs.len());
        let mut logs = recovery::read_logs(&options, &disk, &tables, history)?;
        let watcher = Watcher::new(metrics.background_panics.clone());
        let keys = LoadKeys::open(
            Arc::clone(&disk),
            options.keys_dir.clone(),
            options.label_keep.clone(),
            options.load_keys_max.clone(),
        );
        let keys =
            keys.map_err(|error| IngestError::Recovery(format!(
                "idempotency keys can't be read: {error}; restore the file from a copy, or move it away: loads with its keys, or of its \
                 channels, would then be taken again"
            )))?;
        let rejected = RejectedRows::open(
            Arc::clone(&disk),
            options.rejected_dir.clone(),
            options.rejected_keep.clone(),
            options.rejected_bytes_max.clone(),
        );
        let rejected = rejected
            .map_err(|error| IngestError::Recovery(format!("rejected rows can't be read: {error}")))?;
        let core = Arc::new(Core {
            transactions: Arc::new(Transactions::new(logs.next_txn)),
            metrics,
            memory: Arc::new(MemoryBudget::new(options.memory_limit_bytes.clone())),
            keys: Arc::new(keys),
            rejected: Arc::new(rejected),
            finished: FinishedGroups::default(),
            timer: OnceLock::new(),
            tasks: Tasks::current(),
        });
        for info in labels.kept().await.map_err(IngestError::Recovery)? {
            core.transactions.restore(info, true);
        }
        for position in labels.positions().await.map_err(IngestError::Recovery)? {
            core.transactions.restore_position(position);
        }
        logs.contents.free_labels(&labels.freed().await.map_err(IngestError::Recovery)?);
        let spaces = logs.spaces(&options, &disk);
        let homes = logs.contents.homes();
        let queue = |table| new_queue(&core, &spaces, &homes, options.wal_dirs.len(), table);
        let queues = tables.into_iter().map(queue).collect();
        let Recovered { queues, prepared, report } = recovery::replay(&core, logs.contents, queues).await?;
        core.keys.keep_tables(|table| queues.contains_key(&table));
        let ingest = Arc::new(Self {
            core,
            spaces,
            queues: RwLock::new(queues),
            prepared: Arc::new(Ranked::new(Rank::Prepared, prepared)),
            to_compact: Mutex::default(),
            flushed: Notify::new(),
            flush_failures: FlushFailures::default(),
            table_work: TableWorks::default(),
            to_release: Notify::new(),
            watcher,
            labels,
            releasing: tokio::sync::RwLock::default(),
            storing_labels: tokio::sync::Mutex::default(),
            options,
            homes,
            is_stopping: AtomicBool::new(false),
        });
        ingest.start_timer();
        Ok((ingest, report))
    }

    fn start_timer(self: &Arc<Self>) {
        let weak: Weak<Self> = Arc::downgrade(self);
        let timer = Timer::start(self.core.tasks.clone(), move |deadline| {
            if let Some(queue) = weak.upgrade().and_then(|ingest| ingest.queue(deadline.table)) {
                queue.close_at_deadline(deadline.txn);
            }
        });
        drop(self.core.timer.set(timer));
    }

    /// Takes a newly created table. Loads may arrive from now on.
    pub fn attach(&self, table: Arc<Table>) {
        let queue = new_queue(&self.core, &self.spaces, &self.homes, self.options.wal_dirs.len(), table);
        self.queues.write().insert(queue.table.id(), queue);
    }

    /// Forgets a dropped table: waiting loads are answered with an error, and its rows in the log
    /// no longer count.
    pub fn detach(&self, table: TableId) {
        let queue = self.queues.write().remove(&table);
        self.flush_failures.forget(table);
        self.core.keys.keep_tables(|other| other != table);
        if let Some(queue) = queue {
            queue.drop_table();
        }
        let prepared =
            self.prepared.lock().extract_if(|_, one| one.queue.table.id() == table).collect::<Vec<_>>();
        for (txn, one) in prepared {
            self.core.end_prepared(txn, &one.rows, "the table was dropped".into());
        }
    }

    pub(crate) fn queue(&self, table: TableId) -> Option<Arc<TableQueue>> {
        self.queues.read().get(&table).cloned()
    }

    /// The queues of all tables, in the order of the tables' ids.
    pub(crate) fn all_queues(&self) -> Vec<Arc<TableQueue>> {
        let mut queues: Vec<_> = self.queues.read().values().cloned().collect();
        queues.sort_unstable_by_key(|queue| queue.table.id());
        queues
    }

    fn live_queue(&self, table: &Table) -> Result<Arc<TableQueue>, IngestError> {
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(IngestError::ShuttingDown);
        }
        self.queue(table.id()).ok_or_else(|| IngestError::TableDropped(table.def().table_ref()))
    }

    /// The table's queue, once there is memory for the rows. What the load has counted on its way here is counted until then.
    pub(crate) async fn admit(
        &self,
        table: &Table,
        rows: &mut LoadRows,
    ) -> Result<(Arc<TableQueue>, Admitted), IngestError> {
        let queue = self.live_queue(table)?;
        let admitted = self.admit_bytes(rows.user, rows.memory_bytes(), table.keeps_all_rows()).await?;
        rows.in_flight = None;
        Ok((queue, admitted))
    }

    /// Admits loads that are committed together.
    async fn admit_together(
        &self,
        loads: &mut [(&Table, Reservation, LoadRows)],
    ) -> Result<(Vec<Arc<TableQueue>>, Admitted), IngestError> {
        let queues = loads.iter().map(|(table, ..)| self.live_queue(table)).collect::<Result<_, _>>()?;
        let user = loads.first().map(|(.., rows)| rows.user).unwrap_or_default();
        let bytes = loads.iter().map(|(.., rows)| rows.memory_bytes()).sum();
        let keep_all = loads.iter().all(|(table, ..)| table.keeps_all_rows());
        // At once: of two that wait for the rest of their memory, none would get it.
        let admitted = self.admit_bytes(user, bytes, keep_all).await?;
        loads.iter_mut().for_each(|(.., rows)| rows.in_flight = None);
        Ok((queues, admitted))
    }

    async fn admit_bytes(&self, user: UserKey, bytes: u64, keep_all: bool) -> Result<Admitted, IngestError> {
        let memory = &self.core.memory;
        if keep_all { memory.admit(user, bytes).await } else { memory.admit_at_pace(user, bytes).await }
    }

    /// Checks that the rows of both tables are in one write-ahead log, so that they can be committed together.
    ///
    /// # Errors
    /// [`IngestError::SeveralLogs`], or a table was dropped.
    pub fn check_share_log(&self, one: &Table, other: &Table) -> Result<(), IngestError> {
        let spaces = [one, other].map(|table| self.live_queue(table).map(|queue| Arc::clone(&queue.space)));
        let [of_one, of_other] = spaces;
        if Arc::ptr_eq(&of_one?, &of_other?) {
            return Ok(());
        }
        let [one, other] = [one, other].map(|table| table.def().table_ref());
        Err(IngestError::SeveralLogs { one, other })
    }

    /// Loads into the table's group. In sync mode the rows are durable and visible on return; in
    /// async mode they are durable in the log, and visible when the group has committed. Rows in data
    /// files, which the log knows of by the group's commit only, are loaded as in sync mode; but in async mode
    /// their group does not wait for its interval.
    ///
    /// # Errors
    /// Nothing of the load was stored, neither rows nor data files, if the error [says so](IngestError::says_nothing_was_kept).
    /// After [`IngestError::Timeout`] the group continues.
    pub async fn load_into_group(
        &self,
        table: &Table,
        is_async: bool,
        rows: LoadRows,
        timeout: Duration,
    ) -> Result<Answered, IngestError> {
        let is_switched = is_async && switch_of_rows(!rows.files().is_empty()).is_some();
        let mode = if is_async && !is_switched { GroupCommitMode::Async } else { GroupCommitMode::Sync };
        let started = host::now();
        let row_count = rows.rows;
        let files = rows.unpublished.clone();
        let outcome = self.group_answer(table, mode, is_switched, rows, timeout).await;
        discard_after(&outcome, table, files).await;
        let doubt = if outcome.is_ok() { self.options.ownership.doubt() } else { None };
        let outcome = match doubt {
            Some(certainty) => certainty.await.and(outcome),
            None => outcome,
        };
        match outcome {
            Ok((answered, moments)) => {
                let now = host::now();
                let took = now.saturating_duration_since(started);
                self.core.metrics.load_acknowledged(mode, row_count, took);
                Ok(Answered { stages: moments.stages(started, now), ..answered })
            }
            Err(error) => {
                self.core.metrics.load_failed(mode);
                Err(error)
            }
        }
    }

    /// The outcome, if this process was the owner when it was known.
    pub(crate) async fn of_owner<T>(&self, outcome: Result<T, IngestError>) -> Result<T, IngestError> {
        match self.options.ownership.doubt() {
            Some(certainty) if outcome.is_ok() => certainty.await.and(outcome),
            _ => outcome,
        }
    }

    /// `is_soon`: the group does not wait for its interval.
    async fn group_answer(
        &self,
        table: &Table,
        mode: GroupCommitMode,
        is_soon: bool,
        mut rows: LoadRows,
        timeout: Duration,
    ) -> Result<(Answered, Moments), IngestError> {
        let (queue, admitted) = self.admit(table, &mut rows).await?;
        let turn = queue.space.turn(rows.user, rows.memory_bytes()).await;
        if mode == GroupCommitMode::Async {
            let joined = queue.join_when_released(rows, turn, TableQueue::join_async).await?;
            drop(admitted);
            joined.turn.into_iter().for_each(CommitTurn::spawn);
            received(joined.answer.await)?;
            let answered = Answered {
                label: joined.label,
                txn: joined.txn,
                version: None,
                stages: Stages::default(),
                closed_by: None,
                closes_by: joined.closes_by,
            };
            return Ok((answered, Moments { admitted: joined.admitted, commit: None }));
        }
        let join = |queue: &Arc<TableQueue>, rows| queue.join_sync(rows, is_soon);
        let joined = queue.join_when_released(rows, turn, join).await?;
        drop(admitted);
        joined.turn.into_iter().for_each(CommitTurn::here);
        let committed = match tasks::timeout(timeout, joined.answer).await {
            Some(answer) => received(answer)?,
            None => return Err(IngestError::Timeout { seconds: timeout.as_secs(), label: joined.label }),
        };
        let answered = Answered {
            label: joined.label,
            txn: joined.txn,
            version: Some(committed.version),
            stages: Stages::default(),
            closed_by: committed.closed_by,
            closes_by: None,
        };
        Ok((answered, Moments { admitted: joined.admitted, commit: Some(committed.times) }))
    }

    /// The answer to the first load with a name, if it is known.
    ///
    /// # Errors
    /// [`IngestError::KeysUnreadable`]; [`IngestError::OffsetExists`] and [`IngestError::OffsetOutOfRange`] for an offset that the
    /// channel can't have next, unless one of its loads is running.
    pub fn first_answer(&self, table: TableId, name: &LoadName) -> Result<Option<FirstAnswer>, IngestError> {
        self.core.keys.first_answer(table, name)
    }

    /// Whether a load with the key, or one of the channel, has no outcome yet.
    #[must_use]
    pub fn is_running(&self, table: TableId, name: &LoadName) -> bool {
        self.core.keys.is_running(table, name)
    }

    /// The channels of a table, or all, in the order of tables and names.
    #[must_use]
    pub fn channels(&self, table: Option<TableId>) -> Vec<ChannelState> {
        self.core.keys.channels(table)
    }

    /// Takes a name for a load that is about to be committed, or says how the first load with it was answered. While that
    /// is running, waits for its end, for at most `patience`.
    ///
    /// # Errors
    /// The name is of other bytes, the channel can't have the offset next, the first load's outcome is unknown or does not come in
    /// time, there are too many names, or they can't be read. Nothing of the load was stored.
    pub async fn claim(
        &self,
        table: TableId,
        load: &NamedLoad,
        counts: Counts,
        patience: Duration,
    ) -> Result<Claimed, IngestError> {
        self.core.keys.claim(table, load, counts, patience).await
    }

    /// The kept idempotency keys in numbers.
    #[must_use]
    pub fn key_figures(&self) -> KeyFigures {
        self.core.keys.figures()
    }

    /// The facts about a load for the log: its hold of its key, and its rejected rows.
    #[must_use]
    pub fn load_facts(&self, key: Option<Arc<Claim>>, rejects: Option<Box<LoadRejects>>) -> LoadFacts {
        LoadFacts::new(key, rejects.map(|rejects| HeldRejects::new(&self.core.rejected, *rejects)))
    }

    /// The kept rejected rows of tables, in the order in which their loads were stored. Reads files: not for tasks that others wait
    /// for.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn rejected_loads(&self, is_asked: impl Fn(TableId) -> bool) -> io::Result<Vec<RejectedLoad>> {
        self.core.rejected.loads(is_asked)
    }

    /// The kept rejected rows in numbers.
    #[must_use]
    pub fn reject_figures(&self) -> RejectFigures {
        self.core.rejected.figures()
    }

    /// Rejected rows of stored loads since the start, by table.
    #[must_use]
    pub fn rejected_counts(&self) -> HashMap<TableId, u64> {
        self.core.rejected.counts()
    }

    /// The last finished groups of all tables, oldest first: at most
    /// [`FINISHED_GROUPS_KEPT`](crate::group::finished::FINISHED_GROUPS_KEPT) since the start of the server.
    #[must_use]
    pub fn finished_groups(&self) -> Vec<FinishedGroup> {
        self.core.finished.all()
    }

    /// Flushes and compactions: the last [`TABLE_WORK_KEPT`](crate::TABLE_WORK_KEPT) ended ones since the start of the server, and those
    /// under way.
    #[must_use]
    pub fn table_work(&self) -> Vec<TableWork> {
        self.table_work.all()
    }

    /// The groups of all tables that are not finished.
    #[must_use]
    pub fn group_queues(&self) -> Vec<GroupQueue> {
        self.all_queues().iter().map(|queue| queue.view()).collect()
    }

    /// Begins a transaction of one load. A label that a client chose stays taken after the
    /// transaction (`label_is_kept`); a generated one is only a name.
    ///
    /// # Errors
    /// [`IngestError::LabelUsed`].
    pub fn begin(
        &self,
        table: &TableDef,
        label: Label,
        label_is_kept: bool,
        kind: TransactionKind,
    ) -> Result<Reservation, IngestError> {
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(IngestError::ShuttingDown);
        }
        let new = NewTransaction::of_load(table, label, label_is_kept, kind, host::unix_ms());
        self.core.transactions.begin(new)
    }

    /// Commits a load as its own transaction. Durable and visible on return.
    ///
    /// # Errors
    /// Nothing of the load was stored, neither rows nor data files, and its label is free, if the error [says
    /// so](IngestError::says_nothing_was_kept).
    pub async fn commit(
        &self,
        table: &Table,
        reservation: Reservation,
        rows: LoadRows,
    ) -> Result<Answered, IngestError> {
        let mut answered = self.commit_together(vec![(table, reservation, rows)]).await?;
        Ok(answered.swap_remove(0))
    }

    /// Commits loads of different tables as one: all of them are durable and visible on return. After a crash all of them are there,
    /// or none. Queries that read several of the tables meanwhile may see some of them earlier than others.
    ///
    /// # Errors
    /// Nothing of any load was stored, neither rows nor data files, and the labels are free, if the error [says
    /// so](IngestError::says_nothing_was_kept).
    pub async fn commit_together(
        &self,
        mut loads: Vec<(&Table, Reservation, LoadRows)>,
    ) -> Result<Vec<Answered>, IngestError> {
        let started = host::now();
        let row_counts: Vec<u64> = loads.iter().map(|(_, _, rows)| rows.rows).collect();
        let outcome = match self.admit_together(&mut loads).await {
            Ok((queues, admitted)) => {
                for (queue, (.., rows)) in queues.iter().zip(&loads) {
                    if rows.replaces.is_some() {
                        // Rows acknowledged before are replaced, too.
                        queue.drain(CloseReason::SchemaChange).await;
                    }
                }
                let loads = loads.into_iter().map(|(_, reservation, rows)| (reservation, rows));
                self.commit_reserved(queues.into_iter().zip(loads).collect(), admitted, started).await
            }
            Err(error) => {
                for (table, _, rows) in &loads {
                    table.discard(rows.files()).await;
                }
                Err(error)
            }
        };
        let outcome = self.of_owner(outcome).await;
        let took = host::now().saturating_duration_since(started);
        for rows in row_counts {
            match &outcome {
                Ok(_) => self.core.metrics.load_acknowledged(GroupCommitMode::Off, rows, took),
                Err(_) => self.core.metrics.load_failed(GroupCommitMode::Off),
            }
        }
        outcome
    }

    async fn commit_reserved(
        &self,
        loads: Vec<(Arc<TableQueue>, (Reservation, LoadRows))>,
        admitted: Admitted,
        begun: Instant,
    ) -> Result<Vec<Answered>, IngestError> {
        let ready = host::now();
        let names: Vec<_> = loads.iter().map(|(_, (load, _))| (load.txn(), load.label().clone())).collect();
        let files: Vec<_> =
            loads.iter().map(|(queue, (_, rows))| (Arc::clone(queue), rows.unpublished.clone())).collect();
        let commit = |(queue, (reservation, rows))| {
            // Until the log is given the entry the label is the task's: it is free again if the task panics.
            OwnCommit { queue, own: self.own(&reservation), rows, owner: Some(reservation) }
        };
        let mut commits: Vec<OwnCommit> = loads.into_iter().map(commit).collect();
        let txns: Vec<TxnId> = names.iter().map(|(txn, _)| *txn).collect();
        let core = Arc::clone(&self.core);
        // The commit continues if the client leaves: it must not be cut off half-way.
        let commit = self.core.tasks.run(async move {
            let outcome = commit_own(&mut commits, Some(admitted)).await;
            if let Err(error) = &outcome {
                let has_owners = !commits.is_empty();
                for reservation in commits.drain(..).filter_map(|commit| commit.owner) {
                    reservation.abort(error.to_string());
                }
                // Otherwise the next start finds out whether the labels are used.
                if !has_owners && error.says_nothing_was_kept() {
                    txns.iter().for_each(|txn| {
                        core.transactions.aborted(*txn, host::unix_ms(), error.to_string());
                    });
                }
            }
            for (queue, files) in files {
                discard_after(&outcome, &queue.table, files).await;
            }
            outcome
        });
        let committed = commit.await.unwrap_or_else(|panic| Err(panicked("a commit", &panic)))?;
        let answered = |(txn, label): (TxnId, Label)| {
            let of_txn = committed.iter().find(|(of, _)| *of == txn);
            let (_, committed) = of_txn.expect("each commit is answered");
            Answered {
                label,
                txn,
                version: Some(committed.version),
                stages: Stages::committed(begun, ready, &committed.times, host::now()),
                closed_by: None,
                closes_by: None,
            }
        };
        Ok(names.into_iter().map(answered).collect())
    }

    pub(crate) fn own(&self, reservation: &Reservation) -> OwnTransaction {
        let info = self.core.transactions.by_id(reservation.txn());
        OwnTransaction {
            txn: reservation.txn(),
            label: reservation.label().clone(),
            label_is_kept: info.as_ref().is_some_and(|info| info.label_is_kept),
            kind: reservation.kind(),
            prepared_at_ms: info.as_ref().map_or_else(host::unix_ms, |info| info.prepared_at_ms),
            source: info.as_ref().and_then(|info| info.source),
            attachment: info.and_then(|info| info.attachment),
            client: reservation.client().map(str::to_owned),
        }
    }

    /// Waits until everything that was acknowledged before this call is visible, closing the
    /// groups that are open.
    pub async fn sync(&self) {
        let queues = self.all_queues();
        futures::future::join_all(queues.iter().map(|queue| queue.drain(CloseReason::Sync))).await;
    }

    /// Waits until a transaction is visible, by its id, which is the receipt of its loads. Groups close when they would without it.
    ///
    /// # Errors
    /// [`IngestError::UnknownReceipt`], [`IngestError::NotVisible`], [`IngestError::TableDropped`].
    pub async fn wait_visible(&self, receipt: TxnId) -> Result<(), IngestError> {
        let transactions = &self.core.transactions;
        let Some(info) = transactions.by_id(receipt) else {
            // Finished ones are forgotten some day, running ones never.
            let is_known = receipt.0 > 0 && receipt < transactions.peek_next();
            return if is_known { Ok(()) } else { Err(IngestError::UnknownReceipt(receipt)) };
        };
        match self.queue(info.table) {
            Some(queue) => queue.visible(receipt).await,
            None if info.status == TransactionStatus::Visible => Ok(()),
            None => Err(IngestError::TableDropped(info.table_ref)),
        }
    }

    /// Truncates a table: rows acknowledged before this call are removed, durably, on return.
    ///
    /// # Errors
    /// The table is unchanged.
    pub async fn truncate(&self, table: &Table) -> Result<Version, IngestError> {
        self.truncate_or_cut(table, None).await
    }

    /// Truncates partitions of a table: rows of them that were acknowledged before this call are removed, durably, on return,
    /// even if a partition of the same rows is created later.
    ///
    /// # Errors
    /// The table is unchanged.
    pub async fn cut(&self, table: &Table, partitions: Partitions) -> Result<Version, IngestError> {
        self.truncate_or_cut(table, Some(partitions)).await
    }

    /// Gives a table a definition that lacks these partitions: their rows are removed on return. [`Ingest::verify`] knows that they
    /// go from one place after the other.
    ///
    /// # Errors
    /// Those of [`Table::alter`].
    pub async fn drop_partitions(
        &self,
        table: &Table,
        new: Arc<TableDef>,
        dropped: Partitions,
    ) -> Result<(), TableError> {
        let departure = table.departure();
        table.alter(new).await?;
        if let Err(error) = self.cut(table, dropped).await {
            // A partition of such rows is not added before a cut of it is in the log.
            departure.stays();
            let table = table.def().table_ref();
            tracing::warn!(%table, %error, "rows of dropped partitions stay in the write-ahead log for now");
        }
        Ok(())
    }

    async fn truncate_or_cut(&self, table: &Table, cut: Option<Partitions>) -> Result<Version, IngestError> {
        let queue = self.live_queue(table)?;
        queue.drain(CloseReason::SchemaChange).await;
        let reservation = self.begin(
            &table.def(),
            Label::of_insert(host::random(rand::random)),
            false,
            TransactionKind::Insert,
        )?;
        let core = Arc::clone(&self.core);
        let truncate = self.core.tasks.run(async move {
            let outcome = queue.truncate(reservation.txn(), cut).await;
            match &outcome {
                Ok(version) => {
                    let (txn, _) = reservation.hand_over();
                    core.transactions.visible(txn, *version, host::unix_ms(), (0, 0, 0));
                }
                Err(error) => reservation.abort(error.to_string()),
            }
            outcome
        });
        self.of_owner(truncate.await.unwrap_or_else(|panic| Err(panicked("a truncation", &panic)))).await
    }

    /// The most bytes that one WAL directory can still take.
    #[must_use]
    pub fn wal_available_bytes(&self) -> u64 {
        let now = host::now();
        self.spaces.iter().map(|space| space.available(now)).max().unwrap_or(0)
    }

    /// The write-ahead logs.
    #[must_use]
    pub fn wal_spaces(&self) -> &[Arc<WalSpace>] {
        &self.spaces
    }

    /// Groups that are not visible yet: what Doris counts as WALs.
    #[must_use]
    pub fn open_groups(&self) -> u64 {
        self.queues.read().values().map(|queue| queue.open_groups()).sum()
    }

    /// Flushes that the store fails one after the other; `None` while they succeed.
    #[must_use]
    pub fn stalled_flushes(&self) -> Option<StalledFlushes> {
        self.flush_failures.stalled()
    }

    /// Tables that can't be read or flushed, or whose files can't be deleted.
    #[must_use]
    pub fn troubled_tables(&self) -> usize {
        self.queues.read().values().filter(|queue| queue.table.is_troubled()).count()
    }

    /// Watches background work, also that of others.
    #[must_use]
    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    #[must_use]
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.core.memory
    }

    #[must_use]
    pub fn metrics(&self) -> &IngestMetrics {
        &self.core.metrics
    }

    #[must_use]
    pub fn transactions(&self) -> &Transactions {
        &self.core.transactions
    }

    /// Refuses new loads, commits open groups, flushes what can be flushed and stops the logs. Groups for whose commits there is
    /// no space even then are left to the next start: their acknowledged rows are in the log.
    pub async fn shutdown(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.drain_for_shutdown().await;
        self.flush_all().await;
        if let Some(timer) = self.core.timer.get() {
            timer.stop();
        }
        for space in &self.spaces {
            let wal = space.wal.clone();
            if host::is_simulated() {
                wal.shutdown();
            } else if let Err(panic) = tokio::task::spawn_blocking(move || wal.shutdown()).await {
                tracing::error!(%panic, "stopping a write-ahead log panicked");
            }
        }
    }

    /// Commits open groups. On a full disk, flushes free the space for their commits.
    async fn drain_for_shutdown(&self) {
        let queues = self.all_queues();
        let drained =
            futures::future::join_all(queues.iter().map(|queue| queue.drain(CloseReason::Shutdown)));
        tokio::pin!(drained);
        for _ in 0..SHUTDOWN_ROUNDS_MAX {
            tokio::select! {
                biased;
                _ = &mut drained => return,
                () = tasks::sleep(SHUTDOWN_ROUND) => self.flush_all().await,
            }
        }
        tracing::warn!("groups that found no space for their commits are left to the next start");
    }
}

/// A table's queue, on the log that has rows of it, or on one of the first `in_use` logs.
fn new_queue(
    core: &Arc<Core>,
    spaces: &[Arc<WalSpace>],
    homes: &HashMap<TableId, usize>,
    in_use: usize,
    table: Arc<Table>,
) -> Arc<TableQueue> {
    let by_id = table.id().0 as usize % in_use;
    let home = homes.get(&table.id()).copied().unwrap_or(by_id);
    Arc::new(TableQueue::new(Arc::clone(core), table, Arc::clone(&spaces[home])))
}

/// Deletes the data files of a load of which nothing was stored.
pub(crate) async fn discard_after<T>(
    outcome: &Result<T, IngestError>,
    table: &Table,
    files: Option<Arc<UnpublishedFiles>>,
) {
    if let Some(files) = files
        && outcome.as_ref().is_err_and(IngestError::says_nothing_was_kept)
    {
        // Boxed to keep the futures of loads small: hardly any gets here.
        Box::pin(table.discard(&files)).await;
    }
}

pub(crate) fn panicked(what: &str, panic: &str) -> IngestError {
    tracing::error!(panic, "{what} panicked");
    IngestError::Bug(format!("{what} panicked: {panic}"))
}

fn received<T>(
    answer: Result<Result<T, IngestError>, tokio::sync::oneshot::error::RecvError>,
) -> Result<T, IngestError> {
    answer.unwrap_or_else(|_| Err(IngestError::WalFailed("a callback of the log has panicked".into())))
}

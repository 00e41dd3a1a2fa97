//! The public face: loads in, answers out.

use crate::clock::Clock;
use crate::error::IngestError;
use crate::group::CloseReason;
use crate::load::{Committed, LoadRows};
use crate::memory::MemoryBudget;
use crate::metrics::IngestMetrics;
use crate::queue::{Core, OwnTransaction, TableQueue, wal_error};
use crate::record::{self, AbortBody, PrepareBody, kind};
use crate::recovery::{self, RecoveryReport};
use crate::route::switch_of_rows;
use crate::tasks::{self, Tasks};
use crate::timer::Timer;
use crate::transactions::{
    NewTransaction, Reservation, TransactionInfo, TransactionKind, TransactionStatus, Transactions,
    TwoPhaseTarget,
};
use crate::wal_space::{WalLimit, WalSpace};
use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tributary_table::{DataFile, Table};
use tributary_types::{
    DbId, GroupCommitMode, Label, SchemaVersion, TableDef, TableId, TableSchema, TxnId, Version, host,
    planted::{self, Bug},
};
use tributary_wal::{Disk, WalOptions};

/// Where kept labels survive the log. Implemented by the catalog.
#[async_trait]
pub trait LabelStore: Send + Sync + Debug + 'static {
    /// Stores finished transactions. Durable on return.
    async fn record(&self, finished: &[TransactionInfo]) -> Result<(), String>;
    /// All stored transactions whose labels are still kept.
    async fn kept(&self) -> Result<Vec<TransactionInfo>, String>;
    /// Forgets those that finished before `before_ms`.
    async fn purge(&self, before_ms: i64) -> Result<(), String>;
}

/// The schemas that a table ever had, for rows that the log keeps from before a schema change.
pub trait SchemaHistory: Send + Sync {
    fn schema(&self, table: TableId, version: SchemaVersion) -> Option<Arc<TableSchema>>;
}

/// Settings of this room.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// Directories of the write-ahead logs, at least one.
    pub wal_dirs: Vec<PathBuf>,
    /// Directories of logs that may still hold rows but take those of no other tables.
    pub retired_wal_dirs: Vec<PathBuf>,
    pub wal_limit: WalLimit,
    pub wal: WalOptions,
    /// Bytes of rows in memory (groups and memtables) at which loads wait for flushes.
    pub memory_limit_bytes: u64,
    /// How long a label stays used after its transaction's end.
    pub label_keep: Duration,
    /// A prepared two-phase load is aborted after this time.
    pub precommit_timeout: Duration,
}

/// A two-phase load that waits for its commit or abort.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub queue: Arc<TableQueue>,
    pub own: OwnTransaction,
    pub rows: LoadRows,
}

/// Those whose commit or abort is not under way. Locked before a queue and before the transactions.
pub(crate) type PreparedLoads = HashMap<TxnId, Prepared>;

/// How often a shutdown flushes to make room for groups that wait for space, with a second between.
const SHUTDOWN_ROUNDS_MAX: usize = 30;
const SHUTDOWN_ROUND: Duration = Duration::from_secs(1);

/// Loads, groups and transactions of all tables.
#[derive(Debug)]
pub struct Ingest {
    pub(crate) core: Arc<Core>,
    pub(crate) spaces: Vec<Arc<WalSpace>>,
    pub(crate) queues: RwLock<HashMap<TableId, Arc<TableQueue>>>,
    pub(crate) prepared: Arc<Mutex<PreparedLoads>>,
    /// Tables that were flushed and may have small files.
    pub(crate) to_compact: Mutex<BTreeSet<TableId>>,
    pub(crate) flushed: Notify,
    pub(crate) labels: Arc<dyn LabelStore>,
    pub(crate) options: IngestOptions,
    /// The logs, by their place in `spaces`, of tables that have rows there and nowhere else yet: all of
    /// such a table's rows go to one log, or that log would be released without regard to it.
    homes: HashMap<TableId, usize>,
    is_stopping: AtomicBool,
}

impl Ingest {
    /// Opens the logs and brings tables and transactions back to where they were: every
    /// acknowledged row is in its table, once, when this returns.
    ///
    /// # Errors
    /// A log that is locked or damaged, rows that can't be read, a disk without space for the
    /// commits of groups that a crash left open.
    pub async fn open(
        mut options: IngestOptions,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        metrics: Arc<IngestMetrics>,
        labels: Arc<dyn LabelStore>,
        history: &dyn SchemaHistory,
        tables: Vec<Arc<Table>>,
    ) -> Result<(Arc<Self>, RecoveryReport), IngestError> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // Threads that wait for their logs' disks must leave one for the clients.
        options.wal.may_write_here.get_or_insert(processors > options.wal_dirs.len());
        let logs = recovery::read_logs(&options, &disk, &tables, history)?;
        let core = Arc::new(Core {
            transactions: Arc::new(Transactions::new(if planted::is(Bug::TxnIdsReused) {
                TxnId(1)
            } else {
                logs.next_txn
            })),
            clock,
            metrics,
            memory: Arc::new(MemoryBudget::new(options.memory_limit_bytes)),
            timer: OnceLock::new(),
            tasks: Tasks::current(),
        });
        for info in labels.kept().await.map_err(IngestError::Recovery)? {
            core.transactions.restore(info, true);
        }
        let spaces = logs.spaces(&options, &disk);
        let ingest = Arc::new(Self {
            core,
            spaces,
            queues: RwLock::default(),
            prepared: Arc::default(),
            to_compact: Mutex::default(),
            flushed: Notify::new(),
            labels,
            options,
            homes: logs.contents.homes(),
            is_stopping: AtomicBool::new(false),
        });
        let report = recovery::replay(&ingest, logs.contents, tables).await?;
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

    /// Takes a newly created table. Loads may come from now on.
    pub fn attach(&self, table: Arc<Table>) {
        let queue = self.new_queue(table);
        self.queues.write().insert(queue.table.id(), queue);
    }

    pub(crate) fn new_queue(&self, table: Arc<Table>) -> Arc<TableQueue> {
        let by_id = table.id().0 as usize % self.options.wal_dirs.len();
        let home = self.homes.get(&table.id()).copied().unwrap_or(by_id);
        let space = Arc::clone(&self.spaces[home]);
        Arc::new(TableQueue::new(Arc::clone(&self.core), table, space))
    }

    /// Forgets a dropped table: loads that wait are told, its rows in the log count for nothing.
    pub fn detach(&self, table: TableId) {
        let queue = self.queues.write().remove(&table);
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

    /// The table's queue, once there is memory for the rows.
    async fn admit(&self, table: &Table, rows: &LoadRows) -> Result<Arc<TableQueue>, IngestError> {
        let queue = self.live_queue(table)?;
        self.core.memory.admit(rows.memory_bytes()).await?;
        Ok(queue)
    }

    /// Loads into the table's group. In sync mode the rows are durable and visible on return; in
    /// async mode they are durable in the log, and visible when the group has committed. Rows in data
    /// files, which the log knows of by the group's commit only, are loaded as in sync mode.
    ///
    /// # Errors
    /// Nothing of the load was kept, neither rows nor data files, if the error
    /// [says so](IngestError::says_nothing_was_kept). After [`IngestError::Timeout`] the group goes on.
    pub async fn load_into_group(
        &self,
        table: &Table,
        is_async: bool,
        rows: LoadRows,
        timeout: Duration,
    ) -> Result<Committed, IngestError> {
        let mode = if is_async { GroupCommitMode::Async } else { GroupCommitMode::Sync };
        let started = self.core.clock.now();
        let row_count = rows.rows;
        let files = rows.files.clone();
        let outcome = self
            .group_answer(table, is_async && switch_of_rows(!files.is_empty()).is_none(), rows, timeout)
            .await;
        discard_after(&outcome, table, &files).await;
        match &outcome {
            Ok(_) => {
                let took = self.core.clock.now().saturating_duration_since(started);
                self.core.metrics.load_acknowledged(mode, row_count, took);
            }
            Err(_) => self.core.metrics.load_failed(mode),
        }
        outcome
    }

    async fn group_answer(
        &self,
        table: &Table,
        is_async: bool,
        rows: LoadRows,
        timeout: Duration,
    ) -> Result<Committed, IngestError> {
        let queue = self.admit(table, &rows).await?;
        if is_async {
            let joined = queue.join_async(rows)?;
            if joined.must_commit {
                queue.spawn_committer();
            }
            if !planted::is(Bug::AsyncAnsweredBeforeLog) {
                received(joined.answer.await)?;
            }
            return Ok(Committed { label: joined.label, txn: joined.txn, version: None });
        }
        let joined = queue.join_sync(rows)?;
        if joined.must_commit {
            queue.commit_closed_here();
        }
        let version = match tasks::timeout(timeout, joined.answer).await {
            Some(answer) => received(answer)?,
            None => return Err(IngestError::Timeout { seconds: timeout.as_secs(), label: joined.label }),
        };
        Ok(Committed { label: joined.label, txn: joined.txn, version: Some(version) })
    }

    /// Begins a transaction of one load. A label that a client chose stays used after the
    /// transaction (`label_is_kept`); one made here is only a name.
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
        self.core.transactions.begin(NewTransaction {
            db: table.db_id,
            table: table.id,
            table_ref: table.table_ref(),
            label,
            label_is_kept,
            kind,
            now_ms: self.core.clock.unix_ms(),
        })
    }

    /// Commits a load as its own transaction. Durable and visible on return.
    ///
    /// # Errors
    /// Nothing of the load was kept, neither rows nor data files, and its label is free, if the error
    /// [says so](IngestError::says_nothing_was_kept).
    pub async fn commit(
        &self,
        table: &Table,
        reservation: Reservation,
        rows: LoadRows,
    ) -> Result<Committed, IngestError> {
        let started = self.core.clock.now();
        let row_count = rows.rows;
        let outcome = match self.admit(table, &rows).await {
            Ok(queue) => self.commit_reserved(queue, reservation, rows).await,
            Err(error) => {
                table.discard(&rows.files).await;
                Err(error)
            }
        };
        match &outcome {
            Ok(_) => {
                let took = self.core.clock.now().saturating_duration_since(started);
                self.core.metrics.load_acknowledged(GroupCommitMode::Off, row_count, took);
            }
            Err(_) => self.core.metrics.load_failed(GroupCommitMode::Off),
        }
        outcome
    }

    async fn commit_reserved(
        &self,
        queue: Arc<TableQueue>,
        reservation: Reservation,
        rows: LoadRows,
    ) -> Result<Committed, IngestError> {
        let own = self.own(&reservation);
        let (txn, label) = reservation.hand_over();
        // The commit goes on if the client leaves: it must not be cut off half-way.
        let core = Arc::clone(&self.core);
        let commit = self.core.tasks.run(async move {
            let files = rows.files.clone();
            let outcome = queue.commit_own(own, rows, false).await;
            if let Err(error) = &outcome {
                core.transactions.aborted(txn, core.clock.unix_ms(), error.to_string());
            }
            discard_after(&outcome, &queue.table, &files).await;
            outcome
        });
        let version = commit.await.unwrap_or_else(|panic| Err(panicked("a commit", &panic)))?;
        Ok(Committed { label, txn, version: Some(version) })
    }

    fn own(&self, reservation: &Reservation) -> OwnTransaction {
        let info = self.core.transactions.by_id(reservation.txn());
        OwnTransaction {
            txn: reservation.txn(),
            label: reservation.label().clone(),
            label_is_kept: info.as_ref().is_some_and(|info| info.label_is_kept),
            prepared_at_ms: info.map_or_else(|| self.core.clock.unix_ms(), |info| info.prepared_at_ms),
        }
    }

    /// Makes a two-phase load durable and leaves it PRECOMMITTED, invisible.
    ///
    /// # Errors
    /// As of [`Ingest::commit`].
    pub async fn prepare(
        &self,
        table: &Table,
        reservation: Reservation,
        rows: LoadRows,
    ) -> Result<Committed, IngestError> {
        let queue = match self.admit(table, &rows).await {
            Ok(queue) => queue,
            Err(error) => {
                table.discard(&rows.files).await;
                return Err(error);
            }
        };
        let own = OwnTransaction { label_is_kept: true, ..self.own(&reservation) };
        let (txn, label) = reservation.hand_over();
        // Cut off half-way it would be durable, and its label free.
        let (core, all) = (Arc::clone(&self.core), Arc::clone(&self.prepared));
        let prepare = self.core.tasks.run(async move {
            let files = rows.files.clone();
            let outcome = core.prepare(&all, queue.clone(), own, rows).await;
            discard_after(&outcome, &queue.table, &files).await;
            outcome
        });
        prepare.await.unwrap_or_else(|panic| Err(panicked("a pre-commit", &panic)))?;
        Ok(Committed { label, txn, version: None })
    }

    /// Commits a prepared load. Durable and visible on return. It goes on if the client leaves.
    ///
    /// # Errors
    /// [`IngestError::TransactionNotFound`], [`IngestError::TransactionState`] with Doris's texts;
    /// [`IngestError::TableDropped`]; after any other error the load is still prepared.
    pub async fn commit_prepared(&self, db: DbId, target: &TwoPhaseTarget) -> Result<TxnId, IngestError> {
        let (txn, prepared) = self.take_prepared(db, target, "not pre-committed.")?;
        let (core, all) = (Arc::clone(&self.core), Arc::clone(&self.prepared));
        let commit = self.core.tasks.run(async move {
            let Prepared { queue, own, rows } = prepared.clone();
            let memory = rows.memory_bytes();
            match queue.commit_own(own, rows, true).await {
                Ok(_) => {
                    core.memory.leave_group(memory);
                    Ok(txn)
                }
                Err(error) => Err(core.put_back(&all, txn, prepared, error)),
            }
        });
        commit.await.unwrap_or_else(|panic| Err(panicked("a commit", &panic)))
    }

    /// Aborts a prepared load; its label is free afterwards. It goes on if the client leaves.
    ///
    /// # Errors
    /// Like [`Ingest::commit_prepared`].
    pub async fn abort_prepared(
        &self,
        db: DbId,
        target: &TwoPhaseTarget,
        reason: &str,
    ) -> Result<TxnId, IngestError> {
        let (txn, prepared) = self.take_prepared(db, target, "could not abort.")?;
        let (core, all) = (Arc::clone(&self.core), Arc::clone(&self.prepared));
        let reason = reason.to_owned();
        let abort = self.core.tasks.run(async move {
            let Prepared { queue, own, rows } = &prepared;
            let body = AbortBody { db, label: own.label.clone(), reason: reason.clone() };
            let entry = record::json(kind::ABORT, queue.table.id(), txn, &body);
            if !planted::is(Bug::AbortNotLogged)
                && let Err(error) = queue.space.wal.append(vec![entry]).await
            {
                return Err(core.put_back(&all, txn, prepared, wal_error(error)));
            }
            queue.let_go(txn);
            core.end_prepared(txn, rows, reason);
            queue.table.discard(&rows.files).await;
            Ok(txn)
        });
        abort.await.unwrap_or_else(|panic| Err(panicked("an abort", &panic)))
    }

    /// Takes a load that waits for its commit or abort. Nobody else finds it until it is put back.
    fn take_prepared(
        &self,
        db: DbId,
        target: &TwoPhaseTarget,
        not: &str,
    ) -> Result<(TxnId, Prepared), IngestError> {
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(IngestError::ShuttingDown);
        }
        let txn = self.find_prepared(db, target, not)?;
        let prepared = self.prepared.lock().remove(&txn).ok_or_else(|| self.state_error(txn, not))?;
        Ok((txn, prepared))
    }

    fn find_prepared(&self, db: DbId, target: &TwoPhaseTarget, not: &str) -> Result<TxnId, IngestError> {
        let info = match (target.txn, &target.label) {
            (Some(txn), _) => self.core.transactions.by_id(txn).filter(|info| info.db == db),
            (None, Some(label)) => self.core.transactions.by_label(db, label.as_str()),
            (None, None) => None,
        };
        let named = target.txn.map(|txn| txn.to_string()).or(target.label.as_ref().map(ToString::to_string));
        let Some(info) = info else {
            return Err(IngestError::TransactionNotFound(named.unwrap_or_default()));
        };
        if target.label.as_ref().is_some_and(|label| *label != info.label) {
            return Err(IngestError::TransactionNotFound(named.unwrap_or_default()));
        }
        if info.status == TransactionStatus::Precommitted {
            Ok(info.txn)
        } else {
            Err(self.state_error(info.txn, not))
        }
    }

    fn state_error(&self, txn: TxnId, not: &str) -> IngestError {
        let Some(info) = self.core.transactions.by_id(txn) else {
            return IngestError::TransactionNotFound(txn.to_string());
        };
        let (status, reason) = match info.status {
            TransactionStatus::Aborted => ("aborted", format!(". abort reason: {}", info.reason)),
            TransactionStatus::Visible => ("visible", format!(", {not}")),
            TransactionStatus::Prepare => ("prepare", format!(", {not}")),
            TransactionStatus::Precommitted => {
                ("precommitted", ", its commit or abort is under way.".to_owned())
            }
        };
        IngestError::TransactionState { txn, status, reason }
    }

    /// Waits until everything that was acknowledged before this call is visible, closing the
    /// groups that are open.
    pub async fn sync(&self) {
        let queues = self.all_queues();
        futures::future::join_all(queues.iter().map(|queue| queue.settle(CloseReason::Sync))).await;
    }

    /// Empties a table: rows acknowledged before this call are gone, durably, on return.
    ///
    /// # Errors
    /// The table is unchanged.
    pub async fn truncate(&self, table: &Table) -> Result<Version, IngestError> {
        let queue = self.live_queue(table)?;
        queue.settle(CloseReason::SchemaChange).await;
        let reservation = self.begin(
            &table.def(),
            Label::of_insert(host::random(rand::random)),
            false,
            TransactionKind::Insert,
        )?;
        let (txn, _) = reservation.hand_over();
        let core = Arc::clone(&self.core);
        let truncate = self.core.tasks.run(async move {
            let outcome = queue.truncate(txn).await;
            match &outcome {
                Ok(_) => core.transactions.visible(txn, core.clock.unix_ms(), 0, 0, 0),
                Err(error) => core.transactions.aborted(txn, core.clock.unix_ms(), error.to_string()),
            }
            outcome
        });
        truncate.await.unwrap_or_else(|panic| Err(panicked("a truncation", &panic)))
    }

    /// The most bytes that one WAL directory can still take.
    #[must_use]
    pub fn wal_available_bytes(&self) -> u64 {
        let now = self.core.clock.now();
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

    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
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

    /// Refuses new loads, commits open groups, flushes what can be flushed and stops the logs. Groups for
    /// whose commits there is no space even then are left to the next start: what was acknowledged of them
    /// is in the log.
    pub async fn shutdown(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.settle_for_shutdown().await;
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

    /// Commits open groups. On a full disk, flushes are what makes room for their commits.
    async fn settle_for_shutdown(&self) {
        let queues = self.all_queues();
        let settled =
            futures::future::join_all(queues.iter().map(|queue| queue.settle(CloseReason::Shutdown)));
        tokio::pin!(settled);
        for _ in 0..SHUTDOWN_ROUNDS_MAX {
            tokio::select! {
                biased;
                _ = &mut settled => return,
                () = tasks::sleep(SHUTDOWN_ROUND) => self.flush_all().await,
            }
        }
        tracing::warn!("groups that found no space for their commits are left to the next start");
    }
}

impl Core {
    /// Makes a load durable and keeps it for its commit or abort. Its transaction is told what became of it.
    async fn prepare(
        &self,
        all: &Mutex<PreparedLoads>,
        queue: Arc<TableQueue>,
        own: OwnTransaction,
        rows: LoadRows,
    ) -> Result<(), IngestError> {
        let txn = own.txn;
        let body = PrepareBody {
            db: queue.table.def().db_id,
            label: own.label.clone(),
            rows: rows.rows,
            bytes: rows.bytes,
            prepared_at_ms: own.prepared_at_ms,
            files: rows.files.clone(),
        };
        self.memory.enter_group(rows.memory_bytes());
        let outcome = queue.prepare(txn, body, &rows.blocks).await;
        // Whoever drops the table marks the queue first, and then looks for what is prepared.
        let mut all = all.lock();
        let outcome = outcome.and_then(|()| queue.refuse_if_dropped());
        match &outcome {
            Ok(()) => {
                self.transactions.precommitted(txn, self.clock.unix_ms(), rows.rows, rows.bytes);
                all.insert(txn, Prepared { queue, own, rows });
            }
            Err(error) => self.end_prepared(txn, &rows, error.to_string()),
        }
        outcome
    }

    /// A commit or abort came to nothing: the load waits again, unless its table is gone.
    fn put_back(
        &self,
        all: &Mutex<PreparedLoads>,
        txn: TxnId,
        prepared: Prepared,
        error: IngestError,
    ) -> IngestError {
        let mut all = all.lock();
        if let Err(dropped) = prepared.queue.refuse_if_dropped() {
            self.end_prepared(txn, &prepared.rows, "the table was dropped".into());
            return dropped;
        }
        all.insert(txn, prepared);
        error
    }

    /// A prepared load will never be visible.
    fn end_prepared(&self, txn: TxnId, rows: &LoadRows, reason: String) {
        self.memory.leave_group(rows.memory_bytes());
        self.transactions.aborted(txn, self.clock.unix_ms(), reason);
    }
}

/// Deletes the data files of a load of which nothing was kept.
async fn discard_after<T>(outcome: &Result<T, IngestError>, table: &Table, files: &[DataFile]) {
    if outcome.as_ref().is_err_and(IngestError::says_nothing_was_kept) {
        table.discard(files).await;
    }
}

fn panicked(what: &str, panic: &str) -> IngestError {
    tracing::error!(panic, "{what} panicked");
    IngestError::Bug(format!("{what} panicked: {panic}"))
}

fn received<T>(
    answer: Result<Result<T, IngestError>, tokio::sync::oneshot::error::RecvError>,
) -> Result<T, IngestError> {
    answer.unwrap_or_else(|_| Err(IngestError::WalFailed("a callback of the log has panicked".into())))
}

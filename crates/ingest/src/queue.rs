//! One table's way from loads to visible versions: the open group, the closed groups that wait,
//! and the commits that the log is making durable.
//!
//! Invariants: versions are given out and commit records submitted under one lock, and the log
//! answers in the order of submission, so publications happen in the order of versions. A version
//! whose commit found no space is never used again. Groups commit in the order in which they were opened: one that
//! finds no space is not overtaken. A group's async rows are never dropped once
//! the log has them: if its commit finds no space, the commit is tried again until it succeeds; if
//! it can't be committed at all, the log keeps them for the next start. A group of interval 0 is
//! open only while commits are on their way (`State::is_free`); whoever ends the last one closes it.

use crate::appends::Appends;
use crate::build::Parts;
use crate::clock::Clock;
use crate::columns::Built;
use crate::error::IngestError;
use crate::gather::Gathering;
use crate::group::{CloseReason, Group};
use crate::load::LoadRows;
use crate::member::Member;
use crate::memory::MemoryBudget;
use crate::metrics::IngestMetrics;
use crate::record::{self, CommitBody, PrepareBody, TruncateBody, kind};
use crate::tasks::{self, Tasks};
use crate::timer::{Deadline, Timer};
use crate::transactions::{NewTransaction, TransactionKind, Transactions};
use crate::wal_space::WalSpace;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use tributary_decode::Block;
use tributary_table::{Publication, Table, TableError};
use tributary_types::planted::{self, Bug};
use tributary_types::{Label, Lsn, TableSchema, TxnId, Version, host};
use tributary_wal::log::Done;
use tributary_wal::{Appended, Entry, WalError};

/// A sync load of at least this size is written to the log when it arrives; smaller ones are
/// written together with their group's commit, in one fsync.
const HELD_LOAD_BYTES_MAX: u64 = 256 * 1024;
/// Groups above this size are turned into columns on a thread of their own.
const INLINE_BUILD_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How long a group whose commit found no space waits before it tries again.
const COMMIT_RETRY: Duration = Duration::from_millis(200);
/// The loads of a larger group are freed by a task of their own.
const DROPPED_HERE_MAX: usize = 1024;

/// What all tables share.
#[derive(Debug)]
pub(crate) struct Core {
    pub transactions: Arc<Transactions>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<IngestMetrics>,
    pub memory: Arc<MemoryBudget>,
    pub timer: std::sync::OnceLock<Timer>,
    pub tasks: Tasks,
}

/// One unpublished transaction's hold on the log.
#[derive(Clone, Copy, Debug)]
struct Hold {
    low: Lsn,
    why: Why,
}

/// What a hold waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// A commit that will come.
    Running,
    /// The commit or abort of a two-phase load, which may wait for hours.
    Prepared,
    /// The next start: a group with acknowledged rows could not be committed.
    Stranded,
}

/// Who works on the closed groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Committing {
    Nobody,
    /// A committer, which goes on until there is none left.
    Somebody,
    /// A committer, which waits before it goes on: a group found no space, and none may overtake it.
    Waiting,
}

/// What a committer does next.
enum Next {
    Commit(Group, CloseReason),
    /// Until there may be space.
    Wait,
    Nothing,
}

#[derive(Debug)]
struct State {
    open: Option<Group>,
    /// In the order in which they were opened, which is that of their transactions.
    closed: VecDeque<(Group, CloseReason)>,
    /// When the last group was due, if that is why it closed.
    last_deadline: Option<Instant>,
    committing: Committing,
    /// Commits that the log has not answered yet, or that wait for space.
    in_flight: usize,
    holds: BTreeMap<TxnId, Hold>,
    next_version: Version,
    is_dropped: bool,
}

/// A table's groups and commits.
pub(crate) struct TableQueue {
    pub table: Arc<Table>,
    pub space: Arc<WalSpace>,
    core: Arc<Core>,
    state: Mutex<State>,
    published: Notify,
}

/// A load that has joined a group.
#[derive(Debug)]
pub(crate) struct Joined<T> {
    pub label: Label,
    pub txn: TxnId,
    pub answer: oneshot::Receiver<Result<T, IngestError>>,
    /// The caller is asked to run [`TableQueue::commit_closed_here`] or [`TableQueue::spawn_committer`].
    pub must_commit: bool,
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
            state: Mutex::new(State {
                open: None,
                closed: VecDeque::new(),
                last_deadline: None,
                committing: Committing::Nobody,
                in_flight: 0,
                holds: BTreeMap::new(),
                next_version,
                is_dropped: false,
            }),
            published: Notify::new(),
        }
    }

    /// Joins the open group; the answer comes when the group is visible.
    pub fn join_sync(&self, rows: LoadRows) -> Result<Joined<Version>, IngestError> {
        let (sender, answer) = oneshot::channel();
        let is_logged = rows.bytes >= host::limit(HELD_LOAD_BYTES_MAX, 160);
        self.join(rows, is_logged, false, |group, load| {
            group.waiters.push((load, sender));
            let appends = Arc::clone(&group.appends);
            Box::new(move |result| appends.done(load, result.map(|_| ()).map_err(wal_error)))
        })
        .map(|(label, txn, must_commit)| Joined { label, txn, answer, must_commit })
    }

    /// Joins the open group; the answer comes when the log has the rows.
    pub fn join_async(&self, rows: LoadRows) -> Result<Joined<()>, IngestError> {
        let (sender, answer) = oneshot::channel();
        self.join(rows, true, true, |group, load| {
            let appends = Arc::clone(&group.appends);
            Box::new(move |result| {
                let outcome = result.map(|_| ()).map_err(wal_error);
                appends.done(load, outcome.clone());
                // A client that went away needs no answer; its rows are in the log all the same.
                drop(sender.send(outcome));
            })
        })
        .map(|(label, txn, must_commit)| Joined { label, txn, answer, must_commit })
    }

    fn join<F>(
        &self,
        rows: LoadRows,
        is_logged: bool,
        is_async: bool,
        answer: F,
    ) -> Result<(Label, TxnId, bool), IngestError>
    where
        F: FnOnce(&mut Group, u32) -> Box<dyn FnOnce(Result<Appended, WalError>) + Send>,
    {
        let kind = if is_async { kind::DATA_ASYNC } else { kind::DATA_HELD };
        let memory = rows.memory_bytes();
        // Made before the lock is taken; transaction and number follow.
        let mut entries = if is_logged {
            data_entries(kind, self.table.id(), TxnId(0), 0, &rows.blocks)
        } else {
            Vec::new()
        };
        let mut state = self.state.lock();
        state.refuse_if_dropped(&self.table)?;
        self.core.memory.enter_group(memory);
        let opened = state.open.is_none();
        if opened {
            let group = self.open_group(state.last_deadline);
            state.holds.insert(group.txn, Hold { low: group.low, why: Why::Running });
            state.open = Some(group);
        }
        let Some(group) = state.open.as_mut() else { unreachable!("it was opened just above") };
        let load = group.add(rows, is_logged, is_async);
        let done = answer(group, load);
        let offered = is_logged.then(|| {
            group.appends.submitted();
            for entry in &mut entries {
                (entry.txn, entry.tag) = (group.txn, load);
            }
            self.space.wal.offer(entries, done)
        });
        let (label, txn, deadline) = (group.label.clone(), group.txn, group.deadline);
        let gathering = group.gather();
        if let Some(gathering) = &gathering {
            self.core.memory.leave_group(gathering.spared_bytes());
        }
        let full = if group.is_full() {
            Some(CloseReason::Bytes)
        } else {
            self.core.memory.is_large(group.memory_bytes).then_some(CloseReason::Memory)
        };
        let must_commit = match full {
            Some(reason) => close(&mut state, reason),
            None => close_if_free(&mut state),
        };
        drop(state);
        if let Some(deadline) = deadline
            && opened
            && full.is_none()
        {
            self.schedule(deadline, txn);
        }
        if let Some(offered) = offered {
            offered.write_here();
        }
        if let Some(gathering) = gathering {
            self.gather(gathering);
        }
        Ok((label, txn, must_commit))
    }

    /// A new group. Those of a busy table follow one another at the interval: a load that comes after one was
    /// closed waits for the rest of it, not for a whole one.
    fn open_group(&self, last_deadline: Option<Instant>) -> Group {
        let def = self.table.def();
        let label = Label::of_group(host::random(rand::random));
        let now_ms = self.core.clock.unix_ms();
        let interval = Duration::from_millis(def.properties.group_commit_interval_ms);
        let txn = self.core.transactions.begin_group(NewTransaction {
            db: def.db_id,
            table: def.id,
            table_ref: def.table_ref(),
            label: label.clone(),
            label_is_kept: false,
            kind: TransactionKind::Group,
            now_ms,
        });
        let deadline = (!interval.is_zero()).then(|| {
            let now = self.core.clock.now();
            let next = last_deadline.map(|last| last + interval).filter(|next| *next > now);
            next.unwrap_or(now + interval)
        });
        let close_at_bytes = def.properties.group_commit_data_bytes;
        Group { deadline, close_at_bytes, ..Group::new(txn, label, now_ms, self.space.wal.end_lsn()) }
    }

    fn schedule(&self, at: std::time::Instant, txn: TxnId) {
        if let Some(timer) = self.core.timer.get() {
            timer.schedule(Deadline { at, table: self.table.id(), txn });
        }
    }

    /// Closes the open group if it is still `txn`'s.
    pub fn close_at_deadline(self: &Arc<Self>, txn: TxnId) {
        let must_commit = {
            let mut state = self.state.lock();
            state.open.as_ref().is_some_and(|group| group.txn == txn)
                && close(&mut state, CloseReason::Interval)
        };
        if must_commit {
            self.spawn_committer();
        }
    }

    /// Closes the open group whatever it waits for.
    pub fn close_now(self: &Arc<Self>, reason: CloseReason) {
        let must_commit = close(&mut self.state.lock(), reason);
        if must_commit {
            self.spawn_committer();
        }
    }

    /// Has a task commit the closed groups.
    pub fn spawn_committer(self: &Arc<Self>) {
        let queue = Arc::clone(self);
        self.core.tasks.spawn(async move { queue.commit_closed().await });
    }

    /// Commits the oldest closed group on the caller's thread if that is little work, and leaves the rest to a task:
    /// the caller's client is not to wait for other groups. Never cut off half-way, so a client that leaves harms
    /// no group.
    pub fn commit_closed_here(self: &Arc<Self>) {
        let mut next = self.next_closed();
        if let Next::Commit(group, reason) = next {
            if can_commit_here(&group) {
                self.commit_here(group, reason);
                next = self.next_closed();
            } else {
                next = Next::Commit(group, reason);
            }
        }
        match next {
            Next::Nothing => return,
            Next::Wait => {}
            Next::Commit(group, reason) => self.state.lock().put_back(group, reason),
        }
        self.spawn_committer();
    }

    fn commit_here(self: &Arc<Self>, mut group: Group, reason: CloseReason) {
        let failed = group.appends.failed();
        group.exclude(&failed);
        let built = Parts::of_group(&group).and_then(|parts| self.build_now(&parts));
        self.submit_or_fail(group, failed, reason, built);
    }

    /// Commits the closed groups, oldest first, until there is none. Run as a task of its own.
    async fn commit_closed(self: &Arc<Self>) {
        loop {
            match self.next_closed() {
                Next::Commit(group, reason) => self.commit_group(group, reason).await,
                Next::Wait => {
                    tasks::sleep(COMMIT_RETRY).await;
                    self.state.lock().committing = Committing::Somebody;
                }
                Next::Nothing => return,
            }
        }
    }

    /// What the committer does next. If that is nothing it is no committer any more.
    fn next_closed(&self) -> Next {
        let mut state = self.state.lock();
        if state.committing == Committing::Waiting {
            return Next::Wait;
        }
        state.committing = Committing::Nobody;
        if state.closed.is_empty() {
            // Nothing of the last one may be on its way: it has failed, or was answered already.
            close_if_free(&mut state);
        }
        match state.closed.pop_front() {
            Some((group, reason)) => {
                state.committing = Committing::Somebody;
                Next::Commit(group, reason)
            }
            None => Next::Nothing,
        }
    }

    async fn commit_group(self: &Arc<Self>, mut group: Group, reason: CloseReason) {
        let failed = group.appends.settled().await;
        group.exclude(&failed);
        let built = match Parts::of_group(&group) {
            Ok(parts) => self.build(parts, group.bytes).await,
            Err(error) => Err(error),
        };
        self.submit_or_fail(group, failed, reason, built);
    }

    fn submit_or_fail(
        self: &Arc<Self>,
        group: Group,
        failed: Vec<u32>,
        reason: CloseReason,
        built: Result<Built, IngestError>,
    ) {
        match built {
            Ok(built) => self.submit_group(group, failed, reason, built),
            Err(error) => self.fail_group(group, &error),
        }
    }

    /// Turns blocks into columns of the table's present schema.
    async fn build(self: &Arc<Self>, parts: Parts, bytes: u64) -> Result<Built, IngestError> {
        if bytes <= INLINE_BUILD_BYTES_MAX || host::is_simulated() {
            return self.build_now(&parts);
        }
        let queue = Arc::clone(self);
        tokio::task::spawn_blocking(move || queue.build_now(&parts))
            .await
            .unwrap_or_else(|gone| Err(IngestError::Bug(format!("building columns: {gone}"))))
    }

    fn build_now(&self, parts: &Parts) -> Result<Built, IngestError> {
        self.build_guarded(|schema, now_micros| parts.build(schema, now_micros))
    }

    fn build_guarded<T>(
        &self,
        build: impl FnOnce(Arc<TableSchema>, i64) -> Result<T, IngestError>,
    ) -> Result<T, IngestError> {
        let schema = Arc::clone(&self.table.def().schema);
        let now_micros = self.core.clock.unix_ms() * 1000;
        // A committer that is gone would leave its table without one.
        tasks::guarded(|| build(schema, now_micros)).unwrap_or_else(|panic| {
            Err(IngestError::Bug(format!(
                "building columns of table {}: {panic}",
                self.table.def().table_ref()
            )))
        })
    }

    /// Turns small loads into columns while their group is open, on the thread of the load that made them enough.
    fn gather(&self, gathering: Gathering) {
        let runs = self.build_guarded(|schema, now_micros| gathering.build(&schema, now_micros));
        gathering.done(runs);
    }

    /// Submits what was decided under `state`, so that versions are in the log in their order. What is answered
    /// on this thread is answered when the lock is free: answers take it. A lone load, which nobody else waits
    /// with, may be written here.
    fn submit(&self, state: MutexGuard<'_, State>, entries: Vec<Entry>, is_lone: bool, done: Done) {
        let offered = self.space.wal.offer(entries, done);
        drop(state);
        if is_lone {
            offered.write_here();
        }
    }

    fn submit_group(self: &Arc<Self>, group: Group, excluded: Vec<u32>, reason: CloseReason, built: Built) {
        let files: Vec<_> =
            group.members.iter().flat_map(|member| member.rows.files.iter().cloned()).collect();
        let table = self.table.id();
        let mut entries: Vec<Entry> = group
            .members
            .iter()
            .filter(|member| !member.is_logged)
            .flat_map(|member| {
                data_entries(kind::DATA_HELD, table, group.txn, member.load, &member.rows.blocks)
            })
            .collect();
        let body = |version: Version| CommitBody {
            version,
            db: self.table.def().db_id,
            label: group.label.clone(),
            label_is_kept: false,
            is_group: true,
            loads: group.loads() as u32,
            rows: group.rows,
            bytes: group.bytes,
            prepared_at_ms: group.prepared_at_ms,
            committed_at_ms: self.core.clock.unix_ms(),
            files: files.clone(),
            excluded: excluded.clone(),
        };
        let mut state = self.state.lock();
        if let Err(dropped) = state.refuse_if_dropped(&self.table) {
            drop(state);
            self.fail_group(group, &dropped);
            return;
        }
        if state.committing == Committing::Waiting {
            state.put_back(group, reason);
            return;
        }
        let version = state.take_version();
        entries.push(record::json(kind::COMMIT, table, group.txn, &body(version)));
        let queue = Arc::clone(self);
        let is_lone = group.loads() == 1 && !group.waiters.is_empty();
        let publication = Publication {
            version,
            schema: built.schema,
            batches: built.batches,
            files: files.clone(),
            lsn: group.low,
        };
        if planted::is(Bug::PublishedBeforeCommit) {
            self.space.wal.submit(entries, Box::new(|_| {}));
            drop(state);
            self.group_is_durable(group, &excluded, reason, publication);
            return;
        }
        let done = move |result| match result {
            Ok(_) => queue.group_is_durable(group, &excluded, reason, publication),
            Err(error) => queue.group_found_no_log(group, reason, error),
        };
        self.submit(state, entries, is_lone, Box::new(done));
    }

    /// Makes durable rows visible.
    fn publish(&self, publication: Publication) {
        if let Err(error) = self.table.publish(publication) {
            die(&error);
        }
    }

    fn group_is_durable(
        self: &Arc<Self>,
        group: Group,
        excluded: &[u32],
        reason: CloseReason,
        publication: Publication,
    ) {
        let version = publication.version;
        self.publish(publication);
        self.core.memory.leave_group(group.memory_bytes);
        self.core.memory.published(group.bytes);
        if self.table.flush_due(self.core.clock.now()) {
            self.core.memory.want_flush();
        }
        let loads = group.loads() as u32;
        self.core.transactions.visible(group.txn, self.core.clock.unix_ms(), loads, group.rows, group.bytes);
        self.core.metrics.group_committed(reason, loads, group.rows);
        self.leave(group.txn, None);
        let members = answer_waiters(group, excluded, version);
        if members.len() > DROPPED_HERE_MAX {
            // Not on the log's thread, which others wait for.
            self.core.tasks.spawn(async move { drop(members) });
        }
    }

    /// Nothing was written. A full disk is waited out, because async rows are in the log already.
    fn group_found_no_log(self: &Arc<Self>, group: Group, reason: CloseReason, error: WalError) {
        if !matches!(error, WalError::NoSpace { .. }) {
            let must_commit = {
                let mut state = self.state.lock();
                state.in_flight -= 1;
                close_if_free(&mut state)
            };
            self.fail_group(group, &wal_error(error));
            if must_commit {
                self.spawn_committer();
            }
            return;
        }
        tracing::warn!(table = %self.table.def().table_ref(), label = %group.label, %error, "commit waits for space");
        let must_commit = {
            let mut state = self.state.lock();
            state.in_flight -= 1;
            state.put_back(group, reason);
            std::mem::replace(&mut state.committing, Committing::Waiting) == Committing::Nobody
        };
        if must_commit {
            self.spawn_committer();
        }
    }

    /// Those who wait are told. Rows that were acknowledged stay in the log: the next start commits them.
    fn fail_group(&self, group: Group, error: &IngestError) {
        let is_stranded = {
            let mut state = self.state.lock();
            let hold = state.holds.remove(&group.txn).filter(|_| group.is_acknowledged());
            if let Some(hold) = hold {
                state.holds.insert(group.txn, Hold { why: Why::Stranded, ..hold });
            }
            hold.is_some()
        };
        let table = self.table.def().table_ref();
        if is_stranded {
            // Not aborted: who reads that would send the rows again.
            tracing::error!(%table, label = %group.label, txn = %group.txn, %error, "group failed; its acknowledged rows are in the write-ahead log, the next start of the server commits them");
        } else {
            tracing::error!(%table, label = %group.label, %error, "group failed");
            self.core.transactions.aborted(group.txn, self.core.clock.unix_ms(), error.to_string());
        }
        self.core.memory.leave_group(group.memory_bytes);
        self.core.metrics.groups_failed.inc();
        self.published.notify_waiters();
        for (load, waiter) in group.waiters {
            drop(waiter.send(Err(group.appends.reason(load).unwrap_or_else(|| error.clone()))));
        }
    }

    /// A commit was answered: its hold on the log passes to the memtable or is what it was before, and a group
    /// that waited for a free log may go.
    fn leave(self: &Arc<Self>, txn: TxnId, stays: Option<Hold>) {
        let must_commit = {
            let mut state = self.state.lock();
            match stays.filter(|_| !state.is_dropped) {
                Some(hold) => state.holds.insert(txn, hold),
                None => state.holds.remove(&txn),
            };
            state.in_flight -= 1;
            close_if_free(&mut state)
        };
        self.published.notify_waiters();
        if must_commit {
            self.spawn_committer();
        }
    }

    /// Commits a transaction of its own. Durable and visible on return.
    pub async fn commit_own(
        self: &Arc<Self>,
        own: OwnTransaction,
        rows: LoadRows,
        blocks_are_logged: bool,
    ) -> Result<Version, IngestError> {
        let built = self.build(Parts::of_load(&rows), rows.memory_bytes()).await?;
        let (sender, answer) = oneshot::channel();
        self.submit_own(own, rows, blocks_are_logged, built, sender)?;
        answer
            .await
            .unwrap_or_else(|_| Err(IngestError::WalFailed("a callback of the log has panicked".into())))
    }

    fn submit_own(
        self: &Arc<Self>,
        own: OwnTransaction,
        rows: LoadRows,
        blocks_are_logged: bool,
        built: Built,
        sender: oneshot::Sender<Result<Version, IngestError>>,
    ) -> Result<(), IngestError> {
        let table = self.table.id();
        let mut state = self.state.lock();
        state.refuse_if_dropped(&self.table)?;
        let low = state.holds.get(&own.txn).map_or_else(|| self.space.wal.end_lsn(), |hold| hold.low);
        state.holds.insert(own.txn, Hold { low, why: Why::Running });
        let version = state.take_version();
        let mut entries = if blocks_are_logged {
            Vec::new()
        } else {
            data_entries(kind::DATA_HELD, table, own.txn, 0, &rows.blocks)
        };
        entries.push(record::json(kind::COMMIT, table, own.txn, &self.own_commit_body(&own, &rows, version)));
        let queue = Arc::clone(self);
        let memory = rows.memory_bytes();
        self.core.memory.enter_group(memory);
        let publication = Publication {
            version,
            schema: built.schema,
            batches: built.batches,
            files: rows.files,
            lsn: low,
        };
        let done = move |result: Result<Appended, WalError>| {
            queue.core.memory.leave_group(memory);
            let outcome = match result {
                Ok(_) => {
                    queue.publish(publication);
                    queue.core.memory.published(memory);
                    let now_ms = queue.core.clock.unix_ms();
                    queue.core.transactions.visible(own.txn, now_ms, 1, rows.rows, rows.bytes);
                    queue.leave(own.txn, None);
                    Ok(version)
                }
                Err(error) => {
                    // A prepared load stays prepared, any other lets go of the log.
                    queue.leave(own.txn, blocks_are_logged.then_some(Hold { low, why: Why::Prepared }));
                    Err(wal_error(error))
                }
            };
            drop(sender.send(outcome));
        };
        self.submit(state, entries, false, Box::new(done));
        Ok(())
    }

    fn own_commit_body(&self, own: &OwnTransaction, rows: &LoadRows, version: Version) -> CommitBody {
        CommitBody {
            version,
            db: self.table.def().db_id,
            label: own.label.clone(),
            label_is_kept: own.label_is_kept,
            is_group: false,
            loads: 1,
            rows: rows.rows,
            bytes: rows.bytes,
            prepared_at_ms: own.prepared_at_ms,
            committed_at_ms: self.core.clock.unix_ms(),
            files: rows.files.clone(),
            excluded: Vec::new(),
        }
    }

    /// Makes a two-phase load durable. It stays invisible until it is committed.
    pub async fn prepare(
        self: &Arc<Self>,
        txn: TxnId,
        body: PrepareBody,
        blocks: &[Block],
    ) -> Result<(), IngestError> {
        let table = self.table.id();
        let mut entries = data_entries(kind::DATA_HELD, table, txn, 0, blocks);
        entries.push(record::json(kind::PREPARE, table, txn, &body));
        {
            let mut state = self.state.lock();
            state.refuse_if_dropped(&self.table)?;
            state.holds.insert(txn, Hold { low: self.space.wal.end_lsn(), why: Why::Prepared });
        }
        let result = self.space.wal.append(entries).await;
        if result.is_err() {
            self.let_go(txn);
        }
        result.map(|_| ()).map_err(wal_error)
    }

    /// Restores the hold of a prepared load that recovery found.
    pub fn hold_prepared(&self, txn: TxnId, low: Lsn) {
        self.state.lock().holds.insert(txn, Hold { low, why: Why::Prepared });
    }

    /// An aborted transaction's rows are no longer needed in the log.
    pub fn let_go(&self, txn: TxnId) {
        self.state.lock().holds.remove(&txn);
    }

    /// Empties the table. Durable and visible on return.
    pub async fn truncate(self: &Arc<Self>, txn: TxnId) -> Result<Version, IngestError> {
        let (sender, answer) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.refuse_if_dropped(&self.table)?;
            let low = self.space.wal.end_lsn();
            state.holds.insert(txn, Hold { low, why: Why::Running });
            let version = state.take_version();
            let entry = record::json(kind::TRUNCATE, self.table.id(), txn, &TruncateBody { version });
            let queue = Arc::clone(self);
            let done = move |result: Result<Appended, WalError>| {
                let outcome = result.map(|_| version).map_err(wal_error);
                if outcome.is_ok()
                    && let Err(error) = queue.table.publish_truncate(version, low)
                {
                    die(&error);
                }
                queue.leave(txn, None);
                drop(sender.send(outcome));
            };
            self.submit(state, vec![entry], false, Box::new(done));
        }
        answer
            .await
            .unwrap_or_else(|_| Err(IngestError::WalFailed("a callback of the log has panicked".into())))
    }

    /// Closes the open group and waits until everything that had joined by now is visible.
    pub async fn settle(self: &Arc<Self>, reason: CloseReason) {
        self.close_now(reason);
        let awaited: Vec<TxnId> = {
            let state = self.state.lock();
            let running = state.holds.iter().filter(|(_, hold)| hold.why == Why::Running);
            running.map(|(&txn, _)| txn).collect()
        };
        loop {
            let published = self.published.notified();
            tokio::pin!(published);
            published.as_mut().enable();
            {
                let state = self.state.lock();
                let is_running = |txn| state.holds.get(txn).is_some_and(|hold| hold.why == Why::Running);
                if state.is_dropped || !awaited.iter().any(is_running) {
                    return;
                }
            }
            published.await;
        }
    }

    /// An error if the table was dropped.
    pub fn refuse_if_dropped(&self) -> Result<(), IngestError> {
        self.state.lock().refuse_if_dropped(&self.table)
    }

    /// Whether the group could not be committed and its acknowledged rows wait for the next start.
    pub fn is_stranded(&self, txn: TxnId) -> bool {
        self.state.lock().holds.get(&txn).is_some_and(|hold| hold.why == Why::Stranded)
    }

    /// Refuses further loads; those that wait are told.
    pub fn drop_table(&self) {
        let groups: Vec<Group> = {
            let mut state = self.state.lock();
            state.is_dropped = true;
            state.holds.clear();
            state
                .open
                .take()
                .into_iter()
                .chain(state.closed.drain(..).map(|(group, _)| group).collect::<Vec<_>>())
                .collect()
        };
        let error = IngestError::TableDropped(self.table.def().table_ref());
        for group in groups {
            self.fail_group(group, &error);
        }
        self.published.notify_waiters();
    }

    /// The lowest place in the log that the table's unpublished transactions need.
    pub fn lowest_hold(&self) -> Option<Lsn> {
        let ignored = |hold: &&Hold| hold.why == Why::Prepared && planted::is(Bug::ReleaseIgnoresPrepared);
        self.state.lock().holds.values().filter(|hold| !ignored(hold)).map(|hold| hold.low).min()
    }

    /// Groups that are not visible yet.
    pub fn open_groups(&self) -> u64 {
        let state = self.state.lock();
        state.open.iter().count() as u64 + state.closed.len() as u64
    }

    /// Sets the version that the next commit gets, after recovery.
    pub fn continue_after(&self, version: Version) {
        let mut state = self.state.lock();
        if planted::is(Bug::VersionsReused) {
            return;
        }
        state.next_version = state.next_version.max(version.next());
    }

    /// Puts a group that recovery found uncommitted in front of all others, closed.
    pub async fn commit_recovered(self: &Arc<Self>, group: Group) {
        self.state.lock().holds.insert(group.txn, Hold { low: group.low, why: Why::Running });
        self.core.memory.enter_group(group.memory_bytes);
        self.commit_group(group, CloseReason::Recovery).await;
    }
}

impl State {
    fn take_version(&mut self) -> Version {
        let version = self.next_version;
        self.next_version = version.next();
        self.in_flight += 1;
        version
    }

    fn refuse_if_dropped(&self, table: &Table) -> Result<(), IngestError> {
        if self.is_dropped { Err(IngestError::TableDropped(table.def().table_ref())) } else { Ok(()) }
    }

    /// Whether no commit is on its way: none is being built, written or waits for space.
    fn is_free(&self) -> bool {
        self.in_flight == 0 && self.committing == Committing::Nobody
    }

    /// A group that was to be committed is to be committed later, and still before those that were opened after it.
    fn put_back(&mut self, group: Group, reason: CloseReason) {
        let place = self.closed.partition_point(|(other, _)| other.txn < group.txn);
        self.closed.insert(place, (group, reason));
    }
}

/// Ends the process: rows are durable and can't be shown, so no answer would be true. The next
/// start replays them.
fn die(error: &TableError) -> ! {
    assert!(!host::is_simulated(), "committed rows can't be published: {error}");
    tracing::error!(%error, "committed rows can't be published; restart the server to replay them");
    eprintln!("tributary: committed rows can't be published: {error}; restart the server to replay them");
    std::process::abort()
}

/// What a transaction of its own is called.
#[derive(Clone, Debug)]
pub(crate) struct OwnTransaction {
    pub txn: TxnId,
    pub label: Label,
    pub label_is_kept: bool,
    pub prepared_at_ms: i64,
}

/// Whether a group's commit takes neither waiting nor long work.
fn can_commit_here(group: &Group) -> bool {
    group.bytes <= INLINE_BUILD_BYTES_MAX && group.appends.is_settled()
}

/// Moves the open group to the closed ones. True if the caller must see to their commit.
fn close(state: &mut State, reason: CloseReason) -> bool {
    let Some(group) = state.open.take() else { return false };
    state.last_deadline = group.deadline.filter(|_| reason == CloseReason::Interval);
    state.closed.push_back((group, reason));
    let must_commit = state.committing == Committing::Nobody;
    if must_commit {
        state.committing = Committing::Somebody;
    }
    must_commit
}

/// Closes a group that waits for nothing but a free log if it is free now. True if the caller must see to its
/// commit.
fn close_if_free(state: &mut State) -> bool {
    let waits = state.open.as_ref().is_some_and(|group| group.deadline.is_none());
    waits && state.is_free() && close(state, CloseReason::LogFree)
}

fn data_entries(
    kind: u8,
    table: tributary_types::TableId,
    txn: TxnId,
    load: u32,
    blocks: &[Block],
) -> Vec<Entry> {
    blocks.iter().map(|block| record::data(kind, table, txn, load, block)).collect()
}

/// Tells the waiting loads, those in `excluded` why the log does not have their rows. Returns what is left of the
/// group.
fn answer_waiters(group: Group, excluded: &[u32], version: Version) -> Vec<Member> {
    for (load, waiter) in group.waiters {
        let refused = if excluded.contains(&load) { group.appends.reason(load) } else { None };
        // A client that went away needs no answer.
        drop(waiter.send(refused.map_or(Ok(version), Err)));
    }
    group.members
}

pub(crate) fn wal_error(error: WalError) -> IngestError {
    match error {
        WalError::NoSpace { dir, needed, available } => {
            IngestError::NoSpace { dir: dir.display().to_string(), needed, available }
        }
        WalError::TooLarge { bytes, limit } => IngestError::TooLarge { bytes, limit },
        WalError::Closed => IngestError::ShuttingDown,
        other => IngestError::WalFailed(other.to_string()),
    }
}

/// Members of a group that recovery rebuilt.
pub(crate) fn recovered_member(load: u32, rows: LoadRows) -> Member {
    Member { load, rows, is_logged: true, is_async: true }
}

/// The appends of a group whose rows are in the log already; the loads `without` do not count, now and in any
/// later replay.
pub(crate) fn recovered_appends(without: Vec<u32>) -> Arc<Appends> {
    Arc::new(Appends::settled_without(without))
}

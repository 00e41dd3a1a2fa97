//! Loads join a table's open group, which closes at its time, by its size, or because the log is free.
//!
//! Invariant: loads are numbered and handed to the log under the queue's lock, so a group's numbers, the order in which its loads
//! joined, and the order of their entries in the log agree. Not its business: what is committed, and how.

use super::TableQueue;
use super::entries::data_entries;
use super::pins::Why;
use super::turn::CommitTurn;
use crate::error::{IngestError, wal_error};
use crate::group::gather::Gathering;
use crate::group::{CloseReason, Group};
use crate::keys::AnsweredAs;
use crate::line::First;
use crate::load::LoadRows;
use crate::load::stages::Committed;
use crate::queue::timer::Deadline;
use crate::recovery::record::kind;
use crate::transactions::NewTransaction;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tributary_types::{Label, TxnId, host};
use tributary_wal::{Appended, WalError};

/// A sync load of at least this size is written to the log when it arrives; smaller ones are
/// written together with their group's commit, in one fsync.
const HELD_LOAD_BYTES_MAX: u64 = 256 * 1024;

/// A load that has joined a group.
#[derive(Debug)]
pub(crate) struct Joined<T> {
    pub label: Label,
    pub txn: TxnId,
    /// When the load had joined.
    pub admitted: Instant,
    /// When its group closes at the latest, unless that has no time.
    pub closes_by: Option<Instant>,
    pub answer: oneshot::Receiver<Result<T, IngestError>>,
    /// The load has closed its group, and no other task is committing.
    pub turn: Option<CommitTurn>,
}

/// The place of a load in its group.
struct Place {
    label: Label,
    txn: TxnId,
    admitted: Instant,
    closes_by: Option<Instant>,
    turn: Option<CommitTurn>,
}

impl Place {
    fn with<T>(self, answer: oneshot::Receiver<Result<T, IngestError>>) -> Joined<T> {
        let Self { label, txn, admitted, closes_by, turn } = self;
        Joined { label, txn, admitted, closes_by, answer, turn }
    }
}

/// Why a load is in no group.
pub(crate) enum NotJoined {
    /// Loads are held, and it may try again when they are [released](TableQueue::released).
    Held(Box<LoadRows>),
    Refused(IngestError),
}

impl From<IngestError> for NotJoined {
    fn from(error: IngestError) -> Self {
        Self::Refused(error)
    }
}

impl TableQueue {
    /// Has a load join the open group, when loads are not held. A load that waits until then gives up its turn at the log.
    ///
    /// # Errors
    /// Why it can't.
    pub async fn join_when_released<T>(
        self: &Arc<Self>,
        rows: LoadRows,
        turn: Option<First<'_>>,
        join: impl Fn(&Arc<Self>, LoadRows) -> Result<Joined<T>, NotJoined>,
    ) -> Result<Joined<T>, IngestError> {
        let outcome = join(self, rows);
        drop(turn);
        match outcome {
            Ok(joined) => Ok(joined),
            Err(NotJoined::Refused(error)) => Err(error),
            // Boxed: few loads wait, which keeps the futures of all others small.
            Err(NotJoined::Held(held)) => Box::pin(self.join_released(held, join)).await,
        }
    }

    async fn join_released<T>(
        self: &Arc<Self>,
        mut rows: Box<LoadRows>,
        join: impl Fn(&Arc<Self>, LoadRows) -> Result<Joined<T>, NotJoined>,
    ) -> Result<Joined<T>, IngestError> {
        loop {
            self.released().await;
            match join(self, *rows) {
                Ok(joined) => return Ok(joined),
                Err(NotJoined::Refused(error)) => return Err(error),
                Err(NotJoined::Held(held)) => rows = held,
            }
        }
    }

    /// Joins the open group; the answer comes when the group is visible. `is_soon`: it is committed as soon as the log is free, and does
    /// not wait for its interval.
    pub fn join_sync(
        self: &Arc<Self>,
        rows: LoadRows,
        is_soon: bool,
    ) -> Result<Joined<Committed>, NotJoined> {
        let (sender, answer) = oneshot::channel();
        let is_logged = rows.bytes >= host::limit(HELD_LOAD_BYTES_MAX, 160);
        self.join(rows, is_logged, (false, is_soon), |group, load| {
            group.waiters.push((load, sender));
            let appends = Arc::clone(&group.appends);
            Box::new(move |result| appends.done(load, result.map(|_| ()).map_err(wal_error)))
        })
        .map(|place| place.with(answer))
    }

    /// Joins the open group; the answer comes when the log has the rows.
    pub fn join_async(self: &Arc<Self>, rows: LoadRows) -> Result<Joined<()>, NotJoined> {
        let (sender, answer) = oneshot::channel();
        let facts = rows.facts.clone();
        self.join(rows, true, (true, false), |group, load| {
            let appends = Arc::clone(&group.appends);
            facts.are_submitted();
            Box::new(move |result| {
                let outcome = result.map(|_| ()).map_err(wal_error);
                facts.are_settled(outcome.as_ref().err());
                appends.done(load, outcome.clone());
                // A client that went away needs no answer; its rows are in the log all the same.
                drop(sender.send(outcome));
            })
        })
        .map(|place| place.with(answer))
    }

    fn join<F>(
        self: &Arc<Self>,
        rows: LoadRows,
        is_logged: bool,
        (is_async, is_soon): (bool, bool),
        answer: F,
    ) -> Result<Place, NotJoined>
    where
        F: FnOnce(&mut Group, u32) -> Box<dyn FnOnce(Result<Appended, WalError>) + Send>,
    {
        rows.refuse_if_revoked(&self.table)?;
        let kind = if is_async { kind::DATA_ASYNC } else { kind::DATA_HELD };
        let (memory, facts) = (rows.memory_bytes(), rows.facts.clone());
        // Made before the lock is taken; transaction and number follow.
        let mut entries = if is_logged {
            data_entries(kind, self.table.id(), TxnId(0), 0, &rows.blocks)
        } else {
            Vec::new()
        };
        let admitted = host::now();
        let (mut state, _) = self.lock_with_partitions(|checked| checked.load(self, &rows))?;
        state.refuse_if_dropped(&self.table)?;
        if state.is_held {
            return Err(match state.lets_wait {
                true => NotJoined::Held(Box::new(rows)),
                false => IngestError::blocked(&self.table).into(),
            });
        }
        state.refuse_old(rows.schema.version)?;
        self.core.memory.enter_group(memory);
        let mut first_deadline = None;
        if state.open.is_none() {
            let group = self.open_group(state.last_deadline);
            first_deadline = group.deadline;
            state.pins.pin(group.txn, group.low, Why::Running);
            state.open = Some(group);
        }
        let Some(group) = state.open.as_mut() else { unreachable!("it was opened just above") };
        if is_soon {
            (group.deadline, first_deadline) = (None, None);
        }
        let load = group.add(rows, is_logged, is_async);
        let done = answer(group, load);
        let offered = is_logged.then(|| {
            group.appends.submitted();
            for entry in &mut entries {
                (entry.txn, entry.tag) = (group.txn, load);
            }
            if is_async {
                let load = (self.table.id(), group.txn, load);
                entries.extend(facts.entries(load, &group.label, AnsweredAs::GroupAsync));
            }
            self.space.wal.offer(entries, done)
        });
        let (label, txn, closes_by) = (group.label.clone(), group.txn, group.deadline);
        let gathering = group.gather();
        if let Some(gathering) = &gathering {
            self.core.memory.leave_group(gathering.spared_bytes());
        }
        let turn = match group.full(&self.core.memory) {
            Some(reason) => state.close(self, reason),
            None => state.close_if_free(self),
        };
        if state.open.is_none() {
            first_deadline = None;
        }
        drop(state);
        if let Some(deadline) = first_deadline {
            self.schedule(deadline, txn);
        }
        if let Some(offered) = offered {
            offered.write_here();
        }
        if let Some(gathering) = gathering {
            self.gather(gathering);
        }
        Ok(Place { label, txn, admitted, closes_by, turn })
    }

    /// Opens a new group. Those of a busy table follow one another at the interval: a load that arrives after one was closed
    /// waits for the rest of it, not for a whole one.
    fn open_group(&self, last_deadline: Option<Instant>) -> Group {
        let def = self.table.def();
        let label = Label::of_group(host::random(rand::random));
        let now_ms = host::unix_ms();
        let interval = Duration::from_millis(def.properties.group_commit_interval_ms);
        let txn = self.core.transactions.begin_group(NewTransaction::of_group(&def, label.clone(), now_ms));
        let deadline = (!interval.is_zero()).then(|| {
            let now = host::now();
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
        let mut state = self.state.lock();
        if state.open.as_ref().is_some_and(|group| group.txn == txn) {
            let turn = state.close(self, CloseReason::Interval);
            drop(state);
            turn.into_iter().for_each(CommitTurn::spawn);
        }
    }

    /// Closes the open group whatever it waits for.
    pub fn close_now(self: &Arc<Self>, reason: CloseReason) {
        let turn = self.state.lock().close(self, reason);
        turn.into_iter().for_each(CommitTurn::spawn);
    }

    /// Turns small loads into columns while their group is open, on the thread of the load that made them enough.
    fn gather(&self, gathering: Gathering) {
        let runs = self.build_guarded(|schema, now_micros| gathering.build(&schema, now_micros));
        gathering.done(runs);
    }
}

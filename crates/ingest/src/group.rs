//! One group: the loads of a table that one internal transaction commits.

use crate::error::IngestError;
use crate::load::LoadRows;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, oneshot};
use tributary_types::planted::{self, Bug};
use tributary_types::{Label, Lsn, TxnId, Version};

/// Why a group closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    Interval,
    Bytes,
    /// Groups that are open take too much of the memory for rows.
    Memory,
    /// The interval is 0 and the log was free.
    LogFree,
    Sync,
    SchemaChange,
    Shutdown,
    Recovery,
}

impl CloseReason {
    pub const ALL: [Self; 8] = [
        Self::Interval,
        Self::Bytes,
        Self::Memory,
        Self::LogFree,
        Self::Sync,
        Self::SchemaChange,
        Self::Shutdown,
        Self::Recovery,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Bytes => "bytes",
            Self::Memory => "memory",
            Self::LogFree => "log_free",
            Self::Sync => "sync",
            Self::SchemaChange => "schema_change",
            Self::Shutdown => "shutdown",
            Self::Recovery => "recovery",
        }
    }
}

/// A group is written in one piece with the blocks that the log has not been given yet. It closes before they
/// come near the largest piece that the log takes.
const HELD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// What an entry of the log has beside its block, roughly.
const ENTRY_BYTES: u64 = 32;

/// The data entries of a group's loads that the log does not have yet.
#[derive(Debug, Default)]
pub(crate) struct Appends {
    state: Mutex<AppendState>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct AppendState {
    pending: usize,
    /// The numbers of the loads that do not count.
    failed: Vec<u32>,
    /// Why, for those that still wait to be told.
    reasons: Vec<(u32, IngestError)>,
}

impl Appends {
    /// Of a group whose entries are in the log already, without those of `failed`.
    pub fn settled_without(failed: Vec<u32>) -> Self {
        let state = AppendState { failed, ..AppendState::default() };
        Self { state: Mutex::new(state), settled: Notify::new() }
    }

    pub fn submitted(&self) {
        self.state.lock().pending += 1;
    }

    pub fn done(&self, load: u32, outcome: Result<(), IngestError>) {
        let mut state = self.state.lock();
        state.pending -= 1;
        if let Err(reason) = outcome {
            state.failed.push(load);
            state.reasons.push((load, reason));
        }
        if state.pending == 0 {
            self.settled.notify_waiters();
        }
    }

    /// Whether every append is durable or failed.
    pub fn is_settled(&self) -> bool {
        self.state.lock().pending == 0
    }

    /// The numbers of the loads whose append failed.
    pub fn failed(&self) -> Vec<u32> {
        self.state.lock().failed.clone()
    }

    /// Why the load's append failed, if it did.
    pub fn reason(&self, load: u32) -> Option<IngestError> {
        let state = self.state.lock();
        state.reasons.iter().find(|(failed, _)| *failed == load).map(|(_, reason)| reason.clone())
    }

    /// Waits until every append is durable or failed; the numbers of the failed loads.
    pub async fn settled(&self) -> Vec<u32> {
        loop {
            let settled = self.settled.notified();
            {
                let state = self.state.lock();
                if state.pending == 0 {
                    return state.failed.clone();
                }
            }
            settled.await;
        }
    }
}

/// A load in a group.
#[derive(Debug)]
pub(crate) struct Member {
    pub load: u32,
    pub rows: LoadRows,
    /// The log has (or is getting) its blocks; otherwise they are written with the commit.
    pub is_logged: bool,
    /// Acknowledged as soon as the log has it.
    pub is_async: bool,
}

/// Who waits for a group's commit.
pub(crate) type Waiter = oneshot::Sender<Result<Version, IngestError>>;

/// A group, open or closed.
#[derive(Debug)]
pub(crate) struct Group {
    pub txn: TxnId,
    pub label: Label,
    pub prepared_at_ms: i64,
    /// When it closes. `None`: as soon as nothing of its table is on its way to the log (interval 0).
    pub deadline: Option<Instant>,
    pub close_at_bytes: u64,
    pub members: Vec<Member>,
    /// Sync loads, by their numbers.
    pub waiters: Vec<(u32, Waiter)>,
    pub next_load: u32,
    pub rows: u64,
    pub bytes: u64,
    /// Bytes that count against the memory budget.
    pub memory_bytes: u64,
    /// Bytes of members that the log has not been given yet, with all that belongs to them.
    pub held_bytes: u64,
    pub appends: Arc<Appends>,
    /// No entry of the group lies below this place in the log.
    pub low: Lsn,
}

impl Group {
    /// Adds a load and gives its number in the group.
    pub fn add(&mut self, rows: LoadRows, is_logged: bool, is_async: bool) -> u32 {
        let load = self.next_load;
        self.next_load += 1;
        self.rows += rows.rows;
        self.bytes += rows.bytes;
        self.memory_bytes += rows.memory_bytes();
        if !is_logged {
            self.held_bytes += rows.memory_bytes() + rows.blocks.len() as u64 * ENTRY_BYTES;
        }
        self.members.push(Member { load, rows, is_logged, is_async });
        load
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= self.close_at_bytes || self.held_bytes >= HELD_BYTES_MAX
    }

    /// Whether clients were told that rows of it are kept.
    pub fn is_acknowledged(&self) -> bool {
        self.members.iter().any(|member| member.is_async)
    }

    /// Removes the loads whose clients were told that they failed.
    pub fn exclude(&mut self, failed: &[u32]) {
        if failed.is_empty() || planted::is(Bug::FailedLoadNotExcluded) {
            return;
        }
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.members).into_iter().partition(|member| !failed.contains(&member.load));
        self.members = kept;
        self.rows -= gone.iter().map(|member| member.rows.rows).sum::<u64>();
        self.bytes -= gone.iter().map(|member| member.rows.bytes).sum::<u64>();
    }
}

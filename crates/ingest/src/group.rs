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
    /// The interval is 0 and the log was free.
    LogFree,
    Sync,
    SchemaChange,
    Shutdown,
    Recovery,
}

impl CloseReason {
    pub const ALL: [Self; 7] = [
        Self::Interval,
        Self::Bytes,
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
            Self::LogFree => "log_free",
            Self::Sync => "sync",
            Self::SchemaChange => "schema_change",
            Self::Shutdown => "shutdown",
            Self::Recovery => "recovery",
        }
    }
}

/// The data entries of a group's async loads that the log does not have yet.
#[derive(Debug, Default)]
pub(crate) struct Appends {
    state: Mutex<AppendState>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct AppendState {
    pending: usize,
    failed: Vec<u32>,
}

impl Appends {
    /// Of a group whose entries are in the log already, without those of `failed`.
    pub fn settled_without(failed: Vec<u32>) -> Self {
        Self { state: Mutex::new(AppendState { pending: 0, failed }), settled: Notify::new() }
    }

    pub fn submitted(&self) {
        self.state.lock().pending += 1;
    }

    pub fn done(&self, load: u32, durable: bool) {
        let mut state = self.state.lock();
        state.pending -= 1;
        if !durable {
            state.failed.push(load);
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
}

/// Who waits for a group's commit.
pub(crate) type Waiter = oneshot::Sender<Result<Version, IngestError>>;

/// A group, open or closed.
#[derive(Debug)]
pub(crate) struct Group {
    pub txn: TxnId,
    pub label: Label,
    pub prepared_at_ms: i64,
    pub deadline: Instant,
    pub close_at_bytes: u64,
    pub members: Vec<Member>,
    /// Sync loads, by their numbers.
    pub waiters: Vec<(u32, Waiter)>,
    pub next_load: u32,
    pub rows: u64,
    pub bytes: u64,
    /// Bytes that count against the memory budget.
    pub memory_bytes: u64,
    /// Bytes of members that the log has not been given yet.
    pub held_bytes: u64,
    pub appends: Arc<Appends>,
    /// No entry of the group lies below this place in the log.
    pub low: Lsn,
}

impl Group {
    /// Adds a load and gives its number in the group.
    pub fn add(&mut self, rows: LoadRows, is_logged: bool) -> u32 {
        let load = self.next_load;
        self.next_load += 1;
        self.rows += rows.rows;
        self.bytes += rows.bytes;
        self.memory_bytes += rows.memory_bytes();
        if !is_logged {
            self.held_bytes += rows.memory_bytes();
        }
        self.members.push(Member { load, rows, is_logged });
        load
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= self.close_at_bytes
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

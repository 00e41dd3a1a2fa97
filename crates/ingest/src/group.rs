//! One group: the loads of a table that one internal transaction commits.

pub(crate) mod appends;
pub(crate) mod build;
pub(crate) mod columns;
pub mod finished;
pub(crate) mod gather;
pub(crate) mod member;

use crate::error::IngestError;
use crate::group::appends::Appends;
use crate::group::gather::Gathering;
use crate::group::member::Member;
use crate::load::LoadRows;
use crate::load::stages::Committed;
use crate::memory::MemoryBudget;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use tributary_decode::column_overhead_bytes;
use tributary_types::{Label, Lsn, Partitions, TxnId, host};

/// Why a group closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    Interval,
    Bytes,
    /// Groups that are open take too much of the memory for rows.
    Memory,
    /// The log is nearly full, and the group holds its oldest entries.
    Log,
    /// The interval is 0 and the log was free.
    LogFree,
    Sync,
    SchemaChange,
    Shutdown,
    Recovery,
}

impl CloseReason {
    pub const ALL: [Self; 9] = [
        Self::Interval,
        Self::Bytes,
        Self::Memory,
        Self::Log,
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
            Self::Log => "log",
            Self::LogFree => "log_free",
            Self::Sync => "sync",
            Self::SchemaChange => "schema_change",
            Self::Shutdown => "shutdown",
            Self::Recovery => "recovery",
        }
    }
}

/// A group is written in one piece with the blocks that the log has not received yet. It closes before they come near the largest
/// piece that the log accepts.
const HELD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Durable small loads are gathered once there are this many small loads: more than are on their way to the log at a
/// time, and few enough to take some 100 µs.
const GATHERED_LOADS: u64 = 2048;
/// Approximate size of a log entry without its block, in bytes.
const ENTRY_BYTES: u64 = 32;

/// Receives the outcome of a group's commit.
pub(crate) type Waiter = oneshot::Sender<Result<Committed, IngestError>>;

/// The partitions that rows were found in.
#[derive(Debug, Default)]
pub(crate) enum FoundIn {
    /// There are no rows.
    #[default]
    Nothing,
    /// All rows in these.
    One(Arc<Partitions>),
    /// It is not known, or there are several.
    Unknown,
}

impl FoundIn {
    fn add(&mut self, partitions: Option<&Arc<Partitions>>) {
        match (&*self, partitions) {
            (Self::Nothing, Some(partitions)) => *self = Self::One(Arc::clone(partitions)),
            (Self::One(known), Some(partitions)) if Arc::ptr_eq(known, partitions) => {}
            _ => *self = Self::Unknown,
        }
    }

    pub fn is_one(&self, partitions: &Arc<Partitions>) -> bool {
        matches!(self, Self::One(known) if Arc::ptr_eq(known, partitions))
    }
}

/// A group, open or closed.
#[derive(Debug)]
pub(crate) struct Group {
    pub txn: TxnId,
    pub label: Label,
    pub prepared_at_ms: i64,
    pub opened: Instant,
    /// When it closes. `None`: as soon as nothing of its table is on its way to the log (interval 0).
    pub deadline: Option<Instant>,
    pub close_at_bytes: u64,
    /// The loads, except the gathered ones.
    pub members: Vec<Member>,
    /// Roughly how many members may be gathered.
    pub small: usize,
    pub gathered_loads: usize,
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
    /// Where the rows of all its loads were found.
    pub found_in: FoundIn,
    /// No entry of the group is below this LSN.
    pub low: Lsn,
}

impl Group {
    /// A group without loads or limits: it closes only on request.
    pub fn new(txn: TxnId, label: Label, prepared_at_ms: i64, low: Lsn) -> Self {
        Self {
            txn,
            label,
            prepared_at_ms,
            opened: host::now(),
            deadline: None,
            close_at_bytes: u64::MAX,
            members: Vec::new(),
            small: 0,
            gathered_loads: 0,
            waiters: Vec::new(),
            next_load: 0,
            rows: 0,
            bytes: 0,
            memory_bytes: 0,
            held_bytes: 0,
            appends: Arc::default(),
            found_in: FoundIn::default(),
            low,
        }
    }

    /// Adds a load and returns its number in the group.
    pub fn add(&mut self, rows: LoadRows, is_logged: bool, is_async: bool) -> u32 {
        let load = self.next_load;
        self.next_load += 1;
        self.found_in.add(rows.partitions.as_ref());
        self.rows += rows.rows;
        self.bytes += rows.bytes;
        self.memory_bytes += rows.memory_bytes();
        if !is_logged {
            self.held_bytes += rows.memory_bytes() + rows.blocks.len() as u64 * ENTRY_BYTES;
        }
        let member = Member { load, rows, is_logged, is_async };
        self.small += usize::from(member.is_small());
        self.members.push(member);
        load
    }

    /// All loads that count.
    pub fn loads(&self) -> usize {
        self.gathered_loads + self.members.len()
    }

    /// Takes out durable small loads, if there are enough, to be turned into columns now. As blocks they would take many times
    /// their rows' memory, and all be turned into columns at once at the end.
    pub fn gather(&mut self) -> Option<Gathering> {
        if self.small < host::limit(GATHERED_LOADS, 3) as usize {
            return None;
        }
        self.small = 0;
        let overhead = column_overhead_bytes(&self.members.last()?.rows.schema);
        let durable = self.appends.durable()?;
        let may_go = |member: &Member| {
            member.spares_bytes(overhead).filter(|_| member.is_small() && member.load < durable)
        };
        let gathering = Gathering::take(&self.appends, &mut self.members, may_go)?;
        self.gathered_loads += gathering.loads();
        assert!(gathering.spared_bytes() <= self.memory_bytes, "a group spares no more memory than it has");
        self.memory_bytes -= gathering.spared_bytes();
        Some(gathering)
    }

    /// Why the group must close, if it has all that it may take.
    pub fn full(&self, memory: &MemoryBudget) -> Option<CloseReason> {
        if self.bytes >= self.close_at_bytes || self.held_bytes >= HELD_BYTES_MAX {
            return Some(CloseReason::Bytes);
        }
        memory.is_large(self.memory_bytes).then_some(CloseReason::Memory)
    }

    /// Whether any of its rows were acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.gathered_loads > 0 || self.members.iter().any(|member| member.is_async)
    }

    /// Removes the loads that were answered with a failure.
    pub fn exclude(&mut self, failed: &[u32]) {
        if failed.is_empty() {
            return;
        }
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.members).into_iter().partition(|member| !failed.contains(&member.load));
        self.members = kept;
        let sum = |of: fn(&LoadRows) -> u64| gone.iter().map(|member| of(&member.rows)).sum::<u64>();
        let (rows, bytes) = (sum(|rows| rows.rows), sum(|rows| rows.bytes));
        assert!(rows <= self.rows && bytes <= self.bytes, "no more leaves a group than has joined it");
        self.rows -= rows;
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests;

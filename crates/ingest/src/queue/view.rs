//! A table's queue as operators see it.
//!
//! Not here: finished groups, and any decision.

use super::TableQueue;
use super::pins::Why;
use super::state::State;
use crate::group::CloseReason;
use std::time::{Duration, Instant};
use tributary_types::{Label, Lsn, TableId, TxnId, host};

/// The treatment of a table's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// Nothing is being committed.
    Idle,
    /// Groups are being committed.
    Committing,
    /// A group found no space in the log; it and its followers wait for some.
    ShortOfSpace,
    /// The table's schema is being changed: loads wait, or are refused.
    Held,
    /// A group failed; the next start of the server commits its acknowledged rows.
    Stranded,
}

impl QueueState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Committing => "COMMITTING",
            Self::ShortOfSpace => "SHORT_OF_SPACE",
            Self::Held => "HELD",
            Self::Stranded => "STRANDED",
        }
    }
}

/// The group that takes loads.
#[derive(Clone, Debug)]
pub struct OpenGroup {
    pub txn: TxnId,
    pub label: Label,
    pub age: Duration,
    /// Until it closes at the latest. `None`: as soon as the log is free.
    pub closes_in: Option<Duration>,
    pub loads: u64,
    /// Loads that are answered when it is visible.
    pub waiting: u64,
    pub rows: u64,
    pub bytes: u64,
}

/// The groups of a table that are not finished.
#[derive(Clone, Debug)]
pub struct GroupQueue {
    pub table: TableId,
    pub state: QueueState,
    pub open: Option<OpenGroup>,
    /// Closed groups that wait for their commit.
    pub closed_groups: u64,
    /// Rows of the closed groups.
    pub closed_rows: u64,
    /// Commits that the log has not answered yet.
    pub commits_in_flight: u64,
    /// Bytes of the open and closed groups that count against the memory for rows.
    pub memory_bytes: u64,
    /// Why the last group closed.
    pub last_closed_by: Option<CloseReason>,
}

/// The reason for which a table's transaction holds the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    Running,
    Prepared,
    Stranded,
}

impl TableQueue {
    /// The queue now.
    pub fn view(&self) -> GroupQueue {
        let now = host::now();
        let state = self.state.lock();
        let closed_rows = state.closed().map(|closed| closed.group.rows).sum();
        let closed_memory: u64 = state.closed().map(|closed| closed.group.memory_bytes).sum();
        GroupQueue {
            table: self.table.id(),
            state: queue_state(&state),
            open: state.open.as_ref().map(|group| OpenGroup {
                txn: group.txn,
                label: group.label.clone(),
                age: now.saturating_duration_since(group.opened),
                closes_in: group.deadline.map(|at: Instant| at.saturating_duration_since(now)),
                loads: group.loads() as u64,
                waiting: group.waiters.len() as u64,
                rows: group.rows,
                bytes: group.bytes,
            }),
            closed_groups: state.closed().len() as u64,
            closed_rows,
            commits_in_flight: state.commits_in_flight() as u64,
            memory_bytes: closed_memory + state.open.as_ref().map_or(0, |group| group.memory_bytes),
            last_closed_by: state.last_closed_by,
        }
    }

    /// The transaction that needs the lowest place of the log, and for what.
    pub fn lowest_holder(&self) -> Option<(Lsn, TxnId, Holding)> {
        let (low, txn, why) = self.state.lock().pins.lowest_holder()?;
        let holding = match why {
            Why::Running => Holding::Running,
            Why::Prepared => Holding::Prepared,
            Why::Stranded => Holding::Stranded,
        };
        Some((low, txn, holding))
    }
}

fn queue_state(state: &State) -> QueueState {
    if state.is_short_of_space() {
        QueueState::ShortOfSpace
    } else if state.is_held {
        QueueState::Held
    } else if state.pins.has(Why::Stranded) {
        QueueState::Stranded
    } else if state.commits_in_flight() > 0 || state.closed().len() > 0 {
        QueueState::Committing
    } else {
        QueueState::Idle
    }
}

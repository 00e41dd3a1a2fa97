//! A job's record in the catalog.

use crate::background;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tributary_ingest::Halt;
use tributary_types::{TableDef, TableId, TxnId};

/// A job's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum State {
    /// It waits for its turn.
    Pending,
    /// It waits for earlier two-phase loads.
    WaitingTxn,
    Running,
    Finished,
    Cancelled,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::WaitingTxn => "WAITING_TXN",
            Self::Running => "RUNNING",
            Self::Finished => "FINISHED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// A job's record in the catalog. Times are milliseconds since 1970.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The definition at the time of the statement. The table gets its columns, keys, indexes, properties and comment.
    pub target: TableDef,
    pub(super) state: State,
    pub(super) created_ms: i64,
    /// Transactions before this one are waited for.
    #[serde(default)]
    pub(super) txn: Option<TxnId>,
    #[serde(default)]
    pub(super) finished_ms: Option<i64>,
    /// Why it was cancelled.
    #[serde(default)]
    pub(super) message: String,
    /// The number of starts since the last orderly stop of the server.
    #[serde(default)]
    starts: u32,
}

/// How far a job is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The number of converted files, and of all files; absent before it runs.
    pub(super) files: Mutex<Option<(Arc<AtomicU64>, u64)>>,
    pub(super) halt: Arc<Halt>,
}

impl Record {
    pub fn new(target: TableDef, now_ms: i64) -> Self {
        Self {
            target,
            state: State::Pending,
            created_ms: now_ms,
            txn: None,
            finished_ms: None,
            message: String::new(),
            starts: 1,
        }
    }

    pub const fn table_id(&self) -> TableId {
        self.target.id
    }

    pub fn is_cancelled(&self) -> bool {
        self.state == State::Cancelled
    }

    pub fn finish(&mut self, now_ms: i64) {
        self.state = State::Finished;
        self.finished_ms = Some(now_ms);
    }

    pub fn cancel(&mut self, message: String, now_ms: i64) {
        self.state = State::Cancelled;
        self.finished_ms = Some(now_ms);
        self.message = message;
    }
}

impl background::Record for Record {
    const KIND: &'static str = "schema_change";

    type Progress = Progress;

    fn db(&self) -> &str {
        &self.target.db
    }

    fn label(&self) -> &str {
        &self.target.name
    }

    fn state(&self) -> &'static str {
        self.state.name()
    }

    fn finished_ms(&self) -> Option<i64> {
        self.finished_ms
    }

    fn failure(&self) -> Option<&str> {
        (self.state == State::Cancelled).then_some(&self.message)
    }

    fn starts(&mut self) -> &mut u32 {
        &mut self.starts
    }

    fn fail(&mut self, message: &str, now_ms: i64) {
        self.cancel(message.to_owned(), now_ms);
    }

    /// The log may already have the change.
    fn ends_with_panic(&self) -> bool {
        self.state != State::Running
    }
}

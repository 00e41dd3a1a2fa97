//! A job's record in the catalog.

use super::plan::Plan;
use crate::background;
use crate::files::outfile::Written;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;
use tributary_sql::Export;
use tributary_types::{Principal, TableRef};

/// A job's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum State {
    /// It waits for its turn.
    Pending,
    Exporting,
    Finished,
    Cancelled,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Exporting => "EXPORTING",
            Self::Finished => "FINISHED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// The output of one writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Files {
    pub count: u64,
    pub rows: u64,
    pub bytes: u64,
}

/// A job's record in the catalog. Times are milliseconds since 1970.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub db: String,
    pub table: String,
    pub label: String,
    pub user: String,
    pub host: String,
    pub zone: String,
    /// With the keys that it has, without which no file can be written.
    pub statement: String,
    /// The properties in SHOW EXPORT.
    pub task_info: String,
    /// The prefix of the files' names, without anything secret.
    pub path: String,
    /// The part of all files' names that no other job has.
    pub id: String,
    pub timeout_seconds: u64,
    pub created_ms: i64,
    pub state: State,
    #[serde(default)]
    pub started_ms: Option<i64>,
    #[serde(default)]
    pub finished_ms: Option<i64>,
    #[serde(default)]
    pub error: String,
    #[serde(default)]
    pub written: Vec<Files>,
    /// The number of starts since the last orderly stop of the server.
    #[serde(default)]
    starts: u32,
}

/// How far a job is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Rows that were taken.
    pub rows: AtomicU64,
    /// The table's rows; 0 where they are not known.
    pub rows_max: AtomicU64,
}

impl Record {
    pub fn new(
        table: &TableRef,
        label: String,
        principal: &Principal,
        zone: &str,
        now_ms: i64,
        export: &Export,
        plan: &Plan,
    ) -> Self {
        Self {
            db: table.db.clone(),
            table: table.table.clone(),
            label,
            user: principal.user().to_owned(),
            host: principal.host().to_owned(),
            zone: zone.to_owned(),
            statement: export.text.0.clone(),
            task_info: plan.task_info(table),
            path: plan.output.shown(""),
            id: crate::files::outfile::Target::random_id(),
            timeout_seconds: plan.timeout.as_secs(),
            created_ms: now_ms,
            state: State::Pending,
            started_ms: None,
            finished_ms: None,
            error: String::new(),
            written: Vec::new(),
            starts: 1,
        }
    }

    pub fn table_ref(&self) -> TableRef {
        TableRef { db: self.db.clone(), table: self.table.clone() }
    }

    pub fn begin(&mut self, now_ms: i64) {
        self.state = State::Exporting;
        self.started_ms = Some(now_ms);
    }

    pub fn finish(&mut self, written: &[Written], now_ms: i64) {
        self.state = State::Finished;
        self.finished_ms = Some(now_ms);
        let files = |by: &Written| Files { count: by.files, rows: by.rows, bytes: by.bytes };
        self.written = written.iter().filter(|by| by.files > 0).map(files).collect();
    }

    pub fn cancel(&mut self, message: String, now_ms: i64) {
        self.state = State::Cancelled;
        self.finished_ms = Some(now_ms);
        self.error = message;
    }
}

impl background::Record for Record {
    const KIND: &'static str = "export";

    type Progress = Progress;

    fn db(&self) -> &str {
        &self.db
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn state(&self) -> &'static str {
        self.state.name()
    }

    fn finished_ms(&self) -> Option<i64> {
        self.finished_ms
    }

    fn owner(&self) -> Option<(&str, &str)> {
        Some((&self.user, &self.host))
    }

    fn failure(&self) -> Option<&str> {
        (self.state == State::Cancelled).then_some(&self.error)
    }

    fn rows(&self) -> u64 {
        self.written.iter().map(|files| files.rows).sum()
    }

    fn starts(&mut self) -> &mut u32 {
        &mut self.starts
    }

    fn fail(&mut self, message: &str, now_ms: i64) {
        self.cancel(format!("type:RUN_FAIL; msg:{message}"), now_ms);
    }
}

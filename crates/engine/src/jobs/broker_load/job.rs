//! One job: its state, its progress, and its record in the catalog.

use crate::background;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_decode::Counts;
use tributary_sql::BrokerLoad;
use tributary_types::{Label, Principal, TxnId};

/// A job's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum State {
    /// It waits for its turn.
    #[default]
    Pending,
    /// Its files are looked for.
    Etl,
    /// Its rows are read.
    Loading,
    Finished,
    Cancelled,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Etl => "ETL",
            Self::Loading => "LOADING",
            Self::Finished => "FINISHED",
            Self::Cancelled => "CANCELLED",
        }
    }

    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }
}

/// A job's record in the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub db: String,
    pub label: String,
    pub user: String,
    pub host: String,
    pub zone: String,
    /// With the keys that it has, without which no file can be read.
    pub statement: String,
    pub comment: String,
    /// The properties in SHOW LOAD.
    pub task_info: String,
    pub created_ms: i64,
    pub state: State,
    #[serde(default)]
    pub etl_started_ms: Option<i64>,
    #[serde(default)]
    pub loading_started_ms: Option<i64>,
    #[serde(default)]
    pub finished_ms: Option<i64>,
    #[serde(default)]
    pub error: String,
    #[serde(default)]
    pub first_error: String,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub txn: Option<u64>,
    #[serde(default)]
    pub loaded: u64,
    #[serde(default)]
    pub filtered: u64,
    #[serde(default)]
    pub unselected: u64,
    /// The progress in SHOW LOAD, of a job that has ended.
    #[serde(default)]
    pub details: Option<String>,
    /// The number of starts since the last orderly stop of the server.
    #[serde(default)]
    starts: u32,
}

impl Record {
    pub fn new(
        db: &str,
        label: &Label,
        principal: &Principal,
        zone: &str,
        now_ms: i64,
        load: &BrokerLoad,
    ) -> Self {
        let property = |name: &str, default: &str| {
            let found = load.properties.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map_or(default, |(_, text)| text).to_owned()
        };
        Self {
            db: db.to_owned(),
            label: label.as_str().to_owned(),
            user: principal.user().to_owned(),
            host: principal.host().to_owned(),
            zone: zone.to_owned(),
            statement: load.text.0.clone(),
            comment: load.comment.clone(),
            task_info: format!(
                "cluster:N/A; timeout(s):{}; max_filter_ratio:{}",
                property("timeout", "14400"),
                property("max_filter_ratio", "0.0")
            ),
            created_ms: now_ms,
            state: State::Pending,
            etl_started_ms: None,
            loading_started_ms: None,
            finished_ms: None,
            error: String::new(),
            first_error: String::new(),
            url: None,
            txn: None,
            loaded: 0,
            filtered: 0,
            unselected: 0,
            details: None,
            starts: 1,
        }
    }

    /// Notes that the job is in a state other than the final ones.
    pub fn begin(&mut self, state: State, now_ms: i64) {
        self.state = state;
        match state {
            State::Etl => self.etl_started_ms = Some(now_ms),
            State::Loading => self.loading_started_ms = Some(now_ms),
            State::Pending | State::Finished | State::Cancelled => {}
        }
    }

    pub(super) fn end(&mut self, ended: Ended) {
        self.state = ended.state;
        self.finished_ms = Some(ended.at_ms);
        (self.error, self.first_error, self.url) = (ended.error, ended.first_error, ended.url);
        self.txn = ended.txn.map(|txn| txn.0);
        self.loaded = ended.counts.loaded;
        self.filtered = ended.counts.filtered;
        self.unselected = ended.counts.unselected;
    }
}

impl background::Record for Record {
    const KIND: &'static str = "broker_load";

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

    fn txn(&self) -> Option<u64> {
        self.txn
    }

    fn rows(&self) -> u64 {
        self.loaded
    }

    fn starts(&mut self) -> &mut u32 {
        &mut self.starts
    }

    fn fail(&mut self, message: &str, now_ms: i64) {
        self.end(Ended::failed("LOAD_RUN_FAIL", message, now_ms));
    }
}

/// How a job ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub state: State,
    pub error: String,
    pub first_error: String,
    pub url: Option<String>,
    pub txn: Option<TxnId>,
    pub counts: Counts,
    at_ms: i64,
}

impl Ended {
    pub fn committed(txn: Option<TxnId>, loaded: u64, url: Option<String>, at_ms: i64) -> Self {
        let counts = Counts { total: loaded, loaded, ..Counts::default() };
        let (error, first_error) = (String::new(), String::new());
        Self { state: State::Finished, error, first_error, url, txn, counts, at_ms }
    }

    /// `kind` is one of Doris's: `USER_CANCEL`, `ETL_QUALITY_UNSATISFIED`, `LOAD_RUN_FAIL`, `TIMEOUT`.
    pub fn failed(kind: &str, message: &str, at_ms: i64) -> Self {
        Self {
            state: State::Cancelled,
            error: format!("type:{kind}; msg:{message}"),
            first_error: String::new(),
            url: None,
            txn: None,
            counts: Counts::default(),
            at_ms,
        }
    }
}

/// How far a job is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub files: AtomicU64,
    pub files_read: AtomicU64,
    pub file_bytes: AtomicU64,
    pub bytes_read: AtomicU64,
    pub rows_read: AtomicU64,
}

impl Progress {
    /// Percent of the files' bytes that were read, or of the files where their sizes are not known.
    pub fn percent(&self) -> u64 {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (done, all) = match get(&self.file_bytes) {
            0 => (get(&self.files_read), get(&self.files)),
            bytes => (get(&self.bytes_read).min(bytes), bytes),
        };
        (done * 100).checked_div(all).unwrap_or(0)
    }

    /// The progress in SHOW LOAD.
    pub fn details(&self) -> String {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        serde_json::json!({
            "Unfinished backends": {},
            "ScannedRows": get(&self.rows_read),
            "TaskNumber": get(&self.files),
            "LoadBytes": get(&self.bytes_read),
            "All backends": {},
            "FileNumber": get(&self.files),
            "FileSize": get(&self.file_bytes),
        })
        .to_string()
    }
}

/// A job.
pub(crate) type Job = background::Job<Record>;

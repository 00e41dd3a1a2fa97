//! One job: its state, its progress, and what the catalog keeps of it.

use super::Stop;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;
use tributary_decode::Counts;
use tributary_sql::BrokerLoad;
use tributary_types::{Label, Principal, TxnId};

/// What tells records of this kind from those of other jobs.
const KIND: &str = "broker_load";

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum State {
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

/// What the catalog keeps of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    kind: String,
    pub db: String,
    pub label: String,
    pub user: String,
    pub host: String,
    pub zone: String,
    /// With the keys that it has, without which no file can be read.
    pub statement: String,
    pub comment: String,
    /// Properties as SHOW LOAD tells them.
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
            kind: KIND.to_owned(),
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
        }
    }

    /// Reads what [`Record::text`] gave; `None` for the record of another kind of job.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|record: &Self| record.kind == KIND)
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a record has only texts and numbers")
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
pub(super) struct Progress {
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

    /// What a job shows of which only the end is known.
    pub fn all_read(&self) {
        self.files.store(1, Ordering::Relaxed);
        self.files_read.store(1, Ordering::Relaxed);
    }
}

/// A job.
pub(crate) struct Job {
    pub id: u64,
    pub(super) stop: Stop,
    /// It is stopped for the next start to take up, not cancelled.
    paused: AtomicBool,
    pub(super) progress: Progress,
    record: Mutex<Record>,
    ended: watch::Sender<bool>,
}

impl Job {
    pub(super) fn new(id: u64, record: Record) -> Self {
        let progress = Progress::default();
        if record.state == State::Finished {
            progress.all_read();
        }
        let ended = watch::Sender::new(record.state.is_final());
        Self {
            id,
            stop: Stop::default(),
            paused: AtomicBool::new(false),
            progress,
            record: Mutex::new(record),
            ended,
        }
    }

    pub(super) fn record(&self) -> Record {
        self.record.lock().clone()
    }

    pub(super) fn state(&self) -> State {
        self.record.lock().state
    }

    pub(super) fn begin(&self, state: State, now_ms: i64) {
        let mut record = self.record.lock();
        record.state = state;
        match state {
            State::Etl => record.etl_started_ms = Some(now_ms),
            State::Loading => record.loading_started_ms = Some(now_ms),
            State::Pending | State::Finished | State::Cancelled => {}
        }
    }

    /// Notes how it ended. [`Job::announce`] follows when that is kept.
    pub(super) fn end(&self, ended: Ended) {
        let mut record = self.record.lock();
        record.state = ended.state;
        record.finished_ms = Some(ended.at_ms);
        (record.error, record.first_error, record.url) = (ended.error, ended.first_error, ended.url);
        record.txn = ended.txn.map(|txn| txn.0);
        record.loaded = ended.counts.loaded;
        record.filtered = ended.counts.filtered;
        record.unselected = ended.counts.unselected;
    }

    /// Tells whoever waits that nothing of the job runs any more.
    pub(super) fn announce(&self) {
        self.ended.send_replace(true);
    }

    /// Waits until nothing of the job runs any more.
    pub(super) async fn ended(&self) {
        // The sender lives as long as the job.
        drop(self.ended.subscribe().wait_for(|ended| *ended).await);
    }

    pub(super) fn pause(&self) {
        self.paused.store(true, Ordering::SeqCst);
        self.stop.set();
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }
}

//! The answer to a load and its JSON.
//!
//! Invariant: keys, their order, their types and the 4-space indent are Doris's. Two keys are additions: `GroupCommitMode`
//! directly after `GroupCommit`, when a load was answered in another mode than it asked for, and `GroupCommitFallback`, always
//! last, with the reason why group commit (or the asynchronous mode) was requested and not used.

use crate::body::BodyError;
use crate::code::LoadCode;
use serde::Serialize;
use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;
use tributary_types::{ErrorCode, GroupCommitMode, Retry, SqlError, TableRef, TxnId};

/// The state of the load that already has the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingJob {
    /// Its transaction is in PREPARE.
    Running,
    /// Two phase commit, waiting for its second phase.
    Precommitted,
    /// Committed or visible.
    Finished,
}

impl ExistingJob {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Precommitted => "PRECOMMITTED",
            Self::Finished => "FINISHED",
        }
    }
}

/// How a load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStatus {
    Success,
    Fail,
    /// Committed and durable, will become visible; must not be retried.
    PublishTimeout,
    LabelAlreadyExists {
        existing: ExistingJob,
    },
    /// The channel has the load's rows already.
    OffsetAlreadyExists,
}

impl LoadStatus {
    /// Whether the load failed as a whole.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Fail | Self::LabelAlreadyExists { .. } | Self::OffsetAlreadyExists)
    }

    /// As answers and SHOW STREAM LOAD have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Fail => "Fail",
            Self::PublishTimeout => "Publish Timeout",
            Self::LabelAlreadyExists { .. } => "Label Already Exists",
            Self::OffsetAlreadyExists => "Offset Already Exists",
        }
    }
}

/// Durations of the phases of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTimes {
    /// From the head's arrival to the answer. Measured by this crate.
    pub load: Duration,
    /// Not shown for group commit.
    pub begin_txn: Duration,
    pub stream_load_put: Duration,
    pub read_data: Duration,
    pub write_data: Duration,
    /// Waiting for the client's bytes. Measured by this crate.
    pub receive_data: Duration,
    /// Not shown for group commit.
    pub commit_and_publish: Duration,
    /// The parts that follow one another; shown for a load that was stored.
    pub stages: Option<LoadStages>,
}

/// The time of a load that was stored, in stages that follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadStages {
    /// From the head's arrival until the user and the headers are checked. Measured by this crate.
    pub accept: Duration,
    /// Until the body is read: memory for it, its name, its plan.
    pub plan: Duration,
    /// Reading and decoding the body, with the wait for the client's bytes.
    pub read: Duration,
    /// Data files of a large load, reasons of rejected rows, the first load with the same name.
    pub write: Duration,
    /// Waiting for memory, for the user's turn at the log, and for a schema change.
    pub admit: Duration,
    /// In the open group.
    pub wait: Duration,
    /// From the closed group to a commit that the log is given.
    pub build: Duration,
    /// Until it is durable.
    pub log: Duration,
    /// Until it is visible.
    pub publish: Duration,
}

impl LoadStages {
    /// The stages in order, by name, from the request's arrival at the service on.
    #[must_use]
    pub const fn of_service(&self) -> [(&'static str, Duration); 8] {
        [
            ("plan", self.plan),
            ("read", self.read),
            ("write", self.write),
            ("admit", self.admit),
            ("wait", self.wait),
            ("build", self.build),
            ("log", self.log),
            ("publish", self.publish),
        ]
    }

    /// The stages in order, by name, with the rest of the time, in which the answer was made. `receive` is the part of reading in which
    /// the client was waited for.
    pub(crate) fn parts(&self, receive: Duration, total: Duration) -> [(&'static str, Duration); 11] {
        let measured = self.accept
            + self.plan
            + self.read
            + self.write
            + self.admit
            + self.wait
            + self.build
            + self.log
            + self.publish;
        [
            ("Accept", self.accept),
            ("Plan", self.plan),
            ("Receive", receive.min(self.read)),
            ("Decode", self.read.saturating_sub(receive)),
            ("Write", self.write),
            ("Admit", self.admit),
            ("Wait", self.wait),
            ("Build", self.build),
            ("Log", self.log),
            ("Publish", self.publish),
            ("Answer", total.saturating_sub(measured)),
        ]
    }
}

/// The answer to a load.
#[derive(Clone, Debug)]
pub struct LoadAnswer {
    /// `None` (shown as -1) when no transaction was begun or joined.
    pub txn_id: Option<TxnId>,
    /// The load's own label, or its group's.
    pub label: String,
    /// Left empty, the request's comment is shown.
    pub comment: String,
    /// The load joined a group. Shows `GroupCommit: true` in place of `TwoPhaseCommit`.
    pub group_commit: bool,
    /// The mode in which a load of a group was answered, if it differs from the requested one.
    pub answered_mode: Option<GroupCommitMode>,
    pub two_phase_commit: bool,
    pub status: LoadStatus,
    /// `OK`, or `[CODE]text`.
    pub message: String,
    pub total_rows: u64,
    /// Shown as 0 when the load failed.
    pub loaded_rows: u64,
    pub filtered_rows: u64,
    pub unselected_rows: u64,
    /// Bytes of the body on the wire. Measured by this crate.
    pub load_bytes: u64,
    pub times: LoadTimes,
    pub error_url: Option<String>,
    pub first_error_msg: Option<String>,
    /// The reason why group commit, or its asynchronous mode, was requested and not used.
    pub fallback_reason: Option<String>,
    /// The load was loaded before, and this is the answer of then. Shown only if it was.
    pub repeated: bool,
    /// Where the next load of the channel begins.
    pub channel_next_offset: Option<u64>,
    /// The table, as far as it is known; not shown.
    pub table: Option<TableRef>,
    /// Why the load's group closed, if it has closed.
    pub closed_by: Option<&'static str>,
    /// When the load's group closes at the latest, in RFC 3339.
    pub visible_by: Option<String>,
    /// Whether the load may be sent again; shown if it failed.
    pub retry: Retry,
    /// The load was refused by a limit: HTTP 429.
    pub is_limited: bool,
    /// The code of a failure, for protocols that show it otherwise than in front of the message.
    pub code: Option<LoadCode>,
    /// The error number of a failure that has one.
    pub sql_code: Option<ErrorCode>,
}

impl LoadAnswer {
    /// A success without rows; the caller fills in the rest.
    #[must_use]
    pub fn success(txn_id: TxnId, label: impl Into<String>) -> Self {
        Self {
            txn_id: Some(txn_id),
            label: label.into(),
            comment: String::new(),
            group_commit: false,
            answered_mode: None,
            two_phase_commit: false,
            status: LoadStatus::Success,
            message: "OK".to_owned(),
            total_rows: 0,
            loaded_rows: 0,
            filtered_rows: 0,
            unselected_rows: 0,
            load_bytes: 0,
            times: LoadTimes::default(),
            error_url: None,
            first_error_msg: None,
            fallback_reason: None,
            repeated: false,
            channel_next_offset: None,
            table: None,
            closed_by: None,
            visible_by: None,
            retry: Retry::Never,
            is_limited: false,
            code: None,
            sql_code: None,
        }
    }

    /// A failure with `[CODE]text`, without transaction and label.
    #[must_use]
    pub fn fail(code: LoadCode, text: impl fmt::Display) -> Self {
        let mut answer = Self::success(TxnId(0), String::new());
        answer.txn_id = None;
        answer.status = LoadStatus::Fail;
        answer.message = code.message(text);
        answer.code = Some(code);
        answer.retry = code.retry();
        answer
    }

    /// The refusal of a load beyond a limit, which may be retried after a while.
    #[must_use]
    pub fn limited(text: &impl fmt::Display, retry_after: Option<Duration>) -> Self {
        let retry = Retry::After(retry_after.unwrap_or(Duration::from_secs(1)));
        Self { retry, is_limited: true, ..Self::fail(LoadCode::ExceededLimit, text) }
    }

    /// A failure that planning found, in Doris's form:
    /// `[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = …`.
    #[must_use]
    pub fn from_sql_error(error: &SqlError) -> Self {
        let failure = Self::fail(
            LoadCode::Analysis,
            format_args!("TStatus: errCode = 2, detailMessage = {}", error.detail_text()),
        );
        Self { retry: error.retry, sql_code: Some(error.code), ..failure }
    }

    /// A failure of the body.
    #[must_use]
    pub fn from_body_error(error: &BodyError) -> Self {
        Self::fail(error.code(), error)
    }

    /// The stable text of a load with too many bad rows.
    #[must_use]
    pub fn too_many_filtered_rows() -> Self {
        Self::fail(LoadCode::DataQuality, "too many filtered rows")
    }

    /// The label belongs to transaction `owner`, which is in `owner_status` (`PREPARE`,
    /// `PRECOMMITTED`, `COMMITTED`, `VISIBLE`).
    #[must_use]
    pub fn label_already_exists(label: &str, owner: TxnId, owner_status: &str) -> Self {
        let existing = match owner_status {
            "PREPARE" => ExistingJob::Running,
            "PRECOMMITTED" => ExistingJob::Precommitted,
            _ => ExistingJob::Finished,
        };
        let mut answer = Self::fail(
            LoadCode::LabelAlreadyExists,
            format_args!(
                "errCode = 2, detailMessage = Label [{label}] has already been used, relate to txn [{owner}], \
                 status [{owner_status}]."
            ),
        );
        label.clone_into(&mut answer.label);
        answer.status = LoadStatus::LabelAlreadyExists { existing };
        answer
    }

    /// Whether rows of the load are, or will be, in the table (or pre-committed).
    #[must_use]
    pub const fn is_loaded(&self) -> bool {
        matches!(self.status, LoadStatus::Success | LoadStatus::PublishTimeout)
    }

    /// The stages of a load that was stored.
    fn shown_stages(&self) -> Option<Stages> {
        let stages = self.times.stages.filter(|_| self.is_loaded())?;
        let total = self.times.load;
        Some(Stages { parts: stages.parts(self.times.receive_data, total), total })
    }

    /// The stages that took time as the value of a header `Server-Timing`, in milliseconds.
    #[must_use]
    pub(crate) fn server_timing(&self) -> Option<String> {
        let stages = self.shown_stages()?;
        let mut text = String::with_capacity(160);
        for (name, time) in stages.parts.into_iter().chain([("Total", stages.total)]) {
            let micros = time.as_micros();
            if micros > 0 {
                let separator = if text.is_empty() { "" } else { ", " };
                let _ = write!(
                    text,
                    "{separator}{};dur={}.{:03}",
                    name.to_ascii_lowercase(),
                    micros / 1000,
                    micros % 1000
                );
            }
        }
        Some(text)
    }

    /// The JSON document, with a newline at its end.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let own = !self.group_commit;
        pretty(&Document {
            txn_id: self.txn_id.map_or(-1, |id| i64::try_from(id.0).unwrap_or(i64::MAX)),
            label: &self.label,
            comment: &self.comment,
            two_phase_commit: own.then_some(if self.two_phase_commit { "true" } else { "false" }),
            group_commit: self.group_commit.then_some(true),
            group_commit_mode: self.answered_mode.filter(|_| self.group_commit).map(GroupCommitMode::as_str),
            status: self.status.as_str(),
            existing_job_status: match self.status {
                LoadStatus::LabelAlreadyExists { existing } => Some(existing.as_str()),
                _ => None,
            },
            message: &self.message,
            total_rows: self.total_rows,
            loaded_rows: if self.is_loaded() { self.loaded_rows } else { 0 },
            filtered_rows: self.filtered_rows,
            unselected_rows: self.unselected_rows,
            load_bytes: self.load_bytes,
            load_time: milliseconds(self.times.load),
            begin_txn_time: own.then_some(milliseconds(self.times.begin_txn)),
            stream_load_put_time: milliseconds(self.times.stream_load_put),
            read_data_time: milliseconds(self.times.read_data),
            write_data_time: milliseconds(self.times.write_data),
            receive_data_time: milliseconds(self.times.receive_data),
            commit_and_publish_time: own.then_some(milliseconds(self.times.commit_and_publish)),
            error_url: self.error_url.as_deref().filter(|url| !url.is_empty()),
            first_error_msg: self.first_error_msg.as_deref().filter(|text| !text.is_empty()),
            fallback: self.fallback_reason.as_deref().filter(|text| !text.is_empty()),
            repeated: self.repeated.then_some(true),
            channel_next_offset: self.channel_next_offset,
            closed_by: self.closed_by,
            visible_by: self.visible_by.as_deref(),
            stages: self.shown_stages(),
            retry: (!self.is_loaded()).then(|| self.retry.name()),
            retry_after_ms: self.retry.after_ms().filter(|_| !self.is_loaded()),
        })
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// JSON as Doris's back end prints it: 4-space indent and a newline at the end.
pub(crate) fn pretty(document: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::with_capacity(1024);
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    document
        .serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter))
        .expect("strings and integers always serialize, and a Vec takes every write");
    text.push(b'\n');
    text
}

/// The keys in Doris's order.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Document<'a> {
    txn_id: i64,
    label: &'a str,
    comment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    two_phase_commit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_commit: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_commit_mode: Option<&'static str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_job_status: Option<&'static str>,
    message: &'a str,
    #[serde(rename = "NumberTotalRows")]
    total_rows: u64,
    #[serde(rename = "NumberLoadedRows")]
    loaded_rows: u64,
    #[serde(rename = "NumberFilteredRows")]
    filtered_rows: u64,
    #[serde(rename = "NumberUnselectedRows")]
    unselected_rows: u64,
    load_bytes: u64,
    #[serde(rename = "LoadTimeMs")]
    load_time: u64,
    #[serde(rename = "BeginTxnTimeMs", skip_serializing_if = "Option::is_none")]
    begin_txn_time: Option<u64>,
    #[serde(rename = "StreamLoadPutTimeMs")]
    stream_load_put_time: u64,
    #[serde(rename = "ReadDataTimeMs")]
    read_data_time: u64,
    #[serde(rename = "WriteDataTimeMs")]
    write_data_time: u64,
    #[serde(rename = "ReceiveDataTimeMs")]
    receive_data_time: u64,
    #[serde(rename = "CommitAndPublishTimeMs", skip_serializing_if = "Option::is_none")]
    commit_and_publish_time: Option<u64>,
    #[serde(rename = "ErrorURL", skip_serializing_if = "Option::is_none")]
    error_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error_msg: Option<&'a str>,
    #[serde(rename = "GroupCommitFallback", skip_serializing_if = "Option::is_none")]
    fallback: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_next_offset: Option<u64>,
    #[serde(rename = "GroupClosedBy", skip_serializing_if = "Option::is_none")]
    closed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    visible_by: Option<&'a str>,
    #[serde(rename = "StagesUs", skip_serializing_if = "Option::is_none")]
    stages: Option<Stages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// Stages and their whole, in microseconds.
struct Stages {
    parts: [(&'static str, Duration); 11],
    total: Duration,
}

impl Serialize for Stages {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.parts.iter().copied().chain([("Total", self.total)]);
        serializer
            .collect_map(all.map(|(name, time)| (name, u64::try_from(time.as_micros()).unwrap_or(u64::MAX))))
    }
}

#[cfg(test)]
mod tests;

//! A record of the audit log: what may be shown of a request, in the words of Doris's audit log where the meaning is the same.
//!
//! Invariant: a record has no secret of a statement. What is not known to be a statement is its first word and its length.
//!
//! Not here: where records go.

use super::entry::{Entry, Text};
use serde::Serialize;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_ingest::BacklogRecord;
use tributary_sql::{outline, redacted};
use tributary_types::ErrorCode;
use tributary_types::host::unix_ms;

/// The longest text of an error, in bytes.
const ERROR_BYTES_MAX: usize = 4096;

/// A record, as a line of the file has it.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub query_id: String,
    /// When the request began, in UTC.
    pub time: String,
    #[serde(skip)]
    pub time_ms: i64,
    pub door: &'static str,
    pub protocol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<u32>,
    pub client_ip: Arc<str>,
    /// The user as the client named it.
    pub user: Arc<str>,
    /// The user that was found, with its own host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<&'static str>,
    pub state: &'static str,
    pub error_code: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error_message: String,
    /// In milliseconds.
    pub query_time: u64,
    pub affected_rows: u64,
    pub return_rows: u64,
    pub received_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txn_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub stmt_type: &'static str,
    pub is_query: bool,
    pub stmt: String,
}

/// Statements whose answers are rows of tables.
const QUERIES: [&str; 1] = ["SELECT"];

impl Record {
    /// Makes the record of an entry.
    pub fn of(entry: Entry) -> Self {
        let Entry { ended_ms, took, kind, error, .. } = entry;
        let time_ms = ended_ms.saturating_sub(i64::try_from(took.as_millis()).unwrap_or(0));
        let (error_code, error_text) = error.unwrap_or_default();
        let (stmt, error_message) = match entry.text {
            Text::Plain(text) => (text.into_string(), error_text),
            Text::Illegible(text, bytes) => (outline(&text, bytes), without_token(error_code, error_text)),
            Text::Statement(text, bytes) => {
                let shown = redacted(&text);
                let error = shown.error(&error_text).into_owned();
                let mut stmt = shown.text.into_owned();
                if text.len() < bytes {
                    stmt.push_str(&format!(
                        " ... /* truncated. audit_plugin_max_sql_length={} */",
                        text.len()
                    ));
                }
                (stmt, error)
            }
        };
        Self {
            query_id: next_query_id(),
            time: shown_time(time_ms),
            time_ms,
            door: entry.door,
            protocol: entry.protocol,
            connection_id: entry.connection,
            client_ip: entry.client,
            account: entry.account_host.map(|host| format!("'{}'@'{host}'", entry.user)),
            user: entry.user,
            db: entry.db,
            table_name: entry.table,
            format: entry.format,
            state: match error_code {
                0 if QUERIES.contains(&kind) => "EOF",
                0 => "OK",
                _ => "ERR",
            },
            error_code,
            error_message: bounded(error_message),
            query_time: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            affected_rows: entry.affected_rows,
            return_rows: entry.returned_rows,
            received_bytes: entry.received_bytes,
            txn_id: entry.txn,
            label: entry.label,
            stmt_type: kind,
            is_query: QUERIES.contains(&kind),
            stmt,
        }
    }
}

impl BacklogRecord for Record {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.stmt.len() + self.error_message.len() + 200
    }
}

/// The error of a text that is no statement, without the token that it quotes: that may be a secret.
fn without_token(code: u16, text: String) -> String {
    if code != ErrorCode::Syntax.number() {
        return text;
    }
    let place = text.rfind("(line ").map_or("", |at| &text[at..]);
    format!("syntax error {place}").trim_end().to_owned()
}

fn bounded(mut text: String) -> String {
    let end = super::entry::beginning(&text, ERROR_BYTES_MAX).len();
    text.truncate(end);
    text
}

/// An id that no other record has, of the form of Doris's; later ones are greater.
fn next_query_id() -> String {
    static START: LazyLock<u64> =
        LazyLock::new(|| unix_ms().unsigned_abs() << 20 | u64::from(rand::random::<u32>() >> 12));
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:016x}-{:016x}", *START, NEXT.fetch_add(1, Ordering::Relaxed))
}

fn shown_time(unix_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(unix_ms)
        .map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
        .unwrap_or_default()
}

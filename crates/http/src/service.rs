//! The trait that the rest of the server implements for this room.

use crate::answer::LoadAnswer;
use crate::body::LoadBody;
use crate::request::{HttpStreamRequest, StreamLoadRequest, TwoPhaseOp, TwoPhaseTarget};
use async_trait::async_trait;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::AsyncRead;
use tributary_types::{Label, SqlError, TableDef, TxnId};

/// The text of an error log, streamed.
pub type ErrorLogReader = Pin<Box<dyn AsyncRead + Send>>;

/// A node as `/api/backends` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub ip: String,
    pub http_port: u16,
    pub is_alive: bool,
}

/// How many WALs (open groups and waiting replays, not bytes) a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalCount {
    /// `host:port`
    pub host_port: String,
    pub count: u64,
}

/// What is known of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelInfo {
    pub txn_id: TxnId,
    pub tables: Vec<String>,
    /// `PREPARE`, `PRECOMMITTED`, `COMMITTED`, `VISIBLE` or `ABORTED`.
    pub status: &'static str,
    /// Why it was aborted; empty otherwise.
    pub reason: String,
    /// The error log's address; empty when there is none.
    pub error_url: String,
}

/// What the HTTP front end needs from the server behind it.
///
/// Every call runs in a task of its own: it is not cancelled when its client goes away (the body
/// then ends with [`crate::BodyError::SenderGone`]), and a panic answers that request alone.
#[async_trait]
pub trait LoadService: Send + Sync + 'static {
    /// Checks a user's password.
    ///
    /// # Errors
    /// The text that the client gets, with HTTP 401.
    async fn authenticate(&self, user: &str, password: &str, peer: IpAddr) -> Result<(), SqlError>;

    /// Runs a Stream Load. When it returns, the answer's promise holds: a `Success` is durable
    /// and, but for asynchronous group commit and two phase commit, visible. Dropping `body`
    /// before its end is legal: the rest is discarded here.
    async fn stream_load(&self, request: StreamLoadRequest, body: LoadBody) -> LoadAnswer;

    /// Runs an HTTP Stream, with the same promise.
    async fn http_stream(&self, request: HttpStreamRequest, body: LoadBody) -> LoadAnswer;

    /// Commits or aborts a pre-committed transaction; on return it is visible or gone.
    ///
    /// # Errors
    /// Texts as Doris's (`transaction [7] not found.`, …): connectors parse them.
    async fn two_phase(
        &self,
        user: &str,
        db: &str,
        op: TwoPhaseOp,
        target: TwoPhaseTarget,
    ) -> Result<(), SqlError>;

    /// The `Label Already Exists` answer if `label` is taken. Asked only for a load that is
    /// refused for a header which Doris checks after the label, so that both are reported in
    /// Doris's order. The default knows no label.
    async fn label_in_use(&self, user: &str, db: &str, label: &Label) -> Option<LoadAnswer> {
        let _ = (user, db, label);
        None
    }

    /// What is known of a label; `None` if nothing is.
    ///
    /// # Errors
    /// Unknown database, no privilege.
    async fn label_info(&self, user: &str, db: &str, label: &str) -> Result<Option<LabelInfo>, SqlError>;

    /// A table's definition.
    ///
    /// # Errors
    /// Unknown database or table, no privilege.
    async fn table(&self, user: &str, db: &str, table: &str) -> Result<Arc<TableDef>, SqlError>;

    /// About how many rows a table has.
    ///
    /// # Errors
    /// Unknown database or table, no privilege.
    async fn row_count(&self, user: &str, db: &str, table: &str) -> Result<u64, SqlError>;

    /// The nodes that take loads.
    fn backends(&self) -> Vec<Backend>;

    /// The WALs of each node.
    fn wal_counts(&self) -> Vec<WalCount>;

    /// Whether loads and queries are served yet.
    fn is_ready(&self) -> bool {
        true
    }

    /// Opens an error log by the `file` of its URL; `None` if there is no such log. Must be safe
    /// against any `file`: [`crate::ErrorLog::open`] is.
    ///
    /// # Errors
    /// Reading failed.
    async fn error_log(&self, file: &str) -> io::Result<Option<ErrorLogReader>>;

    /// All metrics in Prometheus' text format.
    fn metrics(&self) -> String;
}

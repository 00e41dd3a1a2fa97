//! The traits that the rest of the server implements for this crate.

use crate::answer::LoadAnswer;
use crate::body::LoadBody;
use crate::peer::Peer;
use crate::request::{HttpStreamRequest, StreamLoadRequest, TwoPhaseOp, TwoPhaseTarget};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use serde::Serialize;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;
use tributary_types::{Label, LoadKey, Principal, SqlError, TableDef, TraceParent, TxnId};

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

/// The state of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelInfo {
    pub txn_id: TxnId,
    pub tables: Vec<String>,
    /// `PREPARE`, `PRECOMMITTED`, `COMMITTED`, `VISIBLE` or `ABORTED`.
    pub status: &'static str,
    /// Why it was aborted; empty otherwise.
    pub reason: String,
    /// The error log's address; empty if there is none.
    pub error_url: String,
}

/// A name of a load that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedName {
    Key(LoadKey),
    Channel(LoadKey),
}

/// The load that was stored with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLoad {
    pub txn_id: TxnId,
    pub label: String,
    pub loaded_rows: u64,
    pub filtered_rows: u64,
    pub unselected_rows: u64,
}

/// The part of a table that a connector reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// The number of the table's only tablet.
    pub tablet: u64,
    /// The version of its rows.
    pub version: u64,
    /// The node, as it calls itself.
    pub host: String,
}

/// The state of a name of loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedState {
    /// `NONE`: nothing was stored with it; `RUNNING`, `DURABLE` or `VISIBLE`: of the load, or of the channel's last one.
    pub state: &'static str,
    /// The load, or the channel's last one.
    pub load: Option<StoredLoad>,
    /// A version of the Delta table that has the load; `None`: none yet, or no load.
    pub delta_version: Option<i64>,
    /// Where the channel's next load begins.
    pub next_offset: u64,
}

/// A load and how it was answered.
#[derive(Clone, Debug)]
pub struct AnsweredLoad {
    pub principal: Principal,
    pub peer: IpAddr,
    pub answer: LoadAnswer,
    pub route: LoadRoute,
    /// Whether the service ran it; others were refused for their heads.
    pub has_begun: bool,
}

/// The endpoint of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadRoute {
    StreamLoad,
    HttpStream,
    /// Rows by Arrow Flight.
    Flight,
}

/// Whether the server does its work. The sentences are for everybody: they contain no names of tables or files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub nodes: usize,
    /// Nodes that acknowledge loads.
    pub alive: usize,
    /// Failures that a restart would end.
    pub failures: Vec<String>,
    /// Reasons why loads are refused, or will be soon. A restart would not help.
    pub obstacles: Vec<String>,
    /// Facts that an operator should know although loads are acknowledged.
    pub warnings: Vec<String>,
}

/// The HTTP front end's view of the server behind it.
///
/// Every call runs in a task of its own: it is not cancelled when its client leaves (the body then ends with
/// [`crate::BodyError::SenderGone`]), and a panic affects that request alone. Most calls are made on behalf of the [`Principal`]
/// from [`Authenticator`]; the service checks its privileges.
#[derive(Clone)]
pub struct Services {
    pub authenticator: Arc<dyn Authenticator>,
    pub loads: Arc<dyn LoadService>,
    pub inspect: Arc<dyn InspectService>,
    pub queries: Arc<dyn QueryService>,
}

impl Services {
    /// All services of one server.
    #[must_use]
    pub fn of<T: Authenticator + LoadService + InspectService + QueryService>(server: &Arc<T>) -> Self {
        Self {
            authenticator: Arc::clone(server) as _,
            loads: Arc::clone(server) as _,
            inspect: Arc::clone(server) as _,
            queries: Arc::clone(server) as _,
        }
    }
}

/// A statement that a client sends over HTTP.
#[derive(Debug)]
pub struct QueryRequest {
    pub db: Option<String>,
    pub statement: String,
    /// The most rows of the answer; `None`: all.
    pub rows_max: Option<u64>,
    /// The receipt of a load that the statement waits for before it reads.
    pub read_after: Option<TxnId>,
    /// The client's span that has caused it.
    pub trace_parent: Option<TraceParent>,
    /// Cancelled when the client leaves before the first rows are there.
    pub left: CancellationToken,
}

/// A column of the rows that a statement returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueryColumn {
    pub name: String,
    /// The type without its parameters, as `DECIMAL`.
    #[serde(rename = "type")]
    pub type_name: String,
}

/// The answer to a statement.
pub enum QueryAnswer {
    Done {
        affected_rows: u64,
        warnings: u16,
        /// For example a load's label, status and transaction; empty for none.
        info: String,
    },
    Rows {
        columns: Vec<QueryColumn>,
        /// Rows as JSON arrays with commas between them; none of the pieces is empty. Dropping it ends the query.
        rows: BoxStream<'static, Result<Bytes, SqlError>>,
    },
}

/// Runs statements.
#[async_trait]
pub trait QueryService: Send + Sync + 'static {
    /// Runs one statement in a session of its own.
    ///
    /// # Errors
    /// Those of the statement, up to its first rows.
    async fn query(
        &self,
        principal: &Principal,
        peer: &Peer,
        request: QueryRequest,
    ) -> Result<QueryAnswer, SqlError>;
}

/// Identifies clients.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Checks a user's password.
    ///
    /// # Errors
    /// The text that the client gets, with HTTP 401.
    async fn authenticate(&self, user: &str, password: &str, peer: &Peer) -> Result<Principal, SqlError>;
}

/// Loads.
#[async_trait]
pub trait LoadService: Send + Sync + 'static {
    /// Runs a Stream Load. When it returns, the answer's promise holds: a `Success` is durable
    /// and, but for asynchronous group commit and two phase commit, visible. Dropping `body`
    /// before its end is legal: the rest is discarded here.
    async fn stream_load(
        &self,
        principal: &Principal,
        request: StreamLoadRequest,
        body: LoadBody,
    ) -> LoadAnswer;

    /// Runs an HTTP Stream, with the same promise.
    async fn http_stream(
        &self,
        principal: &Principal,
        request: HttpStreamRequest,
        body: LoadBody,
    ) -> LoadAnswer;

    /// Commits or aborts a pre-committed transaction; on return it is visible or aborted.
    ///
    /// # Errors
    /// Texts as Doris's (`transaction [7] not found.`, …): connectors parse them.
    async fn two_phase(
        &self,
        principal: &Principal,
        db: &str,
        op: TwoPhaseOp,
        target: TwoPhaseTarget,
    ) -> Result<(), SqlError>;

    /// The `Label Already Exists` answer if `label` is taken. Asked only for a load that is
    /// refused for a header which Doris checks after the label, so that both are reported in
    /// Doris's order. The default knows no label.
    async fn label_in_use(&self, principal: &Principal, db: &str, label: &Label) -> Option<LoadAnswer> {
        let _ = (principal, db, label);
        None
    }

    /// Records a load by a known user that was answered, including one that was refused for its head. The default ignores it.
    fn answered(&self, load: AnsweredLoad) {
        drop(load);
    }
}

/// The endpoints that look, and the one that cancels.
#[async_trait]
pub trait InspectService: Send + Sync + 'static {
    /// Returns the state of a label; `None` if it is unknown.
    ///
    /// # Errors
    /// Unknown database, no privilege.
    async fn label_info(
        &self,
        principal: &Principal,
        db: &str,
        label: &str,
    ) -> Result<Option<LabelInfo>, SqlError>;

    /// Returns the state of an idempotency key or a channel of a table.
    ///
    /// # Errors
    /// Unknown database or table, no privilege, keys that can't be read.
    async fn named_load(
        &self,
        principal: &Principal,
        db: &str,
        table: &str,
        asked: &AskedName,
    ) -> Result<NamedState, SqlError>;

    /// Cancels the load of a label that has not ended.
    ///
    /// # Errors
    /// Unknown database or label, no privilege, and loads that have ended or can't be cancelled.
    async fn cancel(&self, principal: &Principal, db: &str, label: &str) -> Result<(), SqlError>;

    /// A table's definition.
    ///
    /// # Errors
    /// Unknown database or table, no privilege.
    async fn table(&self, principal: &Principal, db: &str, table: &str) -> Result<Arc<TableDef>, SqlError>;

    /// About how many rows a table has.
    ///
    /// # Errors
    /// Unknown database or table, no privilege.
    async fn row_count(&self, principal: &Principal, db: &str, table: &str) -> Result<u64, SqlError>;

    /// The tablet that a connector reads for a query of a table, by Arrow Flight SQL.
    ///
    /// # Errors
    /// Unknown database or table, no privilege; the text is no query of that table alone, or Arrow Flight SQL is off.
    async fn read_plan(
        &self,
        principal: &Principal,
        db: &str,
        table: &str,
        sql: &str,
    ) -> Result<ReadPlan, SqlError>;

    /// The nodes that take loads. The client has reached this node as `reached_as`; `None`: as it calls itself.
    ///
    /// # Errors
    /// No privilege.
    fn backends(&self, principal: &Principal, reached_as: Option<&str>) -> Result<Vec<Backend>, SqlError>;

    /// The WALs of each node. The client has reached this node as `reached_as`; `None`: as it calls itself.
    ///
    /// # Errors
    /// No privilege.
    fn wal_counts(&self, principal: &Principal, reached_as: Option<&str>) -> Result<Vec<WalCount>, SqlError>;

    /// Whether the server does its work. Anybody may ask, at any time and often.
    fn health(&self) -> Health;

    /// Opens an error log by the `file` of its URL. The name can't be guessed, so knowing it grants access; `None` if there is no
    /// such log. Must be safe against any `file`.
    ///
    /// # Errors
    /// Reading failed.
    async fn error_log(&self, file: &str) -> io::Result<Option<ErrorLogReader>>;

    /// All metrics in Prometheus' text format. Anybody may ask.
    fn metrics(&self) -> String;
}

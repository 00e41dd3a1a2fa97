//! The protocol's view of the server behind it.

use crate::nodes::NodeAnswer;
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tributary_types::{Secret, SqlError, TlsSession};

/// The client of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// An address of IPv4 is one, even if the listener is of IPv6.
    pub ip: IpAddr,
    pub port: u16,
    /// The encryption; `None`: in clear text.
    pub tls: Option<TlsSession>,
}

/// A client's claimed identity.
#[derive(Debug)]
pub struct Credentials {
    /// Empty with an access token, which knows its user.
    pub user: String,
    /// A password, or an access token.
    pub password: Secret,
}

/// The server's entry point.
#[async_trait]
pub trait FlightHooks: Send + Sync {
    /// Opens a session for a client whose password is right. Who cancels `kill` ends the session.
    ///
    /// # Errors
    /// The refusal, for the client to read.
    async fn log_in(
        &self,
        credentials: &Credentials,
        peer: &Peer,
        kill: CancellationToken,
    ) -> Result<Arc<dyn Session>, SqlError>;

    /// The version that clients see.
    fn server_version(&self) -> &str;

    /// The part that answers other nodes which share the catalog. `None`: nothing does.
    fn nodes(&self) -> Option<Arc<dyn NodeCalls>> {
        None
    }
}

/// A call of another node, whose head has come.
pub type NodeCall = hyper::Request<Body>;
/// The answer to it.
pub type NodeReply = hyper::Response<Body>;

/// Answers other nodes that share the catalog.
pub trait NodeCalls: Send + Sync {
    /// Whether a node that shows this token may call.
    fn admits(&self, token: &str, is_encrypted: bool) -> bool;

    /// Answers a call that was admitted.
    fn answer(&self, call: NodeCall) -> BoxFuture<'static, NodeReply>;

    /// Answers a question that was admitted.
    fn ask(&self, question: Bytes) -> BoxFuture<'static, Result<NodeAnswer, SqlError>>;
}

/// A client's session. Calls may come at the same time. In all of them `left` says that nobody waits for the answer any more.
#[async_trait]
pub trait Session: Send + Sync {
    /// Runs the text of one statement.
    ///
    /// # Errors
    /// Those of the statement.
    async fn query(&self, text: String, left: CancellationToken) -> Result<Answer, SqlError>;

    /// Prepares one statement, and keeps it until [`Session::forget`].
    ///
    /// # Errors
    /// It is wrong, or too many or too large ones are kept.
    async fn prepare(&self, text: String) -> Result<Prepared, SqlError>;

    /// Runs a prepared statement with the values of its `?`.
    ///
    /// # Errors
    /// There is none, the number of values is wrong, or it fails.
    async fn execute(
        &self,
        id: u32,
        parameters: Option<ParameterRow>,
        left: CancellationToken,
    ) -> Result<Answer, SqlError>;

    /// Forgets a prepared statement.
    async fn forget(&self, id: u32);

    /// Loads rows into a table. Returns the number of rows that are stored.
    ///
    /// # Errors
    /// The load is refused or fails; nothing of it is stored.
    async fn load(
        &self,
        request: LoadRequest,
        rows: LoadStream,
        left: CancellationToken,
    ) -> Result<u64, SqlError>;

    /// How long the client may be silent, if it has said so.
    fn idle_timeout(&self) -> Option<Duration>;

    /// The client has gone.
    async fn close(&self);
}

/// The outcome of a statement.
pub enum Answer {
    Rows(Box<dyn Rows>),
    Done { affected_rows: u64 },
}

/// The rows of a statement, computed as they are taken. Dropping them ends the statement.
#[async_trait]
pub trait Rows: Send {
    /// The schema of all batches.
    fn schema(&self) -> SchemaRef;

    /// The next rows; `None` at the end, when the statement has ended.
    ///
    /// # Errors
    /// The statement fails, or is interrupted.
    async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError>;
}

/// The shape of a statement that was prepared.
pub struct Prepared {
    pub id: u32,
    pub parameter_count: usize,
    /// The schema of its rows; `None` for a statement without any.
    pub schema: Option<Schema>,
}

/// The values of a statement's `?`, in order: a row of a batch.
#[derive(Clone, Debug)]
pub struct ParameterRow {
    pub batch: RecordBatch,
    pub row: usize,
}

/// A load as its client describes it.
#[derive(Clone, Debug, Default)]
pub struct LoadRequest {
    /// `None`: the session's database.
    pub db: Option<String>,
    pub table: String,
    /// The table is created if there is none.
    pub creates: bool,
    /// The table must not exist.
    pub is_new: bool,
    /// The schema of the rows; `None`: there is none, as in a stream without messages.
    pub schema: Option<Schema>,
    /// Options of the command.
    pub options: Vec<(String, String)>,
    /// Headers of the call, which may have the same options, and others.
    pub headers: Vec<(String, String)>,
}

/// The rows of a load, as the bytes of a stream of Arrow's IPC format.
pub type LoadStream = BoxStream<'static, Result<Bytes, String>>;

//! The protocol's view of the server behind it.

use crate::client_file::ClientFile;
use crate::column::Column;
use crate::params::Params;
use crate::result::ResultWriter;
use async_trait::async_trait;
use mysql_common::constants::{CapabilityFlags, StatusFlags};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tributary_types::{
    ErrorCode, PasswordHash, SERVER_VERSION, Secret, SqlError, TlsRequirement, TlsSession,
};

/// One connection's statements. The methods are called one after another, never concurrently, in the order in which the client
/// sent its commands. A statement runs to its end even if the client leaves meanwhile. A panic in a method ends this connection,
/// after an error answer.
#[async_trait]
pub trait Session: Send {
    /// Runs the text of one `COM_QUERY`: one statement, or several where
    /// [`ResultWriter::multi_statements`] allows it, each with its own result in `out`.
    ///
    /// # Errors
    /// The error for the client. Results that are already complete remain valid; the error ends an unfinished one.
    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError>;

    /// Continues a statement of [`Session::query`] that requested `file` from the client.
    ///
    /// # Errors
    /// The error that the client gets, after it has sent all of its file.
    async fn take_file(
        &mut self,
        _file: &mut ClientFile<'_>,
        _out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        Err(SqlError::new(ErrorCode::Unknown, "internal error: nobody takes the file that was asked for"))
    }

    /// Prepares one statement under `id`, which the protocol chose and never reuses in this connection. The session retains the
    /// plan until [`Session::close_statement`].
    ///
    /// # Errors
    /// The error for the client; nothing is stored under `id` then.
    async fn prepare(&mut self, id: u32, sql: &[u8]) -> Result<Prepared, SqlError>;

    /// Runs the prepared statement `id`. As many parameters as [`Prepared::param_count`] are in
    /// `params`, their values not yet checked.
    ///
    /// # Errors
    /// See [`Session::query`].
    async fn execute(
        &mut self,
        id: u32,
        params: Params<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError>;

    /// Forgets the prepared statement `id`.
    async fn close_statement(&mut self, id: u32);

    /// Makes `db` the current database.
    ///
    /// # Errors
    /// The database does not exist or may not be used; the current one stays.
    async fn init_db(&mut self, db: &str) -> Result<(), SqlError>;

    /// `COM_RESET_CONNECTION`: variables as at the connection's beginning, an open transaction is
    /// rolled back, all prepared statements are forgotten. User and current database stay.
    ///
    /// # Errors
    /// The error that the client gets.
    async fn reset(&mut self) -> Result<(), SqlError>;

    /// `COM_CHANGE_USER`, after the new user has proved the password: as [`Session::reset`], and
    /// the session belongs to that user from now on.
    ///
    /// # Errors
    /// The error that the client gets; the session stays with its current user.
    async fn change_user(&mut self, user: ChangeUser) -> Result<(), SqlError>;

    /// Columns of a table of the current database whose names match the `LIKE` pattern (empty: all), for clients that complete
    /// names.
    ///
    /// # Errors
    /// The error that the client gets.
    async fn field_list(&mut self, table: &str, pattern: &str) -> Result<Vec<Column>, SqlError>;

    /// `COM_PROCESS_KILL`: ends the connection with that id.
    ///
    /// # Errors
    /// No such connection, or not this user's.
    async fn kill(&mut self, connection_id: u32) -> Result<(), SqlError> {
        Err(SqlError::new(ErrorCode::UnknownThread, format!("Unknown thread id: {connection_id}")))
    }

    /// The session's state after a statement, for the answer.
    fn status(&self) -> SessionStatus;

    /// How long the connection may be idle; `None`: as long as any.
    fn idle_timeout(&self) -> Option<Duration> {
        None
    }

    /// The connection has ended: rolls back an open transaction. Called once, last, also after a
    /// panic; not when the server stops and a statement outlasts the shutdown grace: the session is
    /// only dropped then.
    async fn close(&mut self) {}
}

/// The state of a session, part of each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    pub autocommit: bool,
    pub in_transaction: bool,
    /// `sql_mode` contains `NO_BACKSLASH_ESCAPES`: drivers quote their literals accordingly.
    pub no_backslash_escapes: bool,
}

impl Default for SessionStatus {
    fn default() -> Self {
        Self { autocommit: true, in_transaction: false, no_backslash_escapes: false }
    }
}

impl SessionStatus {
    pub(crate) fn flags(self) -> StatusFlags {
        let mut flags = StatusFlags::empty();
        flags.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, self.autocommit);
        flags.set(StatusFlags::SERVER_STATUS_IN_TRANS, self.in_transaction);
        flags.set(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES, self.no_backslash_escapes);
        flags
    }
}

/// Metadata of a prepared statement for the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    pub param_count: u16,
    /// The result's columns; empty for a statement without a result set.
    pub columns: Vec<Column>,
    pub warnings: u16,
}

/// The ways in which a user can prove its password.
#[derive(Clone, Debug)]
pub struct Account {
    /// For `mysql_native_password`; empty if that can't be used.
    pub native: PasswordHash,
    /// `SHA256(SHA256(password))`, if the password was seen since the server started.
    pub proven: Option<[u8; 32]>,
    /// There is no password.
    pub is_open: bool,
    pub tls: TlsRequirement,
}

impl From<PasswordHash> for Account {
    fn from(native: PasswordHash) -> Self {
        Self { native, proven: None, is_open: native.is_empty(), tls: TlsRequirement::None }
    }
}

/// A client whose password was right.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// `CONNECTION_ID()`.
    pub id: u32,
    pub user: String,
    /// The database named at connecting. [`ServerHooks::open_session`] answers for its existence.
    pub database: Option<String>,
    pub peer: SocketAddr,
    /// The client's attributes (`_client_name`, `program_name`, …).
    pub attributes: Vec<(String, String)>,
    /// The capabilities that client and server share.
    pub capabilities: CapabilityFlags,
    /// The collation requested by the client, as MySQL's number.
    pub collation: u16,
    /// The encryption; `None`: in clear text.
    pub tls: Option<TlsSession>,
    /// Cancelling this ends the connection: at once when it is idle, else after the statement that
    /// runs. A statement that should stop sooner watches it itself. A server that stops does not
    /// cancel it: it lets statements finish.
    pub kill: CancellationToken,
}

/// The new user of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeUser {
    pub user: String,
    /// `None`: no current database.
    pub database: Option<String>,
    pub attributes: Vec<(String, String)>,
}

/// A client that was refused before it had a session.
#[derive(Clone, Copy, Debug)]
pub struct RefusedLogin<'a> {
    /// The connection's id.
    pub id: u32,
    pub user: &'a str,
    pub database: Option<&'a str>,
    pub peer: SocketAddr,
    /// When the client said who it is.
    pub begun: Instant,
    /// The error that it gets.
    pub error: &'a SqlError,
}

/// The protocol's view of the server, for all connections.
#[async_trait]
pub trait ServerHooks: Send + Sync + 'static {
    /// The version that the server reports when a client connects. It has no zero bytes.
    fn server_version(&self) -> &str {
        SERVER_VERSION
    }

    /// An id that no open connection has.
    fn next_connection_id(&self) -> u32;

    /// Looks up a user; `None` if it does not exist or may not connect from `host` (the client's IP address).
    fn find_account(&self, user: &str, host: &str) -> Option<Account>;

    /// Checks a password in clear text. A right one may make [`Account::proven`] of the next login.
    async fn check_password(&self, _user: &str, _host: &str, _password: &Secret) -> bool {
        false
    }

    /// Waits for as long as earlier failures of this user and address demand.
    ///
    /// # Errors
    /// It would take too long; the client gets the error.
    async fn may_log_in(&self, _user: &str, _address: IpAddr) -> Result<(), SqlError> {
        Ok(())
    }

    /// A client has proved its password, or failed to.
    fn login_ended(&self, _user: &str, _address: IpAddr, _is_right: bool) {}

    /// Whether the user may connect when all places are taken, to end sessions of others.
    fn is_operator(&self, _user: &str) -> bool {
        false
    }

    /// Opens a session for a client that has proved its password.
    ///
    /// # Errors
    /// The error that the client gets (unknown database, …); the connection is closed.
    async fn open_session(&self, info: ConnectionInfo) -> Result<Box<dyn Session>, SqlError>;

    /// Records a login that was refused before a session was opened. The default ignores it.
    fn login_refused(&self, login: RefusedLogin<'_>) {
        let _ = login;
    }

    /// The text of `COM_STATISTICS` (`mysqladmin status`).
    fn statistics(&self) -> String {
        String::from("Uptime: 0  Threads: 1")
    }
}

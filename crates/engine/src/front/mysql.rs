//! The MySQL protocol's entry point of the engine.
//!
//! Commands become statements of a session, and its answers packets. Not its business: the meaning of statements.

mod columns;
mod connection;
mod lines;
mod params;

use crate::access::finished::Door;
use crate::engine::Engine;
use crate::session::{EngineSession, Login, NewSession, logged_in};
use async_trait::async_trait;
pub(crate) use columns::columns_of;
use connection::Connection;
pub(crate) use lines::text_lines;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tributary_mysql::{Account, CapabilityFlags, ConnectionInfo, RefusedLogin, ServerHooks, Session};
use tributary_types::{Secret, SqlError};

/// Opens sessions for connections.
pub struct MysqlHooks {
    engine: Arc<Engine>,
}

impl MysqlHooks {
    #[must_use]
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

#[async_trait]
impl ServerHooks for MysqlHooks {
    fn server_version(&self) -> &str {
        &self.engine.options.server_version
    }

    fn next_connection_id(&self) -> u32 {
        self.engine.processes().next_id()
    }

    fn find_account(&self, user: &str, host: &str) -> Option<Account> {
        let user = self.engine.logins.find(user, host)?;
        Some(Account {
            native: user.password.native,
            proven: self.engine.logins.proven(&user),
            is_open: user.password.is_empty(),
            tls: user.account.require,
        })
    }

    async fn check_password(&self, user: &str, host: &str, password: &Secret) -> bool {
        let logins = &self.engine.logins;
        logins.is_password(logins.find(user, host).as_deref(), password).await
    }

    async fn may_log_in(&self, user: &str, address: IpAddr) -> Result<(), SqlError> {
        self.engine.logins.may_try(user, address).await
    }

    fn login_ended(&self, user: &str, address: IpAddr, is_right: bool) {
        self.engine.logins.ended(user, address, is_right);
    }

    fn is_operator(&self, user: &str) -> bool {
        self.engine.accounts.is_operator(user)
    }

    async fn open_session(&self, info: ConnectionInfo) -> Result<Box<dyn Session>, SqlError> {
        let ConnectionInfo { id, user, peer, database, tls, kill, capabilities, .. } = info;
        let (begun, name, db) = (Instant::now(), user.clone(), database.clone());
        let admission = self.engine.requests.admit()?;
        let principal = self.engine.gate.principal(&user, &peer.ip().to_string());
        let counts_found_rows = capabilities.contains(CapabilityFlags::CLIENT_FOUND_ROWS);
        let new =
            NewSession { door: Door::Statement, id, principal, peer, database, tls, counts_found_rows, kill };
        let opened = EngineSession::open(Arc::clone(&self.engine), new);
        let login = Login { door: Door::MysqlLogin, id, user: &name, peer, database: db.as_deref() };
        logged_in(&self.engine, &login, begun, opened.as_ref().map(drop), admission);
        Ok(Box::new(Connection(opened?)))
    }

    fn login_refused(&self, login: RefusedLogin<'_>) {
        let RefusedLogin { id, user, database, peer, begun, error } = login;
        let login = Login { door: Door::MysqlLogin, id, user, peer, database };
        logged_in(&self.engine, &login, begun, Err(error), None);
    }

    fn statistics(&self) -> String {
        let uptime = self.engine.uptime().as_secs();
        let connections = self.engine.processes().all().len();
        let tables = self.engine.table_count();
        format!("Uptime: {uptime}  Threads: {connections}  Open tables: {tables}")
    }
}

/// Serves the engine on a port of the loopback until `shutdown`.
#[cfg(test)]
pub(crate) async fn serve_on_loopback(
    engine: &Arc<Engine>,
    shutdown: tokio_util::sync::CancellationToken,
) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port of the loopback");
    let address = listener.local_addr().expect("it is bound");
    let hooks = Arc::new(MysqlHooks::new(Arc::clone(engine)));
    // Unwatched: a test sees that nobody answers.
    tokio::spawn(tributary_mysql::serve(listener, hooks, tributary_mysql::ServeOptions::default(), shutdown));
    address
}

//! `ALTER SYSTEM DECOMMISSION BACKEND`, the server's own way to an empty write-ahead log: new loads are refused, open groups are
//! committed, and all rows are moved to data files. Doris moves a backend's data elsewhere, too; here the tables stay where they are.
//!
//! It is over with the next start.
//!
//! Not here: the refusal of loads.

use super::Engine;
use std::sync::Arc;
use std::time::Duration;
use tributary_http::Health;
use tributary_types::{ErrorCode, SqlError};

/// How often a server that drains looks what is left.
const INTERVAL: Duration = Duration::from_millis(250);
/// The id of the only backend, as SHOW BACKENDS has it.
const ID: &str = "10001";

impl Engine {
    /// Begins to drain the server, or takes loads again.
    ///
    /// # Errors
    /// One of the backends is none: neither the id nor the host and a port of this server.
    pub(crate) fn decommission(&self, backends: &[String], drains: bool) -> Result<(), SqlError> {
        let (host, ports) = (&self.options.host, self.ports());
        let is_own = |backend: &String| match backend.rsplit_once(':') {
            Some((given, port)) => {
                let known = [0, ports.mysql, ports.http, ports.webserver];
                given.eq_ignore_ascii_case(host) && port.parse().is_ok_and(|port: u16| known.contains(&port))
            }
            None => backend == ID,
        };
        if let Some(unknown) = backends.iter().find(|backend| !is_own(backend)) {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "backend does not exist[{unknown}]: this server is '{host}:{}', or '{ID}' (SHOW BACKENDS)",
                    ports.webserver
                ),
            ));
        }
        if self.limits().is_draining() != drains {
            tracing::info!(drains, "decommission");
        }
        self.limits().drain(drains);
        Ok(())
    }

    /// Moves what the log has to data files while the server drains, and returns the pause until the next look.
    pub(super) async fn drain(self: Arc<Self>) -> Duration {
        if self.limits().is_draining() && !self.facts.decommission().is_some_and(|state| state.is_drained()) {
            self.ingest.sync().await;
            self.ingest.flush_all().await;
        }
        INTERVAL
    }

    /// Says that a server that drains is not ready for loads.
    pub(super) fn say_draining(&self, health: Health) -> Health {
        let Some(state) = self.facts.decommission() else { return health };
        let mut obstacles = health.obstacles;
        obstacles.push(state.to_string());
        Health { alive: 0, obstacles, ..health }
    }
}

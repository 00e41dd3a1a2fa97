//! Arrow Flight SQL's entry point of the engine.
//!
//! Calls become statements of sessions and loads, and answers batches of Arrow's. Not its business: the meaning of statements.

mod create;
mod load;
mod nodes;
mod parameters;
mod rows;
mod session;

use crate::access::finished::Door;
use crate::engine::Engine;
use crate::front::login::{Claimed, authenticate};
use async_trait::async_trait;
use nodes::OtherNodes;
use session::FlightSession;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_flight::{Credentials, NodeCalls, Peer, Session};
use tributary_types::{Live, SqlError};

/// Limits of loads by Arrow Flight, which are those of HTTP.
#[derive(Clone, Debug)]
pub struct FlightLoads {
    /// The largest body, in MiB.
    pub max_mb: Live<u64>,
    /// The timeout of a load without one.
    pub timeout: Live<Duration>,
}

impl FlightLoads {
    /// The largest body, in bytes.
    fn max_bytes(&self) -> u64 {
        self.max_mb.get().saturating_mul(1024 * 1024)
    }
}

/// Opens sessions for clients of Arrow Flight SQL.
pub struct FlightHooks {
    engine: Arc<Engine>,
    loads: FlightLoads,
}

impl FlightHooks {
    #[must_use]
    pub const fn new(engine: Arc<Engine>, loads: FlightLoads) -> Self {
        Self { engine, loads }
    }
}

#[async_trait]
impl tributary_flight::FlightHooks for FlightHooks {
    async fn log_in(
        &self,
        credentials: &Credentials,
        peer: &Peer,
        kill: CancellationToken,
    ) -> Result<Arc<dyn Session>, SqlError> {
        // `user@cluster` is an older way to name a user.
        let user = credentials.user.split('@').next().unwrap_or_default();
        let claimed = Claimed { door: Door::FlightLogin, user, password: &credentials.password };
        let principal = authenticate(&self.engine, claimed, peer.ip, peer.tls.as_ref()).await?;
        let address = SocketAddr::new(peer.ip, peer.port);
        let client = session::Client { principal, address, tls: peer.tls.clone(), kill };
        FlightSession::open(Arc::clone(&self.engine), client, self.loads.clone())
            .map(|session| Arc::new(session) as Arc<dyn Session>)
    }

    fn server_version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn nodes(&self) -> Option<Arc<dyn NodeCalls>> {
        let is_on = self.engine.shares_catalog();
        is_on.then(|| Arc::new(OtherNodes(Arc::clone(&self.engine))) as Arc<dyn NodeCalls>)
    }
}

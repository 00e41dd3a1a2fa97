//! State shared by all connections: the server's limits, its shutdown, and the memory of large commands.
//!
//! Not its business: accepting and serving connections.

use crate::auth::rsa::PasswordKey;
use crate::places::Places;
use crate::session::ServerHooks;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tributary_tls::Tls;
use tributary_types::{AuthPlugin, Live};

/// Limits of the MySQL front end, and its encryption.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The certificate for clients that ask for TLS; without one, it is not offered.
    pub tls: Option<Arc<Tls>>,
    /// Clients without TLS are refused with error 3159.
    pub requires_tls: bool,
    /// The plugin that the greeting names. Clients with another one are asked again.
    pub auth_plugin: AuthPlugin,
    /// Sessions at a time; further clients get error 1040, but for one operator.
    pub max_connections: Live<u64>,
    /// Clients that log in at a time; a further one ends another's attempt.
    pub max_logins: usize,
    /// The longest packet that a client may send, in bytes (1 KiB to 1 GiB); a longer one gets error
    /// 1153 and ends the connection.
    pub max_allowed_packet: usize,
    /// Limit on the prepared statements of one connection; beyond it, error 1461.
    pub max_prepared_statements: usize,
    /// How long a client may take from connecting to proving its password.
    pub handshake_timeout: Duration,
    /// A connection that sends no command for this long is closed.
    pub idle_timeout: Duration,
    /// An incomplete command without a new byte for this long ends its connection.
    pub stall_timeout: Duration,
    /// Bytes of large commands that are read at a time, of all connections together; others wait
    /// unread.
    pub packet_memory_bytes: usize,
    /// A client that takes no byte of its answer for this long is disconnected.
    pub write_timeout: Duration,
    /// How long running statements may take to finish when the server stops.
    pub shutdown_grace: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            tls: None,
            requires_tls: false,
            auth_plugin: AuthPlugin::Native,
            max_connections: Live::new(1024),
            max_logins: 256,
            max_allowed_packet: 64 << 20,
            max_prepared_statements: 16_382,
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(8 * 3600),
            stall_timeout: Duration::from_secs(60),
            packet_memory_bytes: 512 << 20,
            write_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(60),
        }
    }
}

/// State shared by all connections.
pub(crate) struct Shared {
    pub(crate) hooks: Arc<dyn ServerHooks>,
    pub(crate) options: ServeOptions,
    pub(crate) shutdown: CancellationToken,
    pub(crate) places: Arc<Places>,
    pub(crate) password_key: PasswordKey,
    packet_memory: Arc<Semaphore>,
}

/// The unit of [`ServeOptions::packet_memory_bytes`], in bytes: a semaphore counts to less than 2³².
const PACKET_MEMORY_UNIT: usize = 1024;

impl Shared {
    pub(crate) fn new(
        hooks: Arc<dyn ServerHooks>,
        options: ServeOptions,
        shutdown: CancellationToken,
    ) -> Self {
        let units = (options.packet_memory_bytes / PACKET_MEMORY_UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let places = Places::new(options.max_connections.clone(), options.max_logins);
        let packet_memory = Arc::new(Semaphore::new(units));
        Self { hooks, options, shutdown, places, password_key: PasswordKey::default(), packet_memory }
    }

    /// Waits until a command of that length may be read. A command takes all that it may need at once,
    /// so that no two wait for each other.
    pub(crate) async fn packet_memory(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let all = (self.options.packet_memory_bytes / PACKET_MEMORY_UNIT).max(1);
        let units = bytes.div_ceil(PACKET_MEMORY_UNIT).min(all);
        // It is never closed.
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Arc::clone(&self.packet_memory).acquire_many_owned(units).await.ok()
    }
}

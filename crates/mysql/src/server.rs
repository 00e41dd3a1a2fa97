//! Accepts connections and looks after them: one task each, up to a limit, until the server stops.

use crate::connection;
use crate::session::ServerHooks;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// The largest `max_allowed_packet`, in bytes.
const MAX_ALLOWED_PACKET_MAX: usize = 1 << 30;
/// The smallest `max_allowed_packet`, in bytes.
const MAX_ALLOWED_PACKET_MIN: usize = 1024;
/// The pause after `accept` failed, which it does when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of the MySQL front end.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// Further clients get error 1040.
    pub max_connections: usize,
    /// The longest packet that a client may send, in bytes (1 KiB to 1 GiB); a longer one gets error
    /// 1153 and ends the connection.
    pub max_allowed_packet: usize,
    /// Statements that one connection may keep prepared; a further one gets error 1461.
    pub max_prepared_statements: usize,
    /// From a connection's beginning to the right password.
    pub handshake_timeout: Duration,
    /// A connection that sends no command for so long is closed.
    pub idle_timeout: Duration,
    /// A command that has begun and brings no byte for so long ends its connection.
    pub stall_timeout: Duration,
    /// Bytes of large commands that are read at a time, of all connections together; others wait
    /// unread.
    pub packet_memory_bytes: usize,
    /// A client that takes no byte of its answer for so long is given up.
    pub write_timeout: Duration,
    /// How long running statements may take to finish when the server stops.
    pub shutdown_grace: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 1024,
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

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) hooks: Arc<dyn ServerHooks>,
    pub(crate) options: ServeOptions,
    pub(crate) shutdown: CancellationToken,
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
        Self { hooks, options, shutdown, packet_memory: Arc::new(Semaphore::new(units)) }
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

/// Serves clients until `shutdown` is cancelled. Then it accepts none, closes idle connections,
/// lets running statements finish and be answered, and returns when the last connection is closed or
/// [`ServeOptions::shutdown_grace`] is over.
///
/// # Errors
/// None at present; failures of single connections are logged.
pub async fn serve(
    listener: TcpListener,
    hooks: Arc<dyn ServerHooks>,
    mut options: ServeOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    options.max_allowed_packet =
        options.max_allowed_packet.clamp(MAX_ALLOWED_PACKET_MIN, MAX_ALLOWED_PACKET_MAX);
    let shared = Arc::new(Shared::new(hooks, options, shutdown.clone()));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = connections.join_next() => log_panic(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => admit(&mut connections, &shared, stream, peer),
                Err(error) => {
                    warn!(%error, "cannot accept a MySQL connection; are there file descriptors left?");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let drain = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    };
    if tokio::time::timeout(options.shutdown_grace, drain).await.is_err() {
        warn!(
            connections = connections.len(),
            "statements still run after the shutdown grace; they are cut off"
        );
        connections.shutdown().await;
    }
    Ok(())
}

fn admit(connections: &mut JoinSet<()>, shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    let max_connections = shared.options.max_connections;
    if connections.len() >= max_connections {
        warn!(%peer, max_connections, "too many MySQL connections: one is refused");
        connection::refuse(stream);
        return;
    }
    connections.spawn(connection::run(stream, peer, Arc::clone(shared)));
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        warn!(%error, "a MySQL connection ended by a panic");
    }
}

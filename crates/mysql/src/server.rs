//! Accepts connections and looks after them: one task each, up to a limit, until the server stops.

use crate::connection;
use crate::session::ServerHooks;
use crate::shared::{ServeOptions, Shared};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use tributary_admission::Refusal;

/// The largest `max_allowed_packet`, in bytes.
const MAX_ALLOWED_PACKET_MAX: usize = 1 << 30;
/// The smallest `max_allowed_packet`, in bytes.
const MAX_ALLOWED_PACKET_MIN: usize = 1024;
/// The pause after `accept` failed, which it does when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves clients until `shutdown` is cancelled. Then it accepts no more, closes idle connections, lets running statements finish
/// and be answered, and returns when the last connection is closed or [`ServeOptions::shutdown_grace`] is over.
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
    let grace = options.shutdown_grace;
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
    if tokio::time::timeout(grace, drain).await.is_err() {
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
    if shared.places.are_all_taken() {
        let max_connections = shared.options.max_connections.get();
        Refusal::MysqlSessions.log(|left_out| {
            warn!(%peer, max_connections, left_out, "too many MySQL connections: one is refused");
        });
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

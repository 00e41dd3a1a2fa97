//! Single connections, without a network or on a given one, for the fuzzers. Not part of the crate's interface.

use crate::connection::run_on;
use crate::session::ServerHooks;
use crate::shared::{ServeOptions, Shared};
use crate::wire::stream::{ReadHalf, WriteHalf};
use parking_lot::Mutex;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Serves one client that sends these pieces, one per read, and then hangs up. Returns all that it
/// was sent.
pub async fn converse(
    pieces: impl IntoIterator<Item = Vec<u8>>,
    hooks: Arc<dyn ServerHooks>,
    options: ServeOptions,
) -> Vec<u8> {
    let written = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::new(Shared::new(hooks, options, CancellationToken::new()));
    let read_half = ReadHalf::Memory(pieces.into_iter().collect());
    let write_half = WriteHalf::Memory(Arc::clone(&written));
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 3306));
    run_on(read_half, write_half, peer, shared).await;
    std::mem::take(&mut *written.lock())
}

/// Serves one client on its TCP connection, which may become one of TLS.
///
/// # Errors
/// The connection has no peer any more.
pub async fn serve_stream(
    stream: TcpStream,
    hooks: Arc<dyn ServerHooks>,
    options: ServeOptions,
) -> std::io::Result<()> {
    let peer = stream.peer_addr()?;
    let shared = Arc::new(Shared::new(hooks, options, CancellationToken::new()));
    let (read_half, write_half) = stream.into_split();
    run_on(ReadHalf::Tcp(read_half), WriteHalf::Tcp(write_half), peer, shared).await;
    Ok(())
}

//! The two ends of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpStream;
use tributary_types::TlsSession;

/// The client of a connection, and where it has reached the server.
#[derive(Debug)]
pub struct Peer {
    /// An address of IPv4 is one, even if the listener is of IPv6.
    pub ip: IpAddr,
    pub port: u16,
    /// The server's own address; `None` if the system does not say.
    pub local: Option<SocketAddr>,
    /// The encryption; `None`: in clear text.
    pub tls: Option<TlsSession>,
    has_logged_in: AtomicBool,
}

impl Peer {
    pub(crate) fn of(stream: &TcpStream, peer: SocketAddr) -> Self {
        let local = stream.local_addr().ok();
        let local = local.map(|local| SocketAddr::new(local.ip().to_canonical(), local.port()));
        let (ip, port) = (peer.ip().to_canonical(), peer.port());
        Self { ip, port, local, tls: None, has_logged_in: AtomicBool::new(false) }
    }

    /// A client that has reached this address.
    #[cfg(test)]
    #[must_use]
    pub fn at(local: SocketAddr) -> Self {
        let (ip, port) = (local.ip(), local.port());
        Self { ip, port, local: Some(local), tls: None, has_logged_in: AtomicBool::new(false) }
    }

    /// Notes that a user has proved a password on this connection.
    pub(crate) fn logged_in(&self) {
        self.has_logged_in.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_logged_in(&self) -> bool {
        self.has_logged_in.load(Ordering::Relaxed)
    }
}

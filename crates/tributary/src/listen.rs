//! The sockets on which a server listens.
//!
//! Not here: who is served. Protocols have limits of their own.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that the kernel completes before they are accepted; it takes fewer if `net.core.somaxconn` is lower. Clients that
/// connect together beyond that are answered late, or reset.
const BACKLOG: u32 = 4096;
/// A client that has been silent this long is asked whether it still exists …
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);
/// … as often as this, and this many times.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 4;

/// Listens on an address. Connections of clients that vanished without a word end after two minutes.
///
/// # Errors
/// The address is taken or does not exist.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart does not wait for the connections of the server before.
    socket.set_reuseaddr(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_TIME)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    // Accepted connections inherit it.
    SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[tokio::test]
    async fn many_clients_may_connect_before_one_is_accepted_and_are_asked_whether_they_exist() {
        let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        // The usual backlog is 128: a connection beyond it would wait for a second try.
        let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("Linux says it");
        let clients = limit.trim().parse::<usize>().expect("a number").min(400);
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(900)).expect("connected");
        let _clients: Vec<TcpStream> = (0..clients).map(|_| connect()).collect();
        let (accepted, _) = listener.accept().await.expect("a connection");
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().expect("it is set"));
        assert_eq!(socket.tcp_keepalive_time().expect("it is set"), KEEPALIVE_TIME);
    }
}

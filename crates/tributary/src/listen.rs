//! The sockets on which a server listens.
//!
//! Not here: who is served. Protocols have limits of their own.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
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

/// The address by which others may reach a server that listens on `bind`: of all its addresses, that of the default route.
pub fn own_address(bind: IpAddr) -> IpAddr {
    if !bind.is_unspecified() {
        return bind.to_canonical();
    }
    // Addresses of no host. Nothing is sent: the system only chooses a route.
    let routes = [
        (IpAddr::from(Ipv4Addr::UNSPECIFIED), "192.0.2.1:9"),
        (Ipv6Addr::UNSPECIFIED.into(), "[2001:db8::1]:9"),
    ];
    let routed = |(from, to): (IpAddr, &str)| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|local| local.ip())
    };
    let mut served = routes.into_iter().filter(|(from, _)| from.is_ipv4() || bind.is_ipv6());
    served.find_map(routed).unwrap_or(Ipv4Addr::LOCALHOST.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_server_on_all_addresses_names_one_that_exists() {
        for bind in ["0.0.0.0", "::"] {
            let own = own_address(bind.parse().expect("an address"));
            assert!(!own.is_unspecified());
            UdpSocket::bind((own, 0)).expect("it is an address of this machine");
        }
        let given = "::ffff:10.0.0.1".parse().expect("an address");
        assert_eq!(own_address(given).to_string(), "10.0.0.1");
    }

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

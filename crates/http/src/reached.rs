//! The host by which a client has reached this server, for URLs in answers that it is to follow.
//!
//! A server that listens on all addresses has no one address of its own. The client's `Host` names the server as the client
//! reaches it, through a proxy or a container's port, too; without a usable one the address at which the connection arrived is
//! taken. Who sends a false `Host` gets a false URL, and nobody else does: what is stored for others has the server's own host.

use crate::headers::Headers;
use crate::origin::name_of;
use crate::peer::Peer;
use crate::route;
use hyper::header::HOST;
use hyper::http::request::Parts;
use std::net::IpAddr;

/// The longest name of a host.
const NAME_BYTES_MAX: usize = 253;

/// The host of a request; `None` if neither the client nor the system says.
pub(crate) fn host(head: &Parts, peer: &Peer) -> Option<String> {
    let text = match head.uri.authority() {
        Some(authority) => authority.as_str().to_owned(),
        None => Headers(&head.headers).lossy(HOST.as_str()),
    };
    let name = name_of(&text);
    if is_host(name) {
        return Some(name.to_owned());
    }
    peer.local.map(|local| local.ip().to_string())
}

/// The same URL of an error log on another host; unchanged if it is none.
pub(crate) fn on_host(url: &str, host: &str) -> String {
    let parts = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    let port = parts.and_then(|(authority, _)| authority.rsplit_once(':')?.1.parse().ok());
    match (port, route::file_of_error_url(url)) {
        (Some(port), Some(file)) => route::error_url(host, port, &file),
        _ => url.to_owned(),
    }
}

/// Whether this can be a host in a URL.
fn is_host(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_of_name);
    match name.parse::<IpAddr>() {
        Ok(address) => !address.is_unspecified(),
        Err(_) => is_name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn reached(host_header: &str) -> Option<String> {
        let request = Request::get("/api/backends").header(HOST, host_header).body(()).expect("a request");
        let peer = Peer::at("10.0.0.5:8040".parse().expect("an address"));
        host(&request.into_parts().0, &peer)
    }

    #[test]
    fn a_client_reaches_the_server_by_the_host_that_it_names() {
        for (text, expected) in [
            ("db.example:8040", "db.example"),
            ("db.example", "db.example"),
            ("192.0.2.7:1", "192.0.2.7"),
            ("[2001:db8::1]:8040", "2001:db8::1"),
            ("my_service", "my_service"),
            ("", "10.0.0.5"),
            ("0.0.0.0:8040", "10.0.0.5"),
            ("[::]:8040", "10.0.0.5"),
            ("a/b", "10.0.0.5"),
            ("user@evil", "10.0.0.5"),
            ("a<script>", "10.0.0.5"),
        ] {
            assert_eq!(reached(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_url_keeps_its_port_and_file() {
        let url = route::error_url("127.0.0.1", 8040, "__shard_0/x");
        assert_eq!(on_host(&url, "db.example"), route::error_url("db.example", 8040, "__shard_0/x"));
        let six = route::error_url("2001:db8::1", 8040, "x");
        assert_eq!(six, "http://[2001:db8::1]:8040/api/_load_error_log?file=x");
        assert_eq!(on_host(&six, "h"), "http://h:8040/api/_load_error_log?file=x");
        assert_eq!(on_host("", "h"), "");
    }
}

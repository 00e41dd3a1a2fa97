//! Requests that a browser sends on behalf of a page that is not ours.
//!
//! A browser attaches credentials that it knows to any request, and reaches servers of its own machine for any page. So a request
//! that changes something is refused if the browser says that another page sent it, and a server that listens on this machine only
//! is addressed by this machine's names: a page whose name was made to resolve to it (DNS rebinding) has its own.
//!
//! Clients that are no browsers send none of these headers, and address the server as they connect to it.
//!
//! Not here: who a user is.

use crate::headers::Headers;
use hyper::Method;
use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;
use std::net::IpAddr;

const FETCH_SITE: &str = "sec-fetch-site";

/// The reason to refuse a request that another page may have sent, or that is addressed to another server.
///
/// `own_names` are further names of the server; `local` is the address at which the request arrived.
pub(crate) fn refusal(head: &Parts, local: Option<IpAddr>, own_names: &[String]) -> Option<String> {
    let headers = Headers(&head.headers);
    // A request to a proxy names the server in its first line.
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str().to_owned(),
        None => headers.lossy(HOST.as_str()),
    };
    let name = name_of(&host);
    if local.is_some_and(|address| address.to_canonical().is_loopback())
        && !is_of_this_machine(name)
        && !own_names.iter().any(|own| own.eq_ignore_ascii_case(name))
    {
        return Some(format!(
            "this server is not called '{}': it listens on this machine only, as localhost. Add the name to the setting \
             http_host_names if a proxy or a hosts file gives it",
            name.escape_debug()
        ));
    }
    if matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return None;
    }
    let site = headers.lossy(FETCH_SITE);
    let origin = headers.lossy(ORIGIN.as_str());
    let is_foreign = match &*site {
        // The browser says so, and no page can.
        "same-origin" | "none" => false,
        "" => {
            let is_own = |(_, from): (&str, &str)| from.eq_ignore_ascii_case(&host);
            !origin.is_empty() && !origin.split_once("://").is_some_and(is_own)
        }
        _ => true,
    };
    is_foreign.then(|| {
        let from = if origin.is_empty() { site } else { origin };
        format!(
            "a page of another site ({}) sent this request by a browser: nothing is changed on its behalf",
            from.escape_debug()
        )
    })
}

/// The name or address in a `Host` header, without its port.
pub(crate) fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// Whether no other site can have this name: an address needs no resolver, and a client of HTTP/1.0 names no host.
fn is_of_this_machine(name: &str) -> bool {
    const LOCAL: &str = "localhost";
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = name.rsplit('.').next().unwrap_or(name);
    name.is_empty() || name.parse::<IpAddr>().is_ok() || label.eq_ignore_ascii_case(LOCAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn refused(method: Method, headers: &[(&str, &str)], local: &str) -> Option<String> {
        let mut request = Request::builder().method(method).uri("/api/d/t/_stream_load");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        refusal(&head, Some(local.parse().expect("an address")), &["tributary.local".to_owned()])
    }

    #[test]
    fn a_server_of_this_machine_is_addressed_by_its_names_only() {
        for host in [
            "localhost",
            "LOCALHOST:8040",
            "127.0.0.1:8030",
            "127.9.9.9",
            "[::1]:8040",
            "a.localhost:1",
            "",
            "localhost.",
            "Tributary.Local:80",
            "0.0.0.0:8040",
            "[::ffff:127.0.0.1]:1",
            "10.0.0.1:8040",
            "[fe80::1]:1",
        ] {
            for local in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
                assert_eq!(refused(Method::PUT, &[("Host", host)], local), None, "{host}");
            }
        }
        for host in [
            "evil.example",
            "evil.example:8040",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "localhos",
        ] {
            for method in [Method::PUT, Method::GET] {
                let text = refused(method, &[("Host", host)], "127.0.0.1").expect(host);
                assert!(text.contains("http_host_names"), "{text}");
            }
            assert_eq!(
                refused(Method::PUT, &[("Host", host)], "10.0.0.1"),
                None,
                "others may call it as they like"
            );
        }
    }

    #[test]
    fn a_page_of_another_site_changes_nothing() {
        let host = ("Host", "db.example:8040");
        for own in [
            &[host][..],
            &[host, ("Origin", "http://db.example:8040")],
            &[host, ("Origin", "https://DB.example:8040"), ("Sec-Fetch-Site", "same-origin")],
            &[host, ("Sec-Fetch-Site", "none")],
        ] {
            assert_eq!(refused(Method::POST, own, "10.0.0.1"), None, "{own:?}");
        }
        for foreign in [
            &[host, ("Origin", "http://evil.example")][..],
            &[host, ("Origin", "null")],
            &[host, ("Origin", "http://db.example")],
            &[host, ("Origin", "http://db.example:8040.evil.example")],
            &[host, ("Sec-Fetch-Site", "cross-site")],
            &[host, ("Origin", "http://db.example:8040"), ("Sec-Fetch-Site", "same-site")],
        ] {
            for method in [Method::POST, Method::PUT] {
                assert!(refused(method, foreign, "10.0.0.1").is_some(), "{foreign:?}");
            }
            assert_eq!(refused(Method::GET, foreign, "10.0.0.1"), None, "its answer can't be read");
        }
    }
}

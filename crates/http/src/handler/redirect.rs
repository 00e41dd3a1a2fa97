//! Loads that are sent on from one port to another, as Doris's FE sends them on to a BE.
//!
//! Only who may log in is sent on: everyone else is answered here, in the words that loads have.

use super::Handler;
use crate::auth::{self, Credentials};
use crate::peer::Peer;
use crate::reply::{self, ReplyBody};
use crate::route::Route;
use hyper::Response;
use hyper::header::{HOST, HeaderValue};
use hyper::http::request::Parts;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

impl Handler {
    /// The answer to a load that is to go to another port; `None` if it stays here.
    pub(super) async fn redirected(
        &self,
        route: &Route,
        head: &Parts,
        peer: &Peer,
    ) -> Option<Response<ReplyBody>> {
        let redirect = self.options.redirect?;
        let is_of_load = route.is_load() || matches!(route, Route::TwoPhase { .. });
        let port = peer.local.map(|local| local.port());
        if port != Some(redirect.from_port) || !is_of_load {
            return None;
        }
        let credentials = auth::credentials(&head.headers)?;
        self.user(head, peer).await.ok()?;
        let host = head.headers.get(HOST)?.to_str().ok()?;
        let scheme = if peer.tls.is_some() { "https" } else { "http" };
        let target = location(scheme, &credentials, host, redirect.to_port, head);
        HeaderValue::from_str(&target).ok().map(reply::redirect)
    }
}

/// Doris's form: credentials, the same host by another port, and a `?` even if nothing follows it.
fn location(scheme: &str, credentials: &Credentials, host: &str, port: u16, head: &Parts) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let (user, password) = (encoded(&credentials.user), encoded(&credentials.password));
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    format!("{scheme}://{user}:{password}@{}:{port}{path}?{query}", without_port(host))
}

/// The host of `host:port`; that of IPv6 stays in its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    #[test]
    fn a_location_has_credentials_host_path_and_query() {
        let of = |uri: &str, host: &str, password: &str| {
            let (head, ()) = Request::put(uri).body(()).unwrap().into_parts();
            let credentials = Credentials { user: "root".to_owned(), password: password.to_owned() };
            location("http", &credentials, host, 8040, &head)
        };
        assert_eq!(of("/api/d/t/_stream_load", "fe:8030", ""), "http://root:@fe:8040/api/d/t/_stream_load?");
        assert_eq!(
            of("/api/my%20db/t/_stream_load?a=1", "[::1]:8030", "p@s/s"),
            "http://root:p%40s%2Fs@[::1]:8040/api/my%20db/t/_stream_load?a=1"
        );
        assert_eq!((without_port("fe"), without_port("[::1]")), ("fe", "[::1]"));
    }
}

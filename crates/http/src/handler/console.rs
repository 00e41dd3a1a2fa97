//! The console's files. They are the same for everybody, and need no login: what they show, they ask for as a user.

use crate::headers::Headers;
use crate::reply::{self, EnvelopeCode, ReplyBody};
use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY,
};
use hyper::{Response, StatusCode};
use tributary_console as console;

/// Answers with a file of the console; an empty name is its page.
pub(super) fn answer(file: &str, headers: &HeaderMap) -> Response<ReplyBody> {
    let Some(asset) = console::asset(file) else {
        let text = "the console has no such file";
        return reply::envelope_with_status(StatusCode::NOT_FOUND, EnvelopeCode::NotFound, text);
    };
    let header = |name: HeaderName| Headers(headers).lossy(name.as_str());
    let is_known = header(IF_NONE_MATCH).split(',').any(|known| known.trim() == asset.etag);
    let takes_gzip = header(ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "gzip");
    let (status, bytes) = match (is_known, takes_gzip) {
        (true, _) => (StatusCode::NOT_MODIFIED, Bytes::new()),
        (false, true) => (StatusCode::OK, Bytes::from_static(&asset.gzip)),
        (false, false) => (StatusCode::OK, Bytes::from_static(asset.bytes)),
    };
    let mut response = reply::file(status, asset.content_type, bytes);
    let fields = response.headers_mut();
    let mut set =
        |name: HeaderName, value: &'static str| fields.insert(name, HeaderValue::from_static(value));
    set(CONTENT_SECURITY_POLICY, console::CONTENT_SECURITY_POLICY);
    set(REFERRER_POLICY, "no-referrer");
    set(VARY, "accept-encoding");
    // The browser asks each time whether it has changed: a new server has a new console.
    set(CACHE_CONTROL, "no-cache");
    set(ETAG, &asset.etag);
    if status == StatusCode::OK && takes_gzip {
        set(CONTENT_ENCODING, "gzip");
    }
    response
}

//! Responses: their bodies, the shapes of JSON that Doris's clients know, and text.

use crate::answer::{LoadAnswer, pretty};
use crate::code::LoadCode;
use crate::service::ErrorLogReader;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio_util::io::poll_read_buf;
use tributary_types::Retry;

const STREAM_PIECE_BYTES: usize = 64 * 1024;

/// The body of a response.
pub(crate) enum ReplyBody {
    /// In memory; `None` once sent.
    Bytes(Option<Bytes>),
    /// Read while it is sent.
    Stream(ErrorLogReader),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Bytes(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(reader) => {
                let mut piece = BytesMut::with_capacity(STREAM_PIECE_BYTES);
                let read = ready!(poll_read_buf(reader.as_mut(), context, &mut piece));
                Poll::Ready(match read {
                    Ok(0) => None,
                    Ok(_) => Some(Ok(Frame::data(piece.freeze()))),
                    Err(error) => Some(Err(error)),
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Bytes(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

fn respond(status: StatusCode, content_type: &'static str, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Texts of clients come back in some answers: no browser may take one for a page or a script.
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

pub(crate) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<ReplyBody> {
    respond(status, "application/json;charset=UTF-8", ReplyBody::Bytes(Some(text.into())))
}

/// A file that the server has.
pub(crate) fn file(status: StatusCode, content_type: &'static str, bytes: Bytes) -> Response<ReplyBody> {
    respond(status, content_type, ReplyBody::Bytes(Some(bytes)))
}

/// Sends a browser to another address of this server.
pub(crate) fn moved(to: &'static str) -> Response<ReplyBody> {
    let mut response = text(StatusCode::PERMANENT_REDIRECT, "");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    response
}

/// Plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<ReplyBody> {
    respond(status, "text/plain; charset=utf-8", ReplyBody::Bytes(Some(text.into())))
}

/// Metrics in Prometheus' text format.
pub(crate) fn metrics(text: String) -> Response<ReplyBody> {
    respond(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", ReplyBody::Bytes(Some(text.into())))
}

/// Text that is read while it is sent.
pub(crate) fn stream(reader: ErrorLogReader) -> Response<ReplyBody> {
    respond(StatusCode::OK, "text/plain; charset=utf-8", ReplyBody::Stream(reader))
}

/// A JSON document that is computed while it is sent.
pub(crate) fn json_stream(reader: ErrorLogReader) -> Response<ReplyBody> {
    respond(StatusCode::OK, "application/json;charset=UTF-8", ReplyBody::Stream(reader))
}

/// HTTP 307: the same request to another place. Without a body, as Doris's.
pub(crate) fn redirect(location: HeaderValue) -> Response<ReplyBody> {
    let body = ReplyBody::Bytes(None);
    let mut response = respond(StatusCode::TEMPORARY_REDIRECT, "text/html;charset=utf-8", body);
    response.headers_mut().insert(LOCATION, location);
    response
}

/// The stages of a load's time, for browsers and tools that show them.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// A load's answer: HTTP 200, as in Doris, or 429 for a load beyond a limit. `Retry-After` is in seconds.
pub(crate) fn load(answer: &LoadAnswer) -> Response<ReplyBody> {
    let status = if answer.is_limited { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
    let mut response = json(status, answer.to_json());
    if !answer.is_loaded()
        && let Some(after_ms) = answer.retry.after_ms()
    {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after_ms.div_ceil(1000)));
    }
    if let Some(Ok(timing)) = answer.server_timing().map(HeaderValue::try_from) {
        response.headers_mut().insert(SERVER_TIMING, timing);
    }
    response
}

/// Turns an answer into HTTP 401 with the challenge that makes clients send credentials.
pub(crate) fn unauthorized(mut response: Response<ReplyBody>) -> Response<ReplyBody> {
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let challenge = HeaderValue::from_static("Basic realm=\"tributary\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// Doris's old shape: `{"status": …, "msg": …}`.
pub(crate) fn status_and_message(status: &str, msg: &str) -> Response<ReplyBody> {
    #[derive(Serialize)]
    struct Document<'a> {
        status: &'a str,
        msg: &'a str,
    }
    json(StatusCode::OK, pretty(&Document { status, msg }))
}

/// The failure of a second phase: the old shape, and whether to try again. All values are texts, which connectors rely on.
pub(crate) fn two_phase_failure(status: &str, msg: &str, retry: Retry) -> Response<ReplyBody> {
    #[derive(Serialize)]
    struct Document<'a> {
        status: &'a str,
        msg: &'a str,
        retry: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<String>,
    }
    let retry_after_ms = retry.after_ms().map(|after| after.to_string());
    let document = Document { status, msg, retry: retry.name(), retry_after_ms };
    let mut response = json(StatusCode::OK, pretty(&document));
    if let Some(after_ms) = retry.after_ms() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after_ms.div_ceil(1000)));
    }
    response
}

/// Any document in the indented form.
pub(crate) fn document(document: &impl Serialize) -> Response<ReplyBody> {
    json(StatusCode::OK, pretty(document))
}

/// The codes of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvelopeCode {
    Success,
    Error,
    Unauthorized,
    BadRequest,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Internal,
    Unavailable,
}

impl EnvelopeCode {
    const fn number_and_text(self) -> (u16, &'static str) {
        match self {
            Self::Success => (0, "success"),
            Self::Error => (1, "Error"),
            Self::Unauthorized => (401, "Unauthorized"),
            Self::BadRequest => (403, "Bad Request"),
            Self::Forbidden => (403, "Forbidden"),
            Self::NotFound => (404, "Not Found"),
            Self::MethodNotAllowed => (405, "Method Not Allowed"),
            Self::Internal => (500, "Internal Error"),
            Self::Unavailable => (503, "Service Unavailable"),
        }
    }
}

/// Doris's envelope `{"msg":…,"code":…,"data":…,"count":0}`, with HTTP 200.
pub(crate) fn envelope(code: EnvelopeCode, data: impl Serialize) -> Response<ReplyBody> {
    json(StatusCode::OK, envelope_text(code, data))
}

/// The text of the envelope.
pub(crate) fn envelope_text(code: EnvelopeCode, data: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Envelope<T> {
        msg: &'static str,
        code: u16,
        data: T,
        count: u32,
    }
    let (number, msg) = code.number_and_text();
    serde_json::to_vec(&Envelope { msg, code: number, data, count: 0 })
        .expect("strings, numbers and maps with string keys always serialize")
}

/// The text of the envelope of an error, with facts for programs behind Doris's keys.
pub(crate) fn failure_text(text: &str, error: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Failure<'a, E> {
        msg: &'static str,
        code: u16,
        data: &'a str,
        count: u32,
        error: &'a E,
    }
    let (code, msg) = EnvelopeCode::Error.number_and_text();
    serde_json::to_vec(&Failure { msg, code, data: text, count: 0, error })
        .expect("strings, numbers and maps with string keys always serialize")
}

/// The envelope with an HTTP status of its own.
pub(crate) fn envelope_with_status(
    status: StatusCode,
    code: EnvelopeCode,
    data: impl Serialize,
) -> Response<ReplyBody> {
    let mut response = envelope(code, data);
    *response.status_mut() = status;
    response
}

/// HTTP 503 with the time after which the request may succeed, in the form that the answer to a load has.
pub(crate) fn busy(is_load: bool, text: impl Into<String>) -> Response<ReplyBody> {
    let text = text.into();
    let mut response = match is_load {
        true => load(&LoadAnswer::fail(LoadCode::ServiceUnavailable, text)),
        false => envelope(EnvelopeCode::Unavailable, text),
    };
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// HTTP 405, saying what to use.
pub(crate) fn wrong_method(method: &str, path: &str, allowed: &'static str) -> Response<ReplyBody> {
    let hint = if allowed == "PUT" { " (curl -T FILE sends PUT)" } else { "" };
    let mut response = envelope_with_status(
        StatusCode::METHOD_NOT_ALLOWED,
        EnvelopeCode::MethodNotAllowed,
        format!("{path} takes no {method}; use {allowed}{hint}"),
    );
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_load_beyond_a_limit_is_answered_with_whole_seconds_after_which_to_come_again() {
        let plain = load(&LoadAnswer::fail(LoadCode::Internal, "x"));
        assert_eq!((plain.status(), plain.headers().get(RETRY_AFTER)), (StatusCode::OK, None));
        for (milliseconds, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (90_000, "90")] {
            let after = Some(Duration::from_millis(milliseconds));
            let limited = load(&LoadAnswer::limited(&"too much", after));
            assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(limited.headers()[RETRY_AFTER], seconds, "{milliseconds} ms");
        }
    }
}

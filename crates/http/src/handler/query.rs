//! Statements over HTTP: `{"stmt": "…"}`, and the answer in Doris's shape.
//!
//! Not its business: what a statement means, and the texts of values.

use super::{Handled, Handler};
use crate::body::{LoadBody, Wire};
use crate::headers::Headers;
use crate::peer::Peer;
use crate::reply::{self, EnvelopeCode, ReplyBody};
use crate::service::{QueryAnswer, QueryColumn, QueryRequest};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;
use tributary_types::{ErrorCode, SqlError, TxnId};

/// The longest body of a request in bytes. Rows belong into loads, whose bodies are streamed.
const BODY_BYTES_MAX: u64 = 4 << 20;
/// The statements of all requests together, in KiB.
pub(super) const STATEMENTS_KIB_MAX: usize = 64 << 10;
/// Time after which an answer begins although nothing is known of it yet, and then gets a space again and again: a client that
/// has left refuses these, and its statement ends.
const SPACE_EVERY: Duration = Duration::from_secs(1);

/// The body of a request.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    stmt: String,
    limit: Option<u64>,
}

impl Handler {
    pub(super) async fn query(
        &self,
        head: &Parts,
        wire: Wire,
        peer: &Arc<Peer>,
        db: Option<String>,
    ) -> Handled {
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => {
                let refusal = reply::envelope(EnvelopeCode::Unauthorized, text);
                return Handled::new(reply::unauthorized(refusal), wire);
            }
        };
        let begun = Instant::now();
        let held = match self.admit_statement(head) {
            Ok(held) => held,
            Err(refusal) => return Handled::new(*refusal, wire),
        };
        let (mut body, rest) = LoadBody::new(wire);
        let asked = read_body(&mut body).await;
        drop(body);
        let response = match asked.and_then(|text| parse(head, &text)) {
            Err((status, text)) => reply::envelope_with_status(status, EnvelopeCode::BadRequest, text),
            Ok((asked, read_after)) => {
                let left = CancellationToken::new();
                let request = QueryRequest {
                    db,
                    statement: asked.stmt,
                    rows_max: asked.limit,
                    read_after,
                    trace_parent: Headers(&head.headers).trace_parent(),
                    left: left.clone(),
                };
                let (queries, peer) = (Arc::clone(&self.services.queries), Arc::clone(peer));
                // Not cancelled with this request: it is told, and ends its statement.
                let mut running = tokio::spawn(async move {
                    let _held = held;
                    queries.query(&user, &peer, request).await
                });
                match timeout(SPACE_EVERY, &mut running).await {
                    Ok(ended) => Document::of(ended.unwrap_or_else(panicked), begun).into_response(),
                    Err(_) => reply::json_stream(Box::pin(StreamReader::new(waiting(running, left, begun)))),
                }
            }
        };
        Handled { response, rest: rest.await.ok() }
    }

    /// Takes the memory for the statement in a request's body.
    ///
    /// # Errors
    /// The answer when other requests have all of it.
    pub(super) fn admit_statement(
        &self,
        head: &Parts,
    ) -> Result<OwnedSemaphorePermit, Box<Response<ReplyBody>>> {
        let kib = body_bytes(head).div_ceil(1024).max(1) as u32;
        Arc::clone(&self.statements).try_acquire_many_owned(kib).map_err(|_| {
            let text = "the statements of other requests take all the memory that there is for them";
            Box::new(reply::busy(false, text))
        })
    }
}

/// Spaces until a statement is answered, and then its document.
fn waiting(
    running: JoinHandle<Result<QueryAnswer, SqlError>>,
    left: CancellationToken,
    begun: Instant,
) -> BoxStream<'static, io::Result<Bytes>> {
    // Dropped with the answer if its client leaves.
    let leaves = left.drop_guard();
    let parts = stream::unfold(Some((running, leaves)), move |state| async move {
        let (mut running, leaves) = state?;
        match timeout(SPACE_EVERY, &mut running).await {
            Err(_) => {
                Some((Document::Whole(Bytes::from_static(b" ")).into_stream(), Some((running, leaves))))
            }
            Ok(ended) => {
                leaves.disarm();
                Some((Document::of(ended.unwrap_or_else(panicked), begun).into_stream(), None))
            }
        }
    });
    parts.flatten().boxed()
}

fn panicked(error: tokio::task::JoinError) -> Result<QueryAnswer, SqlError> {
    tracing::error!(%error, "a statement over HTTP panicked");
    Err(SqlError::new(
        ErrorCode::Unknown,
        "the server failed while it ran this statement (a bug, see its log)",
    ))
}

/// The bytes that the body may take in memory.
fn body_bytes(head: &Parts) -> u64 {
    let declared = Headers(&head.headers).lossy("content-length").parse().unwrap_or(BODY_BYTES_MAX);
    declared.min(BODY_BYTES_MAX)
}

pub(super) type Refusal = (StatusCode, String);

/// The whole body of a request.
pub(super) async fn read_body(body: &mut LoadBody) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        text.extend_from_slice(&chunk);
        if text.len() as u64 > BODY_BYTES_MAX {
            let text =
                format!("the body is longer than {BODY_BYTES_MAX} bytes; send rows with a Stream Load");
            return Err((StatusCode::PAYLOAD_TOO_LARGE, text));
        }
    }
    Ok(text)
}

/// The request in a body and its head.
fn parse(head: &Parts, body: &[u8]) -> Result<(Asked, Option<TxnId>), Refusal> {
    let bad = |text: String| (StatusCode::BAD_REQUEST, text);
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(bad("Missing statement request body".to_owned()));
    }
    let asked: Asked = serde_json::from_slice(body)
        .map_err(|error| bad(format!("the body is not {{\"stmt\": \"…\"}}: {error}")))?;
    if asked.stmt.trim().is_empty() {
        return Err(bad("Missing statement request body".to_owned()));
    }
    let Some(receipt) = head.headers.get("read_after") else { return Ok((asked, None)) };
    let receipt = receipt.to_str().ok().and_then(|receipt| receipt.trim().parse().ok());
    let receipt = receipt.ok_or_else(|| {
        bad("the header read_after is not a receipt: the TxnId in the answer to a load, as 4711".to_owned())
    })?;
    Ok((asked, Some(TxnId(receipt))))
}

/// The end of a statement without rows.
#[derive(Serialize)]
struct Status {
    affected_rows: u64,
    warnings: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    info: String,
}

/// The document that answers a statement.
enum Document {
    Whole(Bytes),
    Rows(BoxStream<'static, io::Result<Bytes>>),
}

impl Document {
    fn of(answer: Result<QueryAnswer, SqlError>, begun: Instant) -> Self {
        match answer {
            Ok(QueryAnswer::Rows { columns, rows }) => Self::Rows(document(&columns, rows, begun)),
            Ok(QueryAnswer::Done { affected_rows, warnings, info }) => {
                let status = Status { affected_rows, warnings, info };
                let time = begun.elapsed().as_millis() as u64;
                let data = serde_json::json!({ "type": "exec_status", "status": status, "time": time });
                Self::Whole(reply::envelope_text(EnvelopeCode::Success, data).into())
            }
            Err(error) => Self::Whole(failure_text(&error).into()),
        }
    }

    fn into_response(self) -> Response<ReplyBody> {
        match self {
            Self::Whole(text) => reply::json(StatusCode::OK, text),
            Self::Rows(rows) => reply::json_stream(Box::pin(StreamReader::new(rows))),
        }
    }

    fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        match self {
            Self::Whole(text) => stream::once(async { Ok(text) }).boxed(),
            Self::Rows(rows) => rows,
        }
    }
}

/// `{"msg":"success","code":0,"data":{…},"count":0}` around rows that are still being computed. If they end with an error, so
/// does the connection, before the document is whole.
fn document(
    columns: &[QueryColumn],
    rows: BoxStream<'static, Result<Bytes, SqlError>>,
    begun: Instant,
) -> BoxStream<'static, io::Result<Bytes>> {
    let meta = serde_json::to_string(columns).expect("strings always serialize");
    let head = format!(r#"{{"msg":"success","code":0,"data":{{"type":"result_set","meta":{meta},"data":["#);
    let head = stream::once(async move { Ok(Bytes::from(head)) });
    let rows = rows.enumerate().map(|(number, piece)| {
        let piece = piece.map_err(|error| io::Error::other(error.to_string()))?;
        if number == 0 {
            return Ok(piece);
        }
        let mut with_comma = Vec::with_capacity(piece.len() + 1);
        with_comma.push(b',');
        with_comma.extend_from_slice(&piece);
        Ok(Bytes::from(with_comma))
    });
    let tail = stream::once(async move {
        let time = begun.elapsed().as_millis();
        Ok(Bytes::from(format!(r#"],"status":{{}},"time":{time}}},"count":0}}"#)))
    });
    head.chain(rows).chain(tail).boxed()
}

/// A statement's error: Doris's envelope, and what a MySQL client would be told.
fn failure_text(error: &SqlError) -> Vec<u8> {
    let more = serde_json::json!({
        "number": error.code.number(),
        "sqlstate": error.code.sqlstate(),
        "retry": error.retry.to_string(),
    });
    reply::failure_text(&error.message, &more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt;

    fn head(headers: &[(&str, &str)]) -> Parts {
        let request = headers
            .iter()
            .fold(hyper::Request::builder(), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_is_a_statement_a_limit_and_a_receipt() {
        let (asked, receipt) =
            parse(&head(&[("read_after", " 7 ")]), br#"{"stmt":"SELECT 1","is_sync":true,"limit":5}"#)
                .unwrap();
        assert_eq!((asked.stmt.as_str(), asked.limit, receipt), ("SELECT 1", Some(5), Some(TxnId(7))));
        for (headers, body, text) in [
            (&[][..], "", "Missing statement request body"),
            (&[], r#"{"stmt":" "}"#, "Missing statement request body"),
            (&[], "SELECT 1", "the body is not {\"stmt\": \"…\"}"),
            (&[("read_after", "x")], r#"{"stmt":"SELECT 1"}"#, "the header read_after is not a receipt"),
        ] {
            let (status, found) = parse(&head(headers), body.as_bytes()).err().unwrap();
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(found.starts_with(text), "{found}");
        }
    }

    #[tokio::test]
    async fn pieces_of_rows_become_one_document() {
        let columns = [QueryColumn { name: "a\"b".into(), type_name: "INT".into() }];
        let pieces = |pieces: &'static [&'static str]| {
            stream::iter(pieces).map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).boxed()
        };
        for (given, rows) in [(&[][..], 0), (&["[1]"][..], 1), (&["[1],[2]", "[3]"][..], 3)] {
            let whole: Vec<Bytes> =
                document(&columns, pieces(given), Instant::now()).try_collect().await.unwrap();
            let json: serde_json::Value = serde_json::from_slice(&whole.concat()).unwrap();
            assert_eq!(json["data"]["meta"][0]["name"], "a\"b");
            assert_eq!(json["data"]["data"].as_array().unwrap().len(), rows);
        }
        let broken =
            stream::iter([Err(SqlError::detail(tributary_types::ErrorCode::Unknown, "late"))]).boxed();
        let ended: Result<Vec<Bytes>, _> = document(&columns, broken, Instant::now()).try_collect().await;
        assert!(ended.unwrap_err().to_string().ends_with("late"));
    }
}

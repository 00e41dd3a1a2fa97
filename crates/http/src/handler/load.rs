//! Stream Load and HTTP Stream: check the head, run the load, answer.
//!
//! Invariant: a load that was handed to the service is answered with the service's answer, to
//! which this crate adds what only it knows: bytes received, time, comment and label of the head.

use super::{Handled, Handler};
use crate::answer::LoadAnswer;
use crate::body::{LoadBody, Wire};
use crate::code::LoadCode;
use crate::headers::{self, Early, HeaderError, Headers};
use crate::peer::Peer;
use crate::reached;
use crate::reply::{self, ReplyBody};
use crate::request::{HttpStreamRequest, StreamLoadRequest};
use crate::service::{AnsweredLoad, LoadRoute};
use hyper::Response;
use hyper::http::request::Parts;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tributary_decode::Compression;
use tributary_types::{Label, Principal, TableRef};

/// How long the server waits for a body that a service still holds after its answer.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of the request that the answer repeats.
struct Echo {
    arrived: Instant,
    label: String,
    comment: String,
    two_phase_commit: bool,
    /// The host in the answer's URL, if it is not the server's own.
    host: Option<String>,
}

impl Echo {
    fn of(head: &Parts, host: Option<String>) -> Self {
        let headers = Headers(&head.headers);
        Self {
            arrived: Instant::now(),
            label: headers.lossy("label"),
            comment: headers.lossy("comment"),
            two_phase_commit: headers.two_phase_commit(),
            host,
        }
    }

    /// The answer as this client gets it.
    fn reply(host: Option<String>, answer: &LoadAnswer) -> Response<ReplyBody> {
        match (host, &answer.error_url) {
            (Some(host), Some(url)) => {
                let error_url = Some(reached::on_host(url, &host));
                reply::load(&LoadAnswer { error_url, ..answer.clone() })
            }
            _ => reply::load(answer),
        }
    }

    fn complete(self, mut answer: LoadAnswer) -> LoadAnswer {
        if answer.comment.is_empty() {
            answer.comment = self.comment;
        }
        if answer.label.is_empty() {
            answer.label = self.label;
        }
        answer.two_phase_commit = self.two_phase_commit && !answer.group_commit;
        answer.times.load = self.arrived.elapsed();
        answer
    }
}

impl Handler {
    pub(super) async fn stream_load(
        &self,
        head: &Parts,
        wire: Wire,
        peer: &Peer,
        target: (String, String),
    ) -> Handled {
        let echo = Echo::of(head, self.reached_as(head, peer));
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => return unauthorized(echo, &text, wire),
        };
        let (db, table) = target.clone();
        let mut has_begun = false;
        let (handled, mut answer) =
            match self.stream_load_request(Headers(&head.headers), &user, target).await {
                Err(answer) => refused(echo, answer, wire),
                Ok(request) => {
                    has_begun = true;
                    let compression = request.compression;
                    let loads = &self.services.loads;
                    run(echo, wire, compression, log, |body| loads.stream_load(&user, request, body)).await
                }
            };
        answer.table.get_or_insert(TableRef { db, table });
        let route = LoadRoute::StreamLoad;
        self.services.loads.answered(AnsweredLoad {
            principal: user,
            peer: peer.ip,
            answer,
            route,
            has_begun,
        });
        handled
    }

    pub(super) async fn http_stream(&self, head: &Parts, wire: Wire, peer: &Peer) -> Handled {
        let echo = Echo::of(head, self.reached_as(head, peer));
        let user = match self.user(head, peer).await {
            Ok(user) => user,
            Err(text) => return unauthorized(echo, &text, wire),
        };
        let mut has_begun = false;
        let (handled, answer) = match self.http_stream_request(Headers(&head.headers), &user) {
            Err(error) => refused(echo, LoadAnswer::fail(error.code, error.text), wire),
            Ok(request) => {
                has_begun = true;
                let compression = request.compression;
                let loads = &self.services.loads;
                run(echo, wire, compression, log_code, |body| loads.http_stream(&user, request, body)).await
            }
        };
        let route = LoadRoute::HttpStream;
        self.services.loads.answered(AnsweredLoad {
            principal: user,
            peer: peer.ip,
            answer,
            route,
            has_begun,
        });
        handled
    }

    /// The request, or the answer that refuses it: a used label before any header that Doris
    /// checks after the label.
    async fn stream_load_request(
        &self,
        headers: Headers<'_>,
        user: &Principal,
        target: (String, String),
    ) -> Result<StreamLoadRequest, LoadAnswer> {
        if let Some(text) = missing_name(&target) {
            return Err(LoadAnswer::fail(LoadCode::InvalidArgument, text));
        }
        let fail = |error: HeaderError| LoadAnswer::fail(error.code, error.text);
        let early = Early::of_stream_load(headers, self.options.streaming_load_max_bytes())
            .map_err(fail)?
            .or_timeout(self.options.load_timeout.get());
        let (label, db) = (early.label.clone(), target.0.clone());
        match headers::stream_load(headers, early, target, user.user().to_owned()) {
            Ok(request) => Ok(request),
            Err(error) => Err(self.used_label(user, &db, label).await.unwrap_or_else(|| fail(error))),
        }
    }

    async fn used_label(&self, user: &Principal, db: &str, label: Option<Label>) -> Option<LoadAnswer> {
        self.services.loads.label_in_use(user, db, &label?).await
    }

    fn http_stream_request(
        &self,
        headers: Headers<'_>,
        user: &Principal,
    ) -> Result<HttpStreamRequest, HeaderError> {
        let early = Early::of_http_stream(headers, self.options.streaming_load_max_bytes())?
            .or_timeout(self.options.load_timeout.get());
        headers::http_stream(headers, early, user.user().to_owned())
    }
}

fn missing_name((db, table): &(String, String)) -> Option<&'static str> {
    if db.is_empty() {
        Some("No database selected.")
    } else if table.is_empty() {
        Some("No table selected.")
    } else {
        None
    }
}

fn refused(echo: Echo, answer: LoadAnswer, wire: Wire) -> (Handled, LoadAnswer) {
    tracing::debug!(message = answer.message, "load refused");
    let answer = echo.complete(answer);
    (Handled::new(reply::load(&answer), wire), answer)
}

fn unauthorized(echo: Echo, text: &str, wire: Wire) -> Handled {
    let answer = echo.complete(LoadAnswer::fail(LoadCode::NotAuthorized, text));
    Handled::new(reply::unauthorized(reply::load(&answer)), wire)
}

/// Runs a load and waits for the return of its body.
async fn run<F: Future<Output = LoadAnswer>>(
    mut echo: Echo,
    wire: Wire,
    compression: Compression,
    log: fn(&LoadAnswer),
    load: impl FnOnce(LoadBody) -> F,
) -> (Handled, LoadAnswer) {
    let (body, back) = LoadBody::new(wire);
    let body = body.decompress(compression);
    let meter = body.meter();
    let accepted = echo.arrived.elapsed();
    let answer = load(body).await;
    let host = echo.host.take();
    let mut answer = echo.complete(answer);
    answer.load_bytes = meter.received_bytes();
    answer.times.receive_data = meter.waited();
    if let Some(stages) = &mut answer.times.stages {
        stages.accept = accepted;
    }
    log(&answer);
    let rest = timeout(GIVE_BACK_TIMEOUT, back).await.ok().and_then(Result::ok);
    (Handled { response: Echo::reply(host, &answer), rest }, answer)
}

/// Logs a load whose message may quote a statement with keys: its code only.
fn log_code(answer: &LoadAnswer) {
    let code = answer.message.split_inclusive(']').next().unwrap_or_default().to_owned();
    log(&LoadAnswer { message: code, ..answer.clone() });
}

fn log(answer: &LoadAnswer) {
    let LoadAnswer { label, message, total_rows, loaded_rows, filtered_rows, load_bytes, .. } = answer;
    let load_ms = answer.times.load.as_millis();
    if answer.is_loaded() {
        tracing::debug!(label, total_rows, loaded_rows, filtered_rows, load_bytes, load_ms, "load answered");
    } else {
        tracing::info!(label, message, total_rows, filtered_rows, load_bytes, load_ms, "load failed");
    }
}

//! The end of each request, whatever its entry point: the one place that sees the user, the request and its outcome.
//!
//! Invariant: a request ends here once, when its answer is known: a statement or a prepared statement of a MySQL client, a login,
//! a load or another request over HTTP, a job or a task of one. That feeds metrics, the log and the audit log; quotas belong
//! here.
//!
//! Not its business: the answers, and loads within a request.

use crate::access::events::Events;
use crate::access::failures::{FailingClient, FailureKind, Failures, NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::access::spans::{self, Trace};
use crate::audit::entry::{Entry, Text, beginning};
use crate::audit::{Admission, Audit};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, exponential_buckets,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_sql::{Change, outline, redacted};
use tributary_traces::Traces;
use tributary_types::host::unix_ms;
use tributary_types::{ErrorCode, Principal, SqlError};

/// The entry point of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Statement,
    Prepared,
    StreamLoad,
    HttpStream,
    /// A statement over HTTP.
    HttpQuery,
    TwoPhase,
    Job,
    /// A batch of a ROUTINE LOAD.
    Task,
    MysqlLogin,
    /// A refused login over HTTP; others are requests.
    HttpLogin,
    /// A request over HTTP that is no load.
    HttpApi,
    /// A statement by Arrow Flight SQL.
    Flight,
    /// A load by Arrow Flight.
    FlightLoad,
    FlightLogin,
}

impl Door {
    const ALL: [Self; 14] = [
        Self::Statement,
        Self::Prepared,
        Self::StreamLoad,
        Self::HttpStream,
        Self::HttpQuery,
        Self::TwoPhase,
        Self::Job,
        Self::Task,
        Self::MysqlLogin,
        Self::HttpLogin,
        Self::HttpApi,
        Self::Flight,
        Self::FlightLoad,
        Self::FlightLogin,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Prepared => "prepared",
            Self::StreamLoad => "stream_load",
            Self::HttpStream => "http_stream",
            Self::HttpQuery => "http_query",
            Self::TwoPhase => "two_phase",
            Self::Job => "job",
            Self::Task => "task",
            Self::MysqlLogin => "mysql_login",
            Self::HttpLogin => "http_login",
            Self::HttpApi => "http_api",
            Self::Flight => "flight",
            Self::FlightLoad => "flight_load",
            Self::FlightLogin => "flight_login",
        }
    }

    /// The door of prepared statements of a session whose statements come by this one.
    pub const fn of_prepared(self) -> Self {
        match self {
            Self::Statement => Self::Prepared,
            other => other,
        }
    }

    /// Whether clients get arrays, maps and structs as what they are, and not as texts.
    pub const fn has_nested_values(self) -> bool {
        matches!(self, Self::Flight)
    }

    const fn protocol(self) -> &'static str {
        match self {
            Self::Statement | Self::Prepared | Self::MysqlLogin => "mysql",
            Self::StreamLoad
            | Self::HttpStream
            | Self::HttpQuery
            | Self::TwoPhase
            | Self::HttpLogin
            | Self::HttpApi => "http",
            Self::Job | Self::Task => "job",
            Self::Flight | Self::FlightLoad | Self::FlightLogin => "flight",
        }
    }
}

/// The text of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stated<'a> {
    /// A statement, with its kind, that was parsed.
    Statement(&'a str, &'static str),
    /// A text that was not understood. It may contain anything.
    Illegible(&'a str),
    /// Words of the server and names, with the kind of the request.
    Plain(&'a str, &'static str),
}

/// The transaction of a request that has loaded rows, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadFacts<'a> {
    pub table: Option<&'a str>,
    pub format: Option<&'static str>,
    pub txn: Option<u64>,
    pub label: Option<&'a str>,
}

/// Why a request failed: its number for MySQL's clients, and its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure<'a> {
    pub code: u16,
    pub text: &'a str,
}

impl<'a> From<&'a SqlError> for Failure<'a> {
    fn from(error: &'a SqlError) -> Self {
        Self { code: error.code.number(), text: error.detail_text() }
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedRequest<'a> {
    pub principal: &'a Principal,
    /// Whether there is such a user; one that failed to log in may be nobody.
    pub is_known: bool,
    pub door: Door,
    pub stated: Stated<'a>,
    /// The effect of a statement on the server.
    pub change: Option<Change>,
    /// The connection's number and the client's address with its port; the principal has the host.
    pub connection: Option<(u32, &'a Arc<str>)>,
    pub db: Option<&'a str>,
    pub load: LoadFacts<'a>,
    /// Rows that were changed or loaded.
    pub affected_rows: u64,
    pub returned_rows: u64,
    pub received_bytes: u64,
    pub took: Duration,
    /// The error of a failed request.
    pub error: Option<Failure<'a>>,
    /// Whether the audit log has a record of it, if there is an audit log.
    pub is_recorded: bool,
    pub trace: Trace<'a>,
}

impl<'a> FinishedRequest<'a> {
    /// A request about which nothing else is known.
    pub const fn new(principal: &'a Principal, door: Door, stated: Stated<'a>, took: Duration) -> Self {
        Self {
            principal,
            is_known: true,
            door,
            stated,
            change: None,
            connection: None,
            db: None,
            load: LoadFacts { table: None, format: None, txn: None, label: None },
            affected_rows: 0,
            returned_rows: 0,
            received_bytes: 0,
            took,
            error: None,
            is_recorded: true,
            trace: Trace::Open(None, &[]),
        }
    }
}

/// The ends of requests: counters by door, the audit log, and traces.
#[derive(Debug)]
pub(crate) struct Requests {
    metrics: RequestMetrics,
    /// Failed requests of the last minute.
    pub failures: Failures,
    pub events: Arc<Events>,
    pub audit: Audit,
    pub traces: Traces,
}

/// Counters of requests by door. Handles are fetched once: counting does not look up a label.
#[derive(Debug)]
struct RequestMetrics {
    finished: [IntCounter; Door::ALL.len()],
    failed: [IntCounter; Door::ALL.len()],
    rows: [IntCounter; Door::ALL.len()],
    seconds: [Histogram; Door::ALL.len()],
}

impl RequestMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counters = |name: &str, help: &str| -> Result<[IntCounter; Door::ALL.len()], prometheus::Error> {
            let all = IntCounterVec::new(Opts::new(name, help), &["door"])?;
            registry.register(Box::new(all.clone()))?;
            Ok(Door::ALL.map(|door| all.with_label_values(&[door.name()])))
        };
        let help = "Time from a request's beginning to its answer, by door";
        let opts = HistogramOpts::new("tributary_request_seconds", help);
        let seconds = HistogramVec::new(opts.buckets(exponential_buckets(0.000_1, 4.0, 12)?), &["door"])?;
        registry.register(Box::new(seconds.clone()))?;
        Ok(Self {
            finished: counters("tributary_requests_total", "Requests that have ended, by door")?,
            failed: counters("tributary_requests_failed_total", "Requests that have failed, by door")?,
            rows: counters(
                "tributary_request_rows_total",
                "Rows that requests have changed, loaded or given, by door",
            )?,
            seconds: Door::ALL.map(|door| seconds.with_label_values(&[door.name()])),
        })
    }
}

impl Requests {
    pub fn new(registry: &Registry, audit: Audit, traces: Traces) -> Result<Self, prometheus::Error> {
        Ok(Self {
            metrics: RequestMetrics::new(registry)?,
            failures: Failures::default(),
            events: Arc::default(),
            audit,
            traces,
        })
    }

    /// Admits a request before it runs: its record will find a place. `None`: it needs no admission.
    ///
    /// # Errors
    /// There is no place, and nothing runs without a record.
    #[inline]
    pub fn admit(&self) -> Result<Option<Admission>, SqlError> {
        self.audit.admit()
    }

    /// Ends a request.
    pub fn finished(&self, request: &FinishedRequest<'_>, admission: Option<Admission>) {
        let place = request.door as usize;
        let metrics = &self.metrics;
        metrics.finished[place].inc();
        metrics.rows[place].inc_by(request.affected_rows + request.returned_rows);
        metrics.seconds[place].observe(request.took.as_secs_f64());
        if let (None, Some(change), Stated::Statement(text, _)) =
            (request.error, request.change, request.stated)
        {
            self.events.changed((request.principal.user(), request.principal.host()), change, text);
        }
        if let Some(error) = request.error {
            metrics.failed[place].inc();
            log(request, error);
            if let Some(client) = failing(request, error) {
                self.failures.count(client, Instant::now(), || error_text(request, error));
            }
        }
        if self.traces.are_on() {
            spans::finished(&self.traces, request);
        }
        if request.is_recorded && self.audit.is_on() {
            self.audit.push(entry(request, self.audit.text_bytes_max()), admission);
        }
    }
}

/// The client whose failures operators should know of.
fn failing(request: &FinishedRequest<'_>, error: Failure<'_>) -> Option<FailingClient> {
    let limits = [ErrorCode::UserLimit, ErrorCode::Busy].map(ErrorCode::number);
    let is_insert = matches!(request.stated, Stated::Statement(_, "INSERT"));
    let kind = match request.door {
        Door::MysqlLogin | Door::HttpLogin | Door::FlightLogin => FailureKind::Login,
        _ if limits.contains(&error.code) => FailureKind::Limit,
        Door::StreamLoad | Door::HttpStream | Door::FlightLoad | Door::Task => FailureKind::Load,
        _ if is_insert => FailureKind::Load,
        _ => return None,
    };
    let principal = request.principal;
    let is_load = kind == FailureKind::Load;
    Some(FailingClient {
        kind,
        user: (kind != FailureKind::Login).then(|| principal.user().to_owned()),
        host: principal.host().to_owned(),
        // A name of a request, perhaps of no table, and as long as its client wants.
        table: request.load.table.filter(|_| is_load).map(|table| {
            let name = |name| beginning(name, NAME_BYTES_MAX);
            request.db.map_or_else(|| name(table).to_owned(), |db| format!("{}.{}", name(db), name(table)))
        }),
    })
}

/// The beginning of an error's text, without secrets.
pub(super) fn error_text(request: &FinishedRequest<'_>, error: Failure<'_>) -> String {
    let text = match request.stated {
        Stated::Plain(..) => error.text.to_owned(),
        Stated::Illegible(_) => String::new(),
        Stated::Statement(text, _) => redacted(text).error(error.text).into_owned(),
    };
    beginning(&text, TEXT_BYTES_MAX).to_owned()
}

fn log(request: &FinishedRequest<'_>, error: Failure<'_>) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let (principal, door) = (request.principal, request.door.name());
    let (statement, text) = match request.stated {
        Stated::Plain(text, _) => (text.into(), error.text.into()),
        Stated::Illegible(text) => (outline(text, text.len()).into(), "not shown".into()),
        Stated::Statement(text, _) => {
            let shown = redacted(text);
            let error = shown.error(error.text);
            (shown.text, error)
        }
    };
    let (user, host, error) = (principal.user(), principal.host(), &*text);
    tracing::debug!(user, host, door, %statement, error, "a request failed");
}

/// Copies what a record needs.
fn entry(request: &FinishedRequest<'_>, text_bytes_max: usize) -> Entry {
    let principal = request.principal;
    let (user, account_host) = principal.account();
    let cut = |text: &str| Box::from(beginning(text, text_bytes_max));
    let (kind, text) = match request.stated {
        Stated::Statement(text, kind) => (kind, Text::Statement(cut(text), text.len())),
        Stated::Illegible(text) => ("", Text::Illegible(beginning(text, 64).into(), text.len())),
        Stated::Plain(text, kind) => (kind, Text::Plain(cut(text))),
    };
    Entry {
        ended_ms: unix_ms(),
        took: request.took,
        door: request.door.name(),
        protocol: request.door.protocol(),
        connection: request.connection.map(|(id, _)| id),
        user,
        client: request.connection.map_or_else(|| principal.host().into(), |(_, peer)| Arc::clone(peer)),
        account_host: request.is_known.then_some(account_host),
        db: request.db.map(str::to_owned),
        table: request.load.table.map(str::to_owned),
        format: request.load.format,
        txn: request.load.txn,
        label: request.load.label.map(str::to_owned),
        kind,
        text,
        affected_rows: request.affected_rows,
        returned_rows: request.returned_rows,
        received_bytes: request.received_bytes,
        error: request
            .error
            .map(|error| (error.code, beginning(error.text, text_bytes_max.max(4096)).to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestEngine;

    #[tokio::test]
    async fn a_request_is_counted_under_its_door() {
        let test = TestEngine::open(|_| ()).await;
        let principal = Principal::new("root", "%", 0);
        let failure = Failure { code: 1105, text: "no" };
        for (door, error) in [(Door::StreamLoad, None), (Door::StreamLoad, Some(failure)), (Door::Job, None)]
        {
            let took = Duration::from_millis(3);
            let request = FinishedRequest::new(&principal, door, Stated::Plain("l", "LOAD"), took);
            test.engine.requests.finished(&FinishedRequest { affected_rows: 2, error, ..request }, None);
        }
        let text = test.engine.metrics_text();
        for line in [
            "tributary_requests_total{door=\"stream_load\"} 2",
            "tributary_requests_failed_total{door=\"stream_load\"} 1",
            "tributary_request_rows_total{door=\"job\"} 2",
            "tributary_requests_total{door=\"statement\"} 0",
            "tributary_request_seconds_count{door=\"stream_load\"} 2",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(
            Door::ALL.iter().enumerate().all(|(place, door)| *door as usize == place),
            "a door's place is its number"
        );
    }
}

//! The end of each request, whatever its entry point: the one place that sees the user, the request and its outcome.
//!
//! Invariant: a request ends here once, when its answer is known: a text of statements or a prepared statement of a MySQL client,
//! a load or a two-phase operation over HTTP, a job. Today that feeds metrics and the log; an audit log and quotas belong here.
//!
//! Not its business: the answers, and loads within a request.

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, exponential_buckets,
};
use std::time::Duration;
use tributary_sql::without_secrets;
use tributary_types::Principal;

/// The entry point of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Statement,
    Prepared,
    StreamLoad,
    HttpStream,
    TwoPhase,
    Job,
}

impl Door {
    const ALL: [Self; 6] =
        [Self::Statement, Self::Prepared, Self::StreamLoad, Self::HttpStream, Self::TwoPhase, Self::Job];

    const fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Prepared => "prepared",
            Self::StreamLoad => "stream_load",
            Self::HttpStream => "http_stream",
            Self::TwoPhase => "two_phase",
            Self::Job => "job",
        }
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedRequest<'a> {
    pub principal: &'a Principal,
    pub door: Door,
    /// The statement, or the name of the load or job. It may contain secrets, which are never shown.
    pub statement: &'a str,
    /// Rows that were changed, loaded or returned.
    pub rows: u64,
    pub took: Duration,
    /// The error of a failed request.
    pub error: Option<&'a str>,
}

/// Counters of requests by door. Handles are fetched once: counting does not look up a label.
#[derive(Debug)]
pub(crate) struct RequestMetrics {
    finished: [IntCounter; Door::ALL.len()],
    failed: [IntCounter; Door::ALL.len()],
    rows: [IntCounter; Door::ALL.len()],
    seconds: [Histogram; Door::ALL.len()],
}

impl RequestMetrics {
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
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

    /// Ends a request.
    pub fn finished(&self, request: FinishedRequest<'_>) {
        let FinishedRequest { principal, door, statement, rows, took, error } = request;
        let place = door as usize;
        self.finished[place].inc();
        self.rows[place].inc_by(rows);
        self.seconds[place].observe(took.as_secs_f64());
        let Some(error) = error else { return };
        self.failed[place].inc();
        tracing::debug!(
            user = principal.user(),
            host = principal.host(),
            door = door.name(),
            statement = %without_secrets(statement),
            error,
            "a request failed"
        );
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
        for (door, error) in [(Door::StreamLoad, None), (Door::StreamLoad, Some("no")), (Door::Job, None)] {
            let took = Duration::from_millis(3);
            test.engine.requests.finished(FinishedRequest {
                principal: &principal,
                door,
                statement: "l",
                rows: 2,
                took,
                error,
            });
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
        assert_eq!(Door::ALL.map(|door| door as usize), [0, 1, 2, 3, 4, 5], "a door's place is its number");
    }
}

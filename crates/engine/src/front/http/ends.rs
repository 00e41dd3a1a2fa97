//! The end of each request over HTTP, for metrics and the audit log.
//!
//! Not here: answers.

use super::HttpLoads;
use crate::access::finished::{Door, Failure, FinishedRequest, LoadFacts, Stated};
use crate::access::spans::Trace;
use crate::audit::Admission;
use std::time::Instant;
use tributary_http::{LoadAnswer, LoadCode, LoadRoute, LoadStages, TwoPhaseOp};
use tributary_ingest::TwoPhaseTarget;
use tributary_sql::parse_http_stream;
use tributary_types::{ErrorCode, Label, Principal, SqlError, TableRef, TraceParent};

/// A load as it was requested.
pub(super) struct RequestedLoad<'a> {
    pub principal: &'a Principal,
    pub route: LoadRoute,
    /// As the URL names it.
    pub table: Option<&'a TableRef>,
    pub format: Option<&'static str>,
    /// The statement of an HTTP Stream.
    pub sql: Option<&'a str>,
    pub label: Option<&'a str>,
    pub begun: Instant,
    /// The client's span that has caused it.
    pub trace_parent: Option<TraceParent>,
}

impl HttpLoads {
    /// Admits a load before it runs.
    ///
    /// # Errors
    /// The answer to a load that is refused because it would leave no record.
    pub(super) fn admit(&self) -> Result<Option<Admission>, Box<LoadAnswer>> {
        self.0
            .requests
            .admit()
            .map_err(|error| Box::new(LoadAnswer::fail(LoadCode::ServiceUnavailable, error.detail_text())))
    }

    /// Records the end of a load.
    pub(super) fn ended(
        &self,
        load: &RequestedLoad<'_>,
        answer: &LoadAnswer,
        received_bytes: u64,
        admission: Option<Admission>,
    ) {
        let table = answer.table.as_ref().or(load.table);
        let is_failure = answer.status.is_failure();
        let words = match (load.table, load.route) {
            // Nobody reads them.
            _ if !is_failure && !self.0.requests.audit.is_on() => String::new(),
            (Some(table), LoadRoute::StreamLoad) => {
                format!("PUT /api/{}/{}/_stream_load", table.db, table.table)
            }
            (None, LoadRoute::StreamLoad) => "PUT /api/…/_stream_load".to_owned(),
            (Some(table), LoadRoute::Flight) => format!("DoPut {}.{}", table.db, table.table),
            (None, LoadRoute::Flight) => "DoPut".to_owned(),
            (_, LoadRoute::HttpStream) => "PUT /api/_http_stream".to_owned(),
        };
        let (door, stated) = match (load.route, load.sql) {
            (LoadRoute::StreamLoad, _) => (Door::StreamLoad, Stated::Plain(&words, "LOAD")),
            (LoadRoute::Flight, _) => (Door::FlightLoad, Stated::Plain(&words, "LOAD")),
            (LoadRoute::HttpStream, None) => (Door::HttpStream, Stated::Plain(&words, "LOAD")),
            (LoadRoute::HttpStream, Some(sql)) if is_failure && parse_http_stream(sql).is_err() => {
                (Door::HttpStream, Stated::Illegible(sql))
            }
            (LoadRoute::HttpStream, Some(sql)) => (Door::HttpStream, Stated::Statement(sql, "INSERT")),
        };
        let is_illegible = matches!(stated, Stated::Illegible(_));
        let code = match answer.is_limited {
            _ if is_illegible => ErrorCode::Syntax,
            true => ErrorCode::UserLimit,
            false => ErrorCode::Unknown,
        };
        let label = Some(answer.label.as_str()).filter(|label| !label.is_empty()).or(load.label);
        let stages = answer.times.stages.as_ref().filter(|_| answer.is_loaded()).map(LoadStages::of_service);
        let request = FinishedRequest {
            db: table.map(|table| table.db.as_str()),
            load: LoadFacts {
                table: table.map(|table| table.table.as_str()),
                format: load.format,
                txn: answer.txn_id.map(|txn| txn.0),
                label,
            },
            affected_rows: if is_failure { 0 } else { answer.loaded_rows },
            received_bytes,
            trace: Trace::Open(load.trace_parent, stages.as_ref().map_or(&[], |stages| stages)),
            error: is_failure.then_some(Failure { code: code.number(), text: &answer.message }),
            ..FinishedRequest::new(load.principal, door, stated, load.begun.elapsed())
        };
        self.0.requests.finished(&request, admission);
    }

    /// Records the end of the second phase of a load.
    pub(super) fn ended_two_phase(
        &self,
        principal: &Principal,
        db: &str,
        (op, target): (TwoPhaseOp, &TwoPhaseTarget),
        begun: Instant,
        outcome: &Result<(), SqlError>,
        admission: Option<Admission>,
    ) {
        let words = format!("PUT /api/{db}/_stream_load_2pc txn_operation: {}", op.as_str());
        let kind = match op {
            TwoPhaseOp::Commit => "COMMIT",
            TwoPhaseOp::Abort => "ROLLBACK",
        };
        let request = FinishedRequest {
            db: Some(db),
            load: LoadFacts {
                txn: target.txn.map(|txn| txn.0),
                label: target.label.as_ref().map(Label::as_str),
                ..LoadFacts::default()
            },
            error: outcome.as_ref().err().map(Failure::from),
            ..FinishedRequest::new(principal, Door::TwoPhase, Stated::Plain(&words, kind), begun.elapsed())
        };
        self.0.requests.finished(&request, admission);
    }

    /// Records the end of a request that is no load, in words of the server, with its kind.
    pub(super) fn looked<T>(
        &self,
        principal: &Principal,
        (words, kind): (&str, &'static str),
        db: &str,
        begun: Instant,
        outcome: &Result<T, SqlError>,
    ) {
        let request = FinishedRequest {
            db: Some(db),
            error: outcome.as_ref().err().map(Failure::from),
            ..FinishedRequest::new(principal, Door::HttpApi, Stated::Plain(words, kind), begun.elapsed())
        };
        self.0.requests.finished(&request, None);
    }
}

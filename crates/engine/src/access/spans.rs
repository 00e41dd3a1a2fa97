//! Requests that have ended, as traces have them.
//!
//! Invariant: no attribute has a statement's text. The text of an error has no secrets, but may have values of the client's rows.
//!
//! Not here: the way to the collector.

use super::finished::{FinishedRequest, Stated, error_text};
use std::time::{Duration, SystemTime};
use tributary_traces::{Attribute, Traced, TracedRequest, Traces};
use tributary_types::TraceParent;

/// Stages of a load that follow one another.
type Stages<'a> = &'a [(&'static str, Duration)];

/// The place of a request in a trace, and the stages of its load if it is one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trace<'a> {
    /// It is decided at its end whether it is traced, by the client's span if there is one.
    Open(Option<TraceParent>, Stages<'a>),
    Decided(Option<Traced>, Stages<'a>),
}

/// Sends a request that has ended on its way, if it is traced.
pub(super) fn finished(traces: &Traces, request: &FinishedRequest<'_>) {
    let (traced, stages) = match request.trace {
        Trace::Open(parent, stages) => (traces.decide(|| parent), stages),
        Trace::Decided(traced, stages) => (traced, stages),
    };
    if let Some(traced) = traced {
        traces.push(TracedRequest {
            traced,
            name: name(request),
            ended: SystemTime::now(),
            took: request.took,
            stages: stages.to_vec(),
            attributes: attributes(request),
            failure: request.error.map(|error| error_text(request, error)),
        });
    }
}

fn operation(request: &FinishedRequest<'_>) -> &'static str {
    match request.stated {
        Stated::Statement(_, kind) | Stated::Plain(_, kind) => kind,
        Stated::Illegible(_) => "UNKNOWN",
    }
}

/// `INSERT db.t`, or the operation alone.
fn name(request: &FinishedRequest<'_>) -> String {
    match (request.db, request.load.table) {
        (Some(db), Some(table)) => format!("{} {db}.{table}", operation(request)),
        _ => operation(request).to_owned(),
    }
}

fn attributes(request: &FinishedRequest<'_>) -> Vec<(&'static str, Attribute)> {
    let text = |text: &str| Attribute::Text(text.to_owned());
    let count = |count: u64| (count > 0).then_some(Attribute::Count(count));
    let load = &request.load;
    let error = request.error.map(|error| Attribute::Text(error.code.to_string()));
    let all = [
        ("db.system.name", Some(Attribute::Name("tributary"))),
        ("db.operation.name", Some(Attribute::Name(operation(request)))),
        ("db.namespace", request.db.map(text)),
        ("db.collection.name", load.table.map(text)),
        ("db.response.returned_rows", count(request.returned_rows)),
        ("db.response.status_code", error.clone()),
        ("error.type", error),
        ("client.address", Some(text(request.principal.host()))),
        ("user.name", Some(text(request.principal.user()))),
        ("tributary.door", Some(Attribute::Name(request.door.name()))),
        ("tributary.affected_rows", count(request.affected_rows)),
        ("tributary.received_bytes", count(request.received_bytes)),
        ("tributary.format", load.format.map(Attribute::Name)),
        ("tributary.txn_id", load.txn.map(Attribute::Count)),
        ("tributary.label", load.label.map(text)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

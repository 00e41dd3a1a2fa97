//! Requests as spans.
//!
//! Names of attributes are those of OpenTelemetry's conventions for databases where it has one, and begin with `tributary.` elsewhere.
//!
//! Not here: queues, and the collector.

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};
use tributary_types::TraceParent;

/// A request that is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    trace: u128,
    /// The client's span.
    parent: Option<u64>,
}

impl Traced {
    pub(crate) const fn below(parent: TraceParent) -> Self {
        Self { trace: parent.trace, parent: Some(parent.span) }
    }

    pub(crate) fn by_chance() -> Self {
        Self { trace: rand::random::<u128>().max(1), parent: None }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Text(String),
    Name(&'static str),
    Count(u64),
}

impl From<Attribute> for Value {
    fn from(attribute: Attribute) -> Self {
        match attribute {
            Attribute::Text(text) => text.into(),
            Attribute::Name(name) => name.into(),
            Attribute::Count(count) => i64::try_from(count).unwrap_or(i64::MAX).into(),
        }
    }
}

/// A traced request that has ended.
#[derive(Clone, Debug)]
pub struct TracedRequest {
    pub traced: Traced,
    pub name: String,
    pub ended: SystemTime,
    pub took: Duration,
    /// Stages that follow one another from its beginning on.
    pub stages: Vec<(&'static str, Duration)>,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// The text of its failure.
    pub failure: Option<String>,
}

impl TracedRequest {
    /// The request's span and below it one for each stage that took time.
    pub(crate) fn into_spans(self) -> Vec<SpanData> {
        let Traced { trace, parent } = self.traced;
        let trace = TraceId::from(trace);
        let (root, begun) = (new_span_id(), self.ended.checked_sub(self.took).unwrap_or(self.ended));
        let request = SpanData {
            parent_span_id: parent.map_or(SpanId::INVALID, SpanId::from),
            parent_span_is_remote: parent.is_some(),
            span_kind: SpanKind::Server,
            attributes: self.attributes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect(),
            status: self.failure.map_or(Status::Unset, Status::error),
            ..span(trace, root, self.name.into(), (begun, self.ended))
        };
        let mut spans = Vec::with_capacity(1 + self.stages.len());
        spans.push(request);
        let mut at = begun;
        for (name, took) in self.stages.into_iter().filter(|(_, took)| !took.is_zero()) {
            let end = at.checked_add(took).unwrap_or(at);
            let stage = span(trace, new_span_id(), name.into(), (at, end));
            spans.push(SpanData { parent_span_id: root, ..stage });
            at = end;
        }
        spans
    }
}

fn span(
    trace: TraceId,
    id: SpanId,
    name: Cow<'static, str>,
    (begun, ended): (SystemTime, SystemTime),
) -> SpanData {
    SpanData {
        span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name,
        start_time: begun,
        end_time: ended,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("tributary").build(),
    }
}

fn new_span_id() -> SpanId {
    SpanId::from(rand::random::<u64>().max(1))
}

//! Traces of requests: each traced one is a span with the stages of its load as children, sent to an OpenTelemetry collector by OTLP
//! over HTTP.
//!
//! Requests leave what is known about them in a bounded queue when they end; [`Traces::send`] takes them in batches, so no request
//! waits for the collector. A request that brings a trace along is traced if its client records it; of the others, one in
//! [`TraceOptions::one_in`].
//!
//! Invariant: a traced request is sent, or counted as dropped. No span has a statement's text, only its kind and table: statements
//! contain values, and traces go to other companies' servers.
//!
//! Not here: what a request is, and which of its facts are attributes.
//!
//! | file | purpose |
//! | --- | --- |
//! | `span` | requests as spans |

mod span;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use parking_lot::Mutex;
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;
use tributary_types::host::unix_ms;
use tributary_types::{Live, Secret, TraceParent};
use url::Url;

pub use span::{Attribute, Traced, TracedRequest};

/// Requests that wait to be sent.
const QUEUE: usize = 8192;
/// Requests of one batch.
const BATCH: usize = 512;
/// How long a batch gathers.
const GATHER: Duration = Duration::from_secs(1);
/// How long the collector may take for a batch.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a server that stops goes on sending.
const CLOSING: Duration = Duration::from_secs(5);
/// How long a collector that failed is left alone.
const PAUSE: Duration = Duration::from_secs(2);

/// Settings of traces.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The collector's address; without a path, `/v1/traces` of it.
    pub endpoint: Url,
    /// Headers of requests to the collector, as `name=value,name=value`.
    pub headers: Secret,
    /// One of this many requests is traced that bring no trace along; at least 1.
    pub one_in: Live<u64>,
    /// The name of this server among others of the service.
    pub instance: String,
    pub version: &'static str,
}

/// Why there are no traces.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("traces can't be sent to {endpoint} (setting otlp_endpoint): {text}")]
    Exporter { endpoint: Url, text: String },
    #[error(
        "otlp_headers is not a list like `name=value,name=value`: part {part} of it has no name and `=`, or is no header; write \
         commas within values as %2C"
    )]
    Headers { part: usize },
    #[error("{0}")]
    Metrics(#[from] prometheus::Error),
}

/// A collector that did not take the last batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorTrouble {
    /// When it failed first, in milliseconds since 1970.
    pub since_ms: i64,
    pub text: String,
}

/// The traces of a server.
#[derive(Debug)]
pub struct Traces {
    on: Option<On>,
    metrics: TraceMetrics,
}

#[derive(Debug)]
struct On {
    queue: Sender<TracedRequest>,
    one_in: Live<u64>,
    trouble: Mutex<Option<CollectorTrouble>>,
    sending: tokio::sync::Mutex<Sending>,
}

#[derive(Debug)]
struct Sending {
    queue: Receiver<TracedRequest>,
    exporter: SpanExporter,
}

#[derive(Debug)]
struct TraceMetrics {
    sent: IntCounter,
    dropped_from_queue: IntCounter,
    dropped_at_collector: IntCounter,
}

impl TraceMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let sent =
            IntCounter::new("tributary_traces_sent_total", "Traced requests that the collector has taken")?;
        registry.register(Box::new(sent.clone()))?;
        let dropped = IntCounterVec::new(
            Opts::new(
                "tributary_traces_dropped_total",
                "Traced requests that were lost: without a place in the queue, or not taken by the collector",
            ),
            &["at"],
        )?;
        registry.register(Box::new(dropped.clone()))?;
        Ok(Self {
            sent,
            dropped_from_queue: dropped.with_label_values(&["queue"]),
            dropped_at_collector: dropped.with_label_values(&["collector"]),
        })
    }
}

impl Traces {
    /// Traces with these options; without any, nothing is traced. Nothing is sent yet.
    ///
    /// # Errors
    /// The headers are not legal, there is no client for the address, or a metric is registered twice.
    pub fn new(options: Option<TraceOptions>, registry: &Registry) -> Result<Self, TraceError> {
        let metrics = TraceMetrics::new(registry)?;
        let on = options.map(On::new).transpose()?;
        Ok(Self { on, metrics })
    }

    /// Whether requests may be traced.
    #[inline]
    #[must_use]
    pub const fn are_on(&self) -> bool {
        self.on.is_some()
    }

    /// Decides whether a request is traced, by the trace that it brings along if it brings one.
    #[must_use]
    pub fn decide(&self, parent: impl FnOnce() -> Option<TraceParent>) -> Option<Traced> {
        let on = self.on.as_ref()?;
        match parent() {
            Some(parent) => parent.is_sampled.then(|| Traced::below(parent)),
            None => rand::random_ratio(1, u32::try_from(on.one_in.get()).unwrap_or(u32::MAX).max(1))
                .then(Traced::by_chance),
        }
    }

    /// Takes a traced request that has ended. Never waits.
    pub fn push(&self, request: TracedRequest) {
        let Some(on) = &self.on else { return };
        if on.queue.try_send(request).is_err() {
            self.metrics.dropped_from_queue.inc();
        }
    }

    /// Sends requests that wait, or waits for some. Returns after about a second at the latest, and says how long nothing should be sent.
    pub async fn send(&self) -> Duration {
        const NEVER: Duration = Duration::from_secs(3600);
        let Some(on) = &self.on else { return NEVER };
        let mut sending = on.sending.lock().await;
        let batch = sending.gather().await;
        self.export(on, &mut sending, batch).await
    }

    /// Sends the last requests, for a few seconds at most. Later ones are counted as dropped.
    pub async fn close(&self) {
        let Some(on) = &self.on else { return };
        let last = async {
            let mut sending = on.sending.lock().await;
            sending.queue.close();
            loop {
                let mut batch = Vec::with_capacity(BATCH);
                if sending.queue.recv_many(&mut batch, BATCH).await == 0 {
                    return;
                }
                self.export(on, &mut sending, batch).await;
            }
        };
        if timeout(CLOSING, last).await.is_err() {
            let left = on.sending.try_lock().map_or(0, |sending| sending.queue.len());
            self.metrics.dropped_at_collector.inc_by(left as u64);
        }
    }

    async fn export(&self, on: &On, sending: &mut Sending, batch: Vec<TracedRequest>) -> Duration {
        if batch.is_empty() {
            return Duration::ZERO;
        }
        // Also of a batch whose sending is given up.
        let mut lost = Lost { count: batch.len() as u64, counter: &self.metrics.dropped_at_collector };
        let spans = batch.into_iter().flat_map(TracedRequest::into_spans).collect();
        let outcome = match timeout(ANSWER, sending.exporter.export(spans)).await {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", ANSWER.as_secs())),
        };
        let mut trouble = on.trouble.lock();
        match outcome {
            Ok(()) => {
                self.metrics.sent.inc_by(std::mem::take(&mut lost.count));
                *trouble = None;
                Duration::ZERO
            }
            Err(text) => {
                let since_ms = trouble.as_ref().map_or_else(unix_ms, |trouble| trouble.since_ms);
                *trouble = Some(CollectorTrouble { since_ms, text });
                PAUSE
            }
        }
    }

    /// The trouble with the collector, if it did not take the last batch.
    #[must_use]
    pub fn trouble(&self) -> Option<CollectorTrouble> {
        self.on.as_ref()?.trouble.lock().clone()
    }
}

/// Requests that are lost when this is dropped.
struct Lost<'a> {
    count: u64,
    counter: &'a IntCounter,
}

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        self.counter.inc_by(self.count);
    }
}

impl On {
    fn new(options: TraceOptions) -> Result<Self, TraceError> {
        let TraceOptions { mut endpoint, headers, one_in, instance, version } = options;
        if endpoint.path() == "/" {
            endpoint.set_path("/v1/traces");
        }
        let failed = |text: String| TraceError::Exporter { endpoint: endpoint.clone(), text };
        // A redirect would carry the headers, which may be secrets, to another host.
        let client = reqwest_otlp::Client::builder().redirect(reqwest_otlp::redirect::Policy::none());
        let client = client.timeout(ANSWER).build().map_err(|error| failed(error.to_string()))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.as_str())
            .with_timeout(ANSWER)
            .with_headers(named(headers.reveal())?)
            .build();
        let mut exporter = exporter.map_err(|error| failed(error.to_string()))?;
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", "tributary"),
            KeyValue::new("service.instance.id", instance),
            KeyValue::new("service.version", version),
        ]);
        exporter.set_resource(&resource.build());
        let (queue, waiting) = channel(QUEUE);
        let sending = tokio::sync::Mutex::new(Sending { queue: waiting, exporter });
        Ok(Self { queue, one_in, trouble: Mutex::default(), sending })
    }
}

impl Sending {
    /// Waits for requests, and for more of them, a second at most.
    async fn gather(&mut self) -> Vec<TracedRequest> {
        let (mut batch, begun) = (Vec::with_capacity(BATCH), Instant::now());
        while batch.len() < BATCH {
            let left = GATHER.saturating_sub(begun.elapsed());
            let room = BATCH - batch.len();
            // A batch that is not full yet loses nothing when the time is over: what was received is in it.
            match timeout(left, self.queue.recv_many(&mut batch, room)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        batch
    }
}

/// Reads `name=value,name=value`, with values as in URLs.
fn named(headers: &str) -> Result<HashMap<String, String>, TraceError> {
    let mut found = HashMap::new();
    for (at, pair) in headers.split(',').enumerate().filter(|(_, pair)| !pair.trim().is_empty()) {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let (name, value) = pair
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(name, _)| !name.is_empty() && name.bytes().all(legal))
            .ok_or(TraceError::Headers { part: at + 1 })?;
        let value = url::form_urlencoded::parse(format!("v={}", value.replace('+', "%2B")).as_bytes())
            .next()
            .map(|(_, value)| value.into_owned())
            .filter(|value| value.bytes().all(|byte| (32..127).contains(&byte)))
            .ok_or(TraceError::Headers { part: at + 1 })?;
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;

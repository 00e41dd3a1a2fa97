//! The body of a load, as a stream of chunks in bounded memory.
//!
//! Invariant: after the last chunk or an error, [`LoadBody::next`] yields `None` from then on, and a
//! body that did not arrive whole always ends with an error before that `None`: a load that
//! commits on `None` alone never commits half of a body.
//!
//! A body that is dropped before its end returns to the server, which discards the rest.

use crate::code::LoadCode;
use crate::unpack::{Step, Unpack};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use std::collections::VecDeque;
use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tributary_decode::Compression;

/// Why a body did not arrive whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The connection ended within a body of declared length.
    #[error("receive body don't equal with body bytes, Content-Length: {declared}, received: {received}")]
    Short { declared: u64, received: u64 },
    /// The connection ended within a chunked body, or was reset.
    #[error("sender is gone after {received} bytes of the body")]
    SenderGone { received: u64 },
    /// No byte arrived for too long.
    #[error("no data from the sender for {} ms after {received} bytes of the body; the load was given up", idle.as_millis())]
    Idle { idle: Duration, received: u64 },
    /// More bytes than the server takes in one load.
    #[error(
        "body size {bytes} exceed BE's conf `streaming_load_max_mb` {limit_mb}. increase it if you are sure this load \
         is reasonable"
    )]
    TooLarge { bytes: u64, limit_mb: u64 },
    /// The compressed stream is damaged or ends early.
    #[error(
        "broken {} body after {received} bytes: {what}; send whole {}, or no compress_type and no Content-Encoding",
        compression.name(),
        compression.unit()
    )]
    BrokenPacking { compression: Compression, received: u64, what: String },
    /// The chunked encoding itself is wrong.
    #[error("malformed chunked body after {received} bytes: {what}")]
    Malformed { received: u64, what: String },
    /// A body that does not come from a connection can't be read.
    #[error("{what}")]
    Unreadable { what: String },
}

impl BodyError {
    /// The code that precedes the text in an answer.
    #[must_use]
    pub const fn code(&self) -> LoadCode {
        match self {
            Self::Short { .. } | Self::Malformed { .. } => LoadCode::Network,
            Self::SenderGone { .. } => LoadCode::Cancelled,
            Self::Idle { .. } => LoadCode::Timeout,
            Self::TooLarge { .. } => LoadCode::ExceededLimit,
            Self::BrokenPacking { .. } => LoadCode::DataQuality,
            Self::Unreadable { .. } => LoadCode::Internal,
        }
    }
}

/// Counters of a body that can be read while and after it is consumed.
#[derive(Clone, Debug, Default)]
pub struct BodyMeter {
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    received_bytes: AtomicU64,
    waited_ns: AtomicU64,
}

impl BodyMeter {
    /// Bytes received on the wire so far (before decompression).
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.counters.received_bytes.load(Ordering::Relaxed)
    }

    /// Time spent waiting for the client so far.
    #[must_use]
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.counters.waited_ns.load(Ordering::Relaxed))
    }

    fn add(&self, bytes: usize, waited: Duration) {
        self.counters.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.counters.waited_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// The body of a load.
pub struct LoadBody {
    /// `Some` until it is given back by `drop`.
    wire: Option<Wire>,
    unpack: Option<Unpack>,
    /// Bytes yielded; only differs from the wire's with compression.
    yielded: u64,
    ended: bool,
    give_back: Option<oneshot::Sender<Wire>>,
}

impl LoadBody {
    /// A body that is in memory already.
    #[must_use]
    pub fn from_chunks(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        Self::new(Wire::new(
            Source::Memory(chunks.into_iter().collect()),
            None,
            false,
            u64::MAX,
            Duration::MAX,
        ))
        .0
    }

    /// Wraps a body from another source, of at most `limit_bytes` as it comes and as it is unpacked. An error of the stream, and
    /// more bytes, are [`BodyError::Unreadable`].
    #[must_use]
    pub fn from_stream(chunks: BoxStream<'static, Result<Bytes, String>>, limit_bytes: u64) -> Self {
        Self::new(Wire::new(Source::Stream(chunks), None, false, limit_bytes, Duration::MAX)).0
    }

    /// Wraps a body that a client sends by another protocol, of at most `limit_bytes`, and with pieces at most `idle` apart. An error
    /// of the stream is [`BodyError::Unreadable`].
    #[must_use]
    pub fn from_client(
        chunks: BoxStream<'static, Result<Bytes, String>>,
        limit_bytes: u64,
        idle: Duration,
    ) -> Self {
        Self::new(Wire::new(Source::Client(chunks), None, false, limit_bytes, idle)).0
    }

    /// Wraps a body from the wire; the wire returns through the receiver when the body is dropped.
    pub(crate) fn new(wire: Wire) -> (Self, oneshot::Receiver<Wire>) {
        let (give_back, back) = oneshot::channel();
        let body =
            Self { wire: Some(wire), unpack: None, yielded: 0, ended: false, give_back: Some(give_back) };
        (body, back)
    }

    /// Decompresses the body from here on. Has no effect if a compression was set before, so a header and a statement may both
    /// name the same. Call it before the first [`LoadBody::next`].
    #[must_use]
    pub fn decompress(mut self, compression: Compression) -> Self {
        if self.unpack.is_none() {
            self.unpack = Unpack::new(compression);
        }
        self
    }

    /// The counters, which outlive the body.
    #[must_use]
    pub fn meter(&self) -> BodyMeter {
        self.wire.as_ref().map(|wire| wire.meter.clone()).unwrap_or_default()
    }

    /// The next chunk, decompressed: not empty, at most about 256 KiB. `None` after the end and
    /// after an error. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if self.ended {
            return None;
        }
        let next = match self.unpack {
            None => self.wire.as_mut()?.next().await,
            Some(_) => self.next_piece().await,
        };
        let next = next.map(|item| item.and_then(|chunk| self.within_limit(chunk)));
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }

    async fn next_piece(&mut self) -> Option<Result<Bytes, BodyError>> {
        let (wire, unpack) = (self.wire.as_mut()?, self.unpack.as_mut()?);
        loop {
            match unpack.step() {
                Ok(Step::Piece(piece)) => return Some(Ok(piece)),
                Ok(Step::End) => return None,
                Ok(Step::NeedInput) => match wire.next().await {
                    Some(Ok(chunk)) => unpack.feed(chunk),
                    Some(Err(error)) => return Some(Err(error)),
                    None => unpack.end_input(),
                },
                Err(error) => {
                    let received = wire.meter.received_bytes();
                    return Some(Err(broken(unpack.compression(), &error, received)));
                }
            }
        }
    }

    fn within_limit(&mut self, chunk: Bytes) -> Result<Bytes, BodyError> {
        self.yielded += chunk.len() as u64;
        match &self.wire {
            Some(wire) if self.yielded > wire.limit_bytes => Err(wire.too_large(self.yielded)),
            _ => Ok(chunk),
        }
    }
}

impl Drop for LoadBody {
    fn drop(&mut self) {
        if let (Some(wire), Some(give_back)) = (self.wire.take(), self.give_back.take()) {
            // If the connection is closed, there is no receiver.
            let _ = give_back.send(wire);
        }
    }
}

fn broken(compression: Compression, error: &io::Error, received: u64) -> BodyError {
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the stream ends early".to_owned(),
        _ => error.to_string(),
    };
    BodyError::BrokenPacking { compression, received, what }
}

enum Source {
    Connection(Incoming),
    Memory(VecDeque<Bytes>),
    Stream(BoxStream<'static, Result<Bytes, String>>),
    Client(BoxStream<'static, Result<Bytes, String>>),
}

/// The raw body from the connection.
pub(crate) struct Wire {
    source: Source,
    declared: Option<u64>,
    /// The client waits for `100 Continue`, which goes out with the first read.
    expects_continue: bool,
    read_from: bool,
    state: WireState,
    limit_bytes: u64,
    idle: Duration,
    meter: BodyMeter,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WireState {
    Open,
    Ended,
    Failed,
}

impl Wire {
    pub(crate) fn from_connection(
        body: Incoming,
        declared: Option<u64>,
        expects_continue: bool,
        limit_bytes: u64,
        idle: Duration,
    ) -> Self {
        let ended = body.is_end_stream();
        let mut wire = Self::new(Source::Connection(body), declared, expects_continue, limit_bytes, idle);
        if ended {
            wire.state = WireState::Ended;
        }
        wire
    }

    fn new(
        source: Source,
        declared: Option<u64>,
        expects_continue: bool,
        limit_bytes: u64,
        idle: Duration,
    ) -> Self {
        Self {
            source,
            declared,
            expects_continue,
            read_from: false,
            state: WireState::Open,
            limit_bytes,
            idle,
            meter: BodyMeter::default(),
        }
    }

    /// The next bytes as the client sent them; fused like [`LoadBody::next`].
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if self.state != WireState::Open {
            return None;
        }
        self.read_from = true;
        let next = self.receive().await;
        match &next {
            Some(Ok(_)) => {}
            Some(Err(_)) => self.state = WireState::Failed,
            None => self.state = WireState::Ended,
        }
        next
    }

    async fn receive(&mut self) -> Option<Result<Bytes, BodyError>> {
        let asked = Instant::now();
        let chunk = loop {
            let frame = match &mut self.source {
                Source::Memory(chunks) => chunks.pop_front().map(Ok),
                Source::Stream(chunks) => match chunks.next().await {
                    None => None,
                    Some(Ok(bytes)) => Some(Ok(bytes)),
                    Some(Err(what)) => return Some(Err(BodyError::Unreadable { what })),
                },
                Source::Client(chunks) => match timeout(self.idle, chunks.next()).await {
                    Err(_) => return Some(Err(self.idle_error())),
                    Ok(None) => None,
                    Ok(Some(Ok(bytes))) => Some(Ok(bytes)),
                    Ok(Some(Err(what))) => return Some(Err(BodyError::Unreadable { what })),
                },
                Source::Connection(body) => match timeout(self.idle, body.frame()).await {
                    Err(_) => return Some(Err(self.idle_error())),
                    Ok(None) => None,
                    Ok(Some(Ok(frame))) => Some(Ok(frame.into_data().unwrap_or_default())),
                    Ok(Some(Err(error))) => Some(Err(error)),
                },
            };
            match frame {
                None => return self.missing_bytes().map(Err),
                Some(Err(error)) => return Some(Err(self.failure(&error))),
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => break bytes,
            }
        };
        self.meter.add(chunk.len(), asked.elapsed());
        let received = self.meter.received_bytes();
        if received > self.limit_bytes {
            return Some(Err(self.too_large(received)));
        }
        Some(Ok(chunk))
    }

    /// The error of a body that ended before its declared length.
    fn missing_bytes(&self) -> Option<BodyError> {
        let (declared, received) = (self.declared?, self.meter.received_bytes());
        (received < declared).then_some(BodyError::Short { declared, received })
    }

    fn idle_error(&self) -> BodyError {
        BodyError::Idle { idle: self.idle, received: self.meter.received_bytes() }
    }

    fn too_large(&self, bytes: u64) -> BodyError {
        if let Source::Stream(_) = self.source {
            let limit = self.limit_bytes;
            let what = format!(
                "it has more than {limit} bytes, which is all the disk that bodies and files may wait on; raise spool_limit_bytes \
                 or read smaller files"
            );
            return BodyError::Unreadable { what };
        }
        BodyError::TooLarge { bytes, limit_mb: self.limit_bytes / (1024 * 1024) }
    }

    fn failure(&self, error: &hyper::Error) -> BodyError {
        let received = self.meter.received_bytes();
        let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        match (cause.map(io::Error::kind), self.declared) {
            (Some(io::ErrorKind::UnexpectedEof), Some(declared)) => BodyError::Short { declared, received },
            (Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData), None) => {
                let what = cause.map(ToString::to_string).unwrap_or_default();
                BodyError::Malformed { received, what }
            }
            _ => BodyError::SenderGone { received },
        }
    }

    /// Discards the rest, up to `max_bytes` and `max_time`. Returns whether the body's end was reached, so that the connection
    /// can be reused.
    pub(crate) async fn drain(mut self, max_bytes: u64, max_time: Duration) -> bool {
        match self.state {
            WireState::Ended => return true,
            WireState::Failed => return false,
            WireState::Open => {}
        }
        let never_invited = self.expects_continue && !self.read_from;
        if never_invited {
            return false;
        }
        self.limit_bytes = self.meter.received_bytes().saturating_add(max_bytes);
        let discard = async { while let Some(Ok(_)) = self.next().await {} };
        let in_time = timeout(max_time, discard).await.is_ok();
        in_time && self.state == WireState::Ended
    }
}

#[cfg(test)]
mod tests;

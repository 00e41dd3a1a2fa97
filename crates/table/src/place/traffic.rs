//! Counts the requests to a store: how many there were, and how many it throttled or left unanswered. The client repeats these, so
//! that nobody else sees them.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::Result;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TOO_MANY_REQUESTS: u16 = 429;
const SLOW_DOWN: u16 = 503;

/// Requests to a store since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreTraffic {
    pub requests: u64,
    /// Answered with 429 or 503.
    pub throttled: u64,
    /// Answered with another error of the store (5xx), or not at all.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    throttled: AtomicU64,
    failed: AtomicU64,
}

/// Makes clients whose requests are counted. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted(Arc<Counters>);

impl Counted {
    pub(super) fn traffic(&self) -> StoreTraffic {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { requests, throttled, failed } = &*self.0;
        StoreTraffic { requests: of(requests), throttled: of(throttled), failed: of(failed) }
    }
}

impl HttpConnector for Counted {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(CountedClient { inner, counters: Arc::clone(&self.0) }))
    }
}

#[derive(Debug)]
struct CountedClient {
    inner: HttpClient,
    counters: Arc<Counters>,
}

#[async_trait]
impl HttpService for CountedClient {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let Counters { requests, throttled, failed } = &*self.counters;
        requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.inner.execute(request).await;
        let status = match &answer {
            Ok(answer) => Some(answer.status()),
            Err(_) => None,
        };
        match status {
            Some(status) if matches!(status.as_u16(), TOO_MANY_REQUESTS | SLOW_DOWN) => {
                throttled.fetch_add(1, Ordering::Relaxed);
            }
            Some(status) if !status.is_server_error() => {}
            Some(_) | None => {
                failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        answer
    }
}

//! The way of each request to a store: it is counted, whether the store throttled it or left it unanswered, and a page of a list is
//! read whole. The client repeats what failed here, so that nobody else sees it.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::Result;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
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
        let is_list = is_list(request.uri().query().unwrap_or_default());
        let answer = match self.inner.execute(request).await {
            Ok(answer) if is_list => read_whole(answer).await,
            answer => answer,
        };
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

/// Whether a request with this query asks for a page of a list: of S3 or of Azure.
fn is_list(query: &str) -> bool {
    query.split('&').any(|part| part.starts_with("list-type=") || part == "comp=list")
}

/// Waits for the body: the client repeats a request without an answer, and not a list whose answer was cut. A page has at most a
/// thousand names.
async fn read_whole(answer: HttpResponse) -> std::result::Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    // Whatever the reason is: the client must know that asking again is right.
    let body = body.bytes().await.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
    Ok(HttpResponse::from_parts(head, HttpResponseBody::from(body)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt;
    use object_store::ObjectStore;
    use object_store::aws::AmazonS3Builder;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const LIST: &str = "<ListBucketResult><Contents><Key>a/1</Key><LastModified>2026-11-29T00:00:00.000Z</LastModified>\
                        <ETag>\"1\"</ETag><Size>7</Size></Contents><IsTruncated>false</IsTruncated></ListBucketResult>";

    #[tokio::test]
    async fn a_list_whose_answer_is_cut_is_asked_for_again() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let store = tokio::spawn(async move {
            for sent in [LIST.len() / 2, 0, LIST.len()] {
                let (mut connection, _) = listener.accept().await.expect("a request");
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(connection.read_u8().await.expect("a head"));
                }
                let head =
                    format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", LIST.len());
                connection.write_all(head.as_bytes()).await.expect("the client reads");
                connection.write_all(&LIST.as_bytes()[..sent]).await.expect("the client reads");
            }
        });
        let counted = Counted::default();
        let client = AmazonS3Builder::new()
            .with_endpoint(endpoint)
            .with_allow_http(true)
            .with_bucket_name("bucket")
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_http_connector(counted.clone())
            .build()
            .expect("a client");
        let listed: Vec<_> = client.list(None).try_collect().await.expect("a list");
        assert_eq!(listed.iter().map(|object| object.location.as_ref()).collect::<Vec<_>>(), ["a/1"]);
        assert_eq!(counted.traffic(), StoreTraffic { requests: 3, throttled: 0, failed: 2 });
        store.await.expect("the store");
    }

    #[test]
    fn lists_are_known_by_their_queries() {
        for query in ["list-type=2&prefix=a", "prefix=a&list-type=2", "restype=container&comp=list&prefix=a"]
        {
            assert!(is_list(query), "{query}");
        }
        for query in ["", "uploads", "prefix=list-type", "comp=block", "uploadId=list-type=2"] {
            assert!(!is_list(query), "{query}");
        }
    }
}

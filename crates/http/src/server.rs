//! Listeners, connections, shutdown.
//!
//! Invariant: a request runs in a task of its own, so a client that leaves does not cancel half-done work, and a panic affects no
//! other request.

use crate::body::Wire;
use crate::deadline::{Deadline, Seen};
use crate::framing::{HeadWatch, Watched};
use crate::handler::{Handled, Handler};
use crate::head_bytes::{HeadBytes, HeadCharge};
use crate::headers::Headers;
use crate::options::HttpOptions;
use crate::peer::Peer;
use crate::places::{Limits, Place, Places};
use crate::reply::{self, ReplyBody};
use crate::route::Route;
use crate::service::Services;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tributary_admission::Refusal;
use tributary_tls::{Protocol, Transport};

/// The read buffer of a connection, in bytes; also the largest chunk of a body.
const CONNECTION_BUFFER_BYTES: usize = 256 * 1024;
/// How long accepting pauses after it failed (too many open files, …).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// How long a lingering connection may be silent.
const LINGER_IDLE: Duration = Duration::from_secs(5);

/// Serves HTTP on all `listeners` (the same paths on each) until `shutdown` is cancelled, then
/// waits for the requests in flight, at most [`HttpOptions::shutdown_grace`]. On return the
/// listeners and all connections are closed; a load that outlived the grace learns it from its body
/// ([`crate::BodyError::SenderGone`]) and ends on its own.
///
/// # Errors
/// No listener was given, or one has no local address.
pub async fn serve(
    listeners: Vec<TcpListener>,
    services: Services,
    options: HttpOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    if listeners.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no listener: give at least one HTTP port"));
    }
    let grace = options.shutdown_grace;
    let server = Server::new(services, options, shutdown.clone());
    for listener in listeners {
        tracing::debug!(address = %listener.local_addr()?, "serving HTTP");
        server.connections.spawn(server.clone().accept(listener));
    }
    shutdown.cancelled().await;
    server.connections.close();
    server.requests.close();
    let finished = async { tokio::join!(server.connections.wait(), server.requests.wait()) };
    if timeout(grace, finished).await.is_err() {
        tracing::warn!(requests = server.requests.len(), "HTTP requests in flight are cut off at shutdown");
        server.abort.cancel();
        server.connections.wait().await;
    }
    Ok(())
}

#[derive(Clone)]
struct Server {
    handler: Handler,
    /// Listeners and connections.
    connections: TaskTracker,
    requests: TaskTracker,
    places: Arc<Places>,
    head_bytes: Arc<HeadBytes>,
    shutdown: CancellationToken,
    /// Ends connections at once, after shutdown's grace.
    abort: CancellationToken,
}

impl Server {
    fn new(services: Services, options: HttpOptions, shutdown: CancellationToken) -> Self {
        let limits = Limits {
            all: options.max_connections.clone(),
            of_address: options.max_connections_of_address.clone(),
            beyond: options.max_connections_beyond,
        };
        Self {
            places: Places::new(limits),
            head_bytes: HeadBytes::new(options.max_heads_bytes),
            handler: Handler::new(services, options),
            connections: TaskTracker::new(),
            requests: TaskTracker::new(),
            shutdown,
            abort: CancellationToken::new(),
        }
    }

    async fn accept(self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                () = self.shutdown.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let place = self.places.enter(peer.ip());
                    self.connections.spawn(self.clone().connection(stream, peer, place));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an HTTP connection");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr, place: Place) {
        // Only latency is lost without it.
        let _ = stream.set_nodelay(true);
        let abort = self.abort.child_token();
        tokio::select! {
            () = abort.cancelled() => {}
            () = place.taken_away() => {
                Refusal::HttpMadeRoom.log(|left_out| {
                    tracing::info!(%peer, left_out, "a connection without a request made room for another");
                });
            }
            result = self.serve_connection(stream, peer, &place) => {
                if let Err(error) = result {
                    tracing::debug!(%peer, %error, "HTTP connection ended");
                }
            }
        }
    }

    async fn serve_connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: &Place,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let options = &self.handler.options;
        let unread = AtomicBool::new(false);
        let watch = Arc::new(HeadWatch::new(Deadline::new(options.head_timeout.get(), options.idle_timeout)));
        let mut peer = Peer::of(&stream, peer);
        let accepted = timeout(
            options.head_timeout.get(),
            Transport::accept(stream, options.tls.as_deref(), Protocol::Http1),
        );
        let (stream, tls) = tokio::select! {
            accepted = accepted => accepted??,
            () = self.shutdown.cancelled() => return Ok(()),
        };
        peer.tls = tls;
        let peer = Arc::new(peer);
        let service = service_fn(|mut request: Request<Incoming>| {
            if watch.take() {
                // The library removed the header: restores it for the check that words the error.
                request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            let answer = self.answer_in(place, request, &peer, &unread);
            let watch = &watch;
            Box::pin(async move {
                let answer = answer.await;
                watch.expect_head();
                Ok::<_, Infallible>(answer)
            })
        });
        let stream = Watched::new(stream, Arc::clone(&watch), HeadCharge::new(&self.head_bytes));
        let mut connection = self.builder().serve_connection(TokioIo::new(stream), service);
        // A token of its own: connections do not meet at the lock of the server's token.
        let shutdown = self.shutdown.child_token();
        let mut stopping = false;
        let mut look = pin!(sleep(options.head_timeout.get()));
        loop {
            tokio::select! {
                done = poll_fn(|context| connection.poll_without_shutdown(context)) => {
                    done?;
                    break;
                }
                () = shutdown.cancelled(), if !stopping => stopping = true,
                () = &mut look => match watch.deadline.look(Instant::now()) {
                    (Seen::Late, _) => {
                        late(&peer);
                        return Ok(());
                    }
                    (seen, next) => {
                        if seen == Seen::Waiting {
                            place.waits();
                        }
                        look.as_mut().reset(next);
                        continue;
                    }
                },
            }
            Pin::new(&mut connection).graceful_shutdown();
        }
        let mut stream = connection.into_parts().io.into_inner().stream;
        place.waits();
        stream.shutdown().await?;
        if unread.load(Ordering::Relaxed) {
            self.linger(stream).await;
        }
        Ok(())
    }

    fn builder(&self) -> http1::Builder {
        let options = &self.handler.options;
        let mut builder = http1::Builder::new();
        builder
            // Heads have a deadline of their own.
            .header_read_timeout(None)
            .max_buf_size(CONNECTION_BUFFER_BYTES.max(options.max_header_bytes))
            .max_header_size(options.max_header_bytes)
            .half_close(true);
        builder
    }

    /// Answers one request once its connection has a place.
    async fn answer_in(
        &self,
        place: &Place,
        request: Request<Incoming>,
        peer: &Arc<Peer>,
        unread: &AtomicBool,
    ) -> Response<ReplyBody> {
        if !place.begin() {
            return Box::pin(self.answer_beyond(place, request, peer, unread)).await;
        }
        self.answer_at(place, request, peer, unread).await
    }

    /// Answers a request that has a place.
    async fn answer_at(
        &self,
        place: &Place,
        request: Request<Incoming>,
        peer: &Arc<Peer>,
        unread: &AtomicBool,
    ) -> Response<ReplyBody> {
        let response = self.answer(request, peer, unread).await;
        // One that has logged in may be idle for a while.
        if !peer.has_logged_in() {
            place.waits();
        }
        response
    }

    /// Answers a request for which there is no place: at once if it is a probe's, otherwise when there is a place.
    async fn answer_beyond(
        &self,
        place: &Place,
        request: Request<Incoming>,
        peer: &Arc<Peer>,
        unread: &AtomicBool,
    ) -> Response<ReplyBody> {
        let options = &self.handler.options;
        let route = Route::of(request.method(), request.uri().path());
        let mut response = if route.as_ref().is_ok_and(Route::is_probe) {
            self.answer(request, peer, unread).await
        } else if timeout(options.place_timeout, place.get()).await.is_ok() {
            return self.answer_at(place, request, peer, unread).await;
        } else {
            Refusal::HttpConnections.log(|left_out| {
                let max_connections = options.max_connections.get();
                tracing::warn!(peer = %peer.ip, max_connections, left_out, "too many HTTP connections: a request is refused");
            });
            unread.store(true, Ordering::Relaxed);
            reply::busy(
                route.is_ok_and(|route| route.is_load()),
                format!(
                    "too many connections: requests are being served on all {} (http_max_connections), or on all {} of this \
                     address (http_max_connections_per_address); try it again later",
                    options.max_connections.get(),
                    options.max_connections_of_address.get()
                ),
            )
        };
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }

    /// Answers one request and leaves the connection ready for the next, or marks it unread.
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: &Arc<Peer>,
        unread: &AtomicBool,
    ) -> Response<ReplyBody> {
        let (head, body) = request.into_parts();
        let route = Route::of(&head.method, head.uri.path());
        let is_load = route.as_ref().is_ok_and(Route::is_load);
        let options = Arc::clone(&self.handler.options);
        let wire = Wire::from_connection(
            body,
            Headers(&head.headers).lossy(CONTENT_LENGTH.as_str()).parse().ok(),
            head.headers.contains_key(EXPECT),
            options.streaming_load_max_bytes(),
            options.body_idle_timeout,
        );
        let task = self.requests.spawn(self.handler.clone().handle(route, head, wire, Arc::clone(peer)));
        let Handled { mut response, rest } = task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "an HTTP handler panicked");
            Handled::panicked(is_load)
        });
        let reusable = match rest {
            Some(wire) => wire.drain(options.drain_max_bytes, options.drain_timeout).await,
            None => false,
        };
        if !reusable {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            unread.store(true, Ordering::Relaxed);
        }
        response
    }

    /// Reads and discards the rest of the client's bytes, so that closing does not destroy the answer in transit.
    async fn linger(&self, mut stream: Transport) {
        let mut buffer = vec![0; 64 * 1024];
        let discard =
            async { while let Ok(Ok(1..)) = timeout(LINGER_IDLE, stream.read(&mut buffer)).await {} };
        tokio::select! {
            _ = timeout(self.handler.options.linger_timeout, discard) => {}
            () = self.shutdown.cancelled() => {}
        }
    }
}

/// Notes a connection that sent no request in time.
fn late(peer: &Peer) {
    if peer.has_logged_in() {
        // It was kept for a request that did not come.
        return;
    }
    Refusal::HttpHeadTime.log(|left_out| {
        tracing::debug!(peer = %peer.ip, left_out, "a connection sent no request in time");
    });
}

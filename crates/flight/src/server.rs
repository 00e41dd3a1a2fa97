//! Listener, connections, shutdown, and the gate before the calls.
//!
//! Invariant: a call without a session's token gets no further than its head, unless it is a login, whose head has all that it says.

use crate::messages::{MessageMemory, Weighed};
use crate::nodes::OfNode;
use crate::options::FlightOptions;
use crate::places::Places;
use crate::service::FlightSql;
use crate::session::{FlightHooks, NodeCalls, Peer};
use crate::sessions::{Connection, Sessions};
use arrow_flight::flight_service_server::FlightServiceServer;
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tributary_admission::Refusal;
use tributary_tls::{Protocol, Transport};

/// The only call without a token.
const HANDSHAKE: &str = "/arrow.flight.protocol.FlightService/Handshake";
/// The call by which other nodes ask, who show a token of their own.
const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
/// The beginning of the other calls of nodes.
const OF_NODES: &str = "/worker.WorkerService/";
/// How long accepting pauses after it failed (too many open files, …).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Calls at a time on one connection.
const STREAMS_MAX: u32 = 128;
/// The longest head of a call, in bytes.
const HEAD_BYTES_MAX: u32 = 16 << 10;
/// Bytes of a call that a client may send before any of them is read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The same of all calls of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;
/// How often a silent client is asked whether it is there, and how long it may take to say so.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Serves Flight SQL until `shutdown` is cancelled, then waits for the calls in flight, at most [`FlightOptions::shutdown_grace`].
/// On return the listener, all connections and all sessions are closed.
///
/// # Errors
/// The listener has no local address.
pub async fn serve(
    listener: TcpListener,
    hooks: Arc<dyn FlightHooks>,
    options: FlightOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    tracing::debug!(address = %listener.local_addr()?, "serving Flight SQL");
    let grace = options.shutdown_grace;
    let server = Server::new(hooks, Arc::new(options), shutdown.clone());
    server.accept(listener).await;
    server.connections.close();
    server.calls.close();
    let finished = async { tokio::join!(server.connections.wait(), server.calls.wait()) };
    if timeout(grace, finished).await.is_err() {
        tracing::warn!(calls = server.calls.len(), "Flight SQL calls in flight are cut off at shutdown");
        server.abort.cancel();
        server.connections.wait().await;
    }
    server.sessions.close().await;
    Ok(())
}

#[derive(Clone)]
struct Server {
    options: Arc<FlightOptions>,
    service: FlightServiceServer<FlightSql>,
    sessions: Arc<Sessions>,
    nodes: Option<Arc<dyn NodeCalls>>,
    places: Arc<Places>,
    memory: Arc<MessageMemory>,
    connections: TaskTracker,
    calls: TaskTracker,
    shutdown: CancellationToken,
    /// Ends connections at once, after shutdown's grace.
    abort: CancellationToken,
}

impl Server {
    fn new(hooks: Arc<dyn FlightHooks>, options: Arc<FlightOptions>, shutdown: CancellationToken) -> Self {
        let calls = TaskTracker::new();
        let sessions = Sessions::new(Arc::clone(&hooks), Arc::clone(&options));
        let nodes = hooks.nodes();
        let service = FlightSql::new(Arc::clone(&sessions), hooks.server_version(), calls.clone());
        let service = FlightServiceServer::new(service)
            .max_decoding_message_size(options.max_message_bytes)
            // The server's own messages are as long as their rows.
            .max_encoding_message_size(usize::MAX);
        Self {
            memory: MessageMemory::new(options.message_memory_bytes, options.max_message_bytes),
            places: Places::new(options.max_connections, options.max_logins),
            options,
            service,
            sessions,
            nodes,
            connections: TaskTracker::new(),
            calls,
            shutdown,
            abort: CancellationToken::new(),
        }
    }

    async fn accept(&self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                () = self.shutdown.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => drop(self.connections.spawn(self.clone().connection(stream, peer))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a Flight SQL connection");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr) {
        // Only latency is lost without it.
        let _ = stream.set_nodelay(true);
        let place = self.places.enter(peer.ip().to_canonical());
        let peer = Peer { ip: peer.ip().to_canonical(), port: peer.port(), tls: None };
        let abort = self.abort.child_token();
        let connection = Connection { peer, place };
        let Some((stream, connection)) = self.handshake(stream, connection).await else { return };
        tokio::select! {
            () = abort.cancelled() => {}
            () = connection.place.taken_away() => made_room(&connection),
            result = self.serve_connection(stream, &connection) => {
                if let Err(error) = result {
                    tracing::debug!(peer = %connection.peer.ip, %error, "a Flight SQL connection ended");
                }
            }
        }
    }

    /// Performs the handshake of TLS, if the client begins one.
    async fn handshake(
        &self,
        stream: TcpStream,
        mut connection: Connection,
    ) -> Option<(Transport, Arc<Connection>)> {
        let accepted = Transport::accept(stream, self.options.tls.as_deref(), Protocol::Http2);
        let accepted = tokio::select! {
            accepted = timeout(self.options.login_timeout, accepted) => accepted,
            () = self.shutdown.cancelled() => return None,
            () = connection.place.taken_away() => {
                made_room(&connection);
                return None;
            }
        };
        match accepted {
            Ok(Ok((stream, tls))) => {
                connection.peer.tls = tls;
                Some((stream, Arc::new(connection)))
            }
            Ok(Err(error)) => {
                tracing::debug!(peer = %connection.peer.ip, %error, "a Flight SQL client left or knows no TLS");
                None
            }
            Err(_) => None,
        }
    }

    async fn serve_connection(&self, stream: Transport, connection: &Arc<Connection>) -> hyper::Result<()> {
        let service = service_fn(|request: Request<Incoming>| {
            let (server, connection) = (self.clone(), Arc::clone(connection));
            async move { Ok::<_, Infallible>(server.answer(request, &connection).await) }
        });
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        // A token of its own: connections do not meet at the lock of the server's token.
        let shutdown = self.shutdown.child_token();
        let (mut is_stopping, mut is_late) = (false, false);
        let mut login = pin!(sleep(self.options.login_timeout));
        loop {
            tokio::select! {
                done = served.as_mut() => return done,
                () = shutdown.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    served.as_mut().graceful_shutdown();
                }
                () = &mut login, if !is_late => {
                    is_late = true;
                    if !connection.place.is_known() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Answers one call.
    async fn answer(&self, mut request: Request<Incoming>, connection: &Arc<Connection>) -> Response<Body> {
        if request.uri().path().starts_with(OF_NODES) {
            return match self.node(&request, connection) {
                Ok(nodes) => nodes.answer(request.map(Body::new)).await,
                Err(refusal) => refusal.into_http(),
            };
        }
        let is_question = request.uri().path() == DO_GET && with_scheme(request.headers(), "node").is_some();
        let let_in = match is_question {
            true => self.node(&request, connection).map(|nodes| {
                request.extensions_mut().insert(OfNode(nodes));
            }),
            false => self.let_in(&mut request, connection),
        };
        if let Err(refusal) = let_in {
            return refusal.into_http();
        }
        let request = request.map(|body| Weighed::new(body, &self.memory));
        let Ok(answer) = self.service.clone().call(request).await;
        answer
    }

    /// Lets a call of another node pass.
    fn node(
        &self,
        request: &Request<Incoming>,
        connection: &Connection,
    ) -> Result<Arc<dyn NodeCalls>, Status> {
        let Some(nodes) = &self.nodes else {
            return Err(Status::unimplemented("this server shares its catalog with no others"));
        };
        let token = with_scheme(request.headers(), "node").unwrap_or_default();
        if !nodes.admits(token, connection.peer.tls.is_some()) {
            return Err(Status::unauthenticated("the token is not that of a node which shares the catalog"));
        }
        if !connection.place.know() {
            let text = "too many connections (arrow_flight_max_connections); try again later";
            return Err(Status::resource_exhausted(text));
        }
        Ok(Arc::clone(nodes))
    }

    /// Lets a call pass that comes with a token, or is a login.
    fn let_in(&self, request: &mut Request<Incoming>, connection: &Arc<Connection>) -> Result<(), Status> {
        if self.options.requires_tls && connection.peer.tls.is_none() {
            let text = "connections without TLS are refused (require_secure_transport): use grpc+tls";
            return Err(Status::unauthenticated(text));
        }
        if request.uri().path() == HANDSHAKE {
            request.extensions_mut().insert(Arc::clone(connection));
            return Ok(());
        }
        let Some(token) = bearer(request.headers()) else {
            let text = "no token: log in with a handshake (authenticate_basic_token, or username and password), and \
                        send its token with each call as `authorization: Bearer …`";
            return Err(Status::unauthenticated(text));
        };
        let Some(caller) = self.sessions.find(token, connection) else {
            let text = "the token is of no session: it has ended, was killed, or is of another address; log in again";
            return Err(Status::unauthenticated(text));
        };
        if !connection.place.know() {
            let text = "too many connections (arrow_flight_max_connections); try again later";
            return Err(Status::resource_exhausted(text));
        }
        request.extensions_mut().insert(caller);
        Ok(())
    }
}

fn made_room(connection: &Connection) {
    Refusal::FlightMadeRoom.log(|left_out| {
        tracing::info!(peer = %connection.peer.ip, left_out, "a connection without a login made room for another");
    });
}

/// The token of a call.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    with_scheme(headers, "bearer")
}

/// The value that a call shows under this scheme of authorization.
fn with_scheme<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case(name).then(|| token.trim())
}

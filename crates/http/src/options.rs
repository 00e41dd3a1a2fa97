//! Limits of the HTTP server. The defaults suit most installations.

use std::sync::Arc;
use std::time::Duration;
use tributary_tls::Tls;
use tributary_types::Live;

/// Limits of the HTTP server. The ones that may change while it runs are [`Live`].
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The certificate for clients that begin with a handshake of TLS; `None`: none may.
    pub tls: Option<Arc<Tls>>,
    /// Requests without TLS are refused with 403, except for what needs no login.
    pub requires_tls: bool,
    /// A connection that has not sent its first request head within this time, or a later one within this time from its first
    /// byte, is closed.
    pub head_timeout: Live<Duration>,
    /// A connection that neither begins another request nor takes a byte of its answer for this long is closed.
    pub idle_timeout: Duration,
    /// A body without a new byte for this long fails its load.
    pub body_idle_timeout: Duration,
    /// The longest request head in bytes; longer ones are answered 431.
    pub max_header_bytes: usize,
    /// Doris's `streaming_load_max_mb`: the largest body in MiB, on the wire and decompressed.
    pub streaming_load_max_mb: Live<u64>,
    /// Timeout of a load whose request has none.
    pub load_timeout: Live<Duration>,
    /// Connections served at once, on all ports together.
    pub max_connections: Live<u64>,
    /// Connections of one address, or of one network of IPv6, that are served at once.
    pub max_connections_of_address: Live<u64>,
    /// Connections beyond these limits, on which health and metrics are served while other requests wait for a place.
    pub max_connections_beyond: usize,
    /// How long a request waits for a place before it is refused.
    pub place_timeout: Duration,
    /// Bytes of the long request heads that are being read, of all connections together.
    pub max_heads_bytes: u64,
    /// Bytes of a refused body that are read so that its connection can be reused.
    pub drain_max_bytes: u64,
    /// Time for which a refused body is read so that its connection can be reused.
    pub drain_timeout: Duration,
    /// How long, after the answer to a refused body, its connection is still read and
    /// discarded, so that a client that sends before it reads gets its answer.
    pub linger_timeout: Duration,
    /// Whether answers name the server as the client has reached it, because the server has no one address of its own.
    pub answers_as_reached: bool,
    /// Names of a server that listens on loopback, besides `localhost`.
    pub host_names: Vec<String>,
    /// Redirects loads from one port to another, as Doris's FE does.
    pub redirect: Option<Redirect>,
    /// Whether the reasons for rejected rows are served only to users who log in.
    pub error_log_needs_login: Live<bool>,
    /// How long requests in flight may continue after shutdown was requested.
    pub shutdown_grace: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            tls: None,
            requires_tls: false,
            head_timeout: Live::new(Duration::from_secs(10)),
            idle_timeout: Duration::from_secs(60),
            body_idle_timeout: Duration::from_secs(60),
            max_header_bytes: 256 * 1024,
            streaming_load_max_mb: Live::new(10_240),
            load_timeout: Live::new(crate::request::TIMEOUT_DEFAULT),
            max_connections: Live::new(4_096),
            max_connections_of_address: Live::new(3_072),
            max_connections_beyond: 256,
            place_timeout: Duration::from_secs(30),
            max_heads_bytes: 32 * 1024 * 1024,
            drain_max_bytes: 16 * 1024 * 1024,
            drain_timeout: Duration::from_secs(5),
            linger_timeout: Duration::from_secs(60),
            answers_as_reached: false,
            host_names: Vec::new(),
            redirect: None,
            error_log_needs_login: Live::new(false),
            shutdown_grace: Duration::from_secs(30),
        }
    }
}

/// From one port to another of the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub from_port: u16,
    pub to_port: u16,
}

impl HttpOptions {
    /// The largest body in bytes.
    #[must_use]
    pub fn streaming_load_max_bytes(&self) -> u64 {
        self.streaming_load_max_mb.get().saturating_mul(1024 * 1024)
    }
}

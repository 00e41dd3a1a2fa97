//! Limits of the Flight SQL server.

use std::sync::Arc;
use std::time::Duration;
use tributary_tls::Tls;

/// Limits of the Flight SQL server, and its encryption.
#[derive(Clone, Debug)]
pub struct FlightOptions {
    /// The certificate for clients that begin with a handshake of TLS; `None`: none may.
    pub tls: Option<Arc<Tls>>,
    /// Calls without TLS are refused.
    pub requires_tls: bool,
    /// Sessions at a time, and connections on which one was used.
    pub max_connections: usize,
    /// Connections whose client has not logged in; a further one ends another.
    pub max_logins: usize,
    /// The longest message that a client may send, in bytes; a longer one gets `OUT_OF_RANGE`.
    pub max_message_bytes: usize,
    /// Memory of the large messages that arrive at a time, in bytes; others wait unread.
    pub message_memory_bytes: usize,
    /// How long a client may take from connecting to its first call with a token.
    pub login_timeout: Duration,
    /// A session that is not used for this long ends.
    pub idle_timeout: Duration,
    /// A session whose connections are all closed ends after this time.
    pub detached_timeout: Duration,
    /// A result that is not fetched for this long is given up.
    pub result_timeout: Duration,
    /// A result of which a client takes no row for this long is given up.
    pub read_timeout: Duration,
    /// How long calls in flight may take to finish when the server stops.
    pub shutdown_grace: Duration,
}

impl Default for FlightOptions {
    fn default() -> Self {
        Self {
            tls: None,
            requires_tls: false,
            max_connections: 4096,
            max_logins: 256,
            max_message_bytes: 64 << 20,
            message_memory_bytes: 512 << 20,
            login_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(8 * 3600),
            detached_timeout: Duration::from_secs(60),
            result_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(600),
            shutdown_grace: Duration::from_secs(30),
        }
    }
}

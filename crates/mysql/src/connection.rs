//! One connection from its first byte to its last: greeting, password, commands, end.

mod commands;
mod guard;
mod handshake;
mod login;
mod statements;
mod watch;

use crate::auth::Nonce;
use crate::error::ProtocolError;
use crate::places::SessionPlace;
use crate::result::AnswerForm;
use crate::session::Session;
use crate::shared::Shared;
use crate::wire::inflate::{BadCompression, Incoming};
use crate::wire::out::Out;
use crate::wire::reader::{Packet, PacketReader};
use crate::wire::stream::{ReadHalf, WriteHalf, encrypt};
use mysql_common::constants::CapabilityFlags;
use statements::Statements;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use tributary_tls::Tls;
use tributary_types::{ErrorCode, SqlError, TlsSession};
use watch::{Watch, Woken};

/// The largest packet that a client may send before it has logged in, in bytes.
const HANDSHAKE_PACKET_MAX: usize = 128 * 1024;
/// How much more of a packet that is too large is read before the error is sent, in bytes.
const LINGER_BYTES: usize = 1 << 30;
/// … and for how long.
const LINGER: Duration = Duration::from_secs(10);
/// A command that announces more is read only when there is memory for it, in bytes.
const LARGE_COMMAND_BYTES: usize = 1 << 20;

/// The bytes of a connection, both ways.
pub(crate) struct Link {
    reader: PacketReader<Incoming>,
    out: Out,
    /// `None`: in clear text.
    tls: Option<TlsSession>,
}

/// A client that has proved its password.
pub(crate) struct Connection {
    id: u32,
    peer: SocketAddr,
    shared: Arc<Shared>,
    link: Link,
    session: Box<dyn Session>,
    statements: Statements,
    capabilities: CapabilityFlags,
    /// The challenge that the client answered last.
    nonce: Nonce,
    multi_statements: bool,
    /// The memory that the current command takes, if it is large.
    memory: Option<OwnedSemaphorePermit>,
    kill: CancellationToken,
    _place: SessionPlace,
}

/// The state of the connection after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    NextCommand,
    Close,
}

/// Refuses a client because there are too many, and closes the connection.
pub(crate) fn refuse(stream: TcpStream) {
    let error = SqlError::new(ErrorCode::TooManyConnections, "Too many connections");
    let (_, write_half) = stream.into_split();
    let out = Out::new(WriteHalf::Tcp(write_half), Duration::ZERO);
    // Before the handshake no SQLSTATE is sent.
    out.with(|pending| pending.error(&error, false));
    out.flush_some();
}

/// Serves one client to the end.
pub(crate) async fn run(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    // An address of IPv4 is one, even if the listener is of IPv6: hosts of users are matched with it.
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let (read_half, write_half) = stream.into_split();
    run_on(ReadHalf::Tcp(read_half), WriteHalf::Tcp(write_half), peer, shared).await;
}

/// Serves one client over these two halves.
pub(crate) async fn run_on(
    read_half: ReadHalf,
    write_half: WriteHalf,
    peer: SocketAddr,
    shared: Arc<Shared>,
) {
    let id = shared.hooks.next_connection_id();
    let link = Link {
        reader: PacketReader::new(Incoming::new(read_half), HANDSHAKE_PACKET_MAX),
        out: Out::new(write_half, shared.options.write_timeout),
        tls: None,
    };
    let mut connection = match handshake::open(link, id, peer, &shared).await {
        Ok(connection) => connection,
        Err(error) => {
            debug!(connection = id, %peer, %error, "no session was opened");
            return;
        }
    };
    debug!(connection = id, %peer, "connected");
    match connection.serve().await {
        Ok(()) | Err(ProtocolError::Disconnected | ProtocolError::Closing) => {
            debug!(connection = id, %peer, "disconnected");
        }
        Err(error) => info!(connection = id, %peer, %error, "connection lost"),
    }
    connection.end().await;
}

impl Link {
    /// Begins the answer to the packet that was parsed last, which had this sequence number.
    fn answer_to(&self, sequence: u8) {
        self.out.answer_to(sequence, self.reader.compressed_sequence());
    }

    /// Performs the handshake of TLS: from now on everything is encrypted, in both directions.
    async fn begin_tls(&mut self, tls: &Tls) -> Result<(), ProtocolError> {
        self.out.flush().await?;
        let write_timeout = self.out.write_timeout();
        let nothing = (ReadHalf::Memory(VecDeque::new()), WriteHalf::Memory(Arc::default()));
        let reader = PacketReader::new(Incoming::new(nothing.0), HANDSHAKE_PACKET_MAX);
        let reader = std::mem::replace(&mut self.reader, reader);
        let out = std::mem::replace(&mut self.out, Out::new(nothing.1, write_timeout));
        let (incoming, read_ahead) = reader.into_parts();
        let (read, write, session) = encrypt(incoming.into_half(), out.into_io(), read_ahead, tls).await?;
        self.reader = PacketReader::new(Incoming::new(read), HANDSHAKE_PACKET_MAX);
        self.out = Out::new(write, write_timeout);
        self.tls = Some(session);
        Ok(())
    }

    /// From now on everything is compressed, in both directions.
    fn begin_compression(&mut self) {
        self.reader.begin_inflating();
        self.out.begin_deflating();
    }

    /// The next packet while the handshake lasts: it must have the next sequence number.
    async fn handshake_packet(&mut self, sequence: u8) -> Result<Packet, ProtocolError> {
        self.out.flush().await?;
        self.reader.expect_sequence(sequence);
        self.reader.expect_compressed_sequence(self.out.compressed_sequence());
        loop {
            if let Some(packet) = self.reader.parse()? {
                return Ok(packet);
            }
            if !self.reader.fill().await? {
                return Err(ProtocolError::Disconnected);
            }
        }
    }

    /// Answers with an error, as far as the client still takes it.
    async fn send_error(&self, error: &SqlError) -> Result<(), ProtocolError> {
        self.out.with(|pending| pending.error(error, true));
        Ok(self.out.flush().await?)
    }
}

impl Connection {
    /// Runs commands until the client says good-bye or the connection has to end.
    async fn serve(&mut self) -> Result<(), ProtocolError> {
        let mut watch = Watch::new(&self.shared.shutdown, &self.kill, self.shared.options.idle_timeout);
        loop {
            let packet = match self.next_command(&mut watch).await {
                Ok(packet) => packet,
                Err(error) => return self.say_why(error).await,
            };
            // A client that always has another command ready must not starve others.
            tokio::task::consume_budget().await;
            self.link.answer_to(packet.sequence);
            if watch.is_cancelled() {
                return self.say_why(ProtocolError::Closing).await;
            }
            if self.command(packet).await? == After::Close {
                return Ok(self.link.out.flush().await?);
            }
            watch.active();
            watch.set_timeout(self.idle_timeout());
            if self.link.out.is_broken() {
                return Err(ProtocolError::Disconnected);
            }
        }
    }

    /// How long the client may be silent before its next command.
    fn idle_timeout(&self) -> Duration {
        self.session.idle_timeout().unwrap_or(self.shared.options.idle_timeout)
    }

    /// The next command. Answers leave before it waits for one.
    async fn next_command(&mut self, watch: &mut Watch) -> Result<Packet, ProtocolError> {
        let Link { reader, out, .. } = &mut self.link;
        let stall_timeout = self.shared.options.stall_timeout;
        // The command before is over, and its memory free.
        self.memory = None;
        loop {
            if let Some(packet) = reader.parse()? {
                return Ok(packet);
            }
            out.flush().await?;
            let announced = reader.announced_bytes();
            let next = async {
                if self.memory.is_none() && announced > LARGE_COMMAND_BYTES {
                    self.memory = self.shared.packet_memory(announced).await;
                }
                if !reader.is_amid_packet() {
                    return reader.begin().await.map_err(ProtocolError::from);
                }
                match tokio::time::timeout(stall_timeout, reader.fill()).await {
                    Ok(filled) => Ok(filled?),
                    Err(_) => Err(ProtocolError::Timeout(stall_timeout.as_secs())),
                }
            };
            match watch.race(next).await {
                Woken::Done(more) => {
                    if !more? {
                        return Err(ProtocolError::Disconnected);
                    }
                }
                Woken::Idle => return Err(ProtocolError::Timeout(watch.timeout().as_secs())),
                Woken::Cancelled => {
                    // The client's next command gets this as its answer.
                    out.answer_to(0, 0);
                    return Err(ProtocolError::Closing);
                }
            }
        }
    }

    /// Tells the client why the connection ends, where the protocol has an error for it.
    async fn say_why(&mut self, error: ProtocolError) -> Result<(), ProtocolError> {
        let code = match &error {
            ProtocolError::PacketTooLarge { .. } => ErrorCode::PacketTooLarge,
            ProtocolError::OutOfOrder { .. }
            | ProtocolError::Compression(BadCompression::OutOfOrder { .. }) => ErrorCode::PacketsOutOfOrder,
            ProtocolError::Compression(BadCompression::Corrupt(_)) => ErrorCode::BadCompression,
            ProtocolError::Closing if self.shared.shutdown.is_cancelled() => ErrorCode::ServerShutdown,
            ProtocolError::Closing => ErrorCode::QueryInterrupted,
            _ => return Err(error),
        };
        let reply = match code {
            ErrorCode::ServerShutdown => SqlError::new(code, "Server shutdown in progress"),
            ErrorCode::QueryInterrupted => SqlError::new(code, "Connection was killed"),
            _ => SqlError::new(code, error.to_string()),
        };
        match error {
            ProtocolError::PacketTooLarge { .. } => {
                let skipped =
                    tokio::time::timeout(LINGER, self.link.reader.skip_oversized(LINGER_BYTES)).await;
                debug!(connection = self.id, ?skipped, "passed over a packet that is too large");
                self.link.answer_to(self.link.reader.oversized_sequence());
            }
            ProtocolError::OutOfOrder { got, .. } => self.link.answer_to(got),
            ProtocolError::Compression(_) => self.link.answer_to(0),
            _ => {}
        }
        self.link.send_error(&reply).await?;
        Err(error)
    }

    fn answer_form(&self, binary: bool) -> AnswerForm {
        AnswerForm {
            capabilities: self.capabilities,
            status: self.session.status().flags(),
            binary,
            multi_statements: self.multi_statements,
        }
    }

    /// Lets the session clean up after the connection has ended.
    async fn end(mut self) {
        if let Err(panic) = guard::guarded(self.session.close(), &self.link.out).await {
            warn!(connection = self.id, peer = %self.peer, %panic, "closing a session panicked");
        }
        self.link.out.shutdown().await;
    }
}

fn refused(code: ErrorCode, message: impl Into<String>) -> ProtocolError {
    ProtocolError::Refused(SqlError::new(code, message))
}

//! What can go wrong on the wire, and how a client is told.

use std::io;
use tributary_types::{ErrorCode, SqlError};

/// A packet whose bytes do not follow the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Malformed communication packet: {what}.")]
pub struct MalformedPacket {
    /// What was expected and is not there.
    pub what: &'static str,
}

impl From<MalformedPacket> for SqlError {
    fn from(error: MalformedPacket) -> Self {
        SqlError::new(ErrorCode::MalformedPacket, error.to_string())
    }
}

/// Why a connection ends before its client has said good-bye.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client closed the connection")]
    Disconnected,
    #[error(transparent)]
    Malformed(#[from] MalformedPacket),
    #[error("Got a packet bigger than 'max_allowed_packet' bytes: {bytes} bytes, the limit is {limit}")]
    PacketTooLarge { bytes: usize, limit: usize },
    #[error("Got packets out of order: sequence number {got} instead of {expected}")]
    OutOfOrder { expected: u8, got: u8 },
    #[error("no complete packet within {0} s")]
    Timeout(u64),
    #[error("the server is shutting down, or the connection was killed")]
    Closing,
    #[error("{0}")]
    Refused(ErrorReply),
}

/// An error packet: MySQL's number, SQLSTATE and the text that the client sees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {code} ({sqlstate}): {message}")]
pub(crate) struct ErrorReply {
    pub(crate) code: u16,
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
}

impl ErrorReply {
    pub(crate) fn new(code: u16, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { code, sqlstate, message: message.into() }
    }
}

impl From<SqlError> for ErrorReply {
    fn from(error: SqlError) -> Self {
        Self { code: error.code.number(), sqlstate: error.code.sqlstate(), message: error.message }
    }
}

impl From<MalformedPacket> for ErrorReply {
    fn from(error: MalformedPacket) -> Self {
        SqlError::from(error).into()
    }
}

//! Errors of the wire, and the errors that clients get for them.

use crate::wire::inflate::BadCompression;
use std::io;
use tributary_types::{ErrorCode, SqlError};

/// A packet whose bytes do not follow the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Malformed communication packet: {what}.")]
pub struct MalformedPacket {
    /// The missing element.
    pub what: &'static str,
}

impl From<MalformedPacket> for SqlError {
    fn from(error: MalformedPacket) -> Self {
        SqlError::new(ErrorCode::MalformedPacket, error.to_string())
    }
}

impl From<io::Error> for ProtocolError {
    fn from(error: io::Error) -> Self {
        error.downcast::<BadCompression>().map_or_else(Self::Io, Self::Compression)
    }
}

/// Why a connection ends before its client has said good-bye.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error(transparent)]
    Io(io::Error),
    #[error(transparent)]
    Compression(BadCompression),
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
    Refused(SqlError),
}

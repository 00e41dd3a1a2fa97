//! A file requested from the client (`LOAD DATA LOCAL`): it arrives as packets, and an empty one ends it.
//!
//! Invariant: however a load ends, all packets of the file are consumed before the statement is answered, so that none of them is
//! mistaken for a command.

use crate::error::ProtocolError;
use crate::wire::inflate::Incoming;
use crate::wire::out::Out;
use crate::wire::reader::{Packet, PacketReader};
use bytes::Bytes;
use std::time::Duration;
use tributary_types::{ErrorCode, SqlError};

/// Precedes the name of a requested file.
const LOCAL_INFILE: u8 = 0xfb;

/// The bytes of a client's file.
#[derive(Debug)]
pub struct ClientFile<'a> {
    reader: &'a mut PacketReader<Incoming>,
    out: &'a Out,
    /// How long the client may be silent.
    stall_timeout: Duration,
    is_over: bool,
    failure: Option<ProtocolError>,
}

impl<'a> ClientFile<'a> {
    /// Asks the client for a file.
    pub(crate) async fn request(
        reader: &'a mut PacketReader<Incoming>,
        out: &'a Out,
        name: &str,
        stall_timeout: Duration,
    ) -> Result<Self, ProtocolError> {
        out.with(|pending| {
            pending.packet(|packet| {
                packet.push(LOCAL_INFILE);
                packet.extend_from_slice(name.as_bytes());
            });
        });
        out.flush().await?;
        reader.expect_sequence(out.next_sequence());
        reader.expect_compressed_sequence(out.compressed_sequence());
        Ok(Self { reader, out, stall_timeout, is_over: false, failure: None })
    }

    /// The next bytes; `None` at the end. May be dropped while it waits: nothing is lost.
    ///
    /// # Errors
    /// The client has left, or violates the protocol.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SqlError> {
        if self.is_over {
            return Ok(None);
        }
        match self.packet().await {
            Ok(packet) => Ok(self.bytes(packet)),
            Err(error) => {
                let text = format!("the client's file did not arrive whole: {error}");
                self.is_over = true;
                self.failure = Some(error);
                Err(SqlError::new(ErrorCode::QueryInterrupted, text))
            }
        }
    }

    fn bytes(&mut self, packet: Packet) -> Option<Bytes> {
        let bytes = self.reader.payload(packet);
        if !bytes.is_empty() {
            return Some(Bytes::copy_from_slice(bytes));
        }
        self.is_over = true;
        // The answer continues the numbering, and the next command restarts it.
        self.reader.expect_sequence(0);
        self.out.answer_to(packet.sequence, self.reader.compressed_sequence());
        None
    }

    async fn packet(&mut self) -> Result<Packet, ProtocolError> {
        loop {
            if let Some(packet) = self.reader.parse()? {
                self.reader.expect_sequence(packet.sequence.wrapping_add(1));
                return Ok(packet);
            }
            match tokio::time::timeout(self.stall_timeout, self.reader.fill()).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Err(ProtocolError::Disconnected),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => return Err(ProtocolError::Timeout(self.stall_timeout.as_secs())),
            }
        }
    }

    /// Consumes the rest of the file.
    pub(crate) async fn drain(mut self) -> Result<(), ProtocolError> {
        while let Ok(Some(_)) = self.next().await {
            // A client that sends endlessly must not starve others.
            tokio::task::consume_budget().await;
        }
        self.failure.map_or(Ok(()), Err)
    }
}

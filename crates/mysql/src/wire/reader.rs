//! Extracts packets from a stream of bytes: one read takes as many packets as have arrived, and a payload that is whole in the
//! buffer is handed out as a slice of it, without a copy.
//!
//! Invariant: the buffer begins with the last packet that was handed out (until it is released) or with the first byte that was
//! not handed out yet; no byte is dropped or handed out twice.

use super::inflate::Incoming;
use super::{CHUNK_MAX, HEADER_BYTES};
use crate::error::ProtocolError;
use bytes::{Buf, BufMut, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, sleep};
use tributary_types::memory;

/// Bytes requested by one read.
const READ_BYTES: usize = 32 * 1024;
/// A buffer larger than this is given back after the packet that needed it.
const RETAINED_BYTES: usize = 1024 * 1024;

/// How long a large packet waits unread for memory of the process, and the pause between two looks.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(10);
const MEMORY_PAUSE: Duration = Duration::from_millis(50);

/// A complete payload in the reader's buffer; good until the next [`PacketReader::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// The end of the payload; it begins after the first header.
    end: usize,
    /// The sequence number of the packet's last chunk.
    pub(crate) sequence: u8,
}

/// A packet whose first header was read.
#[derive(Clone, Copy, Debug)]
struct Partial {
    /// The end of the known part of the payload.
    end: usize,
    /// The latest chunk was full: another one follows.
    continued: bool,
    sequence: u8,
}

/// The packet that was too large, from its latest chunk on.
#[derive(Clone, Copy, Debug)]
struct Oversized {
    /// The beginning of the chunk's payload.
    begin: usize,
    length: usize,
    sequence: u8,
}

#[derive(Debug)]
pub(crate) struct PacketReader<R> {
    io: R,
    buffer: BytesMut,
    partial: Option<Partial>,
    oversized: Option<Oversized>,
    /// Bytes at the buffer's beginning that were handed out.
    handed_out: usize,
    /// The sequence number that the next packet must have.
    expected: u8,
    /// Packets are inside compressed ones, and their sequence numbers mean nothing: clients count as they like.
    is_compressed: bool,
    /// Number of buffered bytes at which `parse` can continue.
    wanted: usize,
    max_packet_bytes: usize,
}

impl<R: AsyncRead + Unpin> PacketReader<R> {
    pub(crate) fn new(io: R, max_packet_bytes: usize) -> Self {
        Self {
            io,
            buffer: BytesMut::new(),
            partial: None,
            oversized: None,
            handed_out: 0,
            expected: 0,
            is_compressed: false,
            wanted: HEADER_BYTES,
            max_packet_bytes,
        }
    }

    /// Changes the limit for future packets.
    pub(crate) fn set_max_packet_bytes(&mut self, bytes: usize) {
        self.max_packet_bytes = bytes;
    }

    /// The next packet must have this sequence number.
    pub(crate) fn expect_sequence(&mut self, sequence: u8) {
        self.expected = sequence;
    }

    /// The payload of a packet that [`PacketReader::parse`] returned and nothing was parsed since.
    pub(crate) fn payload(&self, packet: Packet) -> &[u8] {
        &self.buffer[HEADER_BYTES..packet.end]
    }

    /// Returns the next packet if it is whole in the buffer, without reading. Releases the previous one.
    pub(crate) fn parse(&mut self) -> Result<Option<Packet>, ProtocolError> {
        self.release();
        loop {
            let Some(partial) = self.partial else {
                if !self.read_header(0)? {
                    return Ok(None);
                }
                continue;
            };
            if partial.continued {
                if !self.read_header(partial.end)? {
                    return Ok(None);
                }
                continue;
            }
            if self.buffer.len() < partial.end {
                self.wanted = partial.end;
                return Ok(None);
            }
            self.partial = None;
            self.handed_out = partial.end;
            self.expected = 0;
            return Ok(Some(Packet { end: partial.end, sequence: partial.sequence }));
        }
    }

    /// Reads the chunk header at `at`, and removes it when it continues a payload. False when it
    /// has not arrived yet.
    fn read_header(&mut self, at: usize) -> Result<bool, ProtocolError> {
        let Some(header) = self.buffer.get(at..at + HEADER_BYTES) else {
            self.wanted = at + HEADER_BYTES;
            return Ok(false);
        };
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let sequence = header[3];
        if !self.is_compressed && sequence != self.expected {
            return Err(ProtocolError::OutOfOrder { expected: self.expected, got: sequence });
        }
        let end = if at == 0 { HEADER_BYTES + length } else { at + length };
        let bytes = end - HEADER_BYTES;
        if bytes > self.max_packet_bytes {
            self.oversized = Some(Oversized { begin: at + HEADER_BYTES, length, sequence });
            return Err(ProtocolError::PacketTooLarge { bytes, limit: self.max_packet_bytes });
        }
        if at > 0 {
            // Cheap: while a large packet arrives, `fill` reads no further than this header.
            self.buffer.copy_within(at + HEADER_BYTES.., at);
            self.buffer.truncate(self.buffer.len() - HEADER_BYTES);
        }
        self.partial = Some(Partial { end, continued: length == CHUNK_MAX, sequence });
        self.expected = sequence.wrapping_add(1);
        Ok(true)
    }

    fn release(&mut self) {
        if self.handed_out == 0 {
            return;
        }
        // Asked before bytes are passed over: those are not counted as capacity after it.
        let is_large = self.buffer.capacity() > RETAINED_BYTES;
        self.buffer.advance(self.handed_out);
        self.handed_out = 0;
        if is_large && self.buffer.len() <= READ_BYTES {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
    }

    /// Whether a packet has begun to arrive. Right after [`PacketReader::parse`] said that more is needed.
    fn has_begun(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Upper bound on the size of the packet that has begun, as far as its headers tell.
    pub(crate) fn announced_bytes(&self) -> usize {
        match self.partial {
            None => 0,
            // The number of chunks that follow is known only once the last has arrived.
            Some(partial) if partial.continued || partial.end >= CHUNK_MAX => self.max_packet_bytes,
            Some(partial) => partial.end,
        }
    }

    /// Reads once, after [`PacketReader::parse`] said that more is needed. False at the end of the
    /// stream. May be dropped while it waits: nothing is lost.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        let missing = self.wanted.saturating_sub(self.buffer.len());
        let count = if missing > READ_BYTES {
            // The rest of a large packet waits in the client until other work has given memory back.
            let waits_until = Instant::now() + MEMORY_WAIT_MAX;
            while memory::is_full() && Instant::now() < waits_until {
                sleep(MEMORY_PAUSE).await;
            }
            self.buffer.reserve(missing);
            self.io.read_buf(&mut (&mut self.buffer).limit(missing)).await?
        } else {
            if self.buffer.capacity() - self.buffer.len() < missing.max(READ_BYTES / 4) {
                self.buffer.reserve(READ_BYTES);
            }
            self.io.read_buf(&mut self.buffer).await?
        };
        Ok(count > 0)
    }

    /// Reads and discards an oversized packet, so that the client, which reads no answer before it has sent all of it, gets to
    /// read one. Stops after `limit` bytes. May be dropped while it waits; [`PacketReader::oversized_sequence`] is right even
    /// then.
    pub(crate) async fn skip_oversized(&mut self, limit: usize) -> io::Result<()> {
        let Some(mut chunk) = self.oversized else { return Ok(()) };
        self.buffer.advance(chunk.begin);
        let mut skipped = 0;
        while skipped < limit {
            let mut missing = chunk.length;
            while missing > 0 {
                let count = missing.min(self.buffer.len());
                self.buffer.advance(count);
                (missing, skipped) = (missing - count, skipped + count);
                if missing > 0 && !self.read_some().await? {
                    return Ok(());
                }
            }
            if chunk.length < CHUNK_MAX {
                return Ok(());
            }
            while self.buffer.len() < HEADER_BYTES {
                if !self.read_some().await? {
                    return Ok(());
                }
            }
            let length = u32::from_le_bytes([self.buffer[0], self.buffer[1], self.buffer[2], 0]) as usize;
            chunk = Oversized { begin: 0, length, sequence: self.buffer[3] };
            self.buffer.advance(HEADER_BYTES);
            self.oversized = Some(chunk);
        }
        Ok(())
    }

    /// The sequence number that the last chunk seen of a packet that was too large has.
    pub(crate) fn oversized_sequence(&self) -> u8 {
        self.oversized.map_or(0, |chunk| chunk.sequence)
    }

    async fn read_some(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_BYTES);
        Ok(self.io.read_buf(&mut self.buffer).await? > 0)
    }
}

impl PacketReader<Incoming> {
    /// All bytes after the packet that was handed out last are compressed.
    pub(crate) fn begin_inflating(&mut self) {
        self.release();
        self.io.begin_inflating(&self.buffer.split());
        self.is_compressed = true;
    }

    /// The stream, and the bytes after the packet that was handed out last.
    pub(crate) fn into_parts(mut self) -> (Incoming, Vec<u8>) {
        self.release();
        (self.io, self.buffer.to_vec())
    }

    /// The sequence number of the latest compressed packet; 0 without compression.
    pub(crate) fn compressed_sequence(&self) -> u8 {
        self.io.sequence()
    }

    /// Like [`PacketReader::expect_sequence`], for the next compressed packet.
    pub(crate) fn expect_compressed_sequence(&mut self, sequence: u8) {
        self.io.expect_sequence(sequence);
    }

    /// As [`PacketReader::fill`], when no packet has begun to arrive: returns when one has.
    pub(crate) async fn begin(&mut self) -> io::Result<bool> {
        if self.is_compressed { self.io.begin().await } else { self.fill().await }
    }

    /// Whether a packet, or a compressed packet, has begun to arrive.
    pub(crate) fn is_amid_packet(&self) -> bool {
        self.has_begun() || self.io.has_begun()
    }
}

#[cfg(test)]
mod tests;

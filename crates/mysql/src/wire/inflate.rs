//! Decompresses the client's bytes if it requested compression.
//!
//! A compressed packet is 3 bytes of compressed length, 1 byte of sequence number, 3 bytes of decompressed length (0: the payload
//! is not compressed) and the payload: a piece of the stream of ordinary packets, whose boundaries differ from theirs.
//!
//! Invariants: a connection never holds more than [`RAW_BYTES`] compressed and [`STEP_BYTES`]
//! decompressed bytes, whatever lengths its client announces. The last bytes of a compressed packet are
//! handed out when its checksum was right: no command runs before.
//!
//! Not its business: the packets inside. Their limit is the reader's, and it counts decompressed bytes.

use super::COMPRESSED_HEADER_BYTES;
use super::stream::ReadHalf;
use bytes::{Buf, BytesMut};
use flate2::{Decompress, FlushDecompress, Status};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::task::coop::poll_proceed;

/// Compressed bytes that are read ahead.
const RAW_BYTES: usize = 32 * 1024;
/// Bytes that are decompressed at a time.
const STEP_BYTES: usize = 64 * 1024;

/// A compressed packet that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadCompression {
    #[error("Got packets out of order: compressed packet {got} instead of {expected}")]
    OutOfOrder { expected: u8, got: u8 },
    #[error("Couldn't uncompress communication packet: {0}")]
    Corrupt(&'static str),
}

impl From<BadCompression> for io::Error {
    fn from(error: BadCompression) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// The client's bytes.
#[derive(Debug)]
pub(crate) struct Incoming {
    half: ReadHalf,
    /// Boxed: few connections are compressed.
    inflater: Option<Box<Inflater>>,
}

impl Incoming {
    pub(crate) fn new(half: ReadHalf) -> Self {
        Self { half, inflater: None }
    }

    /// The stream, before anything is compressed.
    pub(crate) fn into_half(self) -> ReadHalf {
        self.half
    }

    /// All further bytes are compressed. `read_ahead` are the first of them.
    pub(crate) fn begin_inflating(&mut self, read_ahead: &[u8]) {
        self.inflater = Some(Box::new(Inflater {
            raw: BytesMut::from(read_ahead),
            zlib: Decompress::new(true),
            payload: None,
            out: Vec::new(),
            given: 0,
            is_leaving: false,
            expected: 0,
            sequence: 0,
        }));
    }

    /// Returns when a compressed packet begins to arrive; false at the end of the stream. Returns at once without compression.
    /// May be dropped while it waits: nothing is lost.
    pub(crate) async fn begin(&mut self) -> io::Result<bool> {
        let Self { half, inflater: Some(inflater) } = self else { return Ok(true) };
        poll_fn(|context| inflater.poll_fill(half, context)).await
    }

    /// Whether a compressed packet has begun to arrive.
    pub(crate) fn has_begun(&self) -> bool {
        self.inflater.as_ref().is_some_and(|inflater| !inflater.is_between_packets())
    }

    /// The sequence number of the latest compressed packet; 0 without compression.
    pub(crate) fn sequence(&self) -> u8 {
        self.inflater.as_ref().map_or(0, |inflater| inflater.sequence)
    }

    /// Sets the sequence number of the next compressed packet, which continues from an answer.
    pub(crate) fn expect_sequence(&mut self, sequence: u8) {
        if let Some(inflater) = &mut self.inflater {
            inflater.expected = sequence;
        }
    }
}

impl AsyncRead for Incoming {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { half, inflater } = self.get_mut();
        let Some(inflater) = inflater else { return Pin::new(half).poll_read(context, into) };
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let turn = ready!(poll_proceed(context));
        while !inflater.inflate(into)? {
            if !ready!(inflater.poll_fill(half, context))? {
                return Poll::Ready(inflater.end());
            }
        }
        turn.made_progress();
        Poll::Ready(Ok(()))
    }
}

/// The rest of a compressed packet's payload.
#[derive(Clone, Copy, Debug)]
enum Payload {
    Stored { left: usize },
    Deflated { left: usize, inflated_left: usize },
}

#[derive(Debug)]
struct Inflater {
    /// Compressed bytes that were read and not used.
    raw: BytesMut,
    zlib: Decompress,
    /// The packet whose header was read.
    payload: Option<Payload>,
    /// Decompressed bytes; the first `given` were handed out.
    out: Vec<u8>,
    given: usize,
    /// `out` may be handed out.
    is_leaving: bool,
    /// The sequence number of the next packet, unless a command begins with it.
    expected: u8,
    sequence: u8,
}

impl Inflater {
    /// Appends decompressed bytes to `into`, of one packet at most. False: more compressed bytes are
    /// needed.
    fn inflate(&mut self, into: &mut ReadBuf<'_>) -> Result<bool, BadCompression> {
        loop {
            if self.is_leaving {
                self.give(into);
                return Ok(true);
            }
            let goes_on = match self.payload {
                None => self.read_header()?,
                Some(Payload::Stored { left }) => {
                    let count = left.min(self.raw.len()).min(into.remaining());
                    into.put_slice(&self.raw[..count]);
                    self.raw.advance(count);
                    self.payload = (count < left).then_some(Payload::Stored { left: left - count });
                    if count > 0 {
                        return Ok(true);
                    }
                    left == 0
                }
                Some(Payload::Deflated { left, inflated_left }) => self.inflate_step(left, inflated_left)?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
    }

    fn give(&mut self, into: &mut ReadBuf<'_>) {
        let bytes = &self.out[self.given..];
        let count = bytes.len().min(into.remaining());
        into.put_slice(&bytes[..count]);
        self.given += count;
        if self.given == self.out.len() {
            self.out.clear();
            self.given = 0;
            self.is_leaving = false;
        }
    }

    /// Decompresses once; returns false if more compressed bytes are needed.
    fn inflate_step(&mut self, left: usize, inflated_left: usize) -> Result<bool, BadCompression> {
        let input = &self.raw[..left.min(self.raw.len())];
        let used = self.out.len();
        // When all announced bytes are out, zlib still reads its checksum; it must not write more.
        let room = inflated_left.min(STEP_BYTES - used.min(STEP_BYTES)).max(1);
        self.out.resize(used + room, 0);
        let before = (self.zlib.total_in(), self.zlib.total_out());
        let status = self
            .zlib
            .decompress(input, &mut self.out[used..], FlushDecompress::None)
            .map_err(|_| BadCompression::Corrupt("the bytes are no zlib stream"))?;
        let consumed = (self.zlib.total_in() - before.0) as usize;
        let written = (self.zlib.total_out() - before.1) as usize;
        self.out.truncate(used + written);
        self.raw.advance(consumed);
        if written > inflated_left {
            return Err(BadCompression::Corrupt("it is longer than its header announces"));
        }
        let (left, inflated_left) = (left - consumed, inflated_left - written);
        let has_ended = status == Status::StreamEnd;
        if has_ended && (left > 0 || inflated_left > 0) {
            return Err(BadCompression::Corrupt("its zlib stream ends before the packet does"));
        }
        if !has_ended && consumed == 0 && written == 0 {
            if left == 0 {
                return Err(BadCompression::Corrupt("its zlib stream does not end with the packet"));
            }
            return Ok(false);
        }
        self.payload = (!has_ended).then_some(Payload::Deflated { left, inflated_left });
        if has_ended {
            self.zlib.reset(true);
        }
        self.is_leaving = has_ended || self.out.len() == STEP_BYTES && inflated_left > 0;
        Ok(true)
    }

    /// Reads a packet's header; false when it has not arrived yet.
    fn read_header(&mut self) -> Result<bool, BadCompression> {
        let Some(&[a, b, c, sequence, d, e, f]) = self.raw.first_chunk::<COMPRESSED_HEADER_BYTES>() else {
            return Ok(false);
        };
        // A command begins with 0; only the readers of the inner packets know where.
        if sequence != self.expected && sequence != 0 {
            return Err(BadCompression::OutOfOrder { expected: self.expected, got: sequence });
        }
        let length = |bytes: [u8; 3]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize;
        let left = length([a, b, c]);
        self.payload = Some(match length([d, e, f]) {
            0 => Payload::Stored { left },
            inflated_left => Payload::Deflated { left, inflated_left },
        });
        self.raw.advance(COMPRESSED_HEADER_BYTES);
        self.sequence = sequence;
        self.expected = sequence.wrapping_add(1);
        Ok(true)
    }

    /// Reads compressed bytes; false at the end of the stream.
    fn poll_fill(&mut self, half: &mut ReadHalf, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let used = self.raw.len();
        self.raw.resize(RAW_BYTES.max(used + COMPRESSED_HEADER_BYTES), 0);
        let mut room = ReadBuf::new(&mut self.raw[used..]);
        let polled = Pin::new(half).poll_read(context, &mut room);
        let count = room.filled().len();
        self.raw.truncate(used + count);
        ready!(polled)?;
        Poll::Ready(Ok(count > 0))
    }

    fn is_between_packets(&self) -> bool {
        self.payload.is_none() && self.raw.is_empty() && self.out.is_empty()
    }

    /// The stream has ended: fine between packets only.
    fn end(&self) -> io::Result<()> {
        if self.is_between_packets() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

#[cfg(test)]
mod tests;

//! Packed bodies, undone piece by piece in bounded memory.
//!
//! A [`Codec`] keeps its state when its input says "not now" (`WouldBlock`), so the input is a buffer that the caller refills
//! between calls. Concatenated streams are one body, for every codec.
//!
//! Invariant: whatever a body decompresses to, it holds at most [`PIECE_BYTES`] of output beyond the needs of its codec, and no
//! codec needs more than a few tens of MiB. A truncated body is an error.

mod codecs;
mod frames;
mod gathered;
mod hadoop;

use bytes::{Buf, Bytes, BytesMut};
use codecs::{Zlib, bzip2, gzip, zstd};
use frames::Lz4Frames;
use hadoop::HadoopBlocks;
use std::io::{self, BufRead, ErrorKind, Read};
use tributary_decode::Compression;

/// The largest piece that one step yields, in bytes.
pub(crate) const PIECE_BYTES: usize = 128 * 1024;

/// The result of one step.
pub(crate) enum Step {
    Piece(Bytes),
    /// Feed more input, or end it.
    NeedInput,
    /// All streams ended, with their checksums right.
    End,
}

/// Undoes one way of packing. [`Read::read`] gives `WouldBlock` where more input is needed, and 0 where a stream
/// ended and the input too.
trait Codec: Read + Send {
    /// Gives the next packed bytes. Only after `WouldBlock`.
    fn feed(&mut self, bytes: Bytes);

    /// Declares the end of the input.
    fn end_input(&mut self);
}

/// A body being unpacked.
pub(crate) struct Unpack {
    compression: Compression,
    codec: Box<dyn Codec>,
    is_fed: bool,
}

impl Unpack {
    /// Undoes `compression`; `None` if there is nothing to undo.
    pub(crate) fn new(compression: Compression) -> Option<Self> {
        let codec: Box<dyn Codec> = match compression {
            Compression::None => return None,
            Compression::Gzip => Box::new(gzip()),
            Compression::Deflate => Box::new(Zlib::new()),
            Compression::Bzip2 => Box::new(bzip2()),
            Compression::Zstd => Box::new(zstd()),
            Compression::Lz4Frame => Box::new(Lz4Frames::new()),
            Compression::Lz4Block => Box::new(HadoopBlocks::lz4()),
            Compression::SnappyBlock => Box::new(HadoopBlocks::snappy()),
        };
        Some(Self { compression, codec, is_fed: false })
    }

    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    /// Gives the next packed bytes. Only after [`Step::NeedInput`].
    pub(crate) fn feed(&mut self, bytes: Bytes) {
        self.is_fed |= !bytes.is_empty();
        self.codec.feed(bytes);
    }

    /// Declares the end of the input.
    pub(crate) fn end_input(&mut self) {
        self.codec.end_input();
    }

    /// Unpacks at most [`PIECE_BYTES`].
    ///
    /// # Errors
    /// The body is damaged, ends within a stream, or is empty.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        let mut piece = BytesMut::zeroed(PIECE_BYTES);
        let mut filled = 0;
        while filled < PIECE_BYTES {
            match self.codec.read(&mut piece[filled..]) {
                Ok(0) if !self.is_fed => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(0) if filled == 0 => return Ok(Step::End),
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock && filled == 0 => {
                    return Ok(Step::NeedInput);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        piece.truncate(filled);
        Ok(Step::Piece(piece.freeze()))
    }
}

/// Packed bytes at hand.
#[derive(Default)]
struct Input {
    bytes: Bytes,
    ended: bool,
}

impl Input {
    fn feed(&mut self, bytes: Bytes) {
        debug_assert!(self.bytes.is_empty(), "fed before the last input was used up");
        self.bytes = bytes;
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.bytes.is_empty() && !self.ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(&self.bytes)
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.advance(amount);
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let amount = available.len().min(into.len());
        into[..amount].copy_from_slice(&available[..amount]);
        self.consume(amount);
        Ok(amount)
    }
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests;

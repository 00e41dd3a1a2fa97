//! Gzip, undone piece by piece: members one after another, never more than one piece in memory.
//!
//! The decoder of `flate2` keeps its place when its input says "not now" (`WouldBlock`), so the
//! input is a buffer that the caller refills between calls.

use bytes::{Buf, Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, ErrorKind, Read};

/// The largest piece that one step yields, in bytes.
pub(crate) const GZIP_PIECE_BYTES: usize = 128 * 1024;

/// What one step found.
pub(crate) enum Step {
    Piece(Bytes),
    /// Feed more input, or end it.
    NeedInput,
    /// All members ended with their checksums right.
    End,
}

/// A gzip stream being decompressed.
pub(crate) struct Gunzip {
    decoder: MultiGzDecoder<Input>,
}

impl Gunzip {
    pub(crate) fn new() -> Self {
        Self { decoder: MultiGzDecoder::new(Input { bytes: Bytes::new(), ended: false }) }
    }

    /// Gives the next compressed bytes. Only after [`Step::NeedInput`].
    pub(crate) fn feed(&mut self, bytes: Bytes) {
        let input = self.decoder.get_mut();
        debug_assert!(input.bytes.is_empty(), "fed before the last input was used up");
        input.bytes = bytes;
    }

    /// Says that no more input comes.
    pub(crate) fn end_input(&mut self) {
        self.decoder.get_mut().ended = true;
    }

    /// Decompresses at most [`GZIP_PIECE_BYTES`].
    ///
    /// # Errors
    /// The stream is damaged or ends within a member.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        let mut piece = BytesMut::zeroed(GZIP_PIECE_BYTES);
        let mut filled = 0;
        while filled < GZIP_PIECE_BYTES {
            match self.decoder.read(&mut piece[filled..]) {
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

/// Compressed bytes at hand.
struct Input {
    bytes: Bytes,
    ended: bool,
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

#[cfg(test)]
mod tests;

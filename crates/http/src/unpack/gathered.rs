//! Gathers compressed bytes until a whole block has arrived.

use bytes::{Bytes, BytesMut};
use std::io::{self, ErrorKind};

/// The packed bytes that were not used yet.
#[derive(Default)]
pub(super) struct Gathered {
    bytes: BytesMut,
    ended: bool,
}

impl Gathered {
    pub(super) fn feed(&mut self, bytes: &Bytes) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the input has ended. `WouldBlock` if that is not known yet.
    pub(super) fn is_at_end(&self) -> io::Result<bool> {
        match (self.bytes.is_empty(), self.ended) {
            (true, true) => Ok(true),
            (true, false) => Err(ErrorKind::WouldBlock.into()),
            (false, _) => Ok(false),
        }
    }

    /// The next `length` bytes.
    pub(super) fn peek(&self, length: usize) -> io::Result<&[u8]> {
        match self.bytes.get(..length) {
            Some(bytes) => Ok(bytes),
            None if self.ended => Err(ErrorKind::UnexpectedEof.into()),
            None => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Four of the next bytes, from `at` on.
    pub(super) fn peek_four(&self, at: usize) -> io::Result<[u8; 4]> {
        let bytes = self.peek(at + 4)?;
        Ok(bytes[at..].try_into().expect("four bytes were asked for"))
    }

    /// Takes the next `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> io::Result<BytesMut> {
        self.peek(length)?;
        Ok(self.bytes.split_to(length))
    }

    /// Takes at most `length` bytes; how many they were.
    pub(super) fn skip(&mut self, length: usize) -> io::Result<usize> {
        self.peek(length.min(1))?;
        let skipped = length.min(self.bytes.len());
        drop(self.bytes.split_to(skipped));
        Ok(skipped)
    }
}

/// Output that waits to be read.
#[derive(Default)]
pub(super) struct Output {
    /// Decompressed bytes; bytes that were already read may remain as history for later blocks.
    pub(super) bytes: Vec<u8>,
    pub(super) read: usize,
}

impl Output {
    /// Copies out available bytes; returns 0 if there are none.
    pub(super) fn give(&mut self, into: &mut [u8]) -> usize {
        let rest = &self.bytes[self.read..];
        let amount = rest.len().min(into.len());
        into[..amount].copy_from_slice(&rest[..amount]);
        self.read += amount;
        amount
    }
}

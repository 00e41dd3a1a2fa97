//! The blocks that Hadoop's codecs for LZ4 and Snappy write: `lz4_block` and `snappy_block`.
//!
//! A block is its unpacked length and parts that unpack to that together; a part is its packed length and its
//! bytes. Lengths have four bytes, the highest first.

use super::gathered::{Gathered, Output};
use super::{Codec, damaged};
use bytes::Bytes;
use std::io::{self, Read};

/// The longest block and part, in bytes; Hadoop writes blocks of 256 KiB by default.
pub(super) const BLOCK_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Decompresses a part into the rest of its block; returns its length.
type UnpackPart = fn(&[u8], &mut [u8]) -> io::Result<usize>;

/// Blocks being unpacked.
pub(super) struct HadoopBlocks {
    input: Gathered,
    output: Output,
    /// Decompressed size of the block's remaining parts, in bytes.
    left: usize,
    unpack: UnpackPart,
}

impl HadoopBlocks {
    pub(super) fn lz4() -> Self {
        Self::new(lz4_part)
    }

    pub(super) fn snappy() -> Self {
        Self::new(snappy_part)
    }

    fn new(unpack: UnpackPart) -> Self {
        Self { input: Gathered::default(), output: Output::default(), left: 0, unpack }
    }

    /// Goes on behind the output that was read; whether there is more.
    fn advance(&mut self) -> io::Result<bool> {
        if self.left == 0 {
            if self.input.is_at_end()? {
                return Ok(false);
            }
            self.left = length(self.input.peek_four(0)?, "a block")?;
            self.input.take(4)?;
            return Ok(true);
        }
        let packed = length(self.input.peek_four(0)?, "a part of a block")?;
        let part = self.input.take(4 + packed)?;
        self.output.bytes.clear();
        self.output.bytes.resize(self.left, 0);
        self.output.read = 0;
        let unpacked = (self.unpack)(&part[4..], &mut self.output.bytes)?;
        if unpacked == 0 {
            return Err(damaged(format!(
                "a part of a block is empty, {} bytes of it are missing",
                self.left
            )));
        }
        self.output.bytes.truncate(unpacked);
        self.left -= unpacked;
        Ok(true)
    }
}

fn length(bytes: [u8; 4], what: &str) -> io::Result<usize> {
    let length = u32::from_be_bytes(bytes) as usize;
    if length > BLOCK_BYTES_MAX {
        return Err(damaged(format!(
            "{what} says that it has {length} bytes, the limit is {BLOCK_BYTES_MAX}"
        )));
    }
    Ok(length)
}

fn lz4_part(part: &[u8], into: &mut [u8]) -> io::Result<usize> {
    lz4_flex::block::decompress_into(part, into)
        .map_err(|error| damaged(format!("a block can't be unpacked: {error}")))
}

fn snappy_part(part: &[u8], into: &mut [u8]) -> io::Result<usize> {
    snap::raw::Decoder::new()
        .decompress(part, into)
        .map_err(|error| damaged(format!("a block can't be unpacked: {error}")))
}

impl Codec for HadoopBlocks {
    fn feed(&mut self, bytes: Bytes) {
        self.input.feed(&bytes);
    }

    fn end_input(&mut self) {
        self.input.end();
    }
}

impl Read for HadoopBlocks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let given = self.output.give(into);
            if given > 0 || !self.advance()? {
                return Ok(given);
            }
        }
    }
}

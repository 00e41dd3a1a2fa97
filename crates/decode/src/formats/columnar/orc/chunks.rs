//! The bytes of a stream: a range of the file, in individually compressed chunks.
//!
//! Invariant: no chunk decompresses to more than the file's block size, which is at most [`BLOCK_BYTES_MAX`]; a block is charged
//! to the body's memory before it is allocated.

use super::{Damage, Outcome};
use crate::formats::columnar::memory::{BodyMemory, Charge};
use crate::formats::host::Spooled;
use flate2::{Decompress, FlushDecompress, Status};
use std::sync::Arc;

/// The largest block, in bytes: the head of a chunk has 23 bits for its length.
const BLOCK_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Bytes of an uncompressed stream to read at a time.
const WINDOW_BYTES: u64 = 64 * 1024;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Plain,
    Zlib,
    Snappy,
    Lz4,
    Zstd,
}

/// How the streams of a file are packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packing {
    codec: Codec,
    block_bytes: usize,
}

impl Packing {
    /// The numbers in the file's postscript.
    ///
    /// # Errors
    /// [`Damage`] if the codec is not read, or blocks are too large.
    pub fn of_file(codec: u64, block_bytes: u64) -> Outcome<Self> {
        let codec = match codec {
            0 => Codec::Plain,
            1 => Codec::Zlib,
            2 => Codec::Snappy,
            4 => Codec::Lz4,
            5 => Codec::Zstd,
            3 | 6 => {
                let name = if codec == 3 { "LZO" } else { "BROTLI" };
                return Err(Damage::new(format!(
                    "{name} is not read; write it with ZLIB, SNAPPY, LZ4 or ZSTD"
                )));
            }
            _ => return Err(Damage::new(format!("there is no codec {codec}"))),
        };
        if codec != Codec::Plain && !(1..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            return Err(Damage::new(format!(
                "its blocks have {block_bytes} bytes, the limit is {BLOCK_BYTES_MAX}"
            )));
        }
        Ok(Self { codec, block_bytes: block_bytes as usize })
    }

    /// Unpacks a chunk into a block, which is empty and has the capacity of one.
    fn unpack(self, packed: &[u8], block: &mut Vec<u8>) -> Outcome<()> {
        let what = |error: &dyn std::fmt::Display| Damage::new(format!("a chunk can't be unpacked: {error}"));
        let too_long =
            || Damage::new(format!("a chunk unpacks to more than a block's {} bytes", self.block_bytes));
        match self.codec {
            Codec::Plain => block.extend_from_slice(packed),
            Codec::Zlib => {
                let mut inflate = Decompress::new(false);
                match inflate.decompress_vec(packed, block, FlushDecompress::Finish) {
                    Ok(Status::StreamEnd) => {}
                    Ok(_) if block.len() >= self.block_bytes => return Err(too_long()),
                    Ok(_) => return Err(Damage::new("a chunk can't be unpacked: it is cut off")),
                    Err(error) => return Err(what(&error)),
                }
            }
            Codec::Snappy => {
                let length = snap::raw::decompress_len(packed).map_err(|error| what(&error))?;
                if length > self.block_bytes {
                    return Err(too_long());
                }
                block.resize(length, 0);
                let length =
                    snap::raw::Decoder::new().decompress(packed, block).map_err(|error| what(&error))?;
                block.truncate(length);
            }
            Codec::Lz4 => {
                block.resize(self.block_bytes, 0);
                let length = lz4_flex::block::decompress_into(packed, block).map_err(|error| what(&error))?;
                block.truncate(length);
            }
            Codec::Zstd => {
                let mut decompress = zstd::bulk::Decompressor::new().map_err(|error| what(&error))?;
                decompress.decompress_to_buffer(packed, block).map_err(|error| what(&error))?;
            }
        }
        // A buffer can have a larger capacity than requested.
        if block.len() > self.block_bytes { Err(too_long()) } else { Ok(()) }
    }
}

/// A range of the file, decompressed while it is read.
pub(super) struct Chunks {
    file: Arc<dyn Spooled>,
    packing: Packing,
    at: u64,
    end: u64,
    block: Vec<u8>,
    /// Bytes of the block already read.
    used: usize,
    /// Bytes counted for the block.
    charge: Charge,
}

impl Chunks {
    pub fn new(
        file: &Arc<dyn Spooled>,
        memory: &Arc<BodyMemory>,
        packing: Packing,
        at: u64,
        length: u64,
    ) -> Self {
        let (file, charge) = (Arc::clone(file), Charge::none(memory));
        Self { file, packing, at, end: at + length, block: Vec::new(), used: 0, charge }
    }

    /// The rest of the block; empty at the stream's end.
    fn rest(&mut self) -> Outcome<&[u8]> {
        while self.used == self.block.len() && self.at < self.end {
            self.fill()?;
        }
        Ok(&self.block[self.used..])
    }

    fn fill(&mut self) -> Outcome<()> {
        self.block.clear();
        self.used = 0;
        let left = self.end - self.at;
        if self.packing.codec == Codec::Plain {
            let length = left.min(WINDOW_BYTES);
            self.charge.grow_to(length as usize)?;
            self.block.extend_from_slice(&self.file.read(self.at, length as usize)?);
            self.at += length;
            return Ok(());
        }
        if left < 3 {
            return Err(Damage::new("a stream ends in the head of a chunk"));
        }
        let head = self.file.read(self.at, 3)?;
        let head = u64::from(head[0]) | u64::from(head[1]) << 8 | u64::from(head[2]) << 16;
        let (is_plain, length) = (head & 1 == 1, head >> 1);
        if length > left - 3 || length > self.packing.block_bytes as u64 {
            return Err(Damage::new(format!(
                "a chunk has {length} bytes, its stream {left}, and its block at most {}",
                self.packing.block_bytes
            )));
        }
        self.charge.grow_to(self.packing.block_bytes)?;
        let packed = self.file.read(self.at + 3, length as usize)?;
        self.at += 3 + length;
        if is_plain {
            self.block.extend_from_slice(&packed);
            return Ok(());
        }
        self.block.reserve_exact(self.packing.block_bytes);
        self.packing.unpack(&packed, &mut self.block)
    }

    /// # Errors
    /// [`Damage`] at the end, or if the chunk can't be unpacked.
    pub fn byte(&mut self) -> Outcome<u8> {
        let byte = *self.rest()?.first().ok_or_else(cut_off)?;
        self.used += 1;
        Ok(byte)
    }

    /// Appends this many bytes.
    ///
    /// # Errors
    /// See [`Chunks::byte`].
    pub fn read(&mut self, mut length: usize, into: &mut Vec<u8>) -> Outcome<()> {
        while length > 0 {
            let rest = self.rest()?;
            let amount = rest.len().min(length);
            if amount == 0 {
                return Err(cut_off());
            }
            into.extend_from_slice(&rest[..amount]);
            self.used += amount;
            length -= amount;
        }
        Ok(())
    }

    /// All bytes, which may be at most `max`.
    ///
    /// # Errors
    /// [`Damage`] if they are more, or see [`Chunks::byte`].
    pub fn all(mut self, max: usize) -> Outcome<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let rest = self.rest()?;
            if rest.is_empty() {
                return Ok(all);
            }
            if all.len() + rest.len() > max {
                return Err(Damage::new(format!("its description unpacks to more than {max} bytes")));
            }
            all.extend_from_slice(rest);
            self.used = self.block.len();
        }
    }

    /// A number in groups of seven bits, the lowest first.
    ///
    /// # Errors
    /// [`Damage`] if it is longer than it can be, or see [`Chunks::byte`].
    pub fn varint(&mut self) -> Outcome<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damage::new("a number has no end"))
    }

    /// The same, of 128 bits and with a sign.
    ///
    /// # Errors
    /// See [`Chunks::varint`].
    pub fn wide_varint(&mut self) -> Outcome<i128> {
        let mut value = 0_u128;
        for shift in (0..133).step_by(7) {
            let byte = self.byte()?;
            value |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i128 ^ -((value & 1) as i128));
            }
        }
        Err(Damage::new("a number has no end"))
    }
}

fn cut_off() -> Damage {
    Damage::new("a stream ends too early")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::io::Write;

    const BLOCK: usize = 64 * 1024;

    fn chunk(packed: &[u8]) -> Vec<u8> {
        let head = (packed.len() as u32) << 1;
        [&head.to_le_bytes()[..3], packed].concat()
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Every codec's number, with these bytes packed by it.
    fn packed(bytes: &[u8]) -> [(u64, Vec<u8>); 4] {
        [
            (1, deflated(bytes)),
            (2, snap::raw::Encoder::new().compress_vec(bytes).unwrap()),
            (4, lz4_flex::block::compress(bytes)),
            (5, zstd::bulk::compress(bytes, 1).unwrap()),
        ]
    }

    fn read(codec: u64, stream: Vec<u8>) -> Result<Vec<u8>, String> {
        let packing = Packing::of_file(codec, BLOCK as u64).unwrap();
        let length = stream.len() as u64;
        let file: Arc<dyn Spooled> = Arc::new(Bytes::from(stream));
        let memory = Arc::default();
        let all = Chunks::new(&file, &memory, packing, 0, length)
            .all(1 << 30)
            .map_err(|damage| damage.text.into_owned());
        assert_eq!(memory.bytes(), 0);
        all
    }

    #[test]
    fn chunks_of_every_codec_are_one_stream() {
        let first: Vec<u8> = (0..BLOCK).map(|at| (at / 7) as u8).collect();
        let plain = [&[7_u8, 0, 0][..], b"xyz"].concat();
        for (codec, packed) in packed(&first) {
            let stream = [chunk(&packed), plain.clone(), chunk(&packed)].concat();
            assert_eq!(read(codec, stream).unwrap(), [&first[..], b"xyz", &first[..]].concat(), "{codec}");
        }
        assert_eq!(read(0, first.clone()).unwrap(), first);
    }

    #[test]
    fn a_chunk_that_unpacks_to_more_than_a_block_is_refused() {
        for (codec, packed) in packed(&vec![0; 16 * BLOCK]) {
            assert!(packed.len() < BLOCK, "{codec}");
            let error = read(codec, chunk(&packed)).unwrap_err();
            assert!(error.contains("a chunk"), "{codec}: {error}");
        }
    }

    #[test]
    fn damaged_and_cut_off_chunks_are_errors() {
        for (codec, packed) in packed(b"some bytes that are packed, some bytes that are packed") {
            let whole = chunk(&packed);
            for length in 1..whole.len() {
                assert!(read(codec, whole[..length].to_vec()).is_err(), "{codec}: {length}");
            }
            let shorter = chunk(&packed[..packed.len() - 1]);
            assert!(read(codec, shorter).is_err(), "{codec}");
        }
        let longest = [0xfe, 0xff, 0xff];
        assert!(read(1, longest.to_vec()).unwrap_err().contains("a chunk has 8388607 bytes"));
    }

    #[test]
    fn codecs_and_blocks_that_are_not_read_are_named() {
        assert!(Packing::of_file(3, 1).unwrap_err().text.contains("LZO is not read"));
        assert!(Packing::of_file(9, 1).unwrap_err().text.contains("no codec 9"));
        for bytes in [0, BLOCK_BYTES_MAX + 1, u64::MAX] {
            assert!(Packing::of_file(1, bytes).unwrap_err().text.contains(&bytes.to_string()));
        }
    }
}

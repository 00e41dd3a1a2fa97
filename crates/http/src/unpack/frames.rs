//! LZ4 frames: what `lz4` and `lz4frame` of other programs write.
//!
//! The blocks are unpacked by `lz4_flex`. Its reader of frames can't wait within a block, so the frames are read here.

use super::gathered::{Gathered, Output};
use super::{Codec, damaged};
use bytes::Bytes;
use lz4_flex::block::decompress_into_with_dict;
use std::hash::Hasher;
use std::io::{self, Read};
use twox_hash::XxHash32;

const MAGIC: u32 = 0x184D_2204;
const LEGACY_MAGIC: u32 = 0x184C_2102;
/// Frames with magic numbers in these sixteen are for others.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
/// How far back a block may refer, in bytes.
const HISTORY_BYTES: usize = 64 * 1024;
/// A block with this bit is not packed.
const PLAIN: u32 = 1 << 31;

/// LZ4 frames being unpacked: one block at a time, which has at most 4 MiB.
pub(super) struct Lz4Frames {
    input: Gathered,
    output: Output,
    place: Place,
}

enum Place {
    Between,
    /// Remaining bytes of a skippable frame.
    Skipped(usize),
    Within(Frame),
}

/// A frame's header, and its state so far.
struct Frame {
    block_bytes_max: usize,
    blocks_are_linked: bool,
    has_block_checksums: bool,
    has_checksum: bool,
    declared_bytes: Option<u64>,
    bytes: u64,
    hash: XxHash32,
}

impl Lz4Frames {
    pub(super) fn new() -> Self {
        Self { input: Gathered::default(), output: Output::default(), place: Place::Between }
    }

    /// Goes on behind the output that was read; whether there is more.
    fn advance(&mut self) -> io::Result<bool> {
        match &mut self.place {
            Place::Between => {
                if self.input.is_at_end()? {
                    return Ok(false);
                }
                self.place = head(&mut self.input)?;
                self.output = Output::default();
            }
            Place::Skipped(0) => self.place = Place::Between,
            Place::Skipped(left) => *left -= self.input.skip(*left)?,
            Place::Within(frame) => {
                if frame.block(&mut self.input, &mut self.output)? {
                    self.place = Place::Between;
                }
            }
        }
        Ok(true)
    }
}

/// Takes the head of a frame.
fn head(input: &mut Gathered) -> io::Result<Place> {
    match u32::from_le_bytes(input.peek_four(0)?) {
        MAGIC => {}
        LEGACY_MAGIC => return Err(damaged("the frame has LZ4's legacy format; pack it anew with lz4")),
        magic if magic & !0xf == SKIPPABLE_MAGIC => {
            let length = u32::from_le_bytes(input.peek_four(4)?);
            input.take(8)?;
            return Ok(Place::Skipped(length as usize));
        }
        _ => return Err(damaged("this is no LZ4 frame")),
    }
    let &[.., flags, sizes] = input.peek(6)? else { unreachable!("six bytes were asked for") };
    let is_set = |bit: u8| flags >> bit & 1 == 1;
    if flags >> 6 != 1 {
        return Err(damaged(format!("the frame has version {}, known is 1", flags >> 6)));
    }
    if is_set(0) {
        return Err(damaged("the frame needs a dictionary, which a load can't name"));
    }
    let block_bytes_max = match sizes >> 4 & 7 {
        size @ 4..=7 => 1 << (8 + 2 * size),
        size => return Err(damaged(format!("the frame's blocks have the unknown size {size}"))),
    };
    let length = if is_set(3) { 15 } else { 7 };
    let bytes = input.take(length)?;
    let (described, checksum) = bytes[4..].split_at(length - 5);
    if (XxHash32::oneshot(0, described) >> 8) as u8 != checksum[0] {
        return Err(damaged("the checksum of the frame's head is wrong"));
    }
    let declared = |size: &[u8]| u64::from_le_bytes(size.try_into().expect("eight bytes"));
    Ok(Place::Within(Frame {
        block_bytes_max,
        blocks_are_linked: !is_set(5),
        has_block_checksums: is_set(4),
        has_checksum: is_set(2),
        declared_bytes: is_set(3).then(|| declared(&described[2..])),
        bytes: 0,
        hash: XxHash32::with_seed(0),
    }))
}

impl Frame {
    /// Unpacks the next block; whether the frame ended instead.
    fn block(&mut self, input: &mut Gathered, output: &mut Output) -> io::Result<bool> {
        let word = u32::from_le_bytes(input.peek_four(0)?);
        if word == 0 {
            self.end(input)?;
            return Ok(true);
        }
        let length = (word & !PLAIN) as usize;
        if length > self.block_bytes_max {
            let limit = self.block_bytes_max;
            return Err(damaged(format!(
                "a block has {length} bytes, the frame's blocks have at most {limit}"
            )));
        }
        let checksum_bytes = if self.has_block_checksums { 4 } else { 0 };
        let block = input.take(4 + length + checksum_bytes)?;
        let (block, checksum) = block[4..].split_at(length);
        if self.has_block_checksums && XxHash32::oneshot(0, block).to_le_bytes() != checksum {
            return Err(damaged("the checksum of a block is wrong"));
        }
        self.unpack(block, word & PLAIN != 0, output)?;
        let unpacked = &output.bytes[output.read..];
        self.bytes += unpacked.len() as u64;
        if self.has_checksum {
            self.hash.write(unpacked);
        }
        Ok(false)
    }

    /// Appends a block to the history that it may refer to.
    fn unpack(&self, block: &[u8], is_plain: bool, output: &mut Output) -> io::Result<()> {
        let kept = if self.blocks_are_linked { output.bytes.len().min(HISTORY_BYTES) } else { 0 };
        output.bytes.drain(..output.bytes.len() - kept);
        output.read = kept;
        if is_plain {
            output.bytes.extend_from_slice(block);
            return Ok(());
        }
        output.bytes.resize(kept + self.block_bytes_max, 0);
        let (history, space) = output.bytes.split_at_mut(kept);
        let length = decompress_into_with_dict(block, space, history)
            .map_err(|error| damaged(format!("a block can't be unpacked: {error}")))?;
        output.bytes.truncate(kept + length);
        Ok(())
    }

    fn end(&self, input: &mut Gathered) -> io::Result<()> {
        let end = input.take(if self.has_checksum { 8 } else { 4 })?;
        if self.has_checksum && self.hash.finish_32().to_le_bytes() != end[4..] {
            return Err(damaged("the checksum of a frame is wrong"));
        }
        match self.declared_bytes {
            Some(declared) if declared != self.bytes => {
                let bytes = self.bytes;
                Err(damaged(format!("a frame unpacks to {bytes} bytes and says that it has {declared}")))
            }
            _ => Ok(()),
        }
    }
}

impl Codec for Lz4Frames {
    fn feed(&mut self, bytes: Bytes) {
        self.input.feed(&bytes);
    }

    fn end_input(&mut self) {
        self.input.end();
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let given = self.output.give(into);
            if given > 0 || !self.advance()? {
                return Ok(given);
            }
        }
    }
}

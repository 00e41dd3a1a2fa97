//! Builds one frame from the entries of many submissions.
//!
//! Invariant: the slices of a built frame, in order, are exactly the frame's bytes. Large bodies are slices of their own and are
//! not copied; headers and small bodies are collected in one buffer, because copying them is cheaper than one more slice of a
//! vectored write.

use crate::entry::{Appended, Entry};
use crate::segment::format::{
    ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, FrameHeader, encode_entry_header,
};
use bytes::Bytes;
use std::io::IoSlice;
use std::ops::Range;
use tributary_types::Lsn;

/// Bodies up to this size are copied into the frame's buffer.
const COPIED_BODY_BYTES_MAX: usize = 4096;
/// A buffer that a huge frame has made larger than this is freed.
const KEPT_BUFFER_BYTES_MAX: usize = 32 << 20;

/// The size of the pending entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) entries: u64,
    pub(crate) payload_bytes: u64,
    /// Greater than every transaction id.
    pub(crate) next_txn: u64,
}

impl Size {
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let headers = (entries.len() * ENTRY_HEADER_BYTES) as u64;
        let start = Self { entries: entries.len() as u64, payload_bytes: headers, next_txn: 0 };
        entries.iter().fold(start, |sum, entry| Self {
            payload_bytes: sum.payload_bytes + entry.body.len() as u64,
            next_txn: sum.next_txn.max(entry.txn.0.saturating_add(1)),
            ..sum
        })
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            next_txn: self.next_txn.max(other.next_txn),
        }
    }

    pub(crate) fn frame_bytes(self) -> u64 {
        FRAME_HEADER_BYTES as u64 + self.payload_bytes
    }

    pub(crate) fn fits_a_frame(self) -> bool {
        self.payload_bytes <= FRAME_PAYLOAD_BYTES_MAX
    }
}

/// The buffers of a frame, reused from frame to frame.
#[derive(Default)]
pub(crate) struct FrameBuilder {
    buffer: Vec<u8>,
    pieces: Vec<Piece>,
}

enum Piece {
    Buffered(Range<usize>),
    Body(Bytes),
}

impl FrameBuilder {
    /// Builds the frame at `lsn` and returns the place of each submission. Together they must fit a frame.
    pub(crate) fn build<S: AsRef<[Entry]>>(&mut self, batch: &[S], lsn: Lsn, salt: u64) -> Vec<Appended> {
        self.buffer.resize(FRAME_HEADER_BYTES, 0);
        self.pieces.push(Piece::Buffered(0..FRAME_HEADER_BYTES));
        let mut place = Lsn(lsn.0 + FRAME_HEADER_BYTES as u64);
        let mut appended = Vec::with_capacity(batch.len());
        let mut entries = 0;
        for submission in batch {
            let first = place;
            for entry in submission.as_ref() {
                self.push(entry);
                place.0 += (ENTRY_HEADER_BYTES + entry.body.len()) as u64;
                entries += 1;
            }
            appended.push(Appended { first, end: place });
        }
        let payload_bytes = u32::try_from(place.0 - lsn.0 - FRAME_HEADER_BYTES as u64)
            .expect("the caller has checked that the payload fits a frame");
        let header =
            FrameHeader { salt, lsn, payload_bytes, entries, payload_crc: self.payload_crc() }.encode();
        self.buffer[..FRAME_HEADER_BYTES].copy_from_slice(&header);
        appended
    }

    /// The frame's bytes, for a vectored write.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        self.pieces.iter().map(|piece| IoSlice::new(self.bytes_of(piece))).collect()
    }

    /// Drops the bodies and retains the buffers for the next frame.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.buffer.clear();
        if self.buffer.capacity() > KEPT_BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
    }

    fn push(&mut self, entry: &Entry) {
        let from = self.buffer.len();
        let body_bytes =
            u32::try_from(entry.body.len()).expect("the caller has checked that the payload fits a frame");
        encode_entry_header(entry, body_bytes, &mut self.buffer);
        let copied = entry.body.len() <= COPIED_BODY_BYTES_MAX;
        if copied {
            self.buffer.extend_from_slice(&entry.body);
        }
        match self.pieces.last_mut() {
            Some(Piece::Buffered(range)) => range.end = self.buffer.len(),
            _ => self.pieces.push(Piece::Buffered(from..self.buffer.len())),
        }
        if !copied {
            self.pieces.push(Piece::Body(entry.body.clone()));
        }
    }

    fn bytes_of<'a>(&'a self, piece: &'a Piece) -> &'a [u8] {
        match piece {
            Piece::Buffered(range) => &self.buffer[range.clone()],
            Piece::Body(body) => body,
        }
    }

    fn payload_crc(&self) -> u32 {
        let mut crc = 0;
        let mut skip = FRAME_HEADER_BYTES;
        for piece in &self.pieces {
            crc = crc32c::crc32c_append(crc, &self.bytes_of(piece)[skip..]);
            skip = 0;
        }
        crc
    }
}

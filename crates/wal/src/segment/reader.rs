//! Reads the frames of one segment file.
//!
//! Invariant: a frame is returned only if both its checksums are right and it belongs to its place. No length that is read
//! from the file is trusted before its checksum is. Not its business: whether a missing frame is damage.

#![warn(clippy::indexing_slicing)]

use super::format::{
    FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, FrameHeader, HeaderProblem, SEGMENT_HEADER_BYTES,
    SegmentHeader,
};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::WalError;
use bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use tributary_types::Lsn;

/// Small frames are read together in reads of this many bytes.
const WINDOW_BYTES: u64 = 1 << 20;

/// A frame whose checksums are right.
pub(crate) struct Frame {
    pub(crate) offset: u64,
    pub(crate) lsn: Lsn,
    pub(crate) entries: u32,
    pub(crate) payload: Bytes,
}

impl Frame {
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.lsn.0 + FRAME_HEADER_BYTES as u64 + self.payload.len() as u64)
    }
}

/// The reason why there is no frame at an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoFrame {
    pub(crate) reason: &'static str,
    /// The length of a frame that was begun here, as far as it can be made out.
    pub(crate) torn_bytes: u64,
}

/// One segment file, read from its first frame on.
pub(crate) struct SegmentReader {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    header: SegmentHeader,
    file_bytes: u64,
    next: Lsn,
    last: Option<(u64, u64)>,
    window: Bytes,
    window_at: u64,
}

impl SegmentReader {
    /// Opens a segment and reads its header.
    ///
    /// # Errors
    /// [`WalError::Damaged`] for a header that is broken or belongs to another name.
    pub(crate) fn open(disk: &dyn Disk, path: &Path, named: Lsn) -> Result<Self, WalError> {
        let file = disk.open(path, OpenMode::Existing).map_err(|error| WalError::io("open", path, error))?;
        let file_bytes = file.len().map_err(|error| WalError::io("measure", path, error))?;
        let mut reader = Self {
            file,
            path: path.to_owned(),
            header: SegmentHeader { first: named, salt: 0, value: 0, log: None },
            file_bytes,
            next: named,
            last: None,
            window: Bytes::new(),
            window_at: 0,
        };
        let bytes = reader.bytes_at(0, SEGMENT_HEADER_BYTES)?;
        reader.header = SegmentHeader::decode(&bytes).map_err(|problem| header_error(path, &problem))?;
        if reader.header.first != named {
            let reason = format!("its header says that it begins at LSN {}", reader.header.first);
            return Err(WalError::damaged(path, 16, reason));
        }
        Ok(reader)
    }

    pub(crate) fn header(&self) -> SegmentHeader {
        self.header
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The LSN that the next frame must have: the end of the frames read so far.
    pub(crate) fn lsn(&self) -> Lsn {
        self.next
    }

    /// The file offset that belongs to [`SegmentReader::lsn`].
    pub(crate) fn offset(&self) -> u64 {
        SEGMENT_HEADER_BYTES + (self.next.0 - self.header.first.0)
    }

    /// The LSN that belongs to a file offset.
    pub(crate) fn lsn_at(&self, offset: u64) -> Lsn {
        Lsn(self.header.first.0 + (offset - SEGMENT_HEADER_BYTES))
    }

    /// Continues at another file offset, after damage. Only for surveys: a log that has been read like this must not be
    /// written.
    pub(crate) fn continue_at(&mut self, offset: u64) {
        self.next = self.lsn_at(offset);
    }

    /// Reads the next frame, or says why there is none.
    ///
    /// # Errors
    /// [`WalError::Io`] if the file cannot be read.
    pub(crate) fn next_frame(&mut self) -> Result<Result<Frame, NoFrame>, WalError> {
        let frame = self.frame_at(self.offset())?;
        if let Ok(frame) = &frame {
            self.last = Some((frame.offset, FRAME_HEADER_BYTES as u64 + frame.payload.len() as u64));
            self.next = frame.end();
        }
        Ok(frame)
    }

    /// The offset of the next valid frame after `offset`, if there is one.
    ///
    /// # Errors
    /// [`WalError::Io`] if the file cannot be read.
    pub(crate) fn frame_behind(&mut self, offset: u64) -> Result<Option<u64>, WalError> {
        let salt = self.header.salt.to_le_bytes();
        let finder = memchr::memmem::Finder::new(&salt);
        let mut from = offset + 1;
        while from + FRAME_HEADER_BYTES as u64 <= self.file_bytes {
            let window = self.bytes_at(from, WINDOW_BYTES.min(self.file_bytes - from))?;
            // Not `find_iter`: with a periodic salt, a match may begin inside another one.
            let mut behind = 0;
            while let Some(found) = window.get(behind..).and_then(|rest| finder.find(rest)) {
                let place = from + (behind + found) as u64;
                if self.frame_at(place)?.is_ok() {
                    return Ok(Some(place));
                }
                behind += found + 1;
            }
            // A salt may lie across the end of the window.
            from += (window.len() as u64).saturating_sub(salt.len() as u64 - 1).max(1);
        }
        Ok(None)
    }

    /// Makes the frames read so far durable. They may have come only from the page cache, where a process left them that died
    /// before its fsync or whose fsync failed. All frames but the last were synced before the next was written; the last is
    /// written again.
    ///
    /// # Errors
    /// [`WalError::Io`] if the file cannot be read, written or synced.
    pub(crate) fn settle(&mut self) -> Result<(), WalError> {
        if let Some((offset, len)) = self.last {
            let frame = self.bytes_at(offset, len)?;
            self.file
                .write_all_at(&frame, offset)
                .map_err(|error| WalError::io("rewrite the last frame of", &self.path, error))?;
        }
        self.file.sync_data().map_err(|error| WalError::io("sync", &self.path, error))
    }

    fn frame_at(&mut self, offset: u64) -> Result<Result<Frame, NoFrame>, WalError> {
        let none = |reason, torn_bytes| Ok(Err(NoFrame { reason, torn_bytes }));
        let left = self.file_bytes.saturating_sub(offset);
        if left < FRAME_HEADER_BYTES as u64 {
            return none("the file ends", 0);
        }
        let head = self.bytes_at(offset, FRAME_HEADER_BYTES as u64)?;
        if !head.starts_with(&self.header.salt.to_le_bytes()) {
            return none("no frame of this segment begins here", 0);
        }
        let Some(header) = FrameHeader::decode(&head) else {
            return none("the frame header's checksum is wrong", FRAME_HEADER_BYTES as u64);
        };
        if header.lsn.0 != self.header.first.0 + (offset - SEGMENT_HEADER_BYTES) {
            return none("the frame's LSN belongs to another place", FRAME_HEADER_BYTES as u64);
        }
        let payload_bytes = u64::from(header.payload_bytes);
        if payload_bytes > FRAME_PAYLOAD_BYTES_MAX || header.frame_bytes() > left {
            return none("the frame is longer than the file", left.min(header.frame_bytes()));
        }
        let payload = self.bytes_at(offset + FRAME_HEADER_BYTES as u64, payload_bytes)?;
        if crc32c::crc32c(&payload) != header.payload_crc {
            return none("the frame's checksum is wrong", header.frame_bytes());
        }
        Ok(Ok(Frame { offset, lsn: header.lsn, entries: header.entries, payload }))
    }

    /// The `len` bytes at `offset`, fewer only where the file ends.
    fn bytes_at(&mut self, offset: u64, len: u64) -> Result<Bytes, WalError> {
        let end = (offset + len).min(self.file_bytes);
        let inside = offset >= self.window_at && end <= self.window_at + self.window.len() as u64;
        if !inside {
            self.load_window(offset, len.max(WINDOW_BYTES).min(self.file_bytes.saturating_sub(offset)))
                .map_err(|error| WalError::io("read", &self.path, error))?;
        }
        let from = (offset - self.window_at) as usize;
        let to = (end.max(offset) - self.window_at) as usize;
        Ok(self.window.slice(from.min(self.window.len())..to.min(self.window.len())))
    }

    fn load_window(&mut self, offset: u64, len: u64) -> io::Result<()> {
        let mut bytes = vec![0; len as usize];
        let read = self.file.read_at(&mut bytes, offset)?;
        if read < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.window = bytes.into();
        self.window_at = offset;
        Ok(())
    }
}

fn header_error(path: &Path, problem: &HeaderProblem) -> WalError {
    match problem {
        HeaderProblem::Broken(reason) => WalError::damaged(path, 0, *reason),
        HeaderProblem::UnknownFormat(found) => WalError::UnknownFormat {
            file: path.to_owned(),
            found: *found,
            supported: super::format::FORMAT_VERSION,
        },
    }
}

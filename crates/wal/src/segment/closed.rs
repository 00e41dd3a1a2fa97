//! A complete segment.

use super::format::SEGMENT_HEADER_BYTES;
use std::path::PathBuf;
use tributary_types::Lsn;

/// A segment that accepts no more frames: all of it is durable, name and contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedSegment {
    pub path: PathBuf,
    /// The LSN of its first frame.
    pub first: Lsn,
    /// The LSN after its last frame.
    pub end: Lsn,
    /// The length of the file. Bytes after the last frame mean nothing.
    pub file_bytes: u64,
}

impl ClosedSegment {
    /// How much of the file means something, header included.
    #[must_use]
    pub const fn used_bytes(&self) -> u64 {
        SEGMENT_HEADER_BYTES + (self.end.0 - self.first.0)
    }
}

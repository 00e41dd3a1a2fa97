//! The identity of a log, wherever its directory is mounted, moved or copied to.
//!
//! A log's id is the beginning of its first segment: that segment's first LSN and its random salt. Every segment repeats it in
//! its header, so it outlives the first one. Segments of older servers have none; the id of such a log is that of its oldest
//! segment, and segments written from then on record it.
//!
//! Invariant: the id never changes while the log lives, and a copy has the same. Not its business: which logs there
//! should be, and where.

#[cfg(test)]
mod tests;

use crate::log_id::{LOG_ID_BYTES, LogId};
use crate::segment::format::{SEGMENT_HEADER_BYTES, SegmentHeader, parse_segment_name};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

impl LogId {
    /// Derives the id of a log that begins with the segment. `None` for a segment that a repair has made: nothing in it is
    /// random.
    pub(crate) fn of_first(segment: &SegmentHeader) -> Option<Self> {
        let mut bytes = [0; LOG_ID_BYTES];
        bytes[..8].copy_from_slice(&segment.first.0.to_le_bytes());
        bytes[8..].copy_from_slice(&segment.salt.to_le_bytes());
        (segment.salt != 0).then_some(Self(bytes))
    }

    /// The id of the log that has these segments, from the oldest on.
    pub(crate) fn of_log<'a>(segments: impl IntoIterator<Item = &'a SegmentHeader>) -> Option<Self> {
        let mut oldest = None;
        for segment in segments {
            if segment.log.is_some() {
                return segment.log;
            }
            oldest = oldest.or(Some(segment));
        }
        oldest.and_then(Self::of_first)
    }
}

/// Whether the directory has a segment. A log that was ever started always does.
#[must_use]
pub fn is_in_use(dir: &Path) -> bool {
    !segments(dir).is_empty()
}

/// The id of the log in a directory; `None` without a log, or when no segment's header can be read. Only reads, so
/// a server may have the log open.
#[must_use]
pub fn identify(dir: &Path) -> Option<LogId> {
    let headers: Vec<SegmentHeader> = segments(dir).iter().filter_map(|path| header_of(path).ok()?).collect();
    LogId::of_log(&headers)
}

/// Moves the segments of a directory that no process has open into another. Not durable before both are synced.
///
/// # Errors
/// The operating system's error; some segments may have been moved.
pub fn move_segments(dir: &Path, to: &Path) -> io::Result<()> {
    segments(dir).iter().try_for_each(|path| fs::rename(path, to.join(path.file_name().unwrap_or_default())))
}

/// The directory's segments, from the oldest on. None if it cannot be read.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(dir) else { return Vec::new() };
    let is_segment =
        |path: &PathBuf| path.file_name().and_then(|name| parse_segment_name(name.to_str()?)).is_some();
    let mut segments: Vec<PathBuf> = files.flatten().map(|file| file.path()).filter(is_segment).collect();
    // Names have as many digits as any LSN.
    segments.sort();
    segments
}

fn header_of(path: &Path) -> io::Result<Option<SegmentHeader>> {
    let mut bytes = Vec::with_capacity(SEGMENT_HEADER_BYTES as usize);
    File::open(path)?.take(SEGMENT_HEADER_BYTES).read_to_end(&mut bytes)?;
    Ok(SegmentHeader::decode(&bytes).ok())
}

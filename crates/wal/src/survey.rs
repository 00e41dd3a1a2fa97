//! Examines a log without changing it, damaged or not.
//!
//! Recovery stops at the first damage; a survey continues after it, so that the owner knows what survives and what is lost before
//! deciding. Not its business: the meaning of an entry, and how to treat damage (that is [`crate::repair`]).

#[cfg(test)]
mod tests;

use crate::disk::{DirLock, Disk, OpenMode};
use crate::entry::Entry;
use crate::error::WalError;
use crate::recovery::{Extent, SegmentFile, TornTail, list_files};
use crate::segment::format::{
    ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, FrameHeader, SEGMENT_HEADER_BYTES, SegmentHeader, decode_entry,
};
use crate::segment::reader::{Frame, NoFrame, SegmentReader};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use tributary_types::Lsn;

/// One finding of a survey; findings are in the order of the log.
#[derive(Clone, Debug)]
pub enum Found {
    Segment(Segment),
    Frame(FrameInfo),
    /// An entry of the frame before it, whose checksum was right.
    Entry {
        lsn: Lsn,
        entry: Entry,
    },
    Damage(Damage),
}

/// A segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub file: PathBuf,
    /// The LSN that its name says.
    pub first: Lsn,
    pub file_bytes: u64,
    /// The transaction id that its header says is greater than all before; `None` without a valid header.
    pub header_value: Option<u64>,
}

/// A frame whose checksums are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    pub file: PathBuf,
    pub offset: u64,
    pub lsn: Lsn,
    /// The length, header included.
    pub bytes: u64,
    pub entries: u32,
}

/// A place where frames are missing.
#[derive(Clone, Debug)]
pub struct Damage {
    pub file: PathBuf,
    pub offset: u64,
    /// The LSN of the first lost byte.
    pub lsn: Lsn,
    /// Its length as far as it can be made out: to the next valid frame or the next segment.
    pub bytes: u64,
    pub reason: String,
    pub kind: DamageKind,
    /// Entries that can be made out in the damaged bytes. Their checksum is wrong, so anything in them may be.
    pub remains: Vec<Entry>,
}

/// The kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// An unfinished write at the end of the log, never acknowledged. A start cuts it.
    TornTail,
    /// Valid frames follow in the same file, or in the next.
    Hole,
    /// The header of a segment is broken: none of its frames can be trusted.
    Header,
}

/// A log directory, locked against other processes.
pub struct Survey<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) dir: PathBuf,
    _lock: DirLock,
}

impl<'a> Survey<'a> {
    /// Locks the directory.
    ///
    /// # Errors
    /// [`WalError::Locked`] while a server has the log open, or [`WalError::Io`].
    pub fn open(disk: &'a dyn Disk, dir: &Path) -> Result<Self, WalError> {
        let lock = disk
            .lock_dir(dir)
            .map_err(|error| WalError::io("lock", dir, error))?
            .ok_or_else(|| WalError::Locked { dir: dir.to_owned() })?;
        Ok(Self { disk, dir: dir.to_owned(), _lock: lock })
    }

    /// The log's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Passes every finding to `visit`, from the oldest segment to the end.
    ///
    /// # Errors
    /// [`WalError::Io`] or [`WalError::UnknownFormat`]; damage is not an error here.
    pub fn walk(&self, visit: &mut dyn FnMut(Found)) -> Result<Extent, WalError> {
        let (segments, _) = list_files(self.disk, &self.dir)?;
        let first_lsn = segments.first().map_or(Lsn(0), |segment| segment.first);
        let extent = Extent { segments: segments.len(), first_lsn, end_lsn: first_lsn, ..Extent::default() };
        let mut walk = Walk { disk: self.disk, visit, extent };
        for (at, segment) in segments.iter().enumerate() {
            walk.segment(segment, segments.get(at + 1).map(|next| next.first))?;
        }
        Ok(walk.extent)
    }

    /// All damage, in the order of the log.
    ///
    /// # Errors
    /// The errors of [`Survey::walk`].
    pub fn damage(&self) -> Result<Vec<Damage>, WalError> {
        let mut all = Vec::new();
        self.walk(&mut |found| {
            if let Found::Damage(damage) = found {
                all.push(damage);
            }
        })?;
        Ok(all)
    }
}

struct Walk<'a> {
    disk: &'a dyn Disk,
    visit: &'a mut dyn FnMut(Found),
    extent: Extent,
}

impl Walk<'_> {
    fn segment(&mut self, segment: &SegmentFile, limit: Option<Lsn>) -> Result<(), WalError> {
        let opened = SegmentReader::open(self.disk, &segment.path, segment.first);
        let header = opened.as_ref().ok().map(SegmentReader::header);
        (self.visit)(Found::Segment(Segment {
            file: segment.path.clone(),
            first: segment.first,
            file_bytes: segment.file_bytes,
            header_value: header.map(|header| header.value),
        }));
        match opened {
            Ok(reader) => {
                self.extent.header_value = self.extent.header_value.max(reader.header().value);
                self.frames(reader, limit)
            }
            Err(WalError::Damaged { file, offset, reason }) => {
                let bytes = limit.map_or(segment.file_bytes, |limit| {
                    SEGMENT_HEADER_BYTES + limit.0.saturating_sub(segment.first.0)
                });
                let kind = DamageKind::Header;
                let remains = Vec::new();
                (self.visit)(Found::Damage(Damage {
                    file,
                    offset,
                    lsn: segment.first,
                    bytes,
                    reason,
                    kind,
                    remains,
                }));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn frames(&mut self, mut reader: SegmentReader, limit: Option<Lsn>) -> Result<(), WalError> {
        while limit.is_none_or(|limit| reader.lsn() < limit) {
            let (offset, lsn) = (reader.offset(), reader.lsn());
            let none = match reader.next_frame()? {
                Ok(frame) if limit.is_none_or(|limit| frame.end() <= limit) => {
                    self.frame(&reader, &frame);
                    continue;
                }
                Ok(frame) => NoFrame {
                    reason: "a frame goes beyond the beginning of the next segment",
                    torn_bytes: frame.end().0 - lsn.0,
                },
                Err(none) => none,
            };
            let behind = reader
                .frame_behind(offset)?
                .filter(|&place| limit.is_none_or(|limit| reader.lsn_at(place) < limit));
            let (bytes, kind) = match (behind, limit) {
                (Some(place), _) => (place - offset, DamageKind::Hole),
                (None, Some(limit)) => (limit.0 - lsn.0, DamageKind::Hole),
                (None, None) if none.torn_bytes == 0 => return Ok(()),
                (None, None) => {
                    let NoFrame { reason, torn_bytes: bytes } = none;
                    self.extent.torn =
                        Some(TornTail { file: reader.path().to_owned(), offset, bytes, reason });
                    (bytes, DamageKind::TornTail)
                }
            };
            let remains = remains(self.disk, reader.path(), offset, bytes)?;
            (self.visit)(Found::Damage(Damage {
                file: reader.path().to_owned(),
                offset,
                lsn,
                bytes,
                reason: none.reason.to_owned(),
                kind,
                remains,
            }));
            match behind {
                Some(place) => reader.continue_at(place),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn frame(&mut self, reader: &SegmentReader, frame: &Frame) {
        self.extent.frames += 1;
        self.extent.end_lsn = frame.end();
        (self.visit)(Found::Frame(FrameInfo {
            file: reader.path().to_owned(),
            offset: frame.offset,
            lsn: frame.lsn,
            bytes: frame.end().0 - frame.lsn.0,
            entries: frame.entries,
        }));
        let mut offset = 0;
        for _ in 0..frame.entries {
            let Some((entry, next)) = decode_entry(&frame.payload, offset) else { return };
            self.extent.entries += 1;
            self.extent.header_value = self.extent.header_value.max(entry.txn.0.saturating_add(1));
            let lsn = Lsn(frame.lsn.0 + (FRAME_HEADER_BYTES + offset) as u64);
            (self.visit)(Found::Entry { lsn, entry });
            offset = next;
        }
    }
}

/// Entries that can be made out in damaged bytes, as long as one follows the other without a gap.
fn remains(disk: &dyn Disk, path: &Path, offset: u64, bytes: u64) -> Result<Vec<Entry>, WalError> {
    /// At most this much of damaged bytes is examined.
    const LOOKED_AT_MAX: u64 = 64 << 20;
    let failed = |error| WalError::io("read", path, error);
    let file = disk.open(path, OpenMode::Existing).map_err(failed)?;
    let mut damaged = vec![0; bytes.min(LOOKED_AT_MAX) as usize];
    let read = file.read_at(&mut damaged, offset).map_err(failed)?;
    damaged.truncate(read);
    let Some(payload) = damaged.get(FRAME_HEADER_BYTES..) else { return Ok(Vec::new()) };
    // The damage may be in the header: then its count means nothing.
    let announced = FrameHeader::decode(&damaged).map_or(u32::MAX, |header| header.entries);
    let payload = Bytes::copy_from_slice(payload);
    let (mut entries, mut at) = (Vec::new(), 0);
    while (entries.len() as u32) < announced && at + ENTRY_HEADER_BYTES <= payload.len() {
        // An entry of kind 0 is what zeros look like.
        match decode_entry(&payload, at).filter(|(entry, _)| entry.kind != 0) {
            Some((entry, next)) => {
                entries.push(entry);
                at = next;
            }
            None => break,
        }
    }
    Ok(entries)
}

/// The header of a segment, if it is valid.
pub(crate) fn header_of(disk: &dyn Disk, path: &Path, first: Lsn) -> Option<SegmentHeader> {
    SegmentReader::open(disk, path, first).ok().map(|reader| reader.header())
}

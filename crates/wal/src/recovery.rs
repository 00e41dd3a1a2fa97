//! Reading a log back, before it is written again.
//!
//! Invariant: every entry that was ever acknowledged and whose segment was not recycled is returned once, in order, without a
//! gap; or an error says where the log is damaged. The types enforce the order: a [`Recovered`] is read first, and only then can
//! it be turned into a log that accepts writes.
//!
//! The log ends, in the newest segment, at the first place without a valid frame. That is a torn write if no valid frame follows
//! (the writer never begins a frame before the last is durable), otherwise damage. In older segments the frames must lead exactly
//! to the beginning of the next segment.

#![warn(clippy::indexing_slicing)]

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test that panics has failed")]
mod tests;

use crate::core::LogCore;
use crate::disk::{DirLock, Disk};
use crate::entry::Entry;
use crate::error::WalError;
use crate::inventory::Inventory;
use crate::log_id::LogId;
use crate::options::WalOptions;
use crate::segment::closed::ClosedSegment;
use crate::segment::format::{
    FRAME_HEADER_BYTES, decode_entry, parse_segment_name, parse_spare_name, split_mix,
};
use crate::segment::reader::{Frame, NoFrame, SegmentReader};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_types::Lsn;

/// The extent of a log, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Segment files.
    pub segments: usize,
    /// Frames read so far, and valid.
    pub frames: u64,
    /// Entries read so far.
    pub entries: u64,
    /// The first LSN of the oldest segment.
    pub first_lsn: Lsn,
    /// The end of the last valid frame that was read so far; the end of the log once everything was read.
    pub end_lsn: Lsn,
    /// The greatest header value found, and greater than every transaction id read so far, see
    /// [`Wal::set_header_value`]; 0 for a new log.
    pub header_value: u64,
    /// A write that the last process began and could not finish. It was never acknowledged.
    pub torn: Option<TornTail>,
}

/// An unfinished write after the end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub file: PathBuf,
    /// The offset in the file at which the log ends.
    pub offset: u64,
    /// The length of the discarded bytes, as far as it can be determined.
    pub bytes: u64,
    pub reason: &'static str,
}

/// A log that was opened and is being read. Holds the directory's lock.
pub struct Recovered {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: WalOptions,
    lock: DirLock,
    segments: Vec<SegmentFile>,
    spares: Vec<(String, u64, u64)>,
    /// The index of the segment that is being read; past the last one at the end of the log.
    at: usize,
    reader: Option<SegmentReader>,
    frame: Option<OpenFrame>,
    log: Option<LogId>,
    salts: u64,
    report: Extent,
}

pub(crate) struct SegmentFile {
    pub(crate) path: PathBuf,
    pub(crate) first: Lsn,
    pub(crate) file_bytes: u64,
}

/// A frame some of whose entries were handed out.
struct OpenFrame {
    path: PathBuf,
    frame: Frame,
    next_offset: usize,
    entries_left: u32,
}

impl Recovered {
    /// Opens the directory (creating it if need be), locks it and reads the headers of its segments. Read the
    /// result to its end, then start it.
    ///
    /// # Errors
    /// [`WalError::Locked`], [`WalError::Damaged`], [`WalError::UnknownFormat`], [`WalError::BadOption`] or
    /// [`WalError::Io`].
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, options: WalOptions) -> Result<Self, WalError> {
        options.check()?;
        disk.create_dir_all(dir).map_err(|error| WalError::io("create", dir, error))?;
        let lock = disk
            .lock_dir(dir)
            .map_err(|error| WalError::io("lock", dir, error))?
            .ok_or_else(|| WalError::Locked { dir: dir.to_owned() })?;
        // The names seen below may be known to the operating system only, left there by a process that died.
        disk.sync_dir(dir).map_err(|error| WalError::io("sync the directory", dir, error))?;
        let (segments, spares) = list_files(&*disk, dir)?;
        let first_lsn = segments.first().map_or(Lsn(0), |segment| segment.first);
        let report = Extent { segments: segments.len(), first_lsn, end_lsn: first_lsn, ..Extent::default() };
        let salts = options.salt_seed.unwrap_or_else(entropy);
        let mut recovered = Self {
            disk,
            dir: dir.to_owned(),
            options,
            lock,
            segments,
            spares,
            at: 0,
            reader: None,
            frame: None,
            log: None,
            salts,
            report,
        };
        recovered.read_headers()?;
        Ok(recovered)
    }

    /// The next entry and its LSN; `None` at the end of the log. Reads the files piece by piece: at most one frame, or
    /// a megabyte of small ones, is in memory at a time.
    ///
    /// # Errors
    /// [`WalError::Damaged`], or [`WalError::Io`] if a file cannot be read. The log is left as it is.
    #[expect(clippy::should_implement_trait, reason = "a fallible stream: the error comes first")]
    pub fn next(&mut self) -> Result<Option<(Lsn, Entry)>, WalError> {
        loop {
            if let Some(next) = self.next_of_frame()? {
                return Ok(Some(next));
            }
            if !self.load_frame()? {
                return Ok(None);
            }
        }
    }

    /// Sets the value that new segments have in their headers, if it is greater than the one that was found.
    pub fn set_header_value(&mut self, value: u64) {
        self.report.header_value = self.report.header_value.max(value);
    }

    /// The length of all segment files in bytes, for showing progress.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.file_bytes).sum()
    }

    /// The extent so far. Complete when [`Recovered::next`] has returned `None`.
    #[must_use]
    pub const fn report(&self) -> &Extent {
        &self.report
    }

    /// Opens the log for writing, after its end, in a new segment. Entries that were not read yet are read and
    /// skipped. On return the end of the log is durable and can never change. [`Recovered::start`] does the same and
    /// runs the log's threads.
    ///
    /// # Errors
    /// The errors of [`Recovered::next`]; [`WalError::NoSpace`] if there is no space for a segment; [`WalError::Io`].
    pub fn into_core(mut self) -> Result<(LogCore, Extent), WalError> {
        while self.next()?.is_some() {}
        let end = self.report.end_lsn;
        let inventory = Inventory::new(self.disk, self.dir, &self.options)?;
        for (name, number, file_bytes) in &self.spares {
            inventory.adopt_spare(name, *number, *file_bytes);
        }
        let ends = self.segments.iter().skip(1).map(|segment| segment.first).chain([end]);
        for (segment, end) in self.segments.iter().zip(ends) {
            // An empty newest segment is replaced by the new one, which has the same name.
            if segment.first < end {
                inventory.add_closed(ClosedSegment {
                    path: segment.path.clone(),
                    first: segment.first,
                    end,
                    file_bytes: segment.file_bytes,
                });
            }
        }
        let value = self.report.header_value;
        let core = LogCore::begin(inventory, &self.options, self.lock, end, value, self.log, self.salts)?;
        Ok((core, self.report))
    }

    pub(crate) const fn options(&self) -> &WalOptions {
        &self.options
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads all headers, so that a missing or foreign file is found before anything is replayed.
    fn read_headers(&mut self) -> Result<(), WalError> {
        let mut headers = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let header = SegmentReader::open(&*self.disk, &segment.path, segment.first)?.header();
            headers.push(header);
            self.report.header_value = self.report.header_value.max(header.value);
            // New salts differ from all old ones, even when the seed is the same again.
            self.salts ^= header.salt;
            self.salts = split_mix(&mut self.salts);
        }
        self.log = LogId::of_log(&headers);
        Ok(())
    }

    fn next_of_frame(&mut self) -> Result<Option<(Lsn, Entry)>, WalError> {
        let Some(open) = &mut self.frame else { return Ok(None) };
        if open.entries_left == 0 && open.next_offset == open.frame.payload.len() {
            self.frame = None;
            return Ok(None);
        }
        let decoded =
            if open.entries_left == 0 { None } else { decode_entry(&open.frame.payload, open.next_offset) };
        let Some((entry, next_offset)) = decoded else {
            let reason = "the checksum of a frame is right but its entries do not fill it";
            return Err(WalError::damaged(&open.path, open.frame.offset, reason));
        };
        let lsn = Lsn(open.frame.lsn.0 + (FRAME_HEADER_BYTES + open.next_offset) as u64);
        open.next_offset = next_offset;
        open.entries_left -= 1;
        self.report.entries += 1;
        self.report.header_value = self.report.header_value.max(entry.txn.0.saturating_add(1));
        Ok(Some((lsn, entry)))
    }

    /// Reads the next frame, of whichever segment. `false` at the end of the log.
    fn load_frame(&mut self) -> Result<bool, WalError> {
        while let Some(segment) = self.segments.get(self.at) {
            let mut reader = match self.reader.take() {
                Some(reader) => reader,
                None => SegmentReader::open(&*self.disk, &segment.path, segment.first)?,
            };
            let limit = self.segments.get(self.at + 1).map(|next| next.first);
            if limit == Some(reader.lsn()) {
                self.at += 1;
                continue;
            }
            match reader.next_frame()? {
                Ok(frame) => {
                    self.accept(frame, &reader, limit)?;
                    self.reader = Some(reader);
                    return Ok(true);
                }
                Err(none) => self.end_at(reader, none, limit)?,
            }
        }
        Ok(false)
    }

    fn accept(&mut self, frame: Frame, reader: &SegmentReader, limit: Option<Lsn>) -> Result<(), WalError> {
        if let Some(limit) = limit.filter(|limit| frame.end() > *limit) {
            let reason = format!("a frame goes beyond LSN {limit}, where the next segment begins");
            return Err(WalError::damaged(reader.path(), frame.offset, reason));
        }
        assert_eq!(frame.lsn, self.report.end_lsn, "a frame begins where everything read before it ends");
        self.report.frames += 1;
        self.report.end_lsn = frame.end();
        let path = reader.path().to_owned();
        self.frame = Some(OpenFrame { path, next_offset: 0, entries_left: frame.entries, frame });
        Ok(())
    }

    /// Decides what a missing frame means: the end of the log, or damage.
    fn end_at(
        &mut self,
        mut reader: SegmentReader,
        none: NoFrame,
        limit: Option<Lsn>,
    ) -> Result<(), WalError> {
        let offset = reader.offset();
        if let Some(limit) = limit {
            let reason = format!(
                "{} (LSN {}), but the next segment begins at LSN {limit}: either this file is damaged or a segment \
                 between the two is missing",
                none.reason,
                reader.lsn()
            );
            return Err(WalError::damaged(reader.path(), offset, reason));
        }
        if let Some(place) = reader.frame_behind(offset)? {
            let reason = format!(
                "{} (LSN {}), but a valid frame follows at byte {place}, which was written only after everything \
                 before it was durable",
                none.reason,
                reader.lsn()
            );
            return Err(WalError::damaged(reader.path(), offset, reason));
        }
        reader.settle()?;
        self.report.end_lsn = reader.lsn();
        if none.torn_bytes > 0 {
            let file = reader.path().to_owned();
            tracing::warn!(
                file = %file.display(), offset, bytes = none.torn_bytes, reason = none.reason,
                "the write-ahead log ends with an unfinished write, which was never acknowledged; it is cut"
            );
            self.report.torn = Some(TornTail { file, offset, bytes: none.torn_bytes, reason: none.reason });
        }
        self.at = self.segments.len();
        Ok(())
    }
}

/// The directory's segments in order, and its spare files (name, number, length).
pub(crate) type Listing = (Vec<SegmentFile>, Vec<(String, u64, u64)>);

pub(crate) fn list_files(disk: &dyn Disk, dir: &Path) -> Result<Listing, WalError> {
    let mut segments = Vec::new();
    let mut spares = Vec::new();
    for (name, file_bytes) in disk.list(dir).map_err(|error| WalError::io("list", dir, error))? {
        if let Some(first) = parse_segment_name(&name) {
            segments.push(SegmentFile { path: dir.join(&name), first, file_bytes });
        } else if let Some(number) = parse_spare_name(&name) {
            spares.push((name, number, file_bytes));
        }
    }
    segments.sort_by_key(|segment| segment.first);
    spares.sort();
    Ok((segments, spares))
}

/// A number that cannot be guessed, from the seed of the standard library's hash maps.
fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

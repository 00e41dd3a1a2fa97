//! The log as a single-threaded state machine: no threads, no waiting, every step driven by the caller, so
//! that a simulation can stop it anywhere.
//!
//! Invariant: [`LogCore::write_batch`] returns `Ok` only for entries that are durable together with everything
//! before them, and never again after a failed write or sync. Not its business: who waits for what.

#[cfg(test)]
mod tests;

use crate::disk::DirLock;
use crate::entry::{Appended, Entry};
use crate::error::WalError;
use crate::frame::{FrameBuilder, Size};
use crate::inventory::Inventory;
use crate::log_id::LogId;
use crate::options::WalOptions;
use crate::segment::closed::ClosedSegment;
use crate::segment::format::{FRAME_PAYLOAD_BYTES_MAX, SegmentHeader, split_mix};
use crate::segment::writer::SegmentWriter;
use crate::stats::{Counters, MissingSpace, WalStats};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tributary_types::Lsn;

/// A spare segment is prepared once the active one is used up to one part in this many.
const SPARE_WANTED_AT_PART: u64 = 4;

/// A log that is open for writing, made by [`crate::Recovered::into_core`].
pub struct LogCore {
    inventory: Arc<Inventory>,
    counters: Arc<Counters>,
    active: SegmentWriter,
    frame: FrameBuilder,
    segment_bytes: u64,
    /// Repeated in every segment.
    log: LogId,
    salts: u64,
    spare_asked: bool,
    /// A segment was closed and has not been announced yet.
    to_announce: bool,
    /// The active segment grows beyond its target size, because no file could be created for the
    /// next one.
    outgrown: bool,
    failure: Option<WalError>,
    _lock: DirLock,
}

impl LogCore {
    /// Continues after recovery: begins a new segment at `end`.
    pub(crate) fn begin(
        inventory: Inventory,
        options: &WalOptions,
        lock: DirLock,
        end: Lsn,
        header_value: u64,
        log: Option<LogId>,
        mut salts: u64,
    ) -> Result<Self, WalError> {
        if !inventory.has_spare() {
            inventory.prepare_spare()?;
        }
        // A salt of zero is a repair's, see `LogId::of_first`.
        let salt = split_mix(&mut salts).max(1);
        let mut header = SegmentHeader { first: end, salt, value: header_value, log };
        let log = log.or_else(|| LogId::of_first(&header)).expect("the salt is not zero");
        header.log = Some(log);
        let active = inventory.begin_segment(inventory.take_spare(0)?, header, 0)?;
        let counters = Counters::default();
        counters.header_value.store(header_value, Relaxed);
        counters.end_lsn.store(end.0, Relaxed);
        counters.released_lsn.store(inventory.holdings().oldest.unwrap_or(end).0, Relaxed);
        counters.active_file_bytes.store(active.file_bytes(), Relaxed);
        Ok(Self {
            inventory: Arc::new(inventory),
            counters: Arc::new(counters),
            active,
            frame: FrameBuilder::default(),
            segment_bytes: options.segment_bytes,
            log,
            salts,
            spare_asked: false,
            to_announce: false,
            outgrown: false,
            failure: None,
            _lock: lock,
        })
    }

    /// Writes all entries of `batch` as one frame and makes them durable. After a crash, either all of them are read back or
    /// (only if this did not return `Ok`) none. Entries of an element stay together. A batch without entries writes nothing:
    /// everything before it is durable already.
    ///
    /// # Errors
    /// [`WalError::NoSpace`] and [`WalError::TooLarge`]: none of the entries is in the log, which remains usable.
    /// [`WalError::Failed`]: the log is unusable, from now on for every call.
    pub fn write_batch<S: AsRef<[Entry]>>(&mut self, batch: &[S]) -> Result<Vec<Appended>, WalError> {
        let written = self.write_frame(batch);
        if let Err(WalError::NoSpace { needed, .. }) = written {
            self.counters.missing_bytes.store(needed, Relaxed);
        }
        written
    }

    fn write_frame<S: AsRef<[Entry]>>(&mut self, batch: &[S]) -> Result<Vec<Appended>, WalError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let size = batch.iter().fold(Size::default(), |sum, part| sum.plus(Size::of(part.as_ref())));
        if size.entries == 0 {
            let end = self.active.end();
            return Ok(vec![Appended { first: end, end }; batch.len()]);
        }
        if !size.fits_a_frame() {
            return Err(WalError::TooLarge { bytes: size.payload_bytes, limit: FRAME_PAYLOAD_BYTES_MAX });
        }
        self.make_room(size.frame_bytes())?;
        let appended = self.frame.build(batch, self.active.end(), self.active.salt());
        let end = Lsn(self.active.end().0 + size.frame_bytes());
        assert!(
            appended.last().is_none_or(|last| last.end == end),
            "the frame that was built is the one that was measured"
        );
        let written = self.active.write(&mut self.frame.slices());
        self.frame.clear();
        self.finish_frame(written, size)?;
        Ok(appended)
    }

    /// The segment that is being written.
    pub(crate) fn active(&self) -> &SegmentWriter {
        &self.active
    }

    /// Recycles the segments that end at or before `lsn`: nothing below it is needed any longer.
    ///
    /// # Errors
    /// [`WalError::Failed`] if the directory cannot be synced.
    pub fn release(&mut self, lsn: Lsn) -> Result<(), WalError> {
        let released = self.counters.release(lsn);
        self.inventory.announce();
        self.inventory.recycle(released).map_err(|error| self.fail_with(error))
    }

    /// Prepares a spare segment, if there is none.
    ///
    /// # Errors
    /// [`WalError::NoSpace`] or [`WalError::Io`]; the log remains usable.
    pub fn prepare_spare(&mut self) -> Result<(), WalError> {
        if self.inventory.has_spare() { Ok(()) } else { self.inventory.prepare_spare() }
    }

    /// See [`crate::Wal::set_header_value`].
    pub fn set_header_value(&mut self, value: u64) {
        self.counters.header_value.fetch_max(value, Relaxed);
    }

    /// The end of the log: everything before it is durable.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.active.end()
    }

    /// See [`crate::Wal::missing_space`].
    #[must_use]
    pub fn missing_space(&self) -> Option<MissingSpace> {
        missing_space_of(&self.counters, &self.inventory)
    }

    /// The log's contents and activity in numbers.
    #[must_use]
    pub fn stats(&self) -> WalStats {
        stats_of(&self.counters, &self.inventory)
    }

    pub(crate) fn inventory(&self) -> Arc<Inventory> {
        Arc::clone(&self.inventory)
    }

    pub(crate) fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Whether it is time to prepare a spare segment; `true` at most once per segment.
    pub(crate) fn asks_for_spare(&mut self) -> bool {
        let soon = !self.spare_asked && self.active.used_bytes() >= self.segment_bytes / SPARE_WANTED_AT_PART;
        self.spare_asked |= soon;
        soon && !self.inventory.has_spare()
    }

    /// Whether to announce a closed segment; `true` at most once per segment.
    pub(crate) fn asks_for_notice(&mut self) -> bool {
        std::mem::take(&mut self.to_announce)
    }

    /// Makes sure that the active segment can take a frame of `frame_bytes` bytes.
    fn make_room(&mut self, frame_bytes: u64) -> Result<(), WalError> {
        let fits = self.active.used_bytes() + frame_bytes <= self.segment_bytes;
        if !fits && !self.active.is_empty() {
            self.next_segment(frame_bytes)?;
        }
        self.inventory.check_space(self.active.growth_bytes(frame_bytes))
    }

    fn next_segment(&mut self, frame_bytes: u64) -> Result<(), WalError> {
        let spare = match self.inventory.take_spare(frame_bytes) {
            Ok(spare) => spare,
            // For lack of a file descriptor, for example. The next frame tries again.
            Err(error @ WalError::Io { .. }) => {
                if !std::mem::replace(&mut self.outgrown, true) {
                    tracing::warn!(%error, "no new segment of the write-ahead log; the active one grows instead");
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let header = SegmentHeader {
            first: self.active.end(),
            salt: split_mix(&mut self.salts),
            value: self.counters.header_value.load(Relaxed),
            log: Some(self.log),
        };
        let next = self
            .inventory
            .begin_segment(spare, header, frame_bytes)
            .map_err(|error| self.fail_with(error))?;
        let closed = std::mem::replace(&mut self.active, next);
        self.inventory.add_closed(ClosedSegment {
            path: closed.path().to_owned(),
            first: closed.first(),
            end: closed.end(),
            file_bytes: closed.file_bytes(),
        });
        self.counters.active_file_bytes.store(self.active.file_bytes(), Relaxed);
        self.spare_asked = false;
        self.to_announce = self.inventory.announces();
        self.outgrown = false;
        Ok(())
    }

    fn finish_frame(&mut self, written: io::Result<()>, size: Size) -> Result<(), WalError> {
        let frame_bytes = size.frame_bytes();
        if let Err(error) = written {
            // A frame that a full disk cut short is not a frame; the next one overwrites it.
            let error = self.inventory.space_or_io("write to", self.active.path(), frame_bytes, error);
            return Err(self.fail_with(error));
        }
        if let Err(error) = self.active.sync(frame_bytes) {
            // Even if the error says that the disk is full, it is now unknown what is durable.
            return Err(self.fail_with(WalError::io("sync", self.active.path(), error)));
        }
        self.counters.frame_written(size, frame_bytes);
        let before = self.counters.end_lsn.swap(self.active.end().0, Relaxed);
        assert_eq!(
            before + frame_bytes,
            self.active.end().0,
            "the end of the log moves by exactly the frame that became durable"
        );
        self.counters.active_file_bytes.store(self.active.file_bytes(), Relaxed);
        Ok(())
    }

    /// An I/O error on the append path ends the log; other errors do not.
    fn fail_with(&mut self, error: WalError) -> WalError {
        match error {
            WalError::Io { action, path, source } => {
                let failure = WalError::Failed { action, path, durable_lsn: self.active.end().0, source };
                self.failure = Some(failure.clone());
                failure
            }
            other => other,
        }
    }
}

/// The space that the last frame needed, if it was refused for that and the disk still has less.
pub(crate) fn missing_space_of(counters: &Counters, inventory: &Inventory) -> Option<MissingSpace> {
    let needed = counters.missing_bytes.load(Relaxed);
    if needed == 0 {
        return None;
    }
    let available = inventory.available_bytes()?;
    (available < needed).then_some(MissingSpace { needed, available })
}

pub(crate) fn stats_of(counters: &Counters, inventory: &Inventory) -> WalStats {
    let holdings = inventory.holdings();
    WalStats {
        segments: holdings.closed + 1,
        spare_segments: holdings.spares,
        bytes_total: holdings.closed_bytes + holdings.spare_bytes + counters.active_file_bytes.load(Relaxed),
        live_bytes: counters.live_bytes(),
        end_lsn: counters.end(),
        released_lsn: counters.released(),
        fsyncs: counters.fsyncs.load(Relaxed),
        entries: counters.entries.load(Relaxed),
        bytes_written: counters.bytes_written.load(Relaxed),
        batches: counters.batches.load(Relaxed),
    }
}

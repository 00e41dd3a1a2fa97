//! A log's figures.

use crate::frame::Size;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tributary_types::Lsn;

/// A log's contents and activity since it was opened, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalStats {
    /// Segment files, the active one included.
    pub segments: usize,
    /// Spare files, ready to become segments.
    pub spare_segments: usize,
    /// Bytes of all files on the disk, spare ones included.
    pub bytes_total: u64,
    /// Bytes of frames that are neither released nor [discounted](crate::Wal::discount).
    pub live_bytes: u64,
    /// The end of the log: everything before it is durable.
    pub end_lsn: Lsn,
    /// Everything before it is released.
    pub released_lsn: Lsn,
    /// Syncs of frames.
    pub fsyncs: u64,
    /// Entries written.
    pub entries: u64,
    /// Bytes of frames written.
    pub bytes_written: u64,
    /// Frames written.
    pub batches: u64,
}

/// Space for which a log refuses frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSpace {
    /// Bytes that the last frame needed.
    pub needed: u64,
    /// Bytes that the disk has now.
    pub available: u64,
}

/// The figures that the writer updates.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) end_lsn: AtomicU64,
    pub(crate) released_lsn: AtomicU64,
    /// Entries below it do not count as live, whether or not they are released.
    pub(crate) discounted_lsn: AtomicU64,
    pub(crate) header_value: AtomicU64,
    pub(crate) active_file_bytes: AtomicU64,
    pub(crate) fsyncs: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) batches: AtomicU64,
    /// Free bytes that the last frame needed and did not find; 0 if it was written.
    pub(crate) missing_bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.end_lsn.load(Relaxed))
    }

    pub(crate) fn released(&self) -> Lsn {
        Lsn(self.released_lsn.load(Relaxed))
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        // The end only grows: read last, it is never below what is released.
        let live_from = self.released().0.max(self.discounted_lsn.load(Relaxed));
        self.end().0.saturating_sub(live_from)
    }

    pub(crate) fn discount(&self, lsn: Lsn) {
        self.discounted_lsn.fetch_max(lsn.min(self.end()).0, Relaxed);
    }

    /// Notes a release; returns up to where the log is released now.
    pub(crate) fn release(&self, lsn: Lsn) -> Lsn {
        let lsn = lsn.min(self.end());
        Lsn(self.released_lsn.fetch_max(lsn.0, Relaxed).max(lsn.0))
    }

    pub(crate) fn frame_written(&self, size: Size, frame_bytes: u64) {
        if self.missing_bytes.load(Relaxed) > 0 {
            self.missing_bytes.store(0, Relaxed);
        }
        self.fsyncs.fetch_add(1, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.entries.fetch_add(size.entries, Relaxed);
        self.header_value.fetch_max(size.next_txn, Relaxed);
        self.bytes_written.fetch_add(frame_bytes, Relaxed);
    }
}

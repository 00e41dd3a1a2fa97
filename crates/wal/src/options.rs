//! Settings of a log.

use crate::error::WalError;
use crate::segment::closed::ClosedSegment;
use crate::segment::format::SEGMENT_HEADER_BYTES;
use std::fmt;
use std::sync::Arc;

/// A callback for the failure of a log ([`WalError::Failed`]), run once on a thread of the log or of a submitter. It must
/// not shut the log down.
pub type FatalHook = Arc<dyn Fn(&WalError) + Send + Sync>;

/// A callback for a closed segment, for example to copy it elsewhere. It is called once per segment, oldest first, including
/// segments that an earlier process closed, so a segment may be announced again after a restart. It runs on the log's keeper
/// thread without any lock of the log, and may take long: entries are written meanwhile, but no segment is recycled, this one
/// included, and none is prepared ahead. It must not shut the log down.
pub type SegmentHook = Arc<dyn Fn(&ClosedSegment) + Send + Sync>;

/// The smallest segment: a header and as much space for frames.
pub const SEGMENT_BYTES_MIN: u64 = 2 * SEGMENT_HEADER_BYTES;

/// How a log behaves.
#[derive(Clone)]
pub struct WalOptions {
    /// The target size of a segment file, in bytes. A larger frame makes its segment grow.
    pub segment_bytes: u64,
    /// How many released segments are retained for reuse. A flush releases several at once; the others are replaced by new files
    /// of zeros.
    pub max_spare_segments: usize,
    /// Pending submissions are written together in one frame up to this many bytes.
    pub frame_bytes: u64,
    /// A new segment is begun, or a segment grown, only if this many bytes stay free on the disk.
    pub reserve_bytes: u64,
    /// Reaction to the failure of the log. `None` logs the failure and aborts the process.
    pub on_fatal: Option<FatalHook>,
    /// The hook for closed segments.
    pub on_segment_closed: Option<SegmentHook>,
    /// Whether a lone submission may be written by the submitting thread (see [`crate::log::Offered`]). `None` allows it if
    /// there is more than one processor; with several logs, set it so that threads which wait for their disks leave one
    /// processor to the others.
    pub may_write_here: Option<bool>,
    /// Makes the salts of segments repeatable, for simulations. `None` uses the operating system's entropy.
    pub salt_seed: Option<u64>,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            max_spare_segments: 6,
            frame_bytes: 16 << 20,
            reserve_bytes: 0,
            on_fatal: None,
            on_segment_closed: None,
            may_write_here: None,
            salt_seed: None,
        }
    }
}

impl fmt::Debug for WalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalOptions")
            .field("segment_bytes", &self.segment_bytes)
            .field("max_spare_segments", &self.max_spare_segments)
            .field("frame_bytes", &self.frame_bytes)
            .field("reserve_bytes", &self.reserve_bytes)
            .field("on_fatal", &self.on_fatal.as_ref().map_or("abort", |_| "own"))
            .field("on_segment_closed", &self.on_segment_closed.as_ref().map_or("none", |_| "own"))
            .field("may_write_here", &self.may_write_here)
            .field("salt_seed", &self.salt_seed)
            .finish()
    }
}

impl WalOptions {
    /// Checks all values.
    ///
    /// # Errors
    /// [`WalError::BadOption`] for the first value that cannot work.
    pub fn check(&self) -> Result<(), WalError> {
        if self.segment_bytes < SEGMENT_BYTES_MIN {
            return Err(WalError::BadOption {
                option: "segment_bytes",
                value: self.segment_bytes,
                remedy: "a segment has at least 8192 bytes",
            });
        }
        if self.frame_bytes == 0 {
            return Err(WalError::BadOption {
                option: "frame_bytes",
                value: self.frame_bytes,
                remedy: "a frame has at least 1 byte; the default is 16777216",
            });
        }
        Ok(())
    }

    /// Runs the hook, or logs the error and aborts.
    pub(crate) fn fail(&self, error: &WalError) {
        tracing::error!(%error, "the write-ahead log has failed");
        match &self.on_fatal {
            Some(hook) => hook(error),
            None => tributary_types::process::abort(&error.to_string()),
        }
    }
}

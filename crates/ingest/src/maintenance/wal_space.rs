//! How much space the write-ahead log may take in its directories, and the line of loads in front of each log.

use crate::line::{First, Line};
use parking_lot::Mutex;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_types::{Live, Portion, UserKey, host};
use tributary_wal::{Disk, Wal};

/// How old a reading of the disk's free space may be.
const READING_AGE_MAX: Duration = Duration::from_millis(100);

/// Bytes that the log is given before loads wait: more than one frame that is large enough for any disk, while the next one fills.
const QUEUE_BYTES: u64 = 16 * 1024 * 1024;
const QUEUE_BYTES_SIMULATED: u64 = 400;

fn queue_bytes() -> u64 {
    host::limit(QUEUE_BYTES, QUEUE_BYTES_SIMULATED)
}

/// One WAL directory.
pub struct WalSpace {
    pub dir: PathBuf,
    pub wal: Wal,
    pub(super) disk: Arc<dyn Disk>,
    /// A percentage is of the disk's available bytes.
    limit: Live<Portion>,
    reading: Mutex<Option<(Instant, u64)>>,
    /// Loads that wait until the log has written what it was given.
    line: Line,
}

impl fmt::Debug for WalSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalSpace").field("dir", &self.dir).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl WalSpace {
    #[must_use]
    pub fn new(dir: PathBuf, wal: Wal, disk: Arc<dyn Disk>, limit: Live<Portion>) -> Self {
        Self { dir, wal, disk, limit, reading: Mutex::new(None), line: Line::default() }
    }

    /// Waits, while the log has more to write than [`QUEUE_BYTES`], until the load is the first in the line of users' loads and the
    /// log has less. Loads that arrive later wait until the result is dropped, which is to be when the log was given the load's
    /// entries. `None`: it need not wait.
    ///
    /// The log itself writes in the order in which it was given entries, which the order of versions and rows depends on. So its own
    /// queue is short, and users take turns here, before a load has a place in any order.
    pub(crate) async fn turn(&self, user: UserKey, bytes: u64) -> Option<First<'_>> {
        if bytes == 0 || self.line.is_empty() && self.wal.pending_bytes() < queue_bytes() {
            return None;
        }
        // Boxed: keeps the futures of loads that need not wait small.
        Box::pin(async {
            let first = self.line.first(user, bytes).await;
            self.wal.drained_below(queue_bytes()).await;
            Some(first)
        })
        .await
    }

    /// Loads that wait for their turn at the log.
    #[must_use]
    pub fn waiting_loads(&self) -> usize {
        self.line.len()
    }

    /// Bytes that a load may still add: the limit minus the space in use, at least 0. A percentage counts the log's own space as
    /// available, so that it does not shrink as the log grows.
    #[must_use]
    pub fn available(&self, now: Instant) -> u64 {
        let used = self.wal.live_bytes();
        let free = self.free_bytes(now);
        self.limit.get().of(free.saturating_add(used)).saturating_sub(used)
    }

    /// Whether more than half of the space that the log may take is in use.
    pub(crate) fn is_half_full(&self, now: Instant) -> bool {
        self.available(now) < self.wal.live_bytes()
    }

    fn free_bytes(&self, now: Instant) -> u64 {
        let mut reading = self.reading.lock();
        match *reading {
            Some((at, bytes)) if now.saturating_duration_since(at) < READING_AGE_MAX => bytes,
            _ => {
                let bytes = self.disk.available_bytes(&self.dir).unwrap_or(0);
                *reading = Some((now, bytes));
                bytes
            }
        }
    }
}

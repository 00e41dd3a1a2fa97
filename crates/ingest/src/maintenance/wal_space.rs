//! How much space the write-ahead log may take in its directories.

use parking_lot::Mutex;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_wal::{Disk, Wal};

/// How old a reading of the disk's free space may be.
const READING_AGE_MAX: Duration = Duration::from_millis(100);

/// `group_commit_wal_max_disk_limit`: bytes, or a percentage of the disk's available bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WalLimit {
    Percent(u8),
    Bytes(u64),
}

impl WalLimit {
    /// Reads `10%` or a number of bytes.
    ///
    /// # Errors
    /// Doris's text when it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let wrong = || {
            format!(
                "group_commit_wal_max_disk_limit config is wrong, please check your config! \
                 `{text}` is neither a percentage like `10%` (1 to 100) nor a number of bytes"
            )
        };
        match trimmed.strip_suffix('%') {
            Some(number) => match number.trim().parse::<u8>() {
                Ok(percent @ 1..=100) => Ok(Self::Percent(percent)),
                _ => Err(wrong()),
            },
            None => trimmed.parse::<u64>().ok().filter(|&bytes| bytes > 0).map(Self::Bytes).ok_or_else(wrong),
        }
    }
}

/// One WAL directory.
pub struct WalSpace {
    pub dir: PathBuf,
    pub wal: Wal,
    disk: Arc<dyn Disk>,
    limit: WalLimit,
    reading: Mutex<Option<(Instant, u64)>>,
}

impl fmt::Debug for WalSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalSpace").field("dir", &self.dir).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl WalSpace {
    #[must_use]
    pub fn new(dir: PathBuf, wal: Wal, disk: Arc<dyn Disk>, limit: WalLimit) -> Self {
        Self { dir, wal, disk, limit, reading: Mutex::new(None) }
    }

    /// Bytes that a load may still add: the limit minus the space in use, at least 0. A percentage counts the log's own space as
    /// available, so that it does not shrink as the log grows.
    #[must_use]
    pub fn available(&self, now: Instant) -> u64 {
        let used = self.wal.live_bytes();
        let free = self.free_bytes(now);
        let limit = match self.limit {
            WalLimit::Bytes(bytes) => bytes.min(free.saturating_add(used)),
            WalLimit::Percent(percent) => free.saturating_add(used) / 100 * u64::from(percent),
        };
        limit.saturating_sub(used)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_percentage_or_bytes() {
        assert_eq!(WalLimit::parse("10%"), Ok(WalLimit::Percent(10)));
        assert_eq!(WalLimit::parse(" 1048576 "), Ok(WalLimit::Bytes(1_048_576)));
        for wrong in ["", "0", "0%", "101%", "ten", "-1"] {
            assert!(
                WalLimit::parse(wrong).unwrap_err().contains("group_commit_wal_max_disk_limit"),
                "{wrong}"
            );
        }
    }
}

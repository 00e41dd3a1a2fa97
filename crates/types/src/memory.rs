//! The memory of the process, and the most that it may have.
//!
//! Each component bounds the memory that it counts: rows of groups, operators of queries, sessions. Pages that are being decoded,
//! results of functions, plans, and pages that the allocator keeps are counted by nobody, but they are in the resident memory of
//! the process. A component that is about to take much asks [`check`] first, and does without.
//!
//! Resident memory is read at most every 20 ms; all that is taken in between can exceed the limit by that.
//!
//! Invariant: without a limit, and in a simulation, there is memory for everything.
//!
//! Not here: what happens to the work for which there is none.

use crate::error::{ErrorCode, SqlError};
use crate::host;
use parking_lot::Mutex;
use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How long a reading of the resident memory counts, in ms.
const READING_MS: u64 = 20;

/// The setting of the limit, as errors name it.
pub const SETTING: &str = "(setting mem_limit)";

static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Resident bytes at the last reading, and when that was, in ms since [`BEGUN`].
static RESIDENT: AtomicU64 = AtomicU64::new(0);
static READ_AT: AtomicU64 = AtomicU64::new(u64::MAX);
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the bytes that were given up, or `None` when there is nobody left who could give up some.
type GivesWay = Box<dyn Fn() -> Option<u64> + Send>;

/// Caches, whose memory nobody needs.
static CACHES: Mutex<Vec<GivesWay>> = Mutex::new(Vec::new());

/// There is not as much memory as was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server has {} MiB of memory, {} MiB more are needed, and it may have {} MiB {SETTING}: retry when other \
     work has ended, or make the statement smaller",
    resident >> 20,
    more.div_ceil(1 << 20),
    limit >> 20
)]
pub struct MemoryFull {
    pub resident: u64,
    pub more: u64,
    pub limit: u64,
}

impl From<MemoryFull> for SqlError {
    fn from(full: MemoryFull) -> Self {
        Self::detail(ErrorCode::Busy, full.to_string())
    }
}

/// Sets the most bytes that the process may have.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// The most bytes that the process may have; `u64::MAX` without a limit.
#[must_use]
pub fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// The number of times that there was no memory.
#[must_use]
pub fn refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// The bytes that may still be taken.
#[must_use]
pub fn left() -> u64 {
    let limit = limit();
    if limit == u64::MAX || host::is_simulated() { u64::MAX } else { limit.saturating_sub(recent()) }
}

/// Whether the process has all that it may have, without its caches.
#[must_use]
pub fn is_full() -> bool {
    left() == 0 && freed() == 0
}

/// Adds a cache, which gives up its memory when there is none left and returns the bytes; `None` ends that.
pub fn give_way(cache: impl Fn() -> Option<u64> + Send + 'static) {
    CACHES.lock().push(Box::new(cache));
}

/// Has all caches give way, and returns the bytes that others can take now: the allocator has them, though they stay resident for
/// a moment.
fn freed() -> u64 {
    let Some(mut caches) = CACHES.try_lock() else { return 0 };
    let mut bytes = 0;
    caches.retain(|cache| {
        let freed = cache();
        bytes += freed.unwrap_or(0);
        freed.is_some()
    });
    bytes
}

/// Checks that `more` bytes may be taken, if need be instead of caches, and counts it if not.
///
/// # Errors
/// They may not.
pub fn check(more: u64) -> Result<(), MemoryFull> {
    if more <= left() || more <= left().saturating_add(freed()) {
        return Ok(());
    }
    REFUSED.fetch_add(1, Ordering::Relaxed);
    Err(MemoryFull { resident: recent(), more, limit: limit() })
}

/// Resident memory in bytes, as the kernel has it now; 0 if it is unknown.
#[must_use]
pub fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Resident memory of a moment ago.
fn recent() -> u64 {
    let now = u64::try_from(BEGUN.elapsed().as_millis()).unwrap_or(0);
    let read_at = READ_AT.load(Ordering::Acquire);
    let is_old = read_at == u64::MAX || now.saturating_sub(read_at) >= READING_MS;
    // One thread reads; the others take the last reading.
    if is_old && READ_AT.compare_exchange(read_at, now, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        RESIDENT.store(resident(), Ordering::Release);
    }
    RESIDENT.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because the limit is the process's.
    #[test]
    fn what_exceeds_the_limit_is_refused_and_counted() {
        assert!(resident() > 1024 * 1024);
        assert_eq!((left(), check(u64::MAX), refused()), (u64::MAX, Ok(()), 0));
        set_limit(resident() + (1 << 30));
        assert!(check(1 << 20).is_ok());
        assert!(!is_full());
        let full = check(2 << 30).expect_err("it is twice what is left");
        assert_eq!((full.more, full.limit, refused()), (2 << 30, limit(), 1));
        assert!(full.to_string().contains("2048 MiB more are needed"), "{full}");
        assert_eq!(SqlError::from(full).code, ErrorCode::Busy);
        set_limit(1);
        assert!(is_full());
        assert!(check(1).is_err());
        assert!(check(0).is_ok(), "nothing can always be taken");
        let cache = std::sync::Arc::new(AtomicU64::new(1 << 20));
        let weak = std::sync::Arc::downgrade(&cache);
        give_way(move || weak.upgrade().map(|cache| cache.swap(0, Ordering::Relaxed)));
        assert!(check(1 << 20).is_ok(), "a cache gives way");
        assert!(check(1 << 20).is_err(), "it has nothing left");
        drop(cache);
        assert!(check(1).is_err());
        assert!(CACHES.lock().is_empty());
        set_limit(u64::MAX);
        assert!(!is_full());
    }
}

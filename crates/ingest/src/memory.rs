//! The budget for rows that are in memory: open groups and memtables of all tables, and loads that are still on
//! their way in.
//!
//! At the limit, loads wait for a flush (answers become slow) and, if none comes in time, are
//! refused with an error that may be retried. Nothing of a refused load was kept.

use crate::error::IngestError;
use crate::tasks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a load waits for memory before it is refused.
pub const MEMORY_WAIT_MAX: Duration = Duration::from_secs(60);

/// Bytes of rows in memory, and who waits for them to become fewer.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: u64,
    wait_max: Duration,
    in_groups: AtomicU64,
    in_memtables: AtomicU64,
    in_flight: AtomicU64,
    freed: Notify,
    flush_wanted: Notify,
}

impl MemoryBudget {
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit: limit_bytes,
            wait_max: MEMORY_WAIT_MAX,
            in_groups: AtomicU64::new(0),
            in_memtables: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            freed: Notify::new(),
            flush_wanted: Notify::new(),
        }
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.in_groups.load(Ordering::Relaxed) + self.in_memtables.load(Ordering::Relaxed)
    }

    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes of rows in groups that are not published yet.
    #[must_use]
    pub fn in_groups(&self) -> u64 {
        self.in_groups.load(Ordering::Relaxed)
    }

    /// Bytes of rows of loads that have not joined a group or a transaction yet.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Whether loads on their way in hold so much that they should move to data files.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.in_flight() > self.limit / 4
    }

    /// Whether one group takes a large part of the budget.
    pub(crate) const fn is_large(&self, group_bytes: u64) -> bool {
        group_bytes > self.limit / 4
    }

    /// Whether loads will wait soon because of what is in groups: no flush makes room there.
    pub(crate) fn groups_are_in_the_way(&self) -> bool {
        self.used() > self.limit - self.limit / 8 && self.in_groups() > self.limit / 2
    }

    /// Whether loads wait or are about to.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        self.used() > self.limit / 2
    }

    /// Waits until `bytes` more fit; an empty budget has room for anything.
    ///
    /// # Errors
    /// [`IngestError::MemoryFull`] after [`MEMORY_WAIT_MAX`].
    pub async fn admit(&self, bytes: u64) -> Result<(), IngestError> {
        if bytes == 0 || self.has_room(bytes) {
            return Ok(());
        }
        let wait = async {
            loop {
                let freed = self.freed.notified();
                self.want_flush();
                if self.has_room(bytes) {
                    return;
                }
                freed.await;
            }
        };
        tasks::timeout(self.wait_max, wait)
            .await
            .ok_or_else(|| IngestError::MemoryFull { used: self.used(), limit: self.limit })
    }

    /// Completes when somebody needs a flush.
    pub async fn flush_wanted(&self) {
        self.flush_wanted.notified().await;
    }

    /// A memtable is large enough for a flush.
    pub(crate) fn want_flush(&self) {
        self.flush_wanted.notify_one();
    }

    /// A flush has encoded `bytes` bytes of a memtable. Loads may take their place at once, at the pace of
    /// the flush rather than all at its end; until then the memory is there twice.
    pub(crate) fn encoded(&self, bytes: u64) {
        let less = |held: u64| Some(held.saturating_sub(bytes));
        // It always changes.
        let _ = self.in_memtables.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.freed.notify_waiters();
    }

    pub(crate) fn enter_group(&self, bytes: u64) {
        self.in_groups.fetch_add(bytes, Ordering::Relaxed);
    }

    /// # Panics
    /// If more bytes leave than there are: otherwise loads would wait for ever for memory that nobody
    /// holds.
    pub(crate) fn leave_group(&self, bytes: u64) {
        let before = self.in_groups.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{bytes} bytes leave the groups' memory, which are {before}");
        self.freed.notify_waiters();
    }

    /// Sets what all memtables hold now.
    pub fn set_memtables(&self, bytes: u64) {
        self.in_memtables.store(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// A group of `bytes` became part of a memtable.
    pub(crate) fn published(&self, bytes: u64) {
        self.in_memtables.fetch_add(bytes, Ordering::Relaxed);
        if self.is_pressed() {
            self.want_flush();
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        let used = self.used();
        used == 0 || used.saturating_add(bytes) <= self.limit
    }
}

/// What a load on its way in holds of the budget; given back when this is dropped. It is counted without waiting:
/// its owner looks at [`MemoryBudget::is_crowded`] and moves to data files.
#[derive(Debug)]
pub struct InFlight {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl InFlight {
    #[must_use]
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Sets how many bytes the load holds now.
    pub fn set(&mut self, bytes: u64) {
        if bytes >= self.bytes {
            self.budget.in_flight.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.budget.in_flight.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_load_waits_until_a_flush_made_room() {
        let budget = Arc::new(MemoryBudget::new(100));
        budget.enter_group(90);
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.admit(20).await }
        });
        budget.flush_wanted().await;
        budget.leave_group(90);
        waiting.await.expect("no panic").expect("admitted");
    }

    #[test]
    fn what_loads_on_their_way_hold_is_counted_in_sum_and_given_back() {
        let budget = Arc::new(MemoryBudget::new(100));
        let (mut one, mut other) = (InFlight::new(&budget), InFlight::new(&budget));
        one.set(20);
        other.set(5);
        assert!(!budget.is_crowded(), "a quarter may be held");
        other.set(6);
        assert!(budget.is_crowded());
        one.set(1);
        assert_eq!(budget.in_flight(), 7);
        drop((one, other));
        assert_eq!(budget.in_flight(), 0);
    }

    #[tokio::test]
    async fn a_load_is_refused_when_no_flush_comes() {
        let budget = MemoryBudget { wait_max: Duration::from_millis(1), ..MemoryBudget::new(100) };
        budget.enter_group(100);
        let error = budget.admit(1).await.unwrap_err();
        assert!(error.to_string().contains("100 of 100 bytes"), "{error}");
    }

    #[test]
    #[should_panic(expected = "2 bytes leave the groups' memory, which are 1")]
    fn more_than_is_there_cannot_leave() {
        let budget = MemoryBudget::new(100);
        budget.enter_group(1);
        budget.leave_group(2);
    }

    #[tokio::test]
    async fn a_load_larger_than_the_budget_passes_when_nothing_else_is_in_memory() {
        MemoryBudget::new(100).admit(1000).await.expect("admitted");
    }
}

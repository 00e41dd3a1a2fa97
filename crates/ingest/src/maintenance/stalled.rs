//! Flushes that fail one after the other for the store's sake, whatever their tables.
//!
//! A damaged table fails alone, and its flushes alternate with successful ones of others. If none succeeds any more, the store
//! itself is full, gone or read-only, and loads will be refused when memory or the log is full.
//!
//! Not its business: the reason of each failure, which its table [has](tributary_table::Table::stuck).

use parking_lot::Mutex;
use std::collections::BTreeSet;
use tributary_types::{TableId, host};

/// A single failure may be bad luck.
const FAILURES_MIN: u32 = 3;

/// Flushes that have failed since the last one that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StalledFlushes {
    pub failures: u32,
    pub tables: usize,
    /// The first of them, in milliseconds of Unix time.
    pub since_ms: i64,
}

/// The record of failures. Its lock is taken briefly, alone.
#[derive(Debug, Default)]
pub(crate) struct FlushFailures(Mutex<Failures>);

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    tables: BTreeSet<TableId>,
    since_ms: i64,
}

impl FlushFailures {
    pub fn flushed(&self) {
        *self.0.lock() = Failures::default();
    }

    /// Notes a flush that the store has failed.
    pub fn failed(&self, table: TableId) {
        let mut failures = self.0.lock();
        if failures.count == 0 {
            failures.since_ms = host::unix_ms();
        }
        failures.count = failures.count.saturating_add(1);
        failures.tables.insert(table);
    }

    /// Forgets a table that was dropped.
    pub fn forget(&self, table: TableId) {
        let mut failures = self.0.lock();
        if failures.tables.remove(&table) && failures.tables.is_empty() {
            *failures = Failures::default();
        }
    }

    pub fn stalled(&self) -> Option<StalledFlushes> {
        let failures = self.0.lock();
        (failures.count >= FAILURES_MIN).then(|| StalledFlushes {
            failures: failures.count,
            tables: failures.tables.len(),
            since_ms: failures.since_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_are_stalled_when_several_fail_and_none_succeeds() {
        let failures = FlushFailures::default();
        let of = |tables: &[u64]| tables.iter().for_each(|&id| failures.failed(TableId(id)));
        of(&[1, 1]);
        assert_eq!(failures.stalled(), None, "two may be bad luck");
        of(&[2]);
        let stalled = failures.stalled().expect("three have failed");
        assert_eq!((stalled.failures, stalled.tables), (3, 2));
        failures.flushed();
        of(&[1, 2]);
        assert_eq!(failures.stalled(), None, "one table was flushed in between");
        of(&[2]);
        failures.forget(TableId(1));
        assert!(failures.stalled().is_some());
        failures.forget(TableId(2));
        assert_eq!(failures.stalled(), None, "the tables are gone");
    }
}

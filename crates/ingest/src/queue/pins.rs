//! The pins of a table's unpublished transactions on the log.
//!
//! Invariant: the log is not released beyond the lowest place that is pinned. A transaction's place is pinned from before
//! its first entry until the memtable holds it, or nobody needs it. Not its business: memtables, and who releases.

use std::collections::BTreeMap;
use tributary_types::{Lsn, TxnId};

/// One transaction's pin on the log.
#[derive(Clone, Copy, Debug)]
struct Pin {
    low: Lsn,
    why: Why,
}

/// The reason for a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// A commit will follow.
    Running,
    /// The commit or abort of a two-phase load, which may wait for hours.
    Prepared,
    /// The next start: a group with acknowledged rows could not be committed.
    Stranded,
}

/// All pins of a table.
#[derive(Debug, Default)]
pub(super) struct Pins(BTreeMap<TxnId, Pin>);

impl Pins {
    /// Pins the log: no entry of the transaction is below `low`.
    pub fn pin(&mut self, txn: TxnId, low: Lsn, why: Why) {
        self.0.insert(txn, Pin { low, why });
    }

    /// Pins the transaction's place, or one at `end` if it has none, for something else than before. Gives the place.
    pub fn pin_on(&mut self, txn: TxnId, end: Lsn, why: Why) -> Lsn {
        let pin = self.0.entry(txn).or_insert(Pin { low: end, why });
        pin.why = why;
        pin.low
    }

    /// The transaction is to be committed by the next start. False if nothing of it is pinned.
    pub fn strand(&mut self, txn: TxnId) -> bool {
        let pin = self.0.get_mut(&txn);
        pin.map(|pin| pin.why = Why::Stranded).is_some()
    }

    pub fn unpin(&mut self, txn: TxnId) {
        self.0.remove(&txn);
    }

    pub fn unpin_all(&mut self) {
        self.0.clear();
    }

    pub fn is(&self, txn: TxnId, why: Why) -> bool {
        self.0.get(&txn).is_some_and(|pin| pin.why == why)
    }

    /// The transactions whose commits will follow.
    pub fn running(&self) -> Vec<TxnId> {
        self.0.iter().filter(|(_, pin)| pin.why == Why::Running).map(|(&txn, _)| txn).collect()
    }

    /// Whether there is one that no commit will end by itself.
    pub fn has_waiting(&self) -> bool {
        self.0.values().any(|pin| pin.why != Why::Running)
    }

    /// Whether the log is pinned for this reason.
    pub fn has(&self, why: Why) -> bool {
        self.0.values().any(|pin| pin.why == why)
    }

    /// The transaction with the lowest place.
    pub fn lowest_holder(&self) -> Option<(Lsn, TxnId, Why)> {
        self.0.iter().map(|(&txn, pin)| (pin.low, txn, pin.why)).min_by_key(|(low, ..)| *low)
    }

    pub fn lowest(&self) -> Option<Lsn> {
        self.0.values().map(|pin| pin.low).min()
    }
}

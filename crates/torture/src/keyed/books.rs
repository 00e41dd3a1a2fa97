//! Records of loads with names: sixteen bytes for each, from which its rows follow.
//!
//! Invariant: a load has its record before its first byte is sent. So the tables hold nothing that has none.

use crate::load::{Load, SMALL_ROWS_MAX};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rows of a load that is written to data files while it arrives: 300 KB.
const LARGE_ROWS: u32 = 1500;
/// Added to the number of a load whose rows no table may hold: it is sent with the name of another one.
pub(super) const DECOY: u64 = 1 << 40;

/// A way into the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Door {
    StreamLoad,
    HttpStream,
    Text,
    Prepared,
}

/// An answer that says that a load is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    pub txn: u64,
    /// A hash of the label.
    pub label: u32,
    pub rows: u64,
    pub rejected: u64,
    pub is_repeated: bool,
    /// The answer says that the rows are visible.
    pub is_visible: bool,
}

/// The record of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The transaction of its first answer; 0: there was no answer.
    pub txn: u64,
    pub label: u32,
    pub rows: u16,
    /// The table's number, and [`Record::HAS_KEY`].
    place: u8,
    pub door: Door,
}

impl Record {
    /// The load has a key; others belong to a channel.
    const HAS_KEY: u8 = 0x80;

    pub const fn has_key(&self) -> bool {
        self.place & Self::HAS_KEY != 0
    }

    pub const fn is_acknowledged(&self) -> bool {
        self.txn != 0
    }

    /// The load with that number.
    pub fn load(&self, id: u64) -> Load {
        Load::numbered(id, (self.place & !Self::HAS_KEY).into(), self.rows.into())
    }
}

/// Why an answer is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Differs(pub String);

/// All records, by the loads' numbers.
#[derive(Debug)]
pub(super) struct Books {
    records: Mutex<Vec<Record>>,
    /// Limit on the loads that are begun.
    loads_max: u64,
    acknowledged: AtomicU64,
}

impl Books {
    pub const fn new(loads_max: u64) -> Self {
        Self { records: Mutex::new(Vec::new()), loads_max, acknowledged: AtomicU64::new(0) }
    }

    /// Records a new load of a few rows, or a large one. `None`: there are enough.
    pub fn begin(&self, door: Door, has_key: bool, table: usize, rows: Option<u32>) -> Option<Load> {
        let mut records = self.records.lock();
        let id = records.len() as u64;
        if id >= self.loads_max {
            return None;
        }
        let rows = rows.map_or(LARGE_ROWS, |rows| rows.min(SMALL_ROWS_MAX)) as u16;
        let place = table as u8 | if has_key { Record::HAS_KEY } else { 0 };
        let record = Record { txn: 0, label: 0, rows, place, door };
        records.push(record);
        Some(record.load(id))
    }

    /// Records the answer to a load, or compares it with the first one.
    pub fn acknowledge(&self, id: u64, answer: &Loaded) -> Result<(), Differs> {
        let mut records = self.records.lock();
        let Some(record) = records.get_mut(id as usize) else {
            return Err(Differs(format!("load {id} was never sent")));
        };
        let Loaded { txn, label, rows, rejected, .. } = *answer;
        if txn == 0 || (rows, rejected) != (record.rows.into(), 0) {
            return Err(Differs(format!("load {id} of {} rows was answered with {answer:?}", record.rows)));
        }
        if !record.is_acknowledged() {
            (record.txn, record.label) = (txn, label);
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if !answer.is_repeated {
            return Err(Differs(format!("load {id}, which has {record:?}, was stored again: {answer:?}")));
        }
        if (txn, label) != (record.txn, record.label) {
            return Err(Differs(format!("load {id}, which has {record:?}, was answered with {answer:?}")));
        }
        Ok(())
    }

    /// Loads that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Loads that were begun.
    pub fn len(&self) -> u64 {
        self.records.lock().len() as u64
    }

    pub fn record(&self, id: u64) -> Option<Record> {
        self.records.lock().get(id as usize).copied()
    }

    /// The records of the loads with these numbers.
    pub fn range(&self, ids: std::ops::Range<u64>) -> Vec<Record> {
        let records = self.records.lock();
        let end = records.len().min(ids.end as usize);
        records[end.min(ids.start as usize)..end].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Loaded =
        Loaded { txn: 7, label: 9, rows: 2, rejected: 0, is_repeated: false, is_visible: true };

    fn books() -> Books {
        let books = Books::new(2);
        books.begin(Door::Text, true, 1, Some(2)).expect("the first");
        books
    }

    #[test]
    fn loads_are_begun_up_to_a_limit_and_records_are_small() {
        let books = books();
        assert_eq!(books.begin(Door::Text, true, 3, None).map(|load| (load.id, load.table)), Some((1, 3)));
        assert_eq!(books.begin(Door::Text, true, 1, Some(2)), None);
        assert_eq!(size_of::<Record>(), 16);
        assert_eq!(books.range(1..9).len(), 1);
        assert_eq!(books.range(5..9), []);
    }

    #[test]
    fn answers_to_a_load_are_equal() {
        let books = books();
        assert_eq!(books.acknowledge(0, &ANSWER), Ok(()));
        let again = Loaded { is_repeated: true, is_visible: false, ..ANSWER };
        assert_eq!(books.acknowledge(0, &again), Ok(()));
        assert_eq!(books.acknowledged(), 1);
        for (wrong, why) in [
            (ANSWER, "was stored again"),
            (Loaded { txn: 8, ..again }, "was answered with"),
            (Loaded { label: 8, ..again }, "was answered with"),
            (Loaded { rows: 1, ..again }, "of 2 rows was answered with"),
            (Loaded { rejected: 1, ..again }, "of 2 rows was answered with"),
        ] {
            let Differs(text) = books.acknowledge(0, &wrong).expect_err(why);
            assert!(text.contains(why), "{text}");
        }
    }
}

//! Rejected rows that statements are bringing again: each by one statement at a time.
//!
//! Not here: which rows a statement brings, and how they are marked.

pub(crate) use crate::queries::namespace::RejectId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use tributary_ingest::ReplayedRows;
use tributary_types::{ErrorCode, Retry, SqlError, TxnId};

/// The rejected rows of all running statements.
#[derive(Debug, Default)]
pub(crate) struct RunningReplays(Arc<Mutex<HashSet<RejectId>>>);

/// The rejected rows of a statement, which no other statement has until this is dropped.
#[derive(Debug)]
pub(crate) struct ReplayClaim {
    pub rows: Arc<BTreeSet<RejectId>>,
    running: Arc<Mutex<HashSet<RejectId>>>,
}

impl RunningReplays {
    /// Takes rows for a statement.
    ///
    /// # Errors
    /// Another one has some of them.
    pub fn claim(&self, rows: BTreeSet<RejectId>) -> Result<ReplayClaim, SqlError> {
        let mut running = self.0.lock();
        if let Some(row) = rows.iter().find(|row| running.contains(*row)) {
            let text = format!(
                "rejected row {} of transaction {} is being loaded again by another statement; try again when that is over",
                row.reject, row.txn
            );
            return Err(SqlError::detail(ErrorCode::Unknown, text).with_retry(Retry::Safe));
        }
        running.extend(rows.iter().copied());
        Ok(ReplayClaim { rows: Arc::new(rows), running: Arc::clone(&self.0) })
    }
}

impl ReplayClaim {
    /// The rows to be marked, if a query over them gave `read` rows, one for each.
    pub fn marks(&self, read: u64) -> Vec<ReplayedRows> {
        if read != self.rows.len() as u64 {
            return Vec::new();
        }
        let mut loads: BTreeMap<(u64, u64), Vec<u32>> = BTreeMap::new();
        for RejectId { txn, load, reject } in self.rows.iter() {
            loads.entry((*txn, *load)).or_default().push((reject - 1) as u32);
        }
        let rows = |((txn, load), rows)| ReplayedRows { txn: TxnId(txn), load: load as u32, rows };
        loads.into_iter().map(rows).collect()
    }
}

impl Drop for ReplayClaim {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        running.retain(|row| !self.rows.contains(row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_brought_again_by_one_statement_at_a_time_and_marked_if_it_was_read_once() {
        let row = |txn, reject| RejectId { txn, load: 3, reject };
        let replays = RunningReplays::default();
        let first = replays.claim([row(7, 2), row(7, 1), row(8, 1)].into()).expect("free");
        let error = replays.claim([row(8, 1)].into()).expect_err("it is taken");
        assert!(
            error.to_string().contains("rejected row 1 of transaction 8 is being loaded again"),
            "{error}"
        );
        let other = replays.claim([row(8, 2)].into()).expect("free");
        assert_eq!(first.marks(2), []);
        let marks = first.marks(3);
        let shown: Vec<_> = marks.iter().map(|mark| (mark.txn.0, mark.load, mark.rows.clone())).collect();
        assert_eq!(shown, [(7, 3, vec![0, 1]), (8, 3, vec![0])]);
        drop(first);
        replays.claim([row(8, 1)].into()).expect("free again");
        assert!(replays.claim([row(8, 2)].into()).is_err());
        drop(other);
    }
}

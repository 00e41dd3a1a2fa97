//! The logs as operators see them: their size, and the holder of each one's tail.
//!
//! Not here: any decision about releases.

use crate::ingest::Ingest;
use crate::maintenance::wal_space::WalSpace;
use crate::queue::TableQueue;
use crate::queue::view::Holding;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_types::{Lsn, TableId, TxnId, host};
use tributary_wal::WalStats;

/// The reason for which the oldest entries of a log are needed.
#[derive(Clone, Debug)]
pub struct LogHolder {
    pub table: TableId,
    /// The transaction; `None` for rows in a memtable, which may be of many.
    pub txn: Option<TxnId>,
    /// In words for users.
    pub why: &'static str,
    /// The lowest place that is needed.
    pub lsn: Lsn,
}

/// One log.
#[derive(Clone, Debug)]
pub struct LogView {
    pub dir: PathBuf,
    pub stats: WalStats,
    /// Bytes that it was given and has not written.
    pub pending_bytes: u64,
    /// Bytes that loads may still add.
    pub available_bytes: u64,
    /// Loads that wait for their turn at the log.
    pub waiting_loads: u64,
    /// The tables whose rows go through it.
    pub tables: u64,
    pub holder: Option<LogHolder>,
}

impl Ingest {
    /// The logs, in the order of their directories in the configuration.
    #[must_use]
    pub fn logs(&self) -> Vec<LogView> {
        let queues = self.all_queues();
        self.spaces.iter().map(|space| view(space, &queues)).collect()
    }
}

fn view(space: &Arc<WalSpace>, queues: &[Arc<TableQueue>]) -> LogView {
    let of_log: Vec<_> = queues.iter().filter(|queue| Arc::ptr_eq(&queue.space, space)).collect();
    LogView {
        dir: space.dir.clone(),
        stats: space.wal.stats(),
        pending_bytes: space.wal.pending_bytes(),
        available_bytes: space.available(host::now()),
        waiting_loads: space.waiting_loads() as u64,
        tables: of_log.len() as u64,
        holder: of_log.into_iter().flat_map(|queue| holders(queue)).min_by_key(|holder| holder.lsn),
    }
}

fn holders(queue: &TableQueue) -> impl Iterator<Item = LogHolder> {
    let table = queue.table.id();
    let transaction = queue.lowest_holder().map(|(lsn, txn, holding)| {
        let why = match holding {
            Holding::Running => "a transaction that is not visible yet",
            Holding::Prepared => "a two-phase load that waits for its commit or abort",
            Holding::Stranded => "a group that failed; the next start commits its acknowledged rows",
        };
        LogHolder { table, txn: Some(txn), why, lsn }
    });
    let memtable = queue.table.oldest_unflushed_lsn().map(|lsn| LogHolder {
        table,
        txn: None,
        why: "rows in memory that are not in data files yet",
        lsn,
    });
    [transaction, memtable].into_iter().flatten()
}

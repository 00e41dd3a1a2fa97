//! Releasing the logs.
//!
//! Invariant: a log is released up to its lowest pin: of a group or transaction that is not visible, a memtable that is not in
//! data files, a label or progress that is not in the catalog, an idempotency key or a rejected row that is not in a file.

use crate::ingest::Ingest;
use crate::maintenance::wal_space::WalSpace;
use crate::queue::TableQueue;
use crate::tasks;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{Lsn, host};

/// The interval of releases when no flush has ended.
const RELEASE_INTERVAL: Duration = Duration::from_millis(250);

/// The holder of a log's lowest pin.
pub(super) enum Holder<'a> {
    /// A memtable, which a flush moves to data files.
    Memtable(&'a Arc<TableQueue>),
    /// A group or transaction, which its commit moves to the memtable.
    Group(&'a Arc<TableQueue>),
}

impl Ingest {
    pub(super) async fn keep_releasing(self: Arc<Self>) {
        loop {
            let _ = tasks::timeout(RELEASE_INTERVAL, self.to_release.notified()).await;
            self.release_logs().await;
            if let Ok(_releasing) = self.releasing.try_read() {
                self.merge_files().await;
            }
        }
    }

    /// Releases everything below the lowest pin. The order matters: the end of the log is read first, so a transaction that
    /// begins meanwhile is above it. A backup copies the logs first.
    pub(super) async fn release_logs(&self) {
        let Ok(_releasing) = self.releasing.try_read() else { return };
        let ends: Vec<Lsn> = self.spaces.iter().map(|space| space.wal.end_lsn()).collect();
        let next_txn = self.core.transactions.peek_next();
        if !self.record_labels().await {
            return;
        }
        let queues = self.all_queues();
        let lowest =
            |(space, end): (_, &Lsn)| lowest_needed(space, &queues).map_or(*end, |(lsn, _)| lsn.min(*end));
        let lowest: Vec<Lsn> = self.spaces.iter().zip(&ends).map(lowest).collect();
        let frees = self.spaces.iter().zip(&lowest).any(|(space, lowest)| space.wal.would_free(*lowest));
        if (frees || self.core.keys.are_many()) && !self.store_keys().await {
            return;
        }
        if (frees || self.core.rejected.are_many()) && !self.store_rejected().await {
            let now = host::now();
            if !self.spaces.iter().any(|space| space.is_half_full(now)) {
                return;
            }
            self.core.rejected.leave_log();
        }
        // Without a segment to free, they may be in the log alone. It would be released with the end of its segment.
        let keeps = !frees && (self.core.keys.has_recent() || self.core.rejected.has_recent());
        for (space, lowest) in self.spaces.iter().zip(lowest) {
            space.wal.set_header_value(next_txn.0);
            match keeps {
                true => space.wal.discount(lowest),
                false => space.wal.release(lowest),
            }
        }
    }
}

impl Ingest {
    /// Makes files of keys and of rejected rows fewer, once the log was released.
    async fn merge_files(&self) {
        let keys = Arc::clone(&self.core.keys);
        if keys.has_mergeable()
            && let Err(error) = tasks::blocking(move || keys.merge()).await
        {
            tracing::warn!(%error, "files of idempotency keys can't be merged now");
        }
        let rejected = Arc::clone(&self.core.rejected);
        if rejected.has_mergeable()
            && let Err(error) = tasks::blocking(move || rejected.merge()).await
        {
            tracing::warn!(%error, "files of rejected rows can't be merged now");
        }
    }

    /// Moves idempotency keys from the log to files of their own. False if it failed.
    async fn store_keys(&self) -> bool {
        let keys = Arc::clone(&self.core.keys);
        let outcome = tasks::blocking(move || keys.store_recent()).await;
        if let Err(error) = &outcome {
            tracing::error!(%error, "idempotency keys can't be stored; the log keeps them");
        }
        outcome.is_ok()
    }

    /// Moves rejected rows from the log to a file of their own. False if it failed.
    async fn store_rejected(&self) -> bool {
        let rejected = Arc::clone(&self.core.rejected);
        let outcome = tasks::blocking(move || rejected.store_recent()).await;
        if let Err(error) = &outcome {
            tracing::error!(%error, "rejected rows can't be stored; the log keeps them until it is half full");
        }
        outcome.is_ok()
    }
}

/// The lowest place of a log that one of its tables needs, and its holder.
pub(super) fn lowest_needed<'a>(
    space: &Arc<WalSpace>,
    queues: &'a [Arc<TableQueue>],
) -> Option<(Lsn, Holder<'a>)> {
    let of_log = queues.iter().filter(|queue| Arc::ptr_eq(&queue.space, space));
    let needed = of_log.flat_map(|queue| {
        // A commit moves a hold to the memtable, so the hold is read first.
        let hold = queue.lowest_pin().map(|lsn| (lsn, Holder::Group(queue)));
        let memtable = queue.table.oldest_unflushed_lsn().map(|lsn| (lsn, Holder::Memtable(queue)));
        [memtable, hold].into_iter().flatten()
    });
    needed.min_by_key(|(lsn, _)| *lsn)
}

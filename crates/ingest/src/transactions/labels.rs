//! Labels and the store that retains them longer than the log does.
//!
//! Invariant: one task at a time updates the store's information about a transaction's label, so a label that was freed is not
//! stored as used by a task with an outdated view.

use crate::error::IngestError;
use crate::ingest::Ingest;
use crate::transactions::{SLICE, TransactionInfo};
use tributary_types::DbId;

impl Ingest {
    /// Passes finished transactions with retained labels, and positions, to the label store. False if it failed. They stay on the
    /// list until the store has them, because this may be cut off, and another task may release the log meanwhile.
    pub(crate) async fn record_labels(&self) -> bool {
        let _storing = self.storing_labels.lock().await;
        let transactions = &self.core.transactions;
        // Transactions that end meanwhile may wait: the log is released only up to its end of before.
        let (due, mut positions) = (transactions.unrecorded_ids(), transactions.unrecorded_positions());
        if due.is_empty() && positions.is_empty() {
            return true;
        }
        for ids in due.chunks(SLICE).chain(due.is_empty().then_some(&due[..])) {
            let finished = transactions.unrecorded(ids);
            if let Err(error) = self.labels.record(&finished, &positions).await {
                tracing::error!(%error, labels = finished.len(), positions = positions.len(), "labels and positions can't be stored; the log keeps them");
                return false;
            }
            transactions.recorded(&finished);
            transactions.recorded_positions(&positions);
            positions.clear();
        }
        true
    }

    /// Frees the labels of finished transactions of a database, that of one label or all: they may be used again, also after a restart.
    /// Returns how many.
    ///
    /// # Errors
    /// [`IngestError::Labels`]: they can't be stored, and are used still.
    pub async fn clean_labels(&self, db: DbId, label: Option<&str>) -> Result<usize, IngestError> {
        let _storing = self.storing_labels.lock().await;
        let transactions = &self.core.transactions;
        // The log may have their commits for a while; the store's information about a label is newer than the log's.
        let freed: Vec<_> = transactions
            .keeping_labels(db, label)
            .into_iter()
            .map(|info| TransactionInfo { label_is_kept: false, ..info })
            .collect();
        if freed.is_empty() {
            return Ok(0);
        }
        self.labels.record(&freed, &[]).await.map_err(IngestError::Labels)?;
        transactions.free_labels(&freed);
        Ok(freed.len())
    }
}

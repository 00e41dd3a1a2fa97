//! Background work on tables and logs: flushes, the release of the log, compactions, sweeps and purges.
//!
//! Each kind of work is a watched task of its own, so none waits for another, and a panic in one affects neither it nor the
//! others ([`watched`]).
//!
//! | file | what happens there |
//! | --- | --- |
//! | `backup` | the logs and tables at one moment, kept until they are copied |
//! | `flushing` | the choice of tables to flush, several at a time |
//! | `log_view` | the logs as operators see them |
//! | `release` | the release of the log up to its lowest pin |
//! | `compacting` | merges small data files |
//! | `verify` | acknowledged rows, visible rows and Delta tables, compared at one moment |
//! | `wal_space` | the limit of the log's space |
//! | `table_work` | flushes and compactions for those who look |
//! | `stalled` | flushes that fail one after the other, none of any table succeeding in between |
//! | `watched` | catches and counts panics of background work; the fifth in a minute ends the process |

pub mod backup;
mod compacting;
mod flushing;
pub mod log_view;
mod release;
pub(crate) mod stalled;
pub(crate) mod table_work;

pub mod verify;
pub mod wal_space;
pub mod watched;

use crate::ingest::Ingest;
use crate::tasks;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tributary_table::Table;
use tributary_types::{TransactionStatus, host};

/// How often labels are purged and prepared loads are looked at.
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
/// The longest time between two looks for files that left their tables long enough ago.
const SWEEP_INTERVAL_MAX: Duration = Duration::from_secs(3600);

impl Ingest {
    /// Starts all background work on tables and logs. It runs until the tasks are aborted; in a simulation, which gets no
    /// handles, until the machine ends.
    pub fn start_maintenance(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let tasks = [
            self.watch("flushing", Self::keep_flushing),
            self.watch("releasing", Self::keep_releasing),
            self.watch("compacting", Self::keep_compacting),
            self.watch("sweeping", Self::keep_sweeping),
            self.watch("purging", Self::keep_purging),
        ];
        tasks.into_iter().flatten().collect()
    }

    fn watch<W: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        work: fn(Arc<Self>) -> W,
    ) -> Option<JoinHandle<()>> {
        let ingest = Arc::clone(self);
        self.watcher.spawn_watched(name, move || work(Arc::clone(&ingest)))
    }

    async fn keep_purging(self: Arc<Self>) {
        loop {
            tasks::sleep(PURGE_INTERVAL).await;
            self.purge().await;
        }
    }

    async fn keep_sweeping(self: Arc<Self>) {
        loop {
            tasks::pause(&self.options.sweep_interval, SWEEP_INTERVAL_MAX).await;
            for table in self.tables() {
                // One table's panic must not stop the sweep of the others.
                drop(self.watcher.catch("sweep", sweep(&table)).await);
            }
        }
    }

    fn tables(&self) -> Vec<Arc<Table>> {
        self.all_queues().iter().map(|queue| Arc::clone(&queue.table)).collect()
    }

    async fn purge(&self) {
        let now_ms = host::unix_ms();
        let before_ms = now_ms - self.options.label_keep.get().as_millis() as i64;
        self.core.transactions.purge(before_ms);
        if let Err(error) = self.labels.purge(before_ms).await {
            tracing::warn!(%error, "old labels can't be purged now");
        }
        if let Ok(_releasing) = self.releasing.try_read() {
            self.purge_files().await;
        }
        let late_ms = now_ms - self.options.precommit_timeout.get().as_millis() as i64;
        let late: Vec<_> = {
            let prepared = self.prepared.lock();
            prepared.keys().filter_map(|&txn| self.core.transactions.by_id(txn)).collect()
        };
        for info in late {
            let is_late = info.precommitted_at_ms.is_some_and(|at| at < late_ms);
            if is_late && info.status == TransactionStatus::Precommitted {
                let target = crate::TwoPhaseTarget { txn: Some(info.txn), label: None };
                let outcome =
                    self.abort_prepared(info.db, &target, "timeout: nobody committed it in time").await;
                tracing::warn!(txn = %info.txn, label = %info.label, ok = outcome.is_ok(), "aborted a prepared load");
            }
        }
    }
}

impl Ingest {
    /// Removes files of idempotency keys and rejected rows whose time is over.
    async fn purge_files(&self) {
        let keys = Arc::clone(&self.core.keys);
        if let Err(error) = tasks::blocking(move || keys.purge()).await {
            tracing::warn!(%error, "old idempotency keys can't be purged now");
        }
        let rejected = Arc::clone(&self.core.rejected);
        if let Err(error) = tasks::blocking(move || rejected.purge()).await {
            tracing::warn!(%error, "old rejected rows can't be purged now");
        }
    }
}

async fn sweep(table: &Table) {
    match table.sweep().await {
        Ok(report) if report.files == 0 => {}
        Ok(report) => {
            tracing::info!(table = %table.def().table_ref(), files = report.files, bytes = report.bytes, "swept");
        }
        Err(error) => {
            tracing::warn!(table = %table.def().table_ref(), %error, "unused files stay for now");
        }
    }
}

//! Flushing tables and releasing the log, in the background.
//!
//! A log is released up to the lowest place that somebody still needs: a group or transaction that
//! is not visible, a memtable that is not in data files, a kept label or a position in a source that is not in the
//! catalog.

pub mod wal_space;

use crate::group::CloseReason;
use crate::ingest::Ingest;
use crate::maintenance::wal_space::WalSpace;
use crate::tasks;
use std::sync::Arc;
use std::time::Duration;
use tributary_table::Table;
use tributary_types::{Lsn, TransactionStatus, host};

/// How often tables are checked for flushes that are due.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How long it waits under pressure before it checks again: what is in open groups can't be flushed, and
/// loads that wait for memory ask again and again.
const PRESSED_PAUSE: Duration = Duration::from_millis(5);
/// How long nothing was flushed before tables count as at rest.
const REST: Duration = Duration::from_secs(5);
/// The number of small files of a partition from which a table at rest is compacted.
const FILES_AT_REST_MIN: usize = 2;
/// How often labels are purged and prepared loads are looked at.
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
/// A log that keeps this share of its limit for one table has that table flushed, in percent.
const WAL_PRESSURE_PERCENT: u64 = 50;

impl Ingest {
    /// Flushes what is due, releases the log, purges labels, compacts; until the task is cancelled.
    pub async fn maintain(self: Arc<Self>) {
        // Side by side: no flush waits for a compaction.
        futures::join!(self.keep_flushing(), self.keep_compacting());
    }

    async fn keep_flushing(&self) {
        let mut purged_at = host::now();
        let mut swept_at = purged_at;
        loop {
            tokio::select! {
                biased;
                () = self.core.memory.flush_wanted() => {}
                () = tasks::sleep(LOOK_INTERVAL) => {}
            }
            self.flush_due().await;
            tasks::sleep(PRESSED_PAUSE).await;
            if host::now().saturating_duration_since(purged_at) >= PURGE_INTERVAL {
                purged_at = host::now();
                self.purge().await;
            }
            if host::now().saturating_duration_since(swept_at) >= self.options.sweep_interval {
                swept_at = host::now();
                self.sweep().await;
            }
        }
    }

    async fn keep_compacting(&self) {
        loop {
            let at_rest = tasks::timeout(REST, self.flushed.notified()).await.is_none();
            let tables: Vec<_> = {
                let mut ids = self.to_compact.lock();
                let ids = if at_rest { std::mem::take(&mut *ids) } else { ids.clone() };
                ids.into_iter()
                    .filter_map(|id| self.queue(id))
                    .map(|queue| Arc::clone(&queue.table))
                    .collect()
            };
            for table in tables {
                let is_done = !self.compact(&table, at_rest).await;
                if at_rest && !is_done {
                    // One compaction reads no more than some files.
                    self.to_compact.lock().insert(table.id());
                }
            }
        }
    }

    async fn sweep(&self) {
        for table in self.tables() {
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
    }

    async fn flush_due(&self) {
        if self.core.memory.groups_are_in_the_way() {
            self.all_queues().iter().for_each(|queue| queue.close_now(CloseReason::Memory));
        }
        let tables = self.tables();
        let is_pressed = self.core.memory.is_pressed() || self.wal_is_pressed();
        let largest = tables.iter().max_by_key(|table| table.memtable_bytes()).map(|table| table.id());
        for table in &tables {
            let is_largest = Some(table.id()) == largest && table.memtable_bytes() > 0;
            if table.flush_due(host::now()) || (is_pressed && is_largest) {
                self.flush(table).await;
            }
        }
        self.core.memory.set_memtables(tables.iter().map(|table| table.memtable_bytes()).sum());
        let stuck = tables.iter().filter(|table| table.stuck().is_some()).count();
        self.core.metrics.tables_stuck.set(stuck as i64);
        self.release_logs().await;
    }

    fn wal_is_pressed(&self) -> bool {
        let now = host::now();
        self.spaces.iter().any(|space| {
            let live = space.wal.live_bytes();
            live * 100 > (live + space.available(now)) * WAL_PRESSURE_PERCENT
        })
    }

    fn tables(&self) -> Vec<Arc<Table>> {
        self.all_queues().iter().map(|queue| Arc::clone(&queue.table)).collect()
    }

    async fn flush(&self, table: &Table) {
        let started = host::now();
        let memory = Arc::clone(&self.core.memory);
        let sets_pace = memory.is_pressed() && !table.keeps_all_rows();
        match table.flush_with(Arc::new(move |bytes| memory.encoded(bytes))).await {
            Ok(Some(report)) => {
                let metrics = &self.core.metrics;
                metrics.flushes.inc();
                metrics.flushed_rows.inc_by(report.rows);
                metrics.flushed_bytes.inc_by(report.bytes);
                let took = host::now().saturating_duration_since(started);
                metrics.flush_seconds.observe(took.as_secs_f64());
                if sets_pace {
                    self.core.memory.flush_took(took);
                }
                tracing::info!(table = %table.def().table_ref(), rows = report.rows, bytes = report.bytes, files = report.files, "flushed");
                self.to_compact.lock().insert(table.id());
                self.flushed.notify_one();
            }
            Ok(None) => {}
            Err(error) => {
                self.core.metrics.flushes_failed.inc();
                tracing::error!(table = %table.def().table_ref(), %error, "flush failed; the rows stay in memory and in the log");
            }
        }
    }

    /// Compacts once. Whether that changed anything.
    async fn compact(&self, table: &Table, at_rest: bool) -> bool {
        let compacted =
            if at_rest { table.compact_from(FILES_AT_REST_MIN).await } else { table.compact().await };
        match compacted {
            Ok(None) => false,
            Ok(Some(_)) => {
                self.core.metrics.compactions.inc();
                true
            }
            Err(error) => {
                tracing::error!(table = %table.def().table_ref(), %error, "compaction failed; nothing changed");
                false
            }
        }
    }

    /// Flushes every table that has rows in memory and releases the logs.
    pub async fn flush_all(&self) {
        let tables = self.tables();
        for table in &tables {
            self.flush(table).await;
        }
        self.core.memory.set_memtables(tables.iter().map(|table| table.memtable_bytes()).sum());
        self.release_logs().await;
    }

    /// Releases what nobody needs any more. The order matters: the end of the log is read first,
    /// so a transaction that begins meanwhile lies above it.
    async fn release_logs(&self) {
        let ends: Vec<Lsn> = self.spaces.iter().map(|space| space.wal.end_lsn()).collect();
        let next_txn = self.core.transactions.peek_next();
        if !self.record_labels().await {
            return;
        }
        let queues = self.all_queues();
        for (space, end) in self.spaces.iter().zip(ends) {
            let mut lowest = end;
            for queue in queues.iter().filter(|queue| same(&queue.space, space)) {
                // A commit moves a hold to the memtable, so the hold is read first.
                let hold = queue.lowest_pin();
                let memtable = queue.table.oldest_unflushed_lsn();
                lowest = [hold, memtable].into_iter().flatten().fold(lowest, Lsn::min);
            }
            space.wal.set_header_value(next_txn.0);
            space.wal.release(lowest);
        }
    }

    async fn purge(&self) {
        let now_ms = host::unix_ms();
        let before_ms = now_ms - self.options.label_keep.as_millis() as i64;
        self.core.transactions.purge(before_ms);
        if let Err(error) = self.labels.purge(before_ms).await {
            tracing::warn!(%error, "old labels can't be purged now");
        }
        let late_ms = now_ms - self.options.precommit_timeout.as_millis() as i64;
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

fn same(a: &Arc<WalSpace>, b: &Arc<WalSpace>) -> bool {
    Arc::ptr_eq(a, b)
}

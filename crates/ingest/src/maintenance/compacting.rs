//! Compacting tables that were flushed, one after another, in the background.

use crate::ingest::Ingest;
use crate::maintenance::table_work::TableWorkKind;
use crate::tasks;
use std::sync::Arc;
use std::time::Duration;
use tributary_table::Table;

/// How long nothing was flushed before tables count as at rest.
const REST: Duration = Duration::from_secs(5);
/// The number of small files of a partition from which a table at rest is compacted.
const FILES_AT_REST_MIN: usize = 2;

impl Ingest {
    pub(super) async fn keep_compacting(self: Arc<Self>) {
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
                match self.watcher.catch("compaction", self.compact(&table, at_rest)).await {
                    // One compaction reads no more than some files.
                    Ok(true) if at_rest => drop(self.to_compact.lock().insert(table.id())),
                    Ok(_) => {}
                    // It is retried after the table's next flush.
                    Err(_) => drop(self.to_compact.lock().remove(&table.id())),
                }
            }
        }
    }

    /// Compacts once. Whether that changed anything.
    async fn compact(&self, table: &Table, at_rest: bool) -> bool {
        let work = self.table_work.begin(table.id(), TableWorkKind::Compaction);
        let compacted =
            if at_rest { table.compact_from(FILES_AT_REST_MIN).await } else { table.compact().await };
        match compacted {
            Ok(None) => {
                work.nothing();
                false
            }
            Ok(Some(report)) => {
                work.done(|work| {
                    (work.rows, work.bytes) = (report.rows, report.bytes_after);
                    work.files = report.files_after as u64;
                    work.files_replaced = report.files_before as u64;
                    work.delta_version = Some(report.delta_version);
                });
                self.core.metrics.compactions.inc();
                true
            }
            Err(error) => {
                work.failed(&error);
                tracing::error!(table = %table.def().table_ref(), %error, "compaction failed; nothing changed");
                false
            }
        }
    }
}

//! The choice of tables to flush.
//!
//! Several tables are flushed at a time, each by one task, so a slow store of one table delays neither the others nor the release
//! of the log. A table is flushed when its memtable is large or old enough. When memory is short, the largest memtable is
//! flushed; when a log is nearly full, the holder of its oldest entries is released: a memtable is flushed, an open group is
//! closed. A table whose flush fails is skipped for a while that doubles with each failure.
//!
//! Invariant: a table is flushed by one task at a time, with at most [`FLUSHES_AT_ONCE`] flushes in total.
//!
//! Not its business: the conversion of a memtable to data files, and time limits of calls to the store.

use crate::group::CloseReason;
use crate::ingest::Ingest;
use crate::maintenance::release::{Holder, lowest_needed};
use crate::maintenance::table_work::TableWorkKind;
use crate::queue::TableQueue;
use crate::tasks;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tributary_table::Table;
use tributary_types::{TableId, host};

/// The number of concurrent flushes.
const FLUSHES_AT_ONCE: usize = 4;
/// How often tables are checked for flushes that are due.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Pause under pressure before the next check: rows in open groups can't be flushed, and loads that wait for memory check again
/// and again.
const PRESSED_PAUSE: Duration = Duration::from_millis(5);
/// A flush that takes longer is not waited for when memory is short: another table's is started.
const SLOW_FLUSH_MIN: Duration = Duration::from_secs(5);
/// Beside slow flushes, a memtable below this fraction of the memory is flushed only if loads wait.
const SMALL_PART: u64 = 64;
/// The share of a log's limit, in percent, from which the holder of the oldest entries is flushed.
const WAL_PRESSURE_PERCENT: u64 = 50;
/// The time for which a table is skipped after its first failed flush; it doubles with each further one.
const BACK_OFF_MIN: Duration = Duration::from_millis(500);
const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// A flush that is under way.
struct Running {
    since: Instant,
    /// Encoded bytes of its memtable, which loads may already replace.
    encoded: Arc<AtomicU64>,
}

/// A table whose last flush failed.
#[derive(Clone, Copy, Debug)]
struct BackOff {
    failures: u32,
    until: Instant,
}

impl BackOff {
    fn after(last: Option<Self>, now: Instant) -> Self {
        let failures = last.map_or(1, |last| last.failures.saturating_add(1));
        let pause = BACK_OFF_MIN * 2_u32.saturating_pow((failures - 1).min(16));
        Self { failures, until: now + pause.min(BACK_OFF_MAX) }
    }
}

/// The running flushes, and the tables that are skipped.
#[derive(Default)]
struct Flushes {
    tasks: FuturesUnordered<BoxFuture<'static, (TableId, bool)>>,
    running: BTreeMap<TableId, Running>,
    backing_off: BTreeMap<TableId, BackOff>,
}

impl Flushes {
    fn may_start(&self, table: TableId, now: Instant) -> bool {
        let is_left_alone = self.backing_off.get(&table).is_some_and(|back_off| now < back_off.until);
        !is_left_alone && !self.running.contains_key(&table)
    }

    fn ended(&mut self, table: TableId, is_ok: bool) {
        self.running.remove(&table);
        let last = self.backing_off.remove(&table);
        if !is_ok {
            self.backing_off.insert(table, BackOff::after(last, host::now()));
        }
    }

    /// Whether the table is skipped, or its flush takes long.
    fn is_stuck(&self, table: TableId, now: Instant) -> bool {
        match self.running.get(&table) {
            Some(running) => now - running.since >= SLOW_FLUSH_MIN,
            None => !self.may_start(table, now),
        }
    }

    /// Bytes of a memtable that loads may not replace yet.
    fn bytes_of(&self, table: &Table) -> u64 {
        let bytes = table.memtable_bytes();
        let Some(running) = self.running.get(&table.id()) else { return bytes };
        bytes.saturating_sub(running.encoded.load(Ordering::Relaxed).min(table.frozen_bytes()))
    }
}

impl Ingest {
    pub(super) async fn keep_flushing(self: Arc<Self>) {
        let mut flushes = Flushes::default();
        loop {
            tokio::select! {
                biased;
                Some((table, is_ok)) = flushes.tasks.next() => {
                    flushes.ended(table, is_ok);
                    self.to_release.notify_one();
                }
                () = self.core.memory.flush_wanted() => {}
                () = tasks::sleep(LOOK_INTERVAL) => {}
            }
            self.start_flushes(&mut flushes);
            let tables = self.tables();
            self.core.memory.set_memtables(tables.iter().map(|table| flushes.bytes_of(table)).sum());
            let stuck = tables.iter().filter(|table| table.stuck().is_some()).count();
            self.core.metrics.tables_stuck.set(stuck as i64);
            self.core.metrics.flushes_running.set(flushes.running.len() as i64);
            self.core.metrics.flushes_backing_off.set(flushes.backing_off.len() as i64);
            tasks::sleep(PRESSED_PAUSE).await;
        }
    }

    /// Starts the flushes that are due or needed, up to the limit.
    fn start_flushes(self: &Arc<Self>, flushes: &mut Flushes) {
        if self.core.memory.groups_are_in_the_way() {
            self.all_queues().iter().for_each(|queue| queue.close_now(CloseReason::Memory));
        }
        let queues = self.all_queues();
        let now = host::now();
        flushes.backing_off.retain(|&table, _| self.queue(table).is_some());
        for table in self.wanted(&queues, flushes, now) {
            if flushes.tasks.len() >= FLUSHES_AT_ONCE {
                return;
            }
            if flushes.may_start(table.id(), now) {
                self.start_flush(flushes, table, now);
            }
        }
    }

    /// Tables to flush, the most urgent first: holders of a full log, the largest if memory is short, and the due ones, the
    /// oldest first.
    fn wanted(&self, queues: &[Arc<TableQueue>], flushes: &Flushes, now: Instant) -> Vec<Arc<Table>> {
        let mut wanted = Vec::new();
        let pressed = self.spaces.iter().filter(|space| {
            let live = space.wal.live_bytes();
            live * 100 > (live + space.available(now)) * WAL_PRESSURE_PERCENT
        });
        for space in pressed {
            match lowest_needed(space, queues) {
                Some((_, Holder::Memtable(queue))) => wanted.push(Arc::clone(&queue.table)),
                // Its rows move to the memtable, if it is open.
                Some((_, Holder::Group(queue))) => queue.close_now(CloseReason::Log),
                None => {}
            }
        }
        if self.core.memory.is_pressed() {
            wanted.extend(self.largest(queues, flushes, now));
        }
        let mut due: Vec<_> =
            queues.iter().filter(|queue| queue.table.flush_due(now)).map(|queue| &queue.table).collect();
        due.sort_by_key(|table| table.oldest_unflushed_lsn());
        wanted.extend(due.into_iter().cloned());
        wanted
    }

    /// The table whose flush frees the most memory, unless it is already being flushed.
    fn largest(&self, queues: &[Arc<TableQueue>], flushes: &Flushes, now: Instant) -> Option<Arc<Table>> {
        let with_bytes = queues.iter().map(|queue| (queue.table.memtable_bytes(), &queue.table));
        let mut tables: Vec<_> = with_bytes.filter(|(bytes, _)| *bytes > 0).collect();
        tables.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let free = tables.iter().position(|(_, table)| !flushes.is_stuck(table.id(), now))?;
        let (bytes, table) = tables[free];
        let memory = &self.core.memory;
        let is_worth_it = free == 0 || memory.is_waited_for() || bytes >= memory.limit() / SMALL_PART;
        (is_worth_it && flushes.may_start(table.id(), now)).then(|| Arc::clone(table))
    }

    fn start_flush(self: &Arc<Self>, flushes: &mut Flushes, table: Arc<Table>, since: Instant) {
        let encoded = Arc::new(AtomicU64::new(0));
        let (ingest, id) = (Arc::clone(self), table.id());
        let work = {
            let (ingest, encoded) = (Arc::clone(self), Arc::clone(&encoded));
            async move { ingest.flush(&table, encoded).await }
        };
        flushes.running.insert(id, Running { since, encoded });
        // A panic counts as a failure: the table is retried later.
        let task = async move { (id, ingest.watcher.run_owned("flush", work).await.unwrap_or(false)) };
        flushes.tasks.push(Box::pin(task));
    }

    /// Flushes a table. Returns `false` if it failed.
    async fn flush(&self, table: &Table, encoded: Arc<AtomicU64>) -> bool {
        let started = host::now();
        let memory = Arc::clone(&self.core.memory);
        let sets_pace = memory.is_pressed() && !table.keeps_all_rows();
        let progress = move |bytes| {
            encoded.fetch_add(bytes, Ordering::Relaxed);
            memory.encoded(bytes);
        };
        let work = self.table_work.begin(table.id(), TableWorkKind::Flush);
        match table.flush_with(Arc::new(progress)).await {
            Ok(Some(report)) => {
                work.done(|work| {
                    (work.rows, work.bytes, work.files) = (report.rows, report.bytes, report.files as u64);
                    work.delta_version = Some(report.delta_version);
                });
                self.flush_failures.flushed();
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
                true
            }
            Ok(None) => {
                work.nothing();
                true
            }
            Err(error) => {
                work.failed(&error);
                self.core.metrics.flushes_failed.inc();
                if error.is_of_the_store() {
                    self.flush_failures.failed(table.id());
                }
                tracing::error!(table = %table.def().table_ref(), %error, "flush failed; the rows stay in memory and in the log");
                false
            }
        }
    }

    /// Flushes every table that has rows in memory, some of them at a time, and releases the logs.
    pub async fn flush_all(&self) {
        let tables = self.tables();
        let flush = |table: Arc<Table>| async move {
            // A panic in one flush must not stop the flushes of the others.
            drop(self.watcher.catch("flush", self.flush(&table, Arc::default())).await);
        };
        futures::stream::iter(tables.clone()).for_each_concurrent(FLUSHES_AT_ONCE, flush).await;
        self.core.memory.set_memtables(tables.iter().map(|table| table.memtable_bytes()).sum());
        self.release_logs().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_left_alone_twice_as_long_after_each_failure_up_to_a_limit() {
        let now = Instant::now();
        let mut last = None;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            let next = BackOff::after(last, now);
            pauses.push(next.until - now);
            last = Some(next);
        }
        assert_eq!(pauses[..3], [BACK_OFF_MIN, BACK_OFF_MIN * 2, BACK_OFF_MIN * 4]);
        assert_eq!(pauses[39], BACK_OFF_MAX);
    }
}

//! The contents of `/metrics`: the counters of all crates, and gauges that are read on request.

use prometheus::{Encoder, Gauge, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};
use std::sync::Arc;
use tributary_admission::Refusal;
use tributary_ingest::Ingest;
use tributary_query::{OUTCOMES, PageCacheFigures};
use tributary_table::{CacheFacts, StoreTraffic, Table};
use tributary_types::memory;

/// All metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    gauges: Gauges,
    store: StoreMetrics,
    page_cache: PageCacheMetrics,
    /// In the order of [`OUTCOMES`].
    distributed: Vec<IntCounter>,
    distributed_parts: IntGauge,
}

impl Metrics {
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let gauges = Gauges::new(&registry)?;
        let store = StoreMetrics::new(&registry)?;
        let page_cache = PageCacheMetrics::new(&registry)?;
        let help = "Queries over at least distributed_query_bytes while other nodes computed parts of queries, by what became of them";
        let distributed =
            IntCounterVec::new(Opts::new("tributary_distributed_queries_total", help), &["outcome"])?;
        registry.register(Box::new(distributed.clone()))?;
        let distributed = OUTCOMES.iter().map(|outcome| distributed.with_label_values(&[*outcome])).collect();
        let help = "Parts of queries of other nodes that this node computes at the moment";
        let distributed_parts = IntGauge::new("tributary_distributed_parts_running", help)?;
        registry.register(Box::new(distributed_parts.clone()))?;
        Ok(Self { registry, gauges, store, page_cache, distributed, distributed_parts })
    }

    /// The registry for the crates' counters.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// All metrics in Prometheus' text format.
    pub fn text(&self, ingest: &Ingest, tables: &[Arc<Table>], others: Others) -> String {
        self.gauges.read(ingest, tables);
        self.gauges.connections.set(others.connections as i64);
        self.gauges.session_bytes.set(others.session_bytes as i64);
        self.gauges.ready.set(i64::from(others.is_ready));
        self.gauges.followed_age.set(others.followed_age_seconds);
        self.store.read(others.cache.as_ref(), others.traffic);
        self.page_cache.read(others.page_cache);
        self.distributed.iter().zip(others.distributed).for_each(|(counter, count)| raise(counter, count));
        self.distributed_parts.set(others.distributed_parts as i64);
        let mut out = Vec::new();
        match TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            Ok(()) => String::from_utf8_lossy(&out).into_owned(),
            Err(error) => format!("# metrics can't be written: {error}\n"),
        }
    }
}

/// Values of the server's other parts.
#[derive(Clone, Debug)]
pub(crate) struct Others {
    pub connections: usize,
    pub session_bytes: u64,
    pub is_ready: bool,
    /// How old the rows of a node that only reads are. Endless: it has not heard of the writer.
    pub followed_age_seconds: f64,
    /// Of data files in a store that is far away.
    pub cache: Option<CacheFacts>,
    pub traffic: Option<StoreTraffic>,
    pub page_cache: PageCacheFigures,
    /// Of queries over many bytes, in the order of [`OUTCOMES`].
    pub distributed: [u64; OUTCOMES.len()],
    /// Parts of other nodes' queries.
    pub distributed_parts: usize,
}

/// Gauges that are set when metrics are requested.
#[derive(Debug)]
struct Gauges {
    wal_segments: IntGauge,
    wal_bytes: IntGauge,
    wal_live_bytes: IntGauge,
    wal_fsyncs: IntGauge,
    wal_written_bytes: IntGauge,
    wal_entries: IntGauge,
    open_groups: IntGauge,
    group_bytes: IntGauge,
    in_flight_bytes: IntGauge,
    bodies_waiting: IntGauge,
    log_waiting: IntGauge,
    memtable_bytes: IntGauge,
    memtable_rows: IntGauge,
    data_files: IntGauge,
    data_file_bytes: IntGauge,
    tables: IntGauge,
    connections: IntGauge,
    session_bytes: IntGauge,
    memory_resident: IntGauge,
    memory_limit: IntGauge,
    memory_refused: IntCounter,
    ready: IntGauge,
    followed_age: Gauge,
    load_keys: IntGauge,
    rejected_rows_bytes: IntGauge,
    load_key_bytes: IntGauge,
    load_channels: IntGauge,
    log_lines_dropped: IntCounter,
    /// By kind, in the order of [`Refusal::ALL`].
    refused: Vec<IntCounter>,
}

impl Gauges {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str| -> Result<IntGauge, prometheus::Error> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let log_lines_dropped = IntCounter::new(
            "tributary_log_lines_dropped_total",
            "Lines of the log that standard error did not take",
        )?;
        registry.register(Box::new(log_lines_dropped.clone()))?;
        let memory_refused = IntCounter::new(
            "tributary_memory_refused_total",
            "Times that work found no memory within mem_limit",
        )?;
        registry.register(Box::new(memory_refused.clone()))?;
        let followed_age = Gauge::new(
            "tributary_followed_age_seconds",
            "How old the rows of a node that only reads may be; 0 at a server that writes",
        )?;
        registry.register(Box::new(followed_age.clone()))?;
        let help = "Clients that were refused, or closed before they said who they are, by kind";
        let refused = IntCounterVec::new(Opts::new("tributary_clients_refused_total", help), &["kind"])?;
        registry.register(Box::new(refused.clone()))?;
        Ok(Self {
            refused: Refusal::ALL.iter().map(|kind| refused.with_label_values(&[kind.name()])).collect(),
            wal_segments: gauge("tributary_wal_files", "Segment files of the write-ahead logs")?,
            wal_bytes: gauge("tributary_wal_bytes", "Bytes of the write-ahead logs' files")?,
            wal_live_bytes: gauge(
                "tributary_wal_live_bytes",
                "Bytes of the write-ahead logs that are still needed",
            )?,
            wal_fsyncs: gauge("tributary_wal_fsyncs", "Fsyncs of the write-ahead logs since the start")?,
            wal_written_bytes: gauge(
                "tributary_wal_written_bytes",
                "Bytes written to the write-ahead logs since the start",
            )?,
            wal_entries: gauge(
                "tributary_wal_entries",
                "Entries written to the write-ahead logs since the start",
            )?,
            open_groups: gauge("tributary_open_groups", "Groups that are not visible yet")?,
            group_bytes: gauge("tributary_group_bytes", "Bytes of rows in groups that are not visible yet")?,
            in_flight_bytes: gauge(
                "tributary_loads_in_flight_bytes",
                "Bytes of rows of loads that have not joined a group or a transaction yet",
            )?,
            bodies_waiting: gauge("tributary_bodies_waiting", "Bodies of loads that wait unread for memory")?,
            log_waiting: gauge(
                "tributary_log_waiting",
                "Loads that wait for their turn at a write-ahead log",
            )?,
            memtable_bytes: gauge("tributary_memtable_bytes", "Bytes of rows in memtables")?,
            memtable_rows: gauge("tributary_memtable_rows", "Rows in memtables")?,
            data_files: gauge("tributary_data_files", "Data files of all tables")?,
            data_file_bytes: gauge("tributary_data_file_bytes", "Bytes of the data files of all tables")?,
            tables: gauge("tributary_tables", "Tables")?,
            connections: gauge("tributary_mysql_connections", "MySQL connections")?,
            session_bytes: gauge(
                "tributary_session_bytes",
                "Bytes of the prepared statements and user variables of all sessions",
            )?,
            memory_resident: gauge("tributary_memory_resident_bytes", "Resident memory of the process")?,
            memory_limit: gauge(
                "tributary_memory_limit_bytes",
                "The most memory that the process may have; 0 without a limit",
            )?,
            memory_refused,
            load_keys: gauge("tributary_load_keys", "Idempotency keys that are kept")?,
            rejected_rows_bytes: gauge(
                "tributary_rejected_rows_bytes",
                "Bytes of the rejected rows that are kept, in files and in memory",
            )?,
            load_key_bytes: gauge("tributary_load_key_bytes", "Bytes of memory of idempotency keys")?,
            load_channels: gauge("tributary_load_channels", "Channels that are kept")?,
            followed_age,
            ready: gauge("tributary_ready", "1 if /api/ready answers 200, else 0")?,
            log_lines_dropped,
        })
    }
}

impl Gauges {
    /// Sets the gauges to the current values.
    fn read(&self, ingest: &Ingest, tables: &[Arc<Table>]) {
        let gauges = self;
        let stats: Vec<_> = ingest.wal_spaces().iter().map(|space| space.wal.stats()).collect();
        let sum = |of: fn(&tributary_wal::WalStats) -> u64| stats.iter().map(of).sum::<u64>() as i64;
        gauges.wal_segments.set(sum(|stats| stats.segments as u64));
        gauges.wal_bytes.set(sum(|stats| stats.bytes_total));
        gauges.wal_live_bytes.set(sum(|stats| stats.live_bytes));
        gauges.wal_fsyncs.set(sum(|stats| stats.fsyncs));
        gauges.wal_written_bytes.set(sum(|stats| stats.bytes_written));
        gauges.wal_entries.set(sum(|stats| stats.entries));
        gauges.open_groups.set(ingest.open_groups() as i64);
        gauges.group_bytes.set(ingest.memory().in_groups() as i64);
        gauges.in_flight_bytes.set(ingest.memory().in_flight() as i64);
        gauges.bodies_waiting.set(ingest.memory().waiting_bodies() as i64);
        let waiting: usize = ingest.wal_spaces().iter().map(|space| space.waiting_loads()).sum();
        gauges.log_waiting.set(waiting as i64);
        let total = |of: &dyn Fn(&Table) -> u64| tables.iter().map(|table| of(table)).sum::<u64>() as i64;
        gauges.memtable_bytes.set(total(&|table| table.memtable_bytes() + table.received_bytes()));
        gauges.memtable_rows.set(total(&|table| table.memtable_rows()));
        gauges.data_files.set(total(&|table| table.snapshot().files.len() as u64));
        gauges.data_file_bytes.set(total(&|table| {
            table.snapshot().files.iter().map(tributary_table::LiveFile::size_bytes).sum()
        }));
        let keys = ingest.key_figures();
        gauges.load_keys.set((keys.recent + keys.stored) as i64);
        let rejects = ingest.reject_figures();
        gauges.rejected_rows_bytes.set((rejects.recent_bytes + rejects.file_bytes) as i64);
        gauges.load_key_bytes.set(keys.memory_bytes as i64);
        gauges.load_channels.set(keys.channels as i64);
        gauges.tables.set(tables.len() as i64);
        gauges.memory_resident.set(memory::resident() as i64);
        gauges.memory_limit.set(i64::try_from(memory::limit()).unwrap_or(0));
        raise(&gauges.memory_refused, memory::refused());
        let dropped = tributary_types::process::log_lines_dropped();
        raise(&gauges.log_lines_dropped, dropped);
        gauges.refused.iter().zip(Refusal::ALL).for_each(|(counter, kind)| raise(counter, kind.count()));
    }
}

/// A store of tables that is far away, and the cache before it: zeros where there is none.
#[derive(Debug)]
struct StoreMetrics {
    requests: IntCounter,
    throttled: IntCounter,
    failed: IntCounter,
    cache_bytes: IntGauge,
    cache_limit: IntGauge,
    hits: IntCounter,
    misses: IntCounter,
    hit_bytes: IntCounter,
    miss_bytes: IntCounter,
    evictions: IntCounter,
    damaged: IntCounter,
    not_kept: IntCounter,
}

impl StoreMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str| -> Result<IntCounter, prometheus::Error> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let gauge = |name: &str, help: &str| -> Result<IntGauge, prometheus::Error> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        Ok(Self {
            requests: counter("tributary_store_requests_total", "Requests to the store of the tables")?,
            throttled: counter(
                "tributary_store_throttled_total",
                "Requests that the store of the tables answered with 429 or 503, and that were sent again",
            )?,
            failed: counter(
                "tributary_store_failed_total",
                "Requests that the store of the tables answered with another error of its own, or not at all",
            )?,
            cache_bytes: gauge("tributary_table_cache_bytes", "Bytes of the local cache of data files")?,
            cache_limit: gauge(
                "tributary_table_cache_limit_bytes",
                "Bytes that the local cache of data files may have",
            )?,
            hits: counter("tributary_table_cache_hits_total", "Blocks of data files that the cache had")?,
            misses: counter(
                "tributary_table_cache_misses_total",
                "Blocks of data files that were read from the store",
            )?,
            hit_bytes: counter("tributary_table_cache_hit_bytes_total", "Bytes that the cache had")?,
            miss_bytes: counter("tributary_table_cache_miss_bytes_total", "Bytes read from the store")?,
            evictions: counter(
                "tributary_table_cache_evictions_total",
                "Blocks that made room for others in the cache",
            )?,
            damaged: counter(
                "tributary_table_cache_damaged_total",
                "Blocks of the cache that were damaged, and read from the store again",
            )?,
            not_kept: counter(
                "tributary_table_cache_not_kept_total",
                "Blocks that the cache did not keep, because its disk was busy, full or failed",
            )?,
        })
    }

    fn read(&self, cache: Option<&CacheFacts>, traffic: Option<StoreTraffic>) {
        let traffic = traffic.unwrap_or_default();
        raise(&self.requests, traffic.requests);
        raise(&self.throttled, traffic.throttled);
        raise(&self.failed, traffic.failed);
        let Some(cache) = cache else { return };
        self.cache_bytes.set(i64::try_from(cache.bytes).unwrap_or(i64::MAX));
        self.cache_limit.set(i64::try_from(cache.limit_bytes).unwrap_or(i64::MAX));
        raise(&self.hits, cache.hits);
        raise(&self.misses, cache.misses);
        raise(&self.hit_bytes, cache.hit_bytes);
        raise(&self.miss_bytes, cache.miss_bytes);
        raise(&self.evictions, cache.evictions);
        raise(&self.damaged, cache.damaged);
        raise(&self.not_kept, cache.not_kept);
    }
}

/// Decompressed pages of data files in memory.
#[derive(Debug)]
struct PageCacheMetrics {
    bytes: IntGauge,
    limit: IntGauge,
    hit_bytes: IntCounter,
    miss_bytes: IntCounter,
}

impl PageCacheMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let bytes = IntGauge::new("tributary_page_cache_bytes", "Bytes of the page cache")?;
        let limit = IntGauge::new("tributary_page_cache_limit_bytes", "Bytes that the page cache may have")?;
        let hit_bytes = IntCounter::new(
            "tributary_page_cache_hit_bytes_total",
            "Bytes of pages that queries read in memory, decompressed",
        )?;
        let miss_bytes = IntCounter::new(
            "tributary_page_cache_miss_bytes_total",
            "Bytes of pages that queries read from data files, compressed",
        )?;
        for gauge in [&bytes, &limit] {
            registry.register(Box::new(gauge.clone()))?;
        }
        for counter in [&hit_bytes, &miss_bytes] {
            registry.register(Box::new(counter.clone()))?;
        }
        Ok(Self { bytes, limit, hit_bytes, miss_bytes })
    }

    fn read(&self, figures: PageCacheFigures) {
        self.bytes.set(i64::try_from(figures.held_bytes).unwrap_or(i64::MAX));
        self.limit.set(i64::try_from(figures.limit_bytes).unwrap_or(i64::MAX));
        raise(&self.hit_bytes, figures.hit_bytes);
        raise(&self.miss_bytes, figures.miss_bytes);
    }
}

/// Raises a counter to a count that is kept elsewhere.
fn raise(counter: &IntCounter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}

//! This crate's metrics. Names begin with `tributary_`; units are in the names.

use crate::group::CloseReason;
use crate::load::route::{Fallback, Switch};
use crate::maintenance::watched::panic_counter;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    exponential_buckets,
};
use std::time::Duration;
use tributary_types::GroupCommitMode;

/// Counters and histograms of loads and groups. Handles are fetched once: counting a load does
/// not look up a label.
#[derive(Debug)]
pub struct IngestMetrics {
    groups: Vec<IntCounter>,
    pub groups_failed: IntCounter,
    pub group_loads: Histogram,
    pub group_rows: Histogram,
    loads: [IntCounter; 3],
    loads_failed: [IntCounter; 3],
    rows: [IntCounter; 3],
    ack_seconds: [Histogram; 3],
    fallbacks: Vec<IntCounter>,
    switches: Vec<IntCounter>,
    pub flushes: IntCounter,
    pub flushes_failed: IntCounter,
    pub flushed_rows: IntCounter,
    pub flushed_bytes: IntCounter,
    pub flush_seconds: Histogram,
    pub flushes_running: IntGauge,
    pub flushes_backing_off: IntGauge,
    pub compactions: IntCounter,
    /// Tables that can't be read or flushed, each for the same reason several times in a row.
    pub tables_stuck: IntGauge,
    /// Blocks that became columns: those of a load once, unless its rows had to be looked up in partitions again.
    pub blocks_built: IntCounter,
    /// Loads and truncations that arrived during a change of the table's schema or partitions, and waited for its end.
    pub held: IntCounter,
    pub(crate) background_panics: IntCounterVec,
}

/// Successful loads since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTotals {
    pub loads: u64,
    pub rows: u64,
    /// Committed groups.
    pub groups: u64,
}

impl IngestMetrics {
    /// Makes the metrics and registers them.
    ///
    /// # Errors
    /// If the registry has one of the names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let make = Maker { registry };
        let modes = [GroupCommitMode::Off, GroupCommitMode::Sync, GroupCommitMode::Async];
        let groups =
            make.counters("tributary_groups_total", "Groups committed, by why they closed", "reason")?;
        let loads = make.counters("tributary_loads_total", "Loads answered with success, by mode", "mode")?;
        let failed =
            make.counters("tributary_loads_failed_total", "Loads answered with an error, by mode", "mode")?;
        let rows =
            make.counters("tributary_loaded_rows_total", "Rows of successful loads, by mode", "mode")?;
        let fallbacks = make.counters(
            "tributary_group_commit_fallbacks_total",
            "Loads that asked for Group Commit and became transactions of their own, by reason",
            "reason",
        )?;
        let switches = make.counters(
            "tributary_async_switched_to_sync_total",
            "Async loads that were answered as sync loads, by reason",
            "reason",
        )?;
        let ack = make.histograms(
            "tributary_ack_seconds",
            "Time from a load's decoded rows to its answer, by mode",
            "mode",
            exponential_buckets(0.000_1, 2.0, 20)?,
        )?;
        let sizes = exponential_buckets(1.0, 4.0, 12)?;
        Ok(Self {
            groups: CloseReason::ALL
                .iter()
                .map(|reason| groups.with_label_values(&[reason.name()]))
                .collect(),
            groups_failed: make
                .counter("tributary_groups_failed_total", "Groups that could not be committed")?,
            group_loads: make.histogram(
                "tributary_group_loads",
                "Loads of a committed group",
                sizes.clone(),
            )?,
            group_rows: make.histogram("tributary_group_rows", "Rows of a committed group", sizes)?,
            loads: modes.map(|mode| loads.with_label_values(&[mode.as_str()])),
            loads_failed: modes.map(|mode| failed.with_label_values(&[mode.as_str()])),
            rows: modes.map(|mode| rows.with_label_values(&[mode.as_str()])),
            ack_seconds: modes.map(|mode| ack.with_label_values(&[mode.as_str()])),
            fallbacks: Fallback::ALL
                .iter()
                .map(|reason| fallbacks.with_label_values(&[reason.name()]))
                .collect(),
            switches: Switch::ALL.iter().map(|reason| switches.with_label_values(&[reason.name()])).collect(),
            flushes: make.counter("tributary_flushes_total", "Memtables written to data files")?,
            flushes_failed: make
                .counter("tributary_flushes_failed_total", "Flushes that failed and will be retried")?,
            flushed_rows: make
                .counter("tributary_flushed_rows_total", "Rows written to data files by flushes")?,
            flushed_bytes: make
                .counter("tributary_flushed_bytes_total", "Bytes of data files written by flushes")?,
            flush_seconds: make.histogram(
                "tributary_flush_seconds",
                "Duration of a flush",
                exponential_buckets(0.001, 2.0, 16)?,
            )?,
            flushes_running: make.gauge("tributary_flushes_running", "Flushes that are under way")?,
            flushes_backing_off: make.gauge(
                "tributary_flushes_backing_off",
                "Tables whose last flush failed and that are left alone for a while",
            )?,
            compactions: make
                .counter("tributary_compactions_total", "Rewrites of many data files into few")?,
            tables_stuck: make.gauge(
                "tributary_tables_stuck",
                "Tables that can't be read or flushed, each for the same reason several times in a row",
            )?,
            blocks_built: make.counter(
                "tributary_blocks_built_total",
                "Blocks of loads that became columns, for their commit or to look up their partitions",
            )?,
            held: make.counter(
                "tributary_loads_held_total",
                "Loads and truncations that waited for the end of a schema change, or of REPLACE PARTITION, of their table",
            )?,
            background_panics: panic_counter(registry)?,
        })
    }

    /// Loads, their rows, and groups, of all modes since the start.
    #[must_use]
    pub fn totals(&self) -> LoadTotals {
        let sum = |counters: &[IntCounter]| counters.iter().map(IntCounter::get).sum();
        LoadTotals { loads: sum(&self.loads), rows: sum(&self.rows), groups: sum(&self.groups) }
    }

    pub(crate) fn group_committed(&self, reason: CloseReason, loads: u32, rows: u64) {
        if let Some(position) = CloseReason::ALL.iter().position(|&other| other == reason) {
            self.groups[position].inc();
        }
        self.group_loads.observe(f64::from(loads));
        self.group_rows.observe(rows as f64);
    }

    /// A load was answered with success.
    pub fn load_acknowledged(&self, mode: GroupCommitMode, rows: u64, took: Duration) {
        let mode = mode as usize;
        self.loads[mode].inc();
        self.rows[mode].inc_by(rows);
        self.ack_seconds[mode].observe(took.as_secs_f64());
    }

    /// A load was answered with an error.
    pub fn load_failed(&self, mode: GroupCommitMode) {
        self.loads_failed[mode as usize].inc();
    }

    /// A load requested Group Commit and did not get it.
    pub fn fell_back(&self, reason: Fallback) {
        if let Some(position) = Fallback::ALL.iter().position(|&other| other == reason) {
            self.fallbacks[position].inc();
        }
    }

    /// An async load was answered as a sync one.
    pub fn switched(&self, reason: Switch) {
        if let Some(position) = Switch::ALL.iter().position(|&other| other == reason) {
            self.switches[position].inc();
        }
    }
}

struct Maker<'a> {
    registry: &'a Registry,
}

impl Maker<'_> {
    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        let metric = IntCounter::new(name, help)?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        let metric = IntGauge::new(name, help)?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn counters(&self, name: &str, help: &str, label: &str) -> Result<IntCounterVec, prometheus::Error> {
        let metric = IntCounterVec::new(Opts::new(name, help), &[label])?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn histogram(&self, name: &str, help: &str, buckets: Vec<f64>) -> Result<Histogram, prometheus::Error> {
        let metric = Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets))?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn histograms(
        &self,
        name: &str,
        help: &str,
        label: &str,
        buckets: Vec<f64>,
    ) -> Result<HistogramVec, prometheus::Error> {
        let metric = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), &[label])?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

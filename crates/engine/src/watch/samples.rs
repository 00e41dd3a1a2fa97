//! Rates and sizes over time, in a fixed amount of memory.
//!
//! Not here: the past before the server's start, which only a scraper of `/metrics` has.

use super::findings::Looked;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Samples of one second: 15 minutes.
const SECONDS_KEPT: usize = 15 * 60;
/// Samples of ten seconds: a day.
const TENS_KEPT: usize = 24 * 360;
const TEN: Duration = Duration::from_secs(10);

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub rows: u64,
    pub loads: u64,
    pub groups: u64,
    pub logged_bytes: u64,
    pub rejected_rows: u64,
    pub syncs: u64,
}

impl Totals {
    pub fn of(looked: &Looked<'_>) -> Self {
        let loads = looked.ingest.metrics().totals();
        let of_logs =
            |of: fn(&tributary_wal::WalStats) -> u64| looked.logs.iter().map(|log| of(&log.stats)).sum();
        Self {
            rows: loads.rows,
            loads: loads.loads,
            groups: loads.groups,
            logged_bytes: of_logs(|stats| stats.bytes_written),
            rejected_rows: looked.rejected.values().sum(),
            syncs: of_logs(|stats| stats.fsyncs),
        }
    }

    /// The counts of one second, on average since `earlier`.
    fn per_second(self, earlier: Self, time: Duration) -> Self {
        let rate = |now: u64, then: u64| {
            let rate = now.saturating_sub(then) as f64 / time.as_secs_f64().max(0.001);
            rate.round() as u64
        };
        Self {
            rows: rate(self.rows, earlier.rows),
            loads: rate(self.loads, earlier.loads),
            groups: rate(self.groups, earlier.groups),
            logged_bytes: rate(self.logged_bytes, earlier.logged_bytes),
            rejected_rows: rate(self.rejected_rows, earlier.rejected_rows),
            syncs: rate(self.syncs, earlier.syncs),
        }
    }
}

/// Sizes of the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of rows in groups, memtables and loads in flight.
    pub load_memory_bytes: u64,
    pub wal_live_bytes: u64,
    /// Memory of the process.
    pub resident_bytes: u64,
    /// Loads that wait for memory, or for their turn at a log.
    pub waiting_loads: u64,
    pub connections: u64,
    pub running_statements: u64,
}

/// The server within a second, or ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Its end, in milliseconds since 1970.
    pub at_ms: i64,
    pub every_seconds: u64,
    pub rows_per_second: u64,
    pub loads_per_second: u64,
    pub groups_per_second: u64,
    pub logged_bytes_per_second: u64,
    pub rejected_rows_per_second: u64,
    pub syncs_per_second: u64,
    /// At its end.
    pub sizes: Sizes,
}

impl Sample {
    const fn new(at_ms: i64, every_seconds: u64, rates: Totals, sizes: Sizes) -> Self {
        Self {
            at_ms,
            every_seconds,
            rows_per_second: rates.rows,
            loads_per_second: rates.loads,
            groups_per_second: rates.groups,
            logged_bytes_per_second: rates.logged_bytes,
            rejected_rows_per_second: rates.rejected_rows,
            syncs_per_second: rates.syncs,
            sizes,
        }
    }
}

/// The samples that are kept.
#[derive(Debug, Default)]
pub(super) struct Samples {
    last: Option<(Instant, Totals)>,
    last_ten: Option<(Instant, Totals)>,
    seconds: VecDeque<Sample>,
    tens: VecDeque<Sample>,
}

impl Samples {
    /// Keeps a sample of the time since the last one.
    pub fn take(&mut self, now: Instant, now_ms: i64, totals: Totals, sizes: Sizes) {
        let keep = |last: &mut Option<(Instant, Totals)>, kept: &mut VecDeque<Sample>, every, kept_max| {
            let (then, earlier) = last.replace((now, totals))?;
            let rates = totals.per_second(earlier, now.saturating_duration_since(then));
            if kept.len() == kept_max {
                kept.pop_front();
            }
            kept.push_back(Sample::new(now_ms, every, rates, sizes));
            Some(())
        };
        keep(&mut self.last, &mut self.seconds, 1, SECONDS_KEPT);
        let is_due = self.last_ten.is_none_or(|(then, _)| now.saturating_duration_since(then) >= TEN);
        if is_due {
            keep(&mut self.last_ten, &mut self.tens, 10, TENS_KEPT);
        }
    }

    pub fn all(&self) -> Vec<Sample> {
        self.tens.iter().chain(&self.seconds).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_kept_in_a_fixed_number_of_samples() {
        let mut samples = Samples::default();
        let start = Instant::now();
        let seconds = 25 * 3600_u64;
        for second in 0..=seconds {
            let totals = Totals { rows: 30 * second, syncs: second / 2, ..Totals::default() };
            let sizes = Sizes { connections: second, ..Sizes::default() };
            samples.take(start + Duration::from_secs(second), second as i64 * 1000, totals, sizes);
        }
        let all = samples.all();
        let (tens, ones): (Vec<Sample>, Vec<Sample>) =
            all.iter().copied().partition(|sample| sample.every_seconds == 10);
        assert_eq!((tens.len(), ones.len()), (TENS_KEPT, SECONDS_KEPT));
        assert!(all.iter().all(|sample| sample.rows_per_second == 30));
        assert_eq!(tens[0].at_ms, 3_600_000 + 10_000, "the oldest ones are gone");
        assert!(tens.iter().all(|sample| sample.syncs_per_second <= 1));
        assert_eq!(ones.last().map(|sample| sample.sizes.connections), Some(seconds));
    }

    #[test]
    fn rates_are_of_the_time_that_has_passed() {
        let mut samples = Samples::default();
        let start = Instant::now();
        samples.take(start, 0, Totals::default(), Sizes::default());
        let totals = Totals { rows: 100, ..Totals::default() };
        samples.take(start + Duration::from_secs(4), 4000, totals, Sizes::default());
        assert_eq!(samples.all().iter().map(|sample| sample.rows_per_second).collect::<Vec<_>>(), [25]);
    }
}

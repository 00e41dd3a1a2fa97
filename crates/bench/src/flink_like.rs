//! A model of Flink's connector in batch mode: how long a row is on its way from the job until a query sees it.
//!
//! Rows arrive at the sinks of a job at a steady pace, whatever the server does, so a server that falls behind shows in the times of
//! all the rows that wait for it. Doris's figures are those of its manual.

mod body;
mod report;
mod sink;
mod watch;

use crate::cell::Mode;
use crate::data::FIRST_ID;
use crate::data::lineitem;
use crate::error::BenchError;
use crate::published::{self, EndToEnd};
use crate::report::write_json;
use crate::server::{Server, own_cpu_seconds};
use crate::suite::Target;
use body::Lines;
use clap::Args;
use hdrhistogram::Histogram;
use serde::Serialize;
use sink::{Pace, Sink, Tally};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How often those who sleep look whether another one has failed.
const LOOK: Duration = Duration::from_millis(50);
/// A run's measured time has at least this many intervals.
const INTERVALS_MIN: u32 = 3;

/// The combinations to measure.
#[derive(Args, Debug)]
pub struct FlinkLike {
    /// `sink.buffer-flush.interval` of the connector, in ms
    #[arg(long, value_delimiter = ',', default_value = "100,200,1000,10000,20000,60000",
        value_parser = clap::value_parser!(u64).range(10..=600_000))]
    intervals: Vec<u64>,
    /// Sinks that load at the same time: the parallelism of the job
    #[arg(long, value_delimiter = ',', default_value = "1,10")]
    concurrency: Vec<usize>,
    /// Buckets of the table
    #[arg(long, value_delimiter = ',', default_value = "32")]
    buckets: Vec<u32>,
    /// Rows per second that arrive, as a multiple of Doris's figure; below its shortest interval, of the figure at that one
    #[arg(long, default_value_t = 11.0)]
    times: f64,
    /// Rows per second that arrive in all, instead of a multiple
    #[arg(long)]
    rows_per_second: Option<f64>,
    /// `group_commit` of the loads
    #[arg(long, default_value = "sync")]
    mode: Mode,
    /// `group_commit_interval_ms` of the table
    #[arg(long, default_value_t = 10)]
    group_interval: u64,
    /// `sink.buffer-flush.max-rows` of the connector: a buffer with this number of rows is sent before its interval ends
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    max_rows: u32,
}

/// A combination.
#[derive(Clone, Copy, Debug, Serialize)]
struct Cell {
    interval_ms: u64,
    concurrency: usize,
    buckets: u32,
    mode: Mode,
    group_interval_ms: u64,
    max_rows: u32,
    /// Rows per second that arrive.
    offered_rows_per_second: f64,
}

/// One run of a combination. Times are from the arrival of a row until a query can see it, in ms.
#[derive(Clone, Debug, Serialize)]
struct Run {
    rows_per_second: f64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// The same until a query of another connection had returned the row, of a sample of loads.
    queried_mean_ms: f64,
    queried_p99_ms: f64,
    queried_loads: u64,
    loads: u64,
    server_cpu: f64,
    client_cpu: f64,
    /// Rows that arrived in the whole run, each of which the table has once.
    rows_verified: u64,
    peak_rss_bytes: u64,
}

/// The runs of a combination.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(flatten)]
    cell: Cell,
    published: Option<EndToEnd>,
    /// The longest 99th percentile that meets the bar, in ms.
    p99_bar_ms: f64,
    /// In the order of their 99th percentiles.
    runs: Vec<Run>,
}

/// The measured time of a run.
#[derive(Clone, Copy, Debug)]
struct Window {
    begin: Instant,
    end: Instant,
}

impl FlinkLike {
    /// Measures all combinations, each on a fresh server unless one is already running, and prints them beside Doris's figures.
    ///
    /// # Errors
    /// A load failed, rows are missing, or no query found a load that was acknowledged as visible.
    pub fn run(
        &self,
        target: &Target,
        [warm_up, measured]: [Duration; 2],
        runs: usize,
        json: Option<&Path>,
    ) -> Result<(), BenchError> {
        let cells = self.cells()?;
        let lines = Lines::new();
        let mut outcomes: Vec<Outcome> = cells.into_iter().map(Outcome::new).collect();
        for round in 1..=runs {
            for outcome in &mut outcomes {
                let run = measure(outcome.cell, &target.server()?, &lines, [warm_up, measured])?;
                eprintln!(
                    "run {round}/{runs} {}: {:.0} rows/s, mean {:.1} ms, p99 {:.1} ms",
                    outcome.cell.name(),
                    run.rows_per_second,
                    run.mean_ms,
                    run.p99_ms
                );
                outcome.runs.push(run);
            }
        }
        outcomes.iter_mut().for_each(|outcome| outcome.runs.sort_by(|a, b| a.p99_ms.total_cmp(&b.p99_ms)));
        report::print(&outcomes);
        json.map_or(Ok(()), |path| write_json(path, &outcomes))
    }

    fn cells(&self) -> Result<Vec<Cell>, BenchError> {
        let mut cells = Vec::new();
        for &buckets in &self.buckets {
            for &concurrency in &self.concurrency {
                for &interval_ms in &self.intervals {
                    let speed =
                        published::flink_speed(interval_ms, concurrency).map(|rows| rows * self.times);
                    let offered = self.rows_per_second.or(speed).ok_or_else(|| {
                        BenchError::Argument(format!(
                            "Doris has no figure for {interval_ms} ms with {concurrency} sinks: give --rows-per-second"
                        ))
                    })?;
                    if !(offered.is_finite() && offered >= 1.0) || concurrency == 0 || buckets == 0 {
                        return Err(BenchError::Argument(format!(
                            "{offered} rows/s, {concurrency} sinks, {buckets} buckets: expected at least 1 of each"
                        )));
                    }
                    cells.push(Cell {
                        interval_ms,
                        concurrency,
                        buckets,
                        mode: self.mode,
                        group_interval_ms: self.group_interval,
                        max_rows: self.max_rows,
                        offered_rows_per_second: offered,
                    });
                }
            }
        }
        Ok(cells)
    }
}

impl Cell {
    fn name(&self) -> String {
        let Self { interval_ms, concurrency, buckets, .. } = self;
        format!("{interval_ms} ms, {concurrency} sinks, {buckets} buckets, {}", self.mode.name())
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }

    /// The measured time begins and ends in the middle between two flushes, so that it has the loads of whole intervals.
    fn window(&self, start: Instant, [warm_up, measured]: [Duration; 2]) -> Window {
        let intervals = |time: Duration| {
            let count = (time.as_secs_f64() / self.interval().as_secs_f64()).ceil();
            (count as u32).max(1)
        };
        let begin = start + self.interval() * intervals(warm_up) + self.interval() / 2;
        Window { begin, end: begin + self.interval() * intervals(measured).max(INTERVALS_MIN) }
    }

    fn create_table(&self, server: &Server) -> Result<(), BenchError> {
        let mut client = server.connect("")?;
        client.query("CREATE DATABASE IF NOT EXISTS bench")?;
        client.query("DROP TABLE IF EXISTS bench.lineitem FORCE")?;
        let table = lineitem::table(self.group_interval_ms);
        client.query(&table.replacen("BUCKETS 32", &format!("BUCKETS {}", self.buckets), 1))?;
        Ok(())
    }
}

impl Outcome {
    fn new(cell: Cell) -> Self {
        let published = published::flink(cell.interval_ms, cell.concurrency, cell.buckets as usize);
        Self { cell, published, p99_bar_ms: p99_bar_ms(cell.interval_ms), runs: Vec::new() }
    }

    /// The run of the median 99th percentile; of two in the middle the shorter one.
    fn median(&self) -> &Run {
        &self.runs[(self.runs.len() - 1) / 2]
    }
}

/// The longest 99th percentile of an interval that is good enough.
fn p99_bar_ms(interval_ms: u64) -> f64 {
    match interval_ms {
        ..=100 => interval_ms as f64 + 50.0,
        _ => interval_ms as f64 * 1.2,
    }
}

/// Runs one combination.
fn measure(cell: Cell, server: &Server, lines: &Lines, times: [Duration; 2]) -> Result<Run, BenchError> {
    cell.create_table(server)?;
    let (failed, ids) = (AtomicBool::new(false), AtomicU32::new(FIRST_ID));
    let prober = server.connect("bench")?;
    let start = Instant::now();
    let window = cell.window(start, times);
    let (probes, probed) = mpsc::sync_channel(0);
    let sink = |number: usize| Sink {
        cell,
        server,
        lines,
        pace: Pace { start, rows_per_second: cell.offered_rows_per_second / cell.concurrency as f64 },
        window,
        ids: &ids,
        failed: &failed,
        probes: probes.clone(),
        first_line: number * lines.count() / cell.concurrency,
    };
    let sinks: Vec<Sink<'_>> = (0..cell.concurrency).map(sink).collect();
    drop(probes);
    let (tallies, queried, cpu) = thread::scope(|threads| {
        let sinks: Vec<_> = sinks.into_iter().map(|sink| threads.spawn(move || sink.run())).collect();
        let watcher = threads.spawn(|| {
            let watched = watch::run(cell.mode, prober, &probed, window);
            failed.fetch_or(watched.is_err(), Ordering::SeqCst);
            // Sinks that offer a load meet nobody.
            drop(probed);
            watched
        });
        let cpu = used(server, window, &failed);
        let tallies: Vec<_> =
            sinks.into_iter().map(|sink| sink.join().expect("a sink does not panic")).collect();
        (tallies, watcher.join().expect("the watcher does not panic"), cpu)
    });
    let tallies = tallies.into_iter().collect::<Result<Vec<_>, _>>()?;
    let queried = queried?;
    let [server_cpu, client_cpu] = cpu?;
    let seconds = window.end.duration_since(window.begin).as_secs_f64();
    let tally = Tally::sum(&tallies);
    let rows_verified = u64::from(ids.into_inner() - FIRST_ID);
    verify(server, rows_verified)?;
    // An answer in async mode says nothing about queries.
    let times = if cell.mode == Mode::Async { &queried } else { &tally.times };
    let ms = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    Ok(Run {
        rows_per_second: tally.rows as f64 / seconds,
        mean_ms: times.mean() / 1e3,
        p50_ms: ms(times, 0.5),
        p99_ms: ms(times, 0.99),
        max_ms: times.max() as f64 / 1e3,
        queried_mean_ms: queried.mean() / 1e3,
        queried_p99_ms: ms(&queried, 0.99),
        queried_loads: queried.len() / watch::POINTS,
        loads: tally.loads,
        server_cpu: server_cpu / seconds,
        client_cpu: client_cpu / seconds,
        rows_verified,
        peak_rss_bytes: server.usage()?.peak_rss_bytes,
    })
}

/// Waits for the end of the measured time; returns the CPU seconds of the server and of this client in it.
fn used(server: &Server, window: Window, failed: &AtomicBool) -> Result<[f64; 2], BenchError> {
    let read = || Ok::<_, BenchError>([server.usage()?.cpu_seconds, own_cpu_seconds()]);
    sleep_until(window.begin, failed);
    let before = read()?;
    sleep_until(window.end, failed);
    let after = read()?;
    Ok([after[0] - before[0], after[1] - before[1]])
}

/// Sleeps until a moment, or until another one has failed.
fn sleep_until(moment: Instant, failed: &AtomicBool) {
    while !failed.load(Ordering::SeqCst) {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Verifies that the table has each row once.
fn verify(server: &Server, rows: u64) -> Result<(), BenchError> {
    let mut client = server.connect("bench")?;
    client.query("SYNC")?;
    let key = "L_ORDERKEY";
    let sql = format!("SELECT COUNT(*), MIN({key}), MAX({key}), SUM({key}) FROM lineitem");
    let first = u64::from(FIRST_ID);
    let expected = [rows, first, first + rows - 1, rows * (2 * first + rows - 1) / 2];
    let expected = expected.map(|number| number.to_string());
    let found = client.query(&sql)?;
    if found != [expected.clone()] {
        return Err(BenchError::Verification(format!("{sql}: {found:?}, expected {expected:?}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        test: FlinkLike,
    }

    fn cells(line: &[&str]) -> Result<Vec<Cell>, BenchError> {
        Line::parse_from([&["x"][..], line].concat()).test.cells()
    }

    #[test]
    fn the_manuals_cells_have_its_figures() {
        let all = cells(&[]).unwrap();
        assert_eq!(all.len(), 12);
        assert_eq!(all.iter().filter(|cell| Outcome::new(**cell).published.is_some()).count(), 10);
        let buckets =
            cells(&["--intervals", "1000", "--concurrency", "10", "--buckets", "4,16,32,64,128"]).unwrap();
        assert!(buckets.iter().all(|cell| Outcome::new(*cell).published.is_some()));
        assert_eq!(buckets.len(), 5);
        assert!(cells(&["--concurrency", "3"]).unwrap_err().to_string().contains("--rows-per-second"));
        assert_eq!(cells(&["--concurrency", "3", "--rows-per-second", "5"]).unwrap().len(), 6);
        assert!(cells(&["--rows-per-second", "0.5"]).is_err());
    }

    #[test]
    fn bars_are_those_of_the_interval() {
        assert_eq!([100, 200, 60_000].map(p99_bar_ms), [150.0, 240.0, 72_000.0]);
    }

    #[test]
    fn the_measured_time_lies_between_flushes() {
        let cell = cells(&["--intervals", "1000", "--concurrency", "1"]).unwrap()[0];
        let start = Instant::now();
        let window = cell.window(start, [Duration::from_millis(1200), Duration::from_secs(1)]);
        assert_eq!(window.begin - start, Duration::from_millis(2500));
        assert_eq!(window.end - window.begin, Duration::from_secs(3));
    }
}

//! One sink of the job: it buffers rows, and loads them at each interval or when the buffer is full.
//!
//! As in the connector, a sink has one load under way at a time, without a label, on a connection of its own, after the server has
//! agreed to take the body; rows that arrive meanwhile wait for the next one.

use super::body::Lines;
use super::watch::Load;
use super::{Cell, Window, sleep_until};
use crate::client::closed_loop::Reply;
use crate::client::http;
use crate::error::BenchError;
use crate::server::Server;
use hdrhistogram::Histogram;
use memchr::memmem;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tributary_client::Stream;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The rows of a load are counted in this many groups that arrived one after the other.
const SLICES: u64 = 256;

/// The arrival of rows.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub start: Instant,
    pub rows_per_second: f64,
}

impl Pace {
    /// When the row with this number arrives, from 0 on.
    pub fn arrival(self, row: u64) -> Instant {
        self.start + Duration::from_secs_f64(row as f64 / self.rows_per_second)
    }

    /// How many rows have arrived by then.
    fn arrived(self, moment: Instant) -> u64 {
        (moment.saturating_duration_since(self.start).as_secs_f64() * self.rows_per_second) as u64
    }
}

/// A sink.
pub struct Sink<'a> {
    pub cell: Cell,
    pub server: &'a Server,
    pub lines: &'a Lines,
    pub pace: Pace,
    pub window: Window,
    /// The id of the next row of all sinks.
    pub ids: &'a AtomicU32,
    /// Whether anyone has failed.
    pub failed: &'a AtomicBool,
    /// Loads to be looked for by queries.
    pub probes: SyncSender<Load>,
    pub first_line: usize,
}

/// The counts of a sink.
#[derive(Debug)]
pub struct Tally {
    /// Rows whose loads were answered in the measured time.
    pub rows: u64,
    /// Loads of the whole run.
    pub loads: u64,
    /// From the arrival of a row to the answer of its load, in µs, for rows that arrived in the measured time.
    pub times: Histogram<u64>,
}

impl Tally {
    fn new() -> Self {
        Self { rows: 0, loads: 0, times: Histogram::new(3).expect("three digits are legal") }
    }

    pub fn sum(tallies: &[Self]) -> Self {
        let mut sum = Self::new();
        for tally in tallies {
            sum.rows += tally.rows;
            sum.loads += tally.loads;
            sum.times.add(&tally.times).expect("the sum grows as far as it must");
        }
        sum
    }

    /// Counts the rows of a load that was answered then.
    fn count(&mut self, load: Load, answered: Instant, window: Window) {
        self.loads += 1;
        if (window.begin..window.end).contains(&answered) {
            self.rows += u64::from(load.rows);
        }
        let (rows, slices) = (u64::from(load.rows), u64::from(load.rows).min(SLICES));
        for slice in 0..slices {
            let (from, to) = (rows * slice / slices, rows * (slice + 1) / slices);
            let arrival = load.pace.arrival(load.first_row + u64::midpoint(from, to));
            if (window.begin..window.end).contains(&arrival) {
                let took = answered.saturating_duration_since(arrival).as_micros() as u64;
                self.times.record_n(took.max(1), to - from).expect("the histogram grows as far as it must");
            }
        }
    }
}

impl Sink<'_> {
    /// Takes rows and loads them, until all that arrived before the end of the measured time are loaded.
    ///
    /// # Errors
    /// A load failed.
    pub fn run(mut self) -> Result<Tally, BenchError> {
        let mut tally = Tally::new();
        let ended = self.take(&mut tally);
        self.failed.fetch_or(ended.is_err(), Ordering::SeqCst);
        ended.map(|()| tally)
    }

    fn take(&mut self, tally: &mut Tally) -> Result<(), BenchError> {
        let interval = self.cell.interval();
        let all = self.pace.arrived(self.window.end);
        let (mut taken, mut flush) = (0, self.pace.start + interval);
        while taken < all && !self.failed.load(Ordering::SeqCst) {
            let full = self.pace.arrival(taken + u64::from(self.cell.max_rows));
            sleep_until(flush.min(full), self.failed);
            let now = Instant::now();
            while flush <= now {
                flush += interval;
            }
            let waiting = self.pace.arrived(now).min(all).saturating_sub(taken);
            let rows = waiting.min(u64::from(self.cell.max_rows)) as u32;
            if rows > 0 {
                self.load(rows, taken, tally)?;
                taken += u64::from(rows);
            }
        }
        Ok(())
    }

    /// Loads the next rows, the first of which arrived as the one with that number.
    fn load(&mut self, rows: u32, first_row: u64, tally: &mut Tally) -> Result<(), BenchError> {
        let first_id = self.ids.fetch_add(rows, Ordering::SeqCst);
        if first_id.checked_add(rows).is_none_or(|end| end > i32::MAX as u32) {
            return Err(BenchError::Load("the ids of the rows are used up: measure a shorter time".into()));
        }
        let load = Load { first_id, rows, first_row, pace: self.pace };
        let reply = self.send(load)?;
        let answered = Instant::now();
        match reply {
            Reply::Loaded(loaded) if loaded == u64::from(rows) => {}
            Reply::Loaded(loaded) => {
                return Err(BenchError::Load(format!("of {rows} rows {loaded} were loaded")));
            }
            Reply::Refused(answer) => return Err(BenchError::Load(answer)),
            Reply::Accepted => return Err(BenchError::Load("an answer does not count rows".into())),
        }
        tally.count(load, answered, self.window);
        // The watcher takes a load when it has time for one.
        let _ = self.probes.try_send(load);
        Ok(())
    }

    /// Sends a load, and returns the answer.
    fn send(&mut self, load: Load) -> Result<Reply, BenchError> {
        let (address, rows) = (self.server.http, load.rows as usize);
        let socket = Stream::socket_to(address, Some(PATIENCE))
            .map_err(|error| BenchError::connect(address, &error))?;
        let mut stream = Stream::with(socket, self.server.trust.as_ref())?;
        let length = self.lines.length(self.first_line, rows);
        let headers = "format: csv\r\nExpect: 100-continue\r\nConnection: close";
        let head = http::stream_load_head("lineitem", headers, self.cell.mode.name(), length);
        stream.write_all(head.as_bytes())?;
        let agreed = receive(&mut stream, |received| {
            memmem::find(received, b"\r\n\r\n").map(|_| received.starts_with(b"HTTP/1.1 100").then_some(()))
        })?;
        if let Err(answer) = agreed {
            return Ok(Reply::Refused(answer));
        }
        self.lines.write(&mut stream, self.first_line, rows, load.first_id)?;
        self.first_line = (self.first_line + rows) % self.lines.count();
        let reply = receive(&mut stream, |received| http::reply(received).map(Some))?;
        Ok(reply.unwrap_or_else(Reply::Refused))
    }
}

/// Reads until an answer is whole. `Err` has an answer that is not the wanted one.
fn receive<T>(
    stream: &mut Stream,
    whole: impl Fn(&[u8]) -> Option<Option<T>>,
) -> Result<Result<T, String>, BenchError> {
    let (mut received, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut part)?;
        if length == 0 {
            return Err(BenchError::Load("the server closed a connection before its answer".into()));
        }
        received.extend_from_slice(&part[..length]);
        if let Some(answer) = whole(&received) {
            return Ok(answer.ok_or_else(|| String::from_utf8_lossy(&received).into_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_arrival_of_each_row() {
        let start = Instant::now();
        let pace = Pace { start, rows_per_second: 1000.0 };
        assert_eq!(pace.arrived(start + Duration::from_millis(2500)), 2500);
        let window = Window { begin: start, end: start + Duration::from_secs(10) };
        let mut tally = Tally::new();
        // A second of rows, answered when the last one has waited for 100 ms.
        let load = Load { first_id: 1, rows: 1000, first_row: 1000, pace };
        tally.count(load, start + Duration::from_millis(2100), window);
        assert_eq!((tally.loads, tally.rows, tally.times.len()), (1, 1000, 1000));
        assert!((tally.times.mean() - 600_000.0).abs() < 5_000.0, "{}", tally.times.mean());
        let p99 = tally.times.value_at_quantile(0.99);
        assert!((1_085_000..1_100_000).contains(&p99), "{p99}");
        // Rows that arrived after the measured time do not count, nor does a load that was answered after it.
        let late = Load { first_id: 1001, rows: 1000, first_row: 9500, pace };
        tally.count(late, start + Duration::from_millis(10_600), window);
        assert_eq!((tally.loads, tally.rows), (2, 1000));
        assert!((1490..=1510).contains(&tally.times.len()), "{}", tally.times.len());
    }
}

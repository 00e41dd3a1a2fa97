//! Looks for loads by queries: whether rows are visible when their answer says so, and how long it takes otherwise.

use super::Window;
use super::sink::Pace;
use crate::cell::Mode;
use crate::client::mysql::Mysql;
use crate::error::BenchError;
use hdrhistogram::Histogram;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

/// Rest after each load that was looked for: queries take processor time, too.
const REST: Duration = Duration::from_millis(200);
/// Rest before a load is looked for again.
const AGAIN: Duration = Duration::from_millis(2);
/// How long a load may stay out of sight.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rows of a load whose times are taken, evenly spread.
pub const POINTS: u64 = 100;

/// The rows of a load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub first_id: u32,
    pub rows: u32,
    /// The number of its first row at its sink, which says when it arrived.
    pub first_row: u64,
    pub pace: Pace,
}

/// Looks for one load after the other, as long as sinks offer any. Returns the times from the arrival of rows until a query had
/// returned the first and the last row of their load, in µs, for loads whose rows arrived in the measured time.
///
/// # Errors
/// A query failed; a load was not visible after an answer that says so, or for two minutes.
pub fn run(
    mode: Mode,
    mut client: Mysql,
    loads: &Receiver<Load>,
    window: Window,
) -> Result<Histogram<u64>, BenchError> {
    let mut times = Histogram::new(3).expect("three digits are legal");
    while let Ok(load) = loads.recv() {
        let last_id = load.first_id + load.rows - 1;
        let sql = format!("SELECT COUNT(*) FROM lineitem WHERE L_ORDERKEY IN ({}, {last_id})", load.first_id);
        let expected = if load.rows == 1 { "1" } else { "2" };
        let begun = Instant::now();
        loop {
            let found = client.query(&sql)?;
            if found == [[expected]] {
                break;
            }
            if mode != Mode::Async || begun.elapsed() > PATIENCE {
                return Err(BenchError::Verification(format!(
                    "{sql}: {found:?}, expected {expected}, {} ms after the answer in {}",
                    begun.elapsed().as_millis(),
                    mode.name()
                )));
            }
            thread::sleep(AGAIN);
        }
        let seen = Instant::now();
        let (first, last) = (load.pace.arrival(load.first_row), load.first_row + u64::from(load.rows) - 1);
        if first >= window.begin && load.pace.arrival(last) < window.end {
            for point in 0..POINTS {
                let row = load.first_row + (u64::from(load.rows) - 1) * point / (POINTS - 1);
                let took = seen.saturating_duration_since(load.pace.arrival(row)).as_micros() as u64;
                times.record(took.max(1)).expect("the histogram grows as far as it must");
            }
        }
        thread::sleep(REST);
    }
    Ok(times)
}

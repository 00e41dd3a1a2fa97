//! Logins beside Stream Loads: how long one takes, and how many rows a second fewer are loaded for them.

use crate::cell::{Cell, Form, Mode};
use crate::client::closed_loop::{self, Limit, Watch};
use crate::data::access_log::Format;
use crate::error::BenchError;
use crate::query::median;
use crate::server::Server;
use crate::suite::Target;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tributary_client::{Client, ClientError};

const USER: &str = "logins";
const PASSWORD: &str = "Of-logins-1";
/// Threads that log in.
const THREADS: u32 = 8;
/// How long a login may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A phase of loads, perhaps with logins beside them.
struct Phase {
    rows_per_second: f64,
    took: Duration,
    logins: Vec<Duration>,
}

/// Loads in turns without and with logins, at each of these rates a second, and prints medians of the pairs' ratios.
///
/// # Errors
/// A load or a login fails.
pub fn run(target: &Target, rates: &[u32], limit: Limit, runs: usize) -> Result<(), BenchError> {
    let form = Form::StreamLoad { request_bytes: 10_000, format: Format::Csv };
    let cell = Cell::new(form, Mode::Async, 10, 10_000);
    let server = target.server()?;
    cell.create_table(&server)?;
    let mut root = server.connect("")?;
    root.query(&format!("DROP USER IF EXISTS {USER}"))?;
    root.query(&format!("CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'"))?;
    phase(&server, &cell, limit, None)?;
    println!("| logins/s asked for | done | p50 ms | p99 ms | rows/s ÷ without | pairs from | to |");
    println!("| -: | -: | -: | -: | -: | -: | -: |");
    for &rate in rates {
        let (mut ratios, mut times, mut seconds) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..runs {
            let without = phase(&server, &cell, limit, None)?;
            let with = phase(&server, &cell, limit, Some(rate))?;
            seconds += with.took.as_secs_f64();
            ratios.push(with.rows_per_second / without.rows_per_second);
            times.extend(with.logins);
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let (done, p50) = (times.len() as f64 / seconds, median(&mut times));
        let p99 = times[times.len() * 99 / 100];
        println!(
            "| {rate} | {done:.0} | {:.2} | {:.2} | {:.3} | {:.2} | {:.2} |",
            p50.as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3,
            ratios[ratios.len() / 2],
            ratios[0],
            ratios[ratios.len() - 1]
        );
    }
    Ok(())
}

fn phase(server: &Server, cell: &Cell, limit: Limit, rate: Option<u32>) -> Result<Phase, BenchError> {
    let mut connections = cell.connect(server)?;
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    thread::scope(|threads| {
        let pause = rate.map(|rate| Duration::from_secs(1) * THREADS / rate.max(1));
        let logins: Vec<_> = (0..THREADS)
            .filter_map(|number| Some((number, pause?)))
            .map(|(number, pause)| {
                let is_over = &is_over;
                threads.spawn(move || log_in(server, pause, pause * number / THREADS, is_over))
            })
            .collect();
        let outcome = closed_loop::run(&mut connections, limit, &mut Unwatched);
        is_over.store(true, Ordering::SeqCst);
        let mut times = Vec::new();
        for thread in logins {
            let taken = thread.join().expect("a thread that logs in does not panic");
            times.extend(taken.map_err(|error| BenchError::Refused(format!("a login: {error}")))?);
        }
        let (outcome, took) = (outcome?, begun.elapsed());
        Ok(Phase { rows_per_second: outcome.rows as f64 / outcome.seconds, took, logins: times })
    })
}

/// Logs in at a steady pace until it is over; how long each login took. One that comes late is not followed by others at once.
fn log_in(
    server: &Server,
    pause: Duration,
    first: Duration,
    is_over: &AtomicBool,
) -> Result<Vec<Duration>, ClientError> {
    let mut times = Vec::new();
    let mut at = Instant::now() + first;
    while !is_over.load(Ordering::SeqCst) {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        let (trust, user) = (server.trust.as_ref(), (USER, PASSWORD));
        drop(Client::connect_trusting(trust, user, server.mysql, None, Some(PATIENCE))?);
        times.push(begun.elapsed());
        at = (at + pause).max(Instant::now());
    }
    Ok(times)
}

/// A run that nobody watches.
struct Unwatched;

impl Watch for Unwatched {
    fn measuring(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn measured(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn progress(&mut self, _: Duration, _: u64) {}
}

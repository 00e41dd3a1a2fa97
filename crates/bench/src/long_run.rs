//! Many small Delta commits at a steady pace: memory, files and the time of a start, from the beginning of the run to its end.

use crate::cell::{Cell, Form, Mode};
use crate::error::BenchError;
use crate::report::{self, plot};
use crate::server::{Server, walk};
use crate::suite::Target;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of the samples.
const SAMPLE: Duration = Duration::from_secs(10);
/// The run's parts, after each of which the server is stopped and started.
const STARTS: u32 = 6;
/// Rows of one load.
const ROWS: usize = 10;

/// A run of many commits.
#[derive(Clone, Debug)]
pub struct LongRun {
    pub time: Duration,
    /// Flushes per second that the server is set to.
    pub commits: u32,
    /// Runs with the table's directory as its last argument at the end, and is timed.
    pub open: Vec<String>,
    pub plot: Option<PathBuf>,
    pub json: Option<PathBuf>,
}

/// The server at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Since the beginning of the run.
    pub seconds: f64,
    pub memory_bytes: u64,
    pub data_files: u64,
    pub log_files: u64,
    pub table_bytes: u64,
    pub commits: u64,
}

/// A start of the server, which was stopped in order.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Start {
    pub seconds: f64,
    /// From the program's start to its readiness.
    pub took_seconds: f64,
}

#[derive(Debug, Default, Serialize)]
struct Observed {
    samples: Vec<Sample>,
    starts: Vec<Start>,
}

impl LongRun {
    /// Loads rows, stops and starts the server, and prints a line for each sample.
    ///
    /// # Errors
    /// The server, a load or the check of the rows failed; the plot can't be written.
    pub fn run(&self, target: &Target) -> Result<(), BenchError> {
        let cell = Cell::new(Form::Text { rows: ROWS }, Mode::Async, 1, 50);
        let age = (1000 / self.commits.max(1)).to_string();
        let target = target.with_settings(&[("TRIBUTARY_FLUSH_AGE_MS".into(), age)]);
        let (mut server, own) = target.own_server("the long run", &cell)?;
        let (begun, mut observed, mut rows) = (Instant::now(), Observed::default(), 0);
        println!("     s  memory MiB  data files  log files  table MiB  commits");
        for part in 1..=STARTS {
            let end = self.time * part / STARTS;
            let stop = AtomicBool::new(false);
            let loaded = thread::scope(|scope| {
                let writer = scope.spawn(|| write(&server, rows, self.commits, &stop));
                let watched = self.watch(&server, begun, end, &mut observed.samples);
                stop.store(true, Ordering::SeqCst);
                let loaded = writer.join().expect("a writer does not panic");
                watched.and(loaded)
            })?;
            rows += loaded;
            server.stop()?;
            let stopped = Instant::now();
            server.start_again(own.settings)?;
            let start = Start {
                seconds: begun.elapsed().as_secs_f64(),
                took_seconds: stopped.elapsed().as_secs_f64(),
            };
            println!("start {part}: {:.2} s", start.took_seconds);
            observed.starts.push(start);
        }
        let found = server.connect("bench")?.query("SELECT COUNT(*) FROM lineitem")?;
        if found != [[rows.to_string()]] {
            return Err(BenchError::Verification(format!("of {rows} rows there are {found:?}")));
        }
        self.open(&server)?;
        if let Some(path) = &self.json {
            report::write_json(path, std::slice::from_ref(&observed))?;
        }
        if let Some(path) = &self.plot {
            plot::over_time(path, &curves(&observed))?;
        }
        Ok(())
    }

    /// Samples until `end` after the run's beginning.
    fn watch(
        &self,
        server: &Server,
        begun: Instant,
        end: Duration,
        samples: &mut Vec<Sample>,
    ) -> Result<u64, BenchError> {
        while begun.elapsed() < end {
            thread::sleep(SAMPLE.min(end.saturating_sub(begun.elapsed())));
            let sample = sample(server, begun)?;
            let mib = |bytes: u64| bytes >> 20;
            println!(
                "{:6.0} {:11} {:11} {:10} {:10} {:8}",
                sample.seconds,
                mib(sample.memory_bytes),
                sample.data_files,
                sample.log_files,
                mib(sample.table_bytes),
                sample.commits
            );
            samples.push(sample);
        }
        Ok(0)
    }

    /// Lets another program open the table.
    fn open(&self, server: &Server) -> Result<(), BenchError> {
        let Some((program, arguments)) = self.open.split_first() else { return Ok(()) };
        let table = table(server).ok_or_else(|| BenchError::Server("the table has no directory".into()))?;
        let begun = Instant::now();
        let status = Command::new(program).args(arguments).arg(&table).status()?;
        if !status.success() {
            return Err(BenchError::Verification(format!("{program} ended with {status}")));
        }
        println!("{program}: {:.2} s", begun.elapsed().as_secs_f64());
        Ok(())
    }
}

/// The directory of the only table of the database `bench`.
fn table(server: &Server) -> Option<PathBuf> {
    let database = server.data()?.join("tables").join("bench");
    let mut tables = std::fs::read_dir(database).ok()?.flatten().map(|entry| entry.path());
    tables.find(|path| path.join("_delta_log").is_dir())
}

fn sample(server: &Server, begun: Instant) -> Result<Sample, BenchError> {
    let (mut data_files, mut log_files, mut table_bytes) = (0, 0, 0);
    let table = table(server).ok_or_else(|| BenchError::Server("the table has no directory".into()))?;
    walk(&table, &mut |path: &Path, bytes| {
        table_bytes += bytes;
        let is_log = path.components().any(|part| part.as_os_str() == "_delta_log");
        *(if is_log { &mut log_files } else { &mut data_files }) += 1;
    });
    let newest = server.connect("bench")?.query(
        "SELECT MAX(DELTA_VERSION) FROM information_schema.transactions WHERE DELTA_VERSION IS NOT NULL",
    )?;
    let commits = newest.first().and_then(|row| row.first()).and_then(|text| text.parse().ok());
    Ok(Sample {
        seconds: begun.elapsed().as_secs_f64(),
        memory_bytes: server.memory_bytes(),
        data_files,
        log_files,
        table_bytes,
        commits: commits.unwrap_or(0),
    })
}

/// Loads rows, a few more times a second than the server flushes, until it is stopped. Returns how many were acknowledged.
fn write(server: &Server, first: u64, commits: u32, stop: &AtomicBool) -> Result<u64, BenchError> {
    let mut client = server.connect("bench")?;
    client.query("SET group_commit = async_mode")?;
    let pace = Duration::from_secs(1) / (2 * commits.max(1));
    let mut rows = 0;
    while !stop.load(Ordering::SeqCst) {
        let next = Instant::now() + pace;
        let values: Vec<String> = (0..ROWS as u64)
            .map(|row| {
                let id = first + rows + row;
                format!(
                    "({id}, 1, 1, 1, 1, 1, 0, 0, 'N', 'O', '2024-01-01', '2024-01-01', '2024-01-01', 'NONE', 'AIR', 'x')"
                )
            })
            .collect();
        client.query(&format!("INSERT INTO lineitem VALUES {}", values.join(", ")))?;
        rows += ROWS as u64;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(rows)
}

fn curves(observed: &Observed) -> Vec<plot::Curve> {
    let of = |name: &str, value: fn(&Sample) -> f64| plot::Curve {
        name: name.to_owned(),
        points: observed.samples.iter().map(|sample| (sample.seconds, value(sample))).collect(),
    };
    vec![
        of("memory, MiB", |sample| sample.memory_bytes as f64 / (1 << 20) as f64),
        of("data files", |sample| sample.data_files as f64),
        of("files of the Delta log", |sample| sample.log_files as f64),
        plot::Curve {
            name: "a start, ms".to_owned(),
            points: observed.starts.iter().map(|start| (start.seconds, start.took_seconds * 1e3)).collect(),
        },
    ]
}

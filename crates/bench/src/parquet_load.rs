//! One large Stream Load of a Parquet file, lineitem, into an empty table: its speed, and how many processors the server used. Two
//! binaries are measured alternately.

use crate::cell::{Cell, Form, Mode};
use crate::client::closed_loop::Reply;
use crate::client::http;
use crate::data::lineitem::{self, Lineitem};
use crate::data::{FIRST_ID, Order};
use crate::error::BenchError;
use crate::query::median;
use crate::server::Server;
use crate::suite::Target;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Rows that are made at a time.
const BATCH_ROWS: u32 = 65_536;

/// A file with rows of lineitem.
pub struct File {
    bytes: Vec<u8>,
    rows: u32,
}

/// One load.
struct Run {
    took: Duration,
    cpu_seconds: f64,
    peak_rss_bytes: u64,
}

impl File {
    /// Writes the file, as most writers do: with dictionaries and Snappy.
    ///
    /// # Errors
    /// The writer failed.
    pub fn of(rows: u32, row_group_rows: u32, is_shuffled: bool) -> Result<Self, BenchError> {
        let failed = |error: parquet::errors::ParquetError| BenchError::Server(error.to_string());
        let order = if is_shuffled { Order::Scattered(rows) } else { Order::New };
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(row_group_rows as usize))
            .build();
        let mut random = Lineitem::new(1);
        let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
        for first in (0..rows).step_by(BATCH_ROWS as usize) {
            let numbers = first..rows.min(first.saturating_add(BATCH_ROWS));
            let keys: Vec<i32> = numbers.map(|number| (order.id(number) % FIRST_ID) as i32).collect();
            let batch = random.batch(&keys);
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    let new = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.clone()));
                    writer.insert(new.map_err(failed)?)
                }
            };
            writer.write(&batch).map_err(failed)?;
        }
        let bytes = writer.map_or(Ok(Vec::new()), ArrowWriter::into_inner).map_err(failed)?;
        Ok(Self { bytes, rows })
    }

    /// Loads it into a new table.
    fn load(&self, server: &Server) -> Result<Run, BenchError> {
        let mut client = server.connect("bench")?;
        client.query("DROP TABLE IF EXISTS lineitem FORCE")?;
        client.query(&lineitem::table(1000))?;
        let head = http::stream_load_head("lineitem", "format: parquet", "off_mode", self.bytes.len());
        let mut stream =
            TcpStream::connect(server.http).map_err(|error| BenchError::connect(server.http, &error))?;
        stream.set_nodelay(true)?;
        let (begin, before) = (Instant::now(), server.usage()?);
        stream.write_all(head.as_bytes())?;
        stream.write_all(&self.bytes)?;
        let (mut received, mut part) = (Vec::new(), [0; 4096]);
        let reply = loop {
            let length = stream.read(&mut part)?;
            if length == 0 {
                return Err(BenchError::Load("the server closed the connection".into()));
            }
            received.extend_from_slice(&part[..length]);
            if let Some(reply) = http::reply(&received) {
                break reply;
            }
        };
        let (took, after) = (begin.elapsed(), server.usage()?);
        match reply {
            Reply::Loaded(rows) if rows == u64::from(self.rows) => {}
            Reply::Loaded(rows) => {
                return Err(BenchError::Verification(format!("{rows} of {} rows were loaded", self.rows)));
            }
            Reply::Refused(text) => return Err(BenchError::Load(text)),
            Reply::Accepted => return Err(BenchError::Load("its answer does not count rows".into())),
        }
        let found = client.query("SELECT COUNT(*) FROM lineitem")?;
        if found != [[self.rows.to_string()]] {
            return Err(BenchError::Verification(format!("of {} rows there are {found:?}", self.rows)));
        }
        let cpu_seconds = after.cpu_seconds - before.cpu_seconds;
        Ok(Run { took, cpu_seconds, peak_rss_bytes: after.peak_rss_bytes })
    }
}

/// Loads the file `runs` times, into a server of each binary, and prints medians.
///
/// # Errors
/// A load failed, or rows are missing.
pub fn run(target: &Target, before: Option<&Target>, file: &File, runs: usize) -> Result<(), BenchError> {
    let cell = Cell::new(Form::Text { rows: 1 }, Mode::Async, 1, 1000);
    let mut sides = Vec::new();
    for (name, target) in [("before", before), ("now", Some(target))] {
        let Some(target) = target else { continue };
        let server = target.server()?;
        cell.create_table(&server)?;
        // The first load fills caches.
        file.load(&server)?;
        sides.push((name, server, Vec::new()));
    }
    for round in 0..runs {
        for (name, server, done) in &mut sides {
            let run = file.load(server)?;
            eprintln!("run {}/{runs}, {name}: {:.2} s", round + 1, run.took.as_secs_f64());
            done.push(run);
        }
        sides.reverse();
    }
    println!(
        "Stream Load of lineitem as Parquet: {} rows, {} MB; medians of {runs} runs",
        file.rows,
        file.bytes.len() / 1_000_000
    );
    sides.sort_by_key(|(name, ..)| *name);
    let mut speeds = Vec::new();
    for (name, _, done) in &sides {
        let took = median(&mut done.iter().map(|run| run.took).collect::<Vec<_>>()).as_secs_f64();
        let all: f64 = done.iter().map(|run| run.took.as_secs_f64()).sum();
        let cpu: f64 = done.iter().map(|run| run.cpu_seconds).sum();
        let peak = done.iter().map(|run| run.peak_rss_bytes).max().unwrap_or(0);
        let speed = f64::from(file.rows) / took;
        println!(
            "{name:>6}: {took:.2} s, {:.2} M rows/s, {:.2} processors, peak {} MB",
            speed / 1e6,
            cpu / all,
            peak / 1_000_000
        );
        speeds.push(speed);
    }
    if let [before, now] = speeds[..] {
        println!("now ÷ before: {:.3}", now / before);
    }
    Ok(())
}

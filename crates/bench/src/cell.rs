//! One measured combination: a load's form, its connections and its interval, run once against a
//! server, with the rows counted afterwards.

use crate::client::closed_loop::{self, Connection, Course, Limit, Outcome, Watch};
use crate::client::http;
use crate::client::mysql::Mysql;
use crate::data::access_log::{self, AccessLog, Format};
use crate::data::events::{self, Events};
use crate::data::lineitem::{self, Lineitem};
use crate::data::{FIRST_ID, KEY_HEADER, Order};
use crate::error::BenchError;
use crate::keys::Keys;
use crate::partitions::Days;
use crate::published;
use crate::server::{self, Server, Usage};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Bytes of prepared requests of all connections together: enough that rows do not repeat within a compressor's window.
const REQUESTS_BYTES: usize = 64 << 20;
/// Above this many rows, their numbers are summed but not counted as distinct.
const DISTINCT_ROWS_MAX: u64 = 20_000_000;

/// A group commit mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Off,
    Sync,
    Async,
}

impl Mode {
    /// Doris's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off_mode",
            Self::Sync => "sync_mode",
            Self::Async => "async_mode",
        }
    }
}

/// How rows are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "form")]
pub enum Form {
    /// Access logs in requests of `request_bytes` bytes.
    StreamLoad { request_bytes: usize, format: Format },
    /// Events in requests of `request_bytes` bytes, into columns of arrays and of JSON, or into texts.
    Events { request_bytes: usize, are_texts: bool },
    /// lineitem by prepared INSERTs of `rows` rows.
    Prepared { rows: usize },
    /// lineitem by INSERTs as text, of `rows` rows.
    Text { rows: usize },
}

/// A combination to measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    #[serde(flatten)]
    pub form: Form,
    pub mode: Mode,
    pub connections: usize,
    /// `group_commit_interval_ms` of the table.
    pub interval_ms: u64,
    #[serde(flatten)]
    pub keys: Keys,
    #[serde(flatten)]
    pub days: Days,
    /// Whether each load has an idempotency key.
    pub has_key: bool,
    /// Loads per second of all connections together; `None` for each as soon as the last one is answered.
    pub rate: Option<u32>,
}

impl Cell {
    /// A combination with a table of all rows.
    #[must_use]
    pub fn new(form: Form, mode: Mode, connections: usize, interval_ms: u64) -> Self {
        let (keys, days) = (Keys::default(), Days::default());
        Self { form, mode, connections, interval_ms, keys, days, has_key: false, rate: None }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Events { request_bytes, are_texts } => {
                let (size, unit) = in_units(request_bytes);
                let columns = if are_texts { "VARCHAR" } else { "ARRAY, JSON and VARIANT" };
                write!(f, "stream load {size} {unit} of {columns}")?;
            }
            Form::StreamLoad { request_bytes, format } => {
                let (size, unit) = in_units(request_bytes);
                let name = match format {
                    Format::Csv => "",
                    Format::Json => " JSON",
                    Format::Parquet => " Parquet",
                };
                write!(f, "stream load {size} {unit}{name}")?;
            }
            Form::Prepared { rows: 1 } => write!(f, "prepared INSERT, 1 row")?,
            Form::Prepared { rows } => write!(f, "prepared INSERT, {rows} rows")?,
            Form::Text { rows } => write!(f, "text INSERT, {rows} rows")?,
        }
        if self.has_key {
            f.write_str(" with a key")?;
        }
        write!(f, ", {}, {} connections{}{}", self.mode.name(), self.connections, self.keys, self.days)?;
        if let Some(rate) = self.rate {
            write!(f, ", {rate} loads/s")?;
        }
        if self.mode == Mode::Sync { write!(f, ", {} ms", self.interval_ms) } else { Ok(()) }
    }
}

/// The size of a request for people.
fn in_units(bytes: usize) -> (usize, &'static str) {
    match bytes {
        1_000_000.. => (bytes / 1_000_000, "MB"),
        _ => (bytes / 1000, "KB"),
    }
}

/// The results of one run of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub rows_per_second: f64,
    /// Bytes of rows as they were sent, in 10⁶ per second.
    pub megabytes_per_second: f64,
    pub requests: u64,
    pub seconds: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    /// CPU seconds per second, of the server and of this client.
    pub server_cpu: f64,
    pub client_cpu: f64,
    pub fsyncs: u64,
    /// Rows acknowledged and counted afterwards, including those of the warm-up.
    pub rows_verified: u64,
    /// Most memory of the server, in bytes.
    pub peak_rss_bytes: u64,
    /// Bytes that the server wrote to the disk per byte of rows, flushes and compactions included;
    /// for runs of a given size only, which wait for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_per_byte: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_files: Option<DataFiles>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows_per_second_of_tenths: Vec<f64>,
    /// Answers that refused a load, which was sent again, and the text of the first one.
    pub refusals: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_refusal: Option<String>,
}

/// The live data files at the end of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DataFiles {
    pub count: u64,
    pub bytes: u64,
}

impl Cell {
    /// Doris's figure, in rows per second.
    #[must_use]
    pub fn published(&self) -> Option<f64> {
        match (self.form, self.mode) {
            // Doris's figures are of CSV.
            (Form::StreamLoad { request_bytes, format: Format::Csv }, mode) if self.days.days == 0 => {
                published::stream_load(mode == Mode::Off, request_bytes, self.connections)
            }
            (Form::Prepared { rows: 100 }, Mode::Async) => published::jdbc(self.connections),
            (Form::Prepared { rows } | Form::Text { rows }, Mode::Sync) => {
                published::sync(rows, self.connections, self.interval_ms)
            }
            _ => None,
        }
    }

    pub fn table(&self) -> &'static str {
        match self.form {
            Form::StreamLoad { .. } => "access_log",
            Form::Events { .. } => "events",
            Form::Prepared { .. } | Form::Text { .. } => "lineitem",
        }
    }

    pub fn key(&self) -> &'static str {
        match self.form {
            Form::StreamLoad { .. } | Form::Events { .. } => "id",
            Form::Prepared { .. } | Form::Text { .. } => "L_ORDERKEY",
        }
    }

    /// Drops the table and creates it, empty.
    ///
    /// # Errors
    /// The server's error.
    pub fn create_table(&self, server: &Server) -> Result<(), BenchError> {
        let mut client = server.connect("")?;
        client.query("CREATE DATABASE IF NOT EXISTS bench")?;
        client.query(&format!("DROP TABLE IF EXISTS bench.{} FORCE", self.table()))?;
        let table = match self.form {
            Form::StreamLoad { .. } => access_log::TABLE.to_owned(),
            Form::Events { are_texts, .. } => events::table(are_texts),
            Form::Prepared { .. } | Form::Text { .. } => lineitem::table(self.interval_ms),
        };
        client.query(&self.days.table(&self.keys.table(&table)))?;
        Ok(())
    }

    /// Connections with their requests.
    ///
    /// # Errors
    /// The server refuses one.
    pub fn connect(&self, server: &Server) -> Result<Vec<Connection>, BenchError> {
        let per_connection = REQUESTS_BYTES / self.connections;
        (0..self.connections as u64)
            .map(|seed| match self.form {
                Form::StreamLoad { request_bytes, format } => {
                    let mut log = AccessLog::new(seed, format).over_days(self.days.days);
                    let head = |length| self.head(http::format_header(format), length);
                    let count = (per_connection / request_bytes).clamp(1, 200);
                    let requests = (0..count).map(|_| log.stream_load(head, request_bytes)).collect();
                    http::connect(server.http, server.trust.as_ref(), requests)
                }
                Form::Events { request_bytes, .. } => {
                    let mut events = Events::new(seed);
                    let head = |length| self.head(events::FORMAT_HEADER, length);
                    let count = (per_connection / request_bytes).clamp(1, 200);
                    let requests = (0..count).map(|_| events.stream_load(head, request_bytes)).collect();
                    http::connect(server.http, server.trust.as_ref(), requests)
                }
                Form::Prepared { rows } => {
                    let (mut client, mut rows_of) = (self.session(server)?, Lineitem::new(seed));
                    let statement = client.prepare(&lineitem::prepared_insert(rows))?;
                    let first = rows_of.execute(statement, rows, true);
                    let count = (per_connection / first.bytes.len()).clamp(1, 200);
                    let requests = (0..count).map(|_| rows_of.execute(statement, rows, false)).collect();
                    client.into_connection(Some(first), requests)
                }
                Form::Text { rows } => {
                    let (client, mut rows_of) = (self.session(server)?, Lineitem::new(seed));
                    let count = (per_connection / (rows * 150)).clamp(1, 200);
                    let requests = (0..count).map(|_| rows_of.text_insert(rows)).collect();
                    client.into_connection(None, requests)
                }
            })
            .collect()
    }

    /// The head of a Stream Load into the cell's table.
    fn head(&self, format: &str, length: usize) -> String {
        if self.has_key {
            let format = format!("{format}\r\n{KEY_HEADER}");
            return http::stream_load_head(self.table(), &format, self.mode.name(), length);
        }
        http::stream_load_head(self.table(), format, self.mode.name(), length)
    }

    fn session(&self, server: &Server) -> Result<Mysql, BenchError> {
        let mut client = server.connect("bench")?;
        client.query(&format!("SET group_commit = {}", self.mode.name()))?;
        Ok(client)
    }

    /// Runs the cell once and counts its rows.
    ///
    /// # Errors
    /// A load failed, or rows are not as acknowledged.
    pub fn measure(
        &self,
        server: &Server,
        limit: Limit,
        sends_again: bool,
        progress: &dyn Fn(Duration, u64),
    ) -> Result<Measured, BenchError> {
        self.create_table(server)?;
        let present = self.load_present(server)?;
        let order = if present == 0 { Order::New } else { Order::Random(present) };
        let connections = self.connect(server)?.into_iter();
        let mut connections: Vec<_> = connections.map(|connection| connection.with_ids(order)).collect();
        let mut meter = Meter { server, progress, begin: None, end: None };
        let pace = self.rate.map(|rate| Duration::from_secs(1) / rate.max(1));
        let outcome = closed_loop::run(&mut connections, Course { limit, sends_again, pace }, &mut meter)?;
        let (begin, end) = (meter.begin.unwrap_or_default(), meter.end.unwrap_or_default());
        self.verify(server, present, &outcome)?;
        let is_sized = matches!(limit, Limit::Bytes(_)) && server.process().is_some();
        let (mut written_per_byte, mut data_files) = (None, None);
        if is_sized {
            settle(server)?;
            let written = server.usage()?.written_bytes - begin.server.written_bytes;
            written_per_byte = Some(written as f64 / outcome.bytes_in_all as f64);
            let (count, bytes) =
                (server.metric("tributary_data_files")?, server.metric("tributary_data_file_bytes")?);
            data_files = Some(DataFiles { count: count as u64, bytes: bytes as u64 });
        }
        let ms = |quantile| outcome.latencies.value_at_quantile(quantile) as f64 / 1e6;
        Ok(Measured {
            rows_per_second: outcome.rows as f64 / outcome.seconds,
            megabytes_per_second: outcome.payload_bytes as f64 / 1e6 / outcome.seconds,
            requests: outcome.requests,
            seconds: outcome.seconds,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            max_ms: outcome.latencies.max() as f64 / 1e6,
            server_cpu: (end.server.cpu_seconds - begin.server.cpu_seconds) / outcome.seconds,
            client_cpu: (end.client_cpu - begin.client_cpu) / outcome.seconds,
            fsyncs: end.server.fsyncs - begin.server.fsyncs,
            rows_verified: outcome.rows_in_all,
            peak_rss_bytes: server.usage()?.peak_rss_bytes,
            written_per_byte,
            data_files,
            rows_per_second_of_tenths: outcome.tenths,
            refusals: outcome.refusals,
            first_refusal: outcome.first_refusal,
        })
    }

    /// Verifies that every acknowledged row, or every key, exists once.
    fn verify(&self, server: &Server, present: u32, outcome: &Outcome) -> Result<(), BenchError> {
        let mut client = server.connect("bench")?;
        client.query("SYNC")?;
        if present > 0 {
            return self.verify_keys(&mut client, present, outcome);
        }
        let rows = outcome.rows_in_all;
        let (table, key) = (self.table(), self.key());
        let first = u64::from(FIRST_ID);
        let mut expected = vec![rows, first, first + rows - 1, rows * (2 * first + rows - 1) / 2];
        let mut sql = format!("SELECT COUNT(*), MIN({key}), MAX({key}), SUM({key})");
        if rows <= DISTINCT_ROWS_MAX {
            sql.push_str(&format!(", COUNT(DISTINCT {key})"));
            expected.push(rows);
        }
        let found = client.query(&format!("{sql} FROM {table}"))?;
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        if found != [expected.clone()] {
            return Err(BenchError::Verification(format!(
                "{sql} FROM {table}: {found:?}, expected {expected:?}"
            )));
        }
        Ok(())
    }
}

/// Waits until the memtables are flushed and no compaction changes the files any more.
pub fn settle(server: &Server) -> Result<(), BenchError> {
    let limit = Duration::from_secs(300);
    server::wait_until("the last flush", limit, || Ok(server.metric("tributary_memtable_rows")? == 0.0))?;
    compacted(server)
}

/// Waits until no compaction changes the files any more.
pub fn compacted(server: &Server) -> Result<(), BenchError> {
    let mut last = (0, 0.0, 0);
    server::wait_until("compactions", Duration::from_secs(300), || {
        let now = (server.usage()?.written_bytes, server.metric("tributary_data_files")?);
        last = (now.0, now.1, if (last.0, last.1) == now { last.2 + 1 } else { 0 });
        Ok(last.2 >= 40)
    })
}

#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    server: Usage,
    client_cpu: f64,
}

struct Meter<'a> {
    server: &'a Server,
    progress: &'a dyn Fn(Duration, u64),
    begin: Option<Reading>,
    end: Option<Reading>,
}

impl Meter<'_> {
    fn read(&self) -> Result<Reading, BenchError> {
        Ok(Reading { server: self.server.usage()?, client_cpu: server::own_cpu_seconds() })
    }
}

impl Watch for Meter<'_> {
    fn measuring(&mut self) -> Result<(), BenchError> {
        self.begin = Some(self.read()?);
        Ok(())
    }

    fn measured(&mut self) -> Result<(), BenchError> {
        self.end = Some(self.read()?);
        Ok(())
    }

    fn progress(&mut self, elapsed: Duration, rows: u64) {
        (self.progress)(elapsed, rows);
    }
}

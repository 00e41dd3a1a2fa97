//! Tables with one row for each key: their cells, and queries while some of their rows are superseded.

use crate::cell::{Cell, Form, Mode, settle};
use crate::client::closed_loop::{self, Limit, Outcome};
use crate::client::mysql::Mysql;
use crate::data::access_log::Format;
use crate::data::{FIRST_ID, Order};
use crate::error::BenchError;
use crate::query::{QUERY, Quiet, in_files, median};
use crate::server::Server;
use crate::suite::Target;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// The rows of a key that a table retains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// All.
    #[default]
    Duplicate,
    /// The last.
    Unique,
    /// One of sums and maxima.
    Aggregate,
}

/// The keys of a cell's table and of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Keys {
    pub model: Model,
    /// Rows loaded in advance; the rows of the run have random keys among theirs. 0: each row has a new key.
    pub present: u32,
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.model {
            Model::Duplicate => (),
            Model::Unique => f.write_str(", UNIQUE KEY")?,
            Model::Aggregate => f.write_str(", AGGREGATE KEY")?,
        }
        if self.present > 0 { write!(f, ", random keys of {} rows", self.present) } else { Ok(()) }
    }
}

impl Keys {
    /// Adapts a `CREATE TABLE` of a table of all rows to these keys.
    pub fn table(self, of_all_rows: &str) -> String {
        let key_of_many = "DUPLICATE KEY(L_ORDERKEY, L_PARTKEY, L_SUPPKEY, L_LINENUMBER)";
        let table = of_all_rows.replace(key_of_many, "DUPLICATE KEY(L_ORDERKEY)");
        match self.model {
            Model::Duplicate => of_all_rows.to_owned(),
            Model::Unique => table.replace("DUPLICATE KEY", "UNIQUE KEY"),
            Model::Aggregate => table
                .replace("DUPLICATE KEY", "AGGREGATE KEY")
                .replace("ts DATETIME", "ts DATETIME MAX")
                .replace("clientip VARCHAR(20)", "clientip VARCHAR(20) MAX")
                .replace("request VARCHAR(1024)", "request VARCHAR(1024) MAX")
                .replace("status SMALLINT", "status SMALLINT MAX")
                .replace("size INT", "size BIGINT SUM"),
        }
    }
}

impl Cell {
    /// Loads the rows in advance, and waits until they are in few data files. Returns their number: requests are whole, so there
    /// may be somewhat more than requested.
    ///
    /// # Errors
    /// A load failed.
    pub fn load_present(&self, server: &Server) -> Result<u32, BenchError> {
        if self.keys.present == 0 {
            return Ok(0);
        }
        let limit = Limit::Rows(self.keys.present.into());
        let (mode, connections) = (Mode::Async, PRESENT_CONNECTIONS);
        let form = match self.form {
            Form::StreamLoad { .. } | Form::Events { .. } => {
                Form::StreamLoad { request_bytes: 1_000_000, format: Format::Csv }
            }
            Form::Prepared { .. } | Form::Text { .. } => Form::Text { rows: 1000 },
        };
        let mut connections = Self { form, mode, connections, ..*self }.connect(server)?;
        let begin = Instant::now();
        let loaded = closed_loop::run(&mut connections, limit, &mut Quiet)?.rows_in_all;
        server.connect("bench")?.query("SYNC")?;
        settle(server)?;
        eprintln!("{loaded} rows loaded before, in {:.0} s", begin.elapsed().as_secs_f64());
        u32::try_from(loaded).map_err(|_| BenchError::Argument("--present: too many".into()))
    }

    /// Verifies that each of the `present` keys exists, as often as it was loaded or once.
    ///
    /// # Errors
    /// It is not.
    pub fn verify_keys(&self, client: &mut Mysql, present: u32, outcome: &Outcome) -> Result<(), BenchError> {
        let (table, key) = (self.table(), self.key());
        let present = u64::from(present);
        let rows = if self.keys.model == Model::Duplicate { present + outcome.rows_in_all } else { present };
        let first = u64::from(FIRST_ID);
        let sql = format!("SELECT COUNT(*), MIN({key}), MAX({key}) FROM {table}");
        let found = client.query(&sql)?;
        let expected = [rows, first, first + present - 1].map(|number| number.to_string());
        if found != [expected.to_vec()] {
            return Err(BenchError::Verification(format!("{sql}: {found:?}, expected {expected:?}")));
        }
        Ok(())
    }
}

/// Connections that load in advance.
const PRESENT_CONNECTIONS: usize = 10;
/// Rows that are superseded before the second half of the measurements.
const SUPERSEDED: f64 = 0.1;
/// Queries of single keys.
const POINT_QUERIES: u64 = 1000;

/// Measures queries of a table with unique keys, before and after some of its rows were superseded.
///
/// # Errors
/// A load or a query failed, or there are not as many rows as keys.
pub fn query(target: &Target, rows: u64, runs: usize) -> Result<(), BenchError> {
    let keys = Keys { model: Model::Unique, present: 0 };
    let cell = Cell { keys, ..Cell::new(Form::Text { rows: 1000 }, Mode::Async, 1, 1000) };
    let (mut server, own) = in_files(target, "the test of queries of keys", &cell, rows)?;
    let (before, points_before) = ask(&server, rows, runs)?;
    let among = u32::try_from(rows).map_err(|_| BenchError::Argument("--rows: too many".into()))?;
    let mut connections: Vec<_> = cell
        .connect(&server)?
        .into_iter()
        .map(|connection| connection.with_ids(Order::Random(among)))
        .collect();
    // The number of random rows that meets this share of the keys.
    let superseding = (-(1.0 - SUPERSEDED).ln() * rows as f64) as u64;
    closed_loop::run(&mut connections, Limit::Rows(superseding), &mut Quiet)?;
    server.restart(own.settings)?;
    settle(&server)?;
    let (after, points_after) = ask(&server, rows, runs)?;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{rows} rows of lineitem with UNIQUE KEY, of which {superseding} came again; medians of {runs} runs"
    );
    println!("TPC-H query 1:            {:8.1} ms, then {:8.1} ms", ms(before), ms(after));
    println!("ratio:                    {:8.2}", after.as_secs_f64() / before.as_secs_f64());
    for (when, points) in [("before", points_before), ("then", points_after)] {
        let at = |share: f64| ms(points[((points.len() - 1) as f64 * share) as usize]);
        println!("one key, {when:6}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", at(0.5), at(0.99), at(1.0));
    }
    Ok(())
}

/// The median time of query 1, and the times of queries of one key, sorted.
fn ask(server: &Server, rows: u64, runs: usize) -> Result<(Duration, Vec<Duration>), BenchError> {
    let mut client = server.connect("bench")?;
    let mut times = Vec::with_capacity(runs + 1);
    for _ in 0..=runs {
        let begin = Instant::now();
        client.query(QUERY)?;
        times.push(begin.elapsed());
    }
    let mut points = Vec::new();
    for number in 0..POINT_QUERIES {
        let key = u64::from(FIRST_ID) + number.wrapping_mul(7_919_777) % rows;
        points.push(point(&mut client, key)?);
    }
    points.sort();
    // The first one fills caches.
    Ok((median(&mut times[1..]), points))
}

fn point(client: &mut Mysql, key: u64) -> Result<Duration, BenchError> {
    let sql = format!("SELECT * FROM lineitem WHERE L_ORDERKEY = {key}");
    let begin = Instant::now();
    let found = client.query(&sql)?;
    let took = begin.elapsed();
    match found.len() {
        1 => Ok(took),
        count => Err(BenchError::Verification(format!("{sql}: {count} rows"))),
    }
}

//! Partitioned tables: loads of rows of many days compared with the same loads without partitions, one load of very many
//! partitions, and queries of one of very many days.

use crate::cell::{Cell, Form, Mode, compacted};
use crate::data::access_log::Format;
use crate::error::BenchError;
use crate::query::{live_files, median};
use crate::server::{self, Server};
use crate::suite::Target;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How rows are spread over days, and whether the table has a partition for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Days {
    /// Number of days that the rows of each load fall on; 0: rows are in the order of their times.
    pub days: u32,
    /// The table has AUTO PARTITION by day.
    pub are_partitions: bool,
}

impl Days {
    /// A `CREATE TABLE` of access logs, with these partitions.
    pub fn table(self, table: &str) -> String {
        if !self.are_partitions {
            return table.to_owned();
        }
        let by_day = "AUTO PARTITION BY RANGE (date_trunc(ts, 'day')) () DISTRIBUTED BY";
        table.replacen("DISTRIBUTED BY", by_day, 1)
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days > 0 {
            write!(f, ", rows of {} days", self.days)?;
        }
        if self.are_partitions { f.write_str(", a partition each") } else { Ok(()) }
    }
}

/// The cells of loads: without partitions and with.
pub fn cells(days: u32, sizes: &[usize], connections: usize) -> Vec<Cell> {
    let cell = |(request_bytes, are_partitions): (usize, bool)| {
        let form = Form::StreamLoad { request_bytes, format: Format::Csv };
        Cell { days: Days { days, are_partitions }, ..Cell::new(form, Mode::Async, connections, 10_000) }
    };
    sizes.iter().flat_map(|size| [(*size, false), (*size, true)]).map(cell).collect()
}

/// Disables compaction during the count, and flushes at once.
const MANY_FILES: [(&str, &str); 2] =
    [("TRIBUTARY_TARGET_FILE_BYTES", "1"), ("TRIBUTARY_FLUSH_AGE_MS", "20")];
/// Rows of each partition in each load of the test of queries.
const ROWS_OF_DAY: u32 = 2;

/// The table of the tests of very many partitions, each a day from 2020-01-01 on.
const TABLE: &str = "CREATE TABLE bench.days (id INT NOT NULL, day DATE NOT NULL, v VARCHAR(100)) DUPLICATE KEY(id) \
                     AUTO PARTITION BY RANGE (date_trunc(day, 'day')) () DISTRIBUTED BY HASH(id) BUCKETS 1";

fn create(target: &Target, settings: &[(&str, &str)]) -> Result<Server, BenchError> {
    let Target::Start { program, directory, settings: given, .. } = target else {
        return Err(BenchError::Argument(
            "the test of partitions starts its own server: leave out --host".to_owned(),
        ));
    };
    let mut all: Vec<(String, String)> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    all.extend(given.iter().cloned());
    let server = Server::start(program, directory, &all)?;
    let mut client = server.connect("")?;
    client.query("CREATE DATABASE bench")?;
    client.query(TABLE)?;
    client.query(
        "CREATE TABLE bench.thousand (n INT NOT NULL) DUPLICATE KEY(n) DISTRIBUTED BY HASH(n) BUCKETS 1",
    )?;
    let numbers: Vec<String> = (0..1000).map(|number| format!("({number})")).collect();
    client.query(&format!("INSERT INTO bench.thousand VALUES {}", numbers.join(",")))?;
    Ok(server)
}

/// A statement that loads the given number of rows, at most a million, over the given number of days.
fn insert(rows: u32, days: u32, text: &str) -> String {
    format!(
        "INSERT INTO days SELECT id, days_add(DATE '2020-01-01', id % {days}), {text} \
         FROM (SELECT a.n * 1000 + b.n AS id FROM thousand a, thousand b) numbers WHERE id < {rows}"
    )
}

/// How many data files the table of days has.
fn files_of_days(server: &Server) -> Result<usize, BenchError> {
    let is_its = |path: &PathBuf| path.iter().any(|part| part.to_string_lossy().starts_with("days-"));
    Ok(live_files(server)?.iter().filter(|path| is_its(path)).count())
}

/// Runs one load of rows of the given number of partitions.
///
/// # Errors
/// The load was refused, or rows are missing.
pub fn one_load(target: &Target, partitions: u32, rows: u32) -> Result<(), BenchError> {
    let mut server = create(target, &[])?;
    let mut client = server.connect("bench")?;
    let before = server.usage()?.peak_rss_bytes;
    let begin = Instant::now();
    client.query(&insert(rows, partitions, "repeat('x', 50)"))?;
    let took = begin.elapsed();
    let found = client.query("SELECT COUNT(*), COUNT(DISTINCT day) FROM days")?;
    if found != [[rows.to_string(), partitions.min(rows).to_string()]] {
        return Err(BenchError::Verification(format!(
            "of {rows} rows of {partitions} partitions there are {found:?}"
        )));
    }
    let peak = server.usage()?.peak_rss_bytes;
    drop(client);
    // Stopping writes the Delta logs, which otherwise happens with the next flush.
    server.restart(target.settings())?;
    compacted(&server)?;
    println!("one load of {rows} rows of {partitions} partitions, which it makes");
    println!("took {:.2} s: {:.2} M rows/s", took.as_secs_f64(), f64::from(rows) / took.as_secs_f64() / 1e6);
    println!(
        "most memory of the server: {} MiB, before it {} MiB; {} data files when it is at rest",
        peak >> 20,
        before >> 20,
        files_of_days(&server)?
    );
    Ok(())
}

/// Queries of one of very many days, in a table of very many small files.
///
/// # Errors
/// A statement failed, or a query read other rows than it should.
pub fn one_day(target: &Target, days: u32, files: u32, runs: usize) -> Result<(), BenchError> {
    let server = create(target, &MANY_FILES)?;
    let mut client = server.connect("bench")?;
    let (mut rounds, mut there) = (0, 0);
    // A flush may take two rounds at once.
    while there < files as usize && rounds < files.div_ceil(days) * 2 {
        client.query(&insert(days * ROWS_OF_DAY, days, &format!("'round {rounds}'")))?;
        server::wait_until("the flush", Duration::from_secs(300), || {
            Ok(server.metric("tributary_memtable_rows")? == 0.0)
        })?;
        rounds += 1;
        there = files_of_days(&server)?;
    }
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    let mut plan = String::new();
    for run in 0..=runs as u32 {
        let day = (run * 37) % days;
        let one =
            format!("SELECT COUNT(*), MIN(id) FROM days WHERE day = days_add(DATE '2020-01-01', {day})");
        let statements = [one.clone(), format!("EXPLAIN {one}"), "SELECT 1".to_owned()];
        for (statement, times) in statements.iter().zip(&mut times) {
            let begin = Instant::now();
            let found = client.query(statement)?;
            times.push(begin.elapsed());
            if *statement == one && found != [[(rounds * ROWS_OF_DAY).to_string(), day.to_string()]] {
                return Err(BenchError::Verification(format!("{one}: {found:?}")));
            }
            if statement.starts_with("EXPLAIN") {
                plan.clear();
                for row in found {
                    // Writing to a String can't fail.
                    let _ = writeln!(plan, "{}", row.join(" "));
                }
            }
        }
    }
    let [query, explain, nothing] = times.map(|mut times| median(&mut times[1..]).as_secs_f64() * 1e3);
    println!("one day of {days} days in {there} data files; medians of {runs} runs");
    println!("query: {query:8.2} ms");
    println!("EXPLAIN, so its planning: {explain:8.2} ms");
    println!("SELECT 1: {nothing:8.2} ms");
    println!("{plan}");
    Ok(())
}

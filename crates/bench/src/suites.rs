//! Public suites of queries, client included, beside plain DataFusion and DuckDB over the same data files: each round asks all of them
//! in turn, so that a machine that slows down slows all.

mod clickbench;
mod duckdb;
mod loads;
mod ssb;
mod tpch;

use crate::cell::settle;
use crate::client::mysql::Mysql;
use crate::error::BenchError;
use crate::query::{live_files, median};
use crate::report::table::grouped;
use crate::suite::Target;
pub use clickbench::CLICKBENCH;
use duckdb::DuckDb;
pub use ssb::SSB;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub use tpch::TPCH;
use tributary_yardstick::Yardstick;

/// Compares the rows of a query, by its place, with the answer that is known.
type Check = fn(usize, &[Vec<String>]) -> Result<(), BenchError>;

/// A suite: tables, their rows, and queries.
pub struct Suite {
    name: &'static str,
    tables: &'static [TableOf],
    queries: fn() -> Vec<Asking>,
    /// The rows of a table at a scale factor, with a separator behind each value.
    rows: fn(&str, f64) -> Rows,
    /// Compares the answer to a query, by its number from 1 on, with the right one at scale factor 1, as far as that is known.
    check: Option<Check>,
}

/// Rows of a table.
type Rows = Box<dyn Iterator<Item = String>>;

/// A table: its name, its columns, and the key by which it is sorted.
pub struct TableOf {
    pub name: &'static str,
    pub columns: &'static str,
    pub key: &'static str,
}

/// A query, in the words of each database.
pub struct Asking {
    pub name: String,
    pub ours: String,
    pub datafusion: String,
    pub duckdb: String,
}

impl Asking {
    /// A query that all read alike.
    fn alike(name: String, sql: &str) -> Self {
        Self { name, ours: sql.to_owned(), datafusion: sql.to_owned(), duckdb: sql.to_owned() }
    }
}

/// A run of a suite.
pub struct Run {
    pub suite: &'static Suite,
    /// At 1, the largest table has 6 million rows, or, of ClickBench, 1 million.
    pub scale: f64,
    /// Rounds that count, after one that does not.
    pub runs: usize,
    /// Asks plain DataFusion, too.
    pub compare: bool,
    /// A Python interpreter that has DuckDB, to ask it, too.
    pub duckdb: Option<PathBuf>,
    /// Asks nothing.
    pub load_only: bool,
}

/// A database that answers queries.
enum Asked {
    Ours(Mysql),
    DataFusion(Yardstick),
    DuckDb(DuckDb),
}

impl Asked {
    fn name(&self) -> String {
        match self {
            Self::Ours(_) => "Tributary".into(),
            Self::DataFusion(_) => "DataFusion".into(),
            Self::DuckDb(duckdb) => format!("DuckDB {}", duckdb.version),
        }
    }

    /// How long the query took, and how many rows there are; `rows` has them if they came to the client.
    fn ask(&mut self, query: &Asking, rows: &mut Vec<Vec<String>>) -> Result<(Duration, usize), BenchError> {
        match self {
            Self::Ours(client) => {
                let begin = Instant::now();
                *rows = client.query(&query.ours)?;
                Ok((begin.elapsed(), rows.len()))
            }
            Self::DataFusion(plain) => plain.rows_of(&query.datafusion).map_err(BenchError::Server),
            Self::DuckDb(duckdb) => duckdb.query(&query.duckdb),
        }
    }
}

impl Run {
    /// Loads, asks, and prints medians and ratios. Answers are compared with the right ones where these are known, and the numbers of
    /// their rows with each other.
    ///
    /// # Errors
    /// A load or a query failed, or an answer is wrong.
    pub fn run(&self, target: &Target) -> Result<(), BenchError> {
        let server = target.server()?;
        let rows = loads::load(&server, self.suite, self.scale)?;
        settle(&server)?;
        if self.load_only {
            return Ok(());
        }
        if self.compare || self.duckdb.is_some() {
            // Large loads are in data files at once, and in the Delta log, which the others' files are taken from, with the next flush.
            crate::server::wait_until("the Delta log's entries", Duration::from_secs(300), || {
                Ok(live_files(&server)?.len() as f64 == server.metric("tributary_data_files")?)
            })?;
        }
        let mut files = BTreeMap::<String, Vec<PathBuf>>::new();
        for file in live_files(&server)? {
            let directory = file.parent().and_then(|it| it.file_name()).and_then(|it| it.to_str());
            // A table's directory is called by its name and its number.
            let table = directory.and_then(|name| name.rsplit_once('-'));
            files.entry(table.unwrap_or_default().0.to_owned()).or_default().push(file);
        }
        let mut asked = vec![Asked::Ours(server.connect("bench")?)];
        if self.compare {
            asked.push(Asked::DataFusion(Yardstick::with_tables(&files).map_err(BenchError::Server)?));
        }
        if let Some(python) = &self.duckdb {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let mut duckdb = DuckDb::start(python, threads)?;
            files.iter().try_for_each(|(table, files)| duckdb.table(table, files))?;
            asked.push(Asked::DuckDb(duckdb));
        }
        let count: usize = files.values().map(Vec::len).sum();
        println!(
            "{} at scale factor {}: {} rows in {count} data files; medians of {} runs in ms",
            self.suite.name,
            self.scale,
            grouped(rows as f64),
            self.runs
        );
        self.ask_all(&mut asked)
    }

    fn ask_all(&self, asked: &mut [Asked]) -> Result<(), BenchError> {
        let names: Vec<String> = asked.iter().map(Asked::name).collect();
        let ratios = names.iter().skip(1).map(|name| format!(" ÷ {name} |"));
        println!("| query | {} |{}", names.join(" | "), ratios.collect::<String>());
        println!("| --- |{}", " ---: |".repeat(2 * names.len() - 1));
        // Sums of the logarithms of times.
        let mut sums = vec![0.0; asked.len()];
        let queries = (self.suite.queries)();
        for (at, query) in queries.iter().enumerate() {
            let times = self.times(at + 1, query, asked)?;
            sums.iter_mut().zip(&times).for_each(|(sum, time)| *sum += time.ln());
            print_row(&query.name, &times);
        }
        let means: Vec<f64> = sums.iter().map(|sum| (sum / queries.len() as f64).exp()).collect();
        print_row("geometric mean", &means);
        Ok(())
    }

    /// The median times of a query in ms, of each one that is asked.
    fn times(&self, number: usize, query: &Asking, asked: &mut [Asked]) -> Result<Vec<f64>, BenchError> {
        let mut times = vec![Vec::with_capacity(self.runs); asked.len()];
        for round in 0..=self.runs {
            let (mut counts, mut rows) = (Vec::new(), Vec::new());
            for (one, times) in asked.iter_mut().zip(&mut times) {
                let (took, count) = one.ask(query, &mut rows)?;
                counts.push(count);
                if round > 0 {
                    times.push(took);
                }
            }
            let check = self.suite.check.filter(|_| round == 0 && (self.scale - 1.0).abs() < f64::EPSILON);
            if let Some(check) = check {
                check(number, &rows)?;
            }
            if counts.iter().any(|count| *count != counts[0]) {
                let names: Vec<String> = asked.iter().map(Asked::name).collect();
                let what = format!("{} {}: {counts:?} rows of {names:?}", self.suite.name, query.name);
                return Err(BenchError::Verification(what));
            }
        }
        Ok(times.iter_mut().map(|times| median(times).as_secs_f64() * 1e3).collect())
    }
}

/// A line of the table: times, and ours divided by the others.
fn print_row(name: &str, times: &[f64]) {
    let shown: String = times.iter().map(|time| format!(" {time:.1} |")).collect();
    let ratios: String = times.iter().skip(1).map(|time| format!(" {:.2} |", times[0] / time)).collect();
    println!("| {name} |{shown}{ratios}");
}

//! The command line of `tributary bench`.

use crate::cell::{Cell, Form, Mode};
use crate::client::closed_loop::Limit;
use crate::data::access_log::Format;
use crate::error::BenchError;
use crate::flink_like::FlinkLike;
use crate::keys::{self, Keys, Model};
use crate::long_run::LongRun;
use crate::report;
use crate::server::Address;
use crate::suite::{Suite, Target};
use crate::suites::{self, CLICKBENCH, SSB, TPCH};
use crate::{insert_select, logins, parquet_load, partitions, query, schema_change};
use clap::{Args, Subcommand};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tributary_client::Trust;

/// Measures a server with the loads of Doris's group commit manual
#[derive(Args, Debug)]
pub struct Bench {
    #[command(subcommand)]
    test: Test,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct Common {
    /// Measured time of each run
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Time before it that does not count
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 1.0)]
    warm_up: f64,
    /// Runs of each combination; the median is shown
    #[arg(long, global = true, value_name = "COUNT", default_value_t = 1)]
    runs: usize,
    /// A running server's address, instead of one that is started for each run
    #[arg(long, global = true, value_name = "ADDR")]
    host: Option<IpAddr>,
    /// Its MySQL port
    #[arg(long, global = true, value_name = "PORT", default_value_t = 9030)]
    query_port: u16,
    /// Its HTTP port
    #[arg(long, global = true, value_name = "PORT", default_value_t = 8030)]
    http_port: u16,
    /// Directory for the data of started servers while they run
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// A setting of started servers, like `flush_bytes=1048576`
    #[arg(long = "set", global = true, value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Loads over TLS, and trusts the certificates of this PEM file: one of them is the server's, for its address. Started servers have
    /// theirs by `--set tls_certificate=… --set tls_private_key=…`; the server of --against is loaded without TLS
    #[arg(long, global = true, value_name = "FILE")]
    tls: Option<PathBuf>,
    /// Sends a load again that the server refuses, and counts it, instead of ending the run
    #[arg(long, global = true)]
    send_again: bool,
    /// Another `tributary` binary, such as the previous version: runs each combination on both alternately and shows medians of
    /// the pairs' ratios
    #[arg(long, global = true, value_name = "BINARY", conflicts_with_all = ["host", "plot"])]
    against: Option<PathBuf>,
    /// Writes all runs to a JSON file
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Plots the figures together with Doris's as an SVG file
    #[arg(long, global = true, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum Test {
    /// Access logs by Stream Load
    StreamLoad {
        /// Bytes of a request: 10000, 10K, 10M
        #[arg(long, value_delimiter = ',', default_value = "10K,100K,500K,1M,10M", value_parser = bytes)]
        sizes: Vec<usize>,
        #[arg(long, value_delimiter = ',', default_value = "10,30")]
        connections: Vec<usize>,
        #[arg(long, value_delimiter = ',', default_value = "async")]
        modes: Vec<Mode>,
        /// How the rows are written
        #[arg(long, default_value = "csv")]
        format: Format,
        /// Measures each load with an idempotency key of its own, too
        #[arg(long)]
        with_keys: bool,
    },
    /// lineitem by prepared INSERTs of 100 rows, as a JDBC writer sends them
    Jdbc {
        #[arg(long, value_delimiter = ',', default_value = "10,20,30")]
        connections: Vec<usize>,
        #[arg(long, default_value_t = 100)]
        rows: usize,
        #[arg(long, value_delimiter = ',', default_value = "async")]
        modes: Vec<Mode>,
    },
    /// lineitem by prepared INSERTs of one row, in sync mode
    SyncSmall {
        #[arg(long, value_delimiter = ',', default_value = "30,100,500")]
        connections: Vec<usize>,
        /// `group_commit_interval_ms` of the table; 0 closes a group as soon as the log is free
        #[arg(long, value_delimiter = ',', default_value = "10,20,50,100")]
        intervals: Vec<u64>,
    },
    /// lineitem by prepared INSERTs of one row, in async mode
    AsyncSmall {
        #[arg(long, value_delimiter = ',', default_value = "500")]
        connections: Vec<usize>,
    },
    /// lineitem by INSERTs of 1,000 rows as text, in sync mode
    SyncLarge {
        #[arg(long, value_delimiter = ',', default_value = "30,100,500")]
        connections: Vec<usize>,
        #[arg(long, value_delimiter = ',', default_value = "10,20,50,100")]
        intervals: Vec<u64>,
        #[arg(long, default_value_t = 1000)]
        rows: usize,
    },
    /// One long Stream Load run: speed over time, memory, data files, bytes written
    Steady {
        /// Bytes of rows in all: 20G
        #[arg(long, default_value = "20G", value_parser = bytes)]
        bytes: usize,
        #[arg(long, default_value = "1M", value_parser = bytes)]
        size: usize,
        #[arg(long, default_value_t = 10)]
        connections: usize,
        /// Loads per second, whatever the server does; without it, each connection sends the next load once the last is answered
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        rate: Option<u32>,
    },
    /// Many small Delta commits at a steady pace for `--seconds`: memory, files and the time of a start
    LongRun {
        /// Flushes per second
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
        commits: u32,
        /// Runs with the table's directory as its last argument at the end, and is timed: `--open python3 --open read.py`
        #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
        open: Vec<String>,
    },
    /// Tables with one row per key compared with tables of all rows: new keys, or random existing ones
    Keys {
        #[arg(long, value_delimiter = ',', default_value = "duplicate,unique")]
        models: Vec<Model>,
        /// Rows loaded in advance; 0: each key is new
        #[arg(long, value_delimiter = ',', default_value = "0")]
        present: Vec<u32>,
        /// Bytes of a Stream Load; 0: prepared INSERTs of one row
        #[arg(long, value_delimiter = ',', default_value = "100K", value_parser = bytes)]
        sizes: Vec<usize>,
        #[arg(long, default_value_t = 30)]
        connections: usize,
        /// Bytes of rows in all, instead of a time: speed over time, data files, bytes written
        #[arg(long, value_parser = bytes)]
        bytes: Option<usize>,
    },
    /// A table with UNIQUE KEY: TPC-H query 1 before and after a tenth of its rows was superseded, and queries of single keys
    KeyQueries {
        #[arg(long, default_value_t = 6_000_000)]
        rows: u64,
    },
    /// TPC-H query 1 while a tenth of the rows is in memory, compared with plain DataFusion on the same rows; or all queries of a suite
    Query {
        #[arg(long, default_value_t = 6_000_000)]
        rows: u64,
        /// All queries of this suite instead, over data of its own
        #[arg(long)]
        suite: Option<QuerySuite>,
        /// The suite's scale factor; answers to TPC-H are checked at 1
        #[arg(long, default_value_t = 1.0, requires = "suite")]
        scale: f64,
        /// Asks plain DataFusion the suite's queries, too, over the same data files
        #[arg(long, requires = "suite")]
        compare: bool,
        /// Asks DuckDB, too, by a Python interpreter that has its package
        #[arg(long, value_name = "PYTHON", requires = "suite")]
        duckdb: Option<PathBuf>,
        /// Loads the suite's rows into a running server, and asks nothing
        #[arg(long, requires = "suite", requires = "host", conflicts_with_all = ["compare", "duckdb"])]
        load_only: bool,
    },
    /// A heavy schema change of lineitem, INT to BIGINT, while single rows are loaded: its speed, and the longest wait of a load
    SchemaChange {
        #[arg(long, default_value_t = 6_000_000)]
        rows: u64,
    },
    /// Logins beside Stream Loads: how long one takes, and what they cost the loads
    Logins {
        /// Logins per second
        #[arg(long, value_delimiter = ',', default_value = "10,100,300,1000", value_parser = clap::value_parser!(u32).range(1..))]
        rates: Vec<u32>,
    },
    /// lineitem by a model of Flink's connector in batch mode: the time from a row to the query that sees it
    FlinkLike(FlinkLike),
    /// Stream Loads of rows of many days into a table with AUTO PARTITION by day, compared with one without partitions
    Partitions {
        /// Days of each load
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=2000))]
        days: u32,
        #[arg(long, value_delimiter = ',', default_value = "1M", value_parser = bytes)]
        sizes: Vec<usize>,
        #[arg(long, default_value_t = 10)]
        connections: usize,
        /// Bytes of rows in all, instead of a time: data files and bytes written, too
        #[arg(long, value_parser = bytes)]
        bytes: Option<usize>,
    },
    /// Stream Loads of events into columns of ARRAY, JSON and VARIANT, compared with the same bytes into VARCHAR
    Nested {
        #[arg(long, value_delimiter = ',', default_value = "100K", value_parser = bytes)]
        sizes: Vec<usize>,
        #[arg(long, value_delimiter = ',', default_value = "30")]
        connections: Vec<usize>,
    },
    /// One load of rows of very many partitions, which it creates: time and memory
    PartitionsOfALoad {
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=2000))]
        partitions: u32,
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        rows: u32,
    },
    /// Queries of one of very many days, in a table of very many small files: the time of planning
    PartitionQueries {
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=2000))]
        days: u32,
        #[arg(long, default_value_t = 10_000)]
        files: u32,
    },
    /// Stream Load of a whole lineitem as one Parquet file: rows per second, and the processors that the server used
    ParquetLoad {
        #[arg(long, default_value_t = 6_000_000, value_parser = clap::value_parser!(u32).range(1..))]
        rows: u32,
        /// Rows of a row group of the file
        #[arg(long, default_value_t = 1_048_576, value_parser = clap::value_parser!(u32).range(1..))]
        row_group_rows: u32,
        /// The rows are not in the order of the table's keys
        #[arg(long)]
        shuffled: bool,
    },
    /// INSERT INTO … SELECT of a whole lineitem, compared with plain DataFusion writing the same rows as Parquet
    InsertSelect {
        #[arg(long, default_value_t = 6_000_000)]
        rows: u64,
    },
}

/// A public suite of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum QuerySuite {
    /// TPC-H
    Tpch,
    /// The Star Schema Benchmark, with rows derived from those of TPC-H
    Ssb,
    /// ClickBench, with generated rows: a million at scale factor 1
    Clickbench,
}

/// A measurement compared with DataFusion, for a number of rows and of runs.
type Measure = fn(&Target, u64, usize) -> Result<(), BenchError>;

impl Bench {
    /// Measures and reports.
    ///
    /// # Errors
    /// The server, a load or the check of its rows failed.
    pub fn run(self) -> Result<(), BenchError> {
        let target = self.common.target()?;
        if let Test::Query { suite: Some(suite), scale, compare, duckdb, load_only, .. } = self.test {
            let runs = self.common.runs.max(3);
            let suite = match suite {
                QuerySuite::Tpch => &TPCH,
                QuerySuite::Ssb => &SSB,
                QuerySuite::Clickbench => &CLICKBENCH,
            };
            return suites::Run { suite, scale, runs, compare, duckdb, load_only }.run(&target);
        }
        let beside_datafusion: Option<(Measure, u64)> = match self.test {
            Test::Query { rows, .. } => Some((query::run, rows)),
            Test::InsertSelect { rows } => Some((insert_select::run, rows)),
            Test::KeyQueries { rows } => Some((keys::query, rows)),
            _ => None,
        };
        if let Some((run, rows)) = beside_datafusion {
            if self.common.against.is_some() {
                return Err(BenchError::Argument("--against: tests beside DataFusion have no turns".into()));
            }
            return run(&target, rows, self.common.runs.max(5));
        }
        if let Test::SchemaChange { rows } = self.test {
            return schema_change::run(&target, rows);
        }
        if let Test::LongRun { commits, open } = &self.test {
            let Common { seconds, plot, json, .. } = &self.common;
            let time = Duration::from_secs_f64(*seconds);
            let run = LongRun {
                time,
                commits: *commits,
                open: open.clone(),
                plot: plot.clone(),
                json: json.clone(),
            };
            return run.run(&target);
        }
        if let Test::Logins { rates } = &self.test {
            let (_, limit) = self.test.cells(&self.common);
            return logins::run(&target, rates, limit, self.common.runs.max(1));
        }
        if let Test::FlinkLike(test) = &self.test {
            if self.common.against.is_some() || self.common.plot.is_some() {
                return Err(BenchError::Argument("flink-like has neither --against nor --plot".into()));
            }
            let Common { seconds, warm_up, runs, json, .. } = &self.common;
            let times = [*warm_up, *seconds].map(Duration::from_secs_f64);
            return test.run(&target, times, (*runs).max(1), json.as_deref());
        }
        if let Test::ParquetLoad { rows, row_group_rows, shuffled } = self.test {
            let before = self.common.against.as_ref().map(|binary| target.with_program(binary.clone()));
            let file = parquet_load::File::of(rows, row_group_rows, shuffled)?;
            return parquet_load::run(&target, before.as_ref(), &file, self.common.runs.max(1));
        }
        match self.test {
            Test::PartitionsOfALoad { partitions, rows } => {
                return partitions::one_load(&target, partitions, rows);
            }
            Test::PartitionQueries { days, files } => {
                return partitions::one_day(&target, days, files, self.common.runs.max(11));
            }
            _ => {}
        }
        let (cells, limit) = self.test.cells(&self.common);
        let (runs, sends_again) = (self.common.runs.max(1), self.common.send_again);
        let suite = Suite { target, limit, runs, sends_again };
        if let Some(binary) = &self.common.against {
            let turns = suite.run_by_turns(&suite.target.with_program(binary.clone()), &cells)?;
            report::turns::print(&turns);
            return self.common.json.as_ref().map_or(Ok(()), |path| report::write_json(path, &turns));
        }
        let results = suite.run(&cells)?;
        report::table::print(&results);
        if let Some(path) = &self.common.json {
            report::write_json(path, &results)?;
        }
        if let Some(path) = &self.common.plot {
            report::plot::write(path, &results)?;
        }
        Ok(())
    }
}

impl Common {
    fn target(&self) -> Result<Target, BenchError> {
        let trust = self.tls.as_deref().map(Trust::only).transpose()?;
        if let Some(host) = self.host {
            let (query_port, http_port) = (self.query_port, self.http_port);
            return Ok(Target::Running(Address { host, query_port, http_port }, trust));
        }
        let settings = self.settings.iter().map(|setting| match setting.split_once('=') {
            Some((name, value)) => Ok((format!("TRIBUTARY_{}", name.to_uppercase()), value.to_owned())),
            None => Err(BenchError::Argument(format!("--set `{setting}`: expected NAME=VALUE"))),
        });
        let (program, directory) = (std::env::current_exe()?, self.directory.clone());
        Ok(Target::Start { program, directory, settings: settings.collect::<Result<_, _>>()?, trust })
    }
}

impl Test {
    fn cells(&self, common: &Common) -> (Vec<Cell>, Limit) {
        let limit = Limit::Time {
            warm_up: Duration::from_secs_f64(common.warm_up),
            measured: Duration::from_secs_f64(common.seconds),
        };
        let mut cells = Vec::new();
        match self {
            Self::StreamLoad { sizes, connections, modes, format, with_keys } => {
                for &mode in modes {
                    for &request_bytes in sizes {
                        for &connections in connections {
                            let form = Form::StreamLoad { request_bytes, format: *format };
                            let cell = Cell::new(form, mode, connections, 10_000);
                            cells.push(cell);
                            if *with_keys {
                                cells.push(Cell { has_key: true, ..cell });
                            }
                        }
                    }
                }
            }
            Self::Jdbc { connections, rows, modes } => {
                for &mode in modes {
                    let form = Form::Prepared { rows: *rows };
                    let cell = |&connections| Cell::new(form, mode, connections, 10_000);
                    cells.extend(connections.iter().map(cell));
                }
            }
            Self::SyncSmall { connections, intervals } => {
                cells = grid(Form::Prepared { rows: 1 }, connections, intervals);
            }
            Self::AsyncSmall { connections } => {
                let form = Form::Prepared { rows: 1 };
                let cell = |&connections| Cell::new(form, Mode::Async, connections, 10_000);
                cells.extend(connections.iter().map(cell));
            }
            Self::SyncLarge { connections, intervals, rows } => {
                cells = grid(Form::Text { rows: *rows }, connections, intervals);
            }
            Self::Steady { bytes, size, connections, rate } => {
                let form = Form::StreamLoad { request_bytes: *size, format: Format::Csv };
                let cell = Cell::new(form, Mode::Async, *connections, 10_000);
                cells.push(Cell { rate: *rate, ..cell });
                return (cells, Limit::Bytes(*bytes as u64));
            }
            Self::Keys { models, present, sizes, connections, bytes } => {
                for (&present, &size) in
                    present.iter().flat_map(|it| sizes.iter().map(move |size| (it, size)))
                {
                    let form = match size {
                        0 => Form::Prepared { rows: 1 },
                        request_bytes => Form::StreamLoad { request_bytes, format: Format::Csv },
                    };
                    let cell = Cell::new(form, Mode::Async, *connections, 10_000);
                    cells.extend(models.iter().map(|&model| Cell { keys: Keys { model, present }, ..cell }));
                }
                if let Some(bytes) = bytes {
                    return (cells, Limit::Bytes(*bytes as u64));
                }
            }
            Self::Partitions { days, sizes, connections, bytes } => {
                cells = partitions::cells(*days, sizes, *connections);
                if let Some(bytes) = bytes {
                    return (cells, Limit::Bytes(*bytes as u64));
                }
            }
            Self::Nested { sizes, connections } => {
                for (&request_bytes, &connections) in
                    sizes.iter().flat_map(|size| connections.iter().map(move |count| (size, count)))
                {
                    cells.extend([true, false].map(|are_texts| {
                        let form = Form::Events { request_bytes, are_texts };
                        Cell::new(form, Mode::Async, connections, 10_000)
                    }));
                }
            }
            Self::PartitionsOfALoad { .. }
            | Self::PartitionQueries { .. }
            | Self::Query { .. }
            | Self::InsertSelect { .. }
            | Self::ParquetLoad { .. }
            | Self::KeyQueries { .. }
            | Self::FlinkLike(_)
            | Self::Logins { .. }
            | Self::LongRun { .. }
            | Self::SchemaChange { .. } => (),
        }
        (cells, limit)
    }
}

fn grid(form: Form, connections: &[usize], intervals: &[u64]) -> Vec<Cell> {
    let cell = |connections, interval_ms| Cell::new(form, Mode::Sync, connections, interval_ms);
    connections.iter().flat_map(|&count| intervals.iter().map(move |&ms| cell(count, ms))).collect()
}

/// A number of bytes, with K, M or G for powers of 1,000.
fn bytes(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let number: usize =
        digits.parse().map_err(|_| format!("`{text}` is no number of bytes, like 500000, 500K or 20G"))?;
    Ok(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_units() {
        assert_eq!(bytes("10K"), Ok(10_000));
        assert_eq!(bytes("20G"), Ok(20_000_000_000));
        assert!(bytes("ten").is_err());
    }

    #[test]
    fn the_manuals_grid_has_published_figures() {
        let cells = grid(Form::Prepared { rows: 1 }, &[30, 100, 500], &crate::published::INTERVALS);
        assert_eq!(cells.len(), 12);
        assert!(cells.iter().all(|cell| cell.published().is_some()));
    }
}

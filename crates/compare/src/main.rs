//! The same loads against Tributary, MariaDB, PostgreSQL and QuestDB, one server after the other on the same
//! disk, every acknowledgement durable; a Markdown table of medians and ratios.
//!
//! | module | what it does |
//! | --- | --- |
//! | `load` | names the loads |
//! | `tables` | the tables in each server's SQL |
//! | `payload` | the rows of a load in each protocol |
//! | `requests` | connections with their requests, and the meaning of answers |
//! | `peer` | names the servers, and prepares and counts their tables |
//! | `servers` | starts and stops them in directories of their own |
//! | `upserts` | rows that replace others of large tables |
//! | `usage` | the CPU time of processes |
//! | `postgres`, `http` | as much of these protocols as is needed; MySQL's is in the crate `client` |
//! | `measure` | one measurement, by the loop of `tributary bench` |
//! | `report` | medians, ratios, Markdown |

#![allow(clippy::doc_markdown, reason = "PostgreSQL and InnoDB are names")]

mod http;
mod load;
mod measure;
mod payload;
mod peer;
mod postgres;
mod report;
mod requests;
mod servers;
mod tables;
mod upserts;
mod usage;

/// The rows that the micro-benchmarks decode.
#[allow(dead_code, reason = "each user of the file needs some of its rows")]
#[path = "../../decode/benches/data/rows.rs"]
mod rows;

use clap::Parser;
use load::LOADS;
use peer::{PEERS, Peer};
use report::{Results, Sample};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Directories and measuring times.
#[derive(Clone, Debug, Parser)]
#[command(about = "The same loads against Tributary, MariaDB, PostgreSQL and QuestDB")]
struct Options {
    /// How often every load is measured; medians are printed
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long one load is measured, in seconds
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// How long it runs before that, in seconds
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
    /// Instead: upserts into tables with this many rows, which are created once per server
    #[arg(long, value_name = "ROWS")]
    upserts: Option<u32>,
    /// Only servers whose name contains this
    #[arg(long)]
    peer: Option<String>,
    /// Only loads whose name contains this
    #[arg(long)]
    load: Option<String>,
    /// Data directories are made below this directory and removed at the end
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// Writes the tables to this file too
    #[arg(long)]
    markdown: Option<PathBuf>,
    #[arg(long, env = "TRIBUTARY", default_value = "target/release/tributary")]
    tributary: PathBuf,
    /// MariaDB's server
    #[arg(long, env = "MARIADBD", default_value = "/usr/sbin/mariadbd")]
    mariadbd: PathBuf,
    /// The directory of PostgreSQL's programs
    #[arg(long, env = "POSTGRES_BIN", default_value = "/usr/lib/postgresql/15/bin")]
    postgres_bin: PathBuf,
    #[arg(long, env = "QUESTDB_JAR", default_value = "questdb.jar")]
    questdb_jar: PathBuf,
    #[arg(long, env = "JAVA", default_value = "java")]
    java: PathBuf,
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let results = match options.upserts {
        Some(present) => upserts::run(&options, present)?,
        None => run(&options)?,
    };
    let text = results.markdown();
    println!("{text}");
    if let Some(path) = &options.markdown {
        std::fs::write(path, text)?;
    }
    Ok(())
}

impl Options {
    /// The warm-up and the measured time.
    fn times(&self) -> [Duration; 2] {
        [self.warm_up, self.seconds].map(Duration::from_secs_f64)
    }
}

fn is_wanted(filter: Option<&str>, name: &str) -> bool {
    filter.is_none_or(|part| name.contains(part))
}

fn run(options: &Options) -> Outcome<Results> {
    let mut results = Results::default();
    for round in 0..options.rounds {
        for peer in PEERS.iter().filter(|peer| is_wanted(options.peer.as_deref(), peer.name())) {
            let server = servers::start(*peer, options)?;
            for load in LOADS.iter().filter(|load| is_wanted(options.load.as_deref(), load.name)) {
                let sample = one(*peer, &server, load, options)
                    .map_err(|error| format!("{} at {}: {error}", load.name, peer.name()))?;
                eprintln!("round {}: {:<20} {:<26} {sample}", round + 1, peer.name(), load.name);
                results.add(load.name, *peer, sample);
            }
            server.stop()?;
        }
    }
    Ok(results)
}

/// Runs one load into an empty table, and verifies that every acknowledged row exists.
fn one(peer: Peer, server: &servers::Server, load: &load::Load, options: &Options) -> Outcome<Sample> {
    peer.create_table(server, load.table)?;
    // Dirty pages of earlier loads must not disturb this one.
    rustix::fs::sync();
    let mut connections = requests::connect(peer, server, load)?;
    let sample = measure::measure(server, &mut connections, options.times())?;
    let found = peer.count(server, load.table, sample.total_rows)?;
    if found != sample.total_rows {
        return Err(format!("{} rows were acknowledged, the table has {found}", sample.total_rows).into());
    }
    Ok(sample)
}

//! The same loads against Tributary, MariaDB, PostgreSQL and QuestDB, one server after the other on the same
//! disk, every acknowledgement durable; a Markdown table of medians and ratios.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `load` | which loads there are |
//! | `tables` | the tables in each server's SQL |
//! | `payload` | the rows of a load in each protocol |
//! | `peer` | which servers there are, and connecting to each |
//! | `servers` | starting and stopping them in directories of their own |
//! | `client/…` | one connection of each protocol |
//! | `measure` | connections that send until the time is over |
//! | `report` | medians, ratios, Markdown |

mod client;
mod load;
mod measure;
mod payload;
mod peer;
mod report;
mod servers;
mod tables;

/// The rows that the micro-benchmarks decode.
#[allow(dead_code)]
#[path = "../../../crates/decode/benches/data/rows.rs"]
mod rows;

use clap::Parser;
use load::LOADS;
use peer::{PEERS, Peer};
use report::{Results, Sample};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Where things are and how long to measure.
#[derive(Clone, Debug, Parser)]
#[command(about = "The same loads against Tributary, MariaDB, PostgreSQL and QuestDB")]
pub struct Options {
    /// How often every load is measured; medians are printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long one load runs, in seconds.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Only peers whose name contains this.
    #[arg(long)]
    peer: Option<String>,
    /// Only loads whose name contains this.
    #[arg(long)]
    load: Option<String>,
    /// Data directories are made below this directory and removed at the end.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// Writes the tables to this file too.
    #[arg(long)]
    markdown: Option<PathBuf>,
    #[arg(long, env = "TRIBUTARY", default_value = "target/release/tributary")]
    tributary: PathBuf,
    /// MariaDB's server.
    #[arg(long, env = "MARIADBD", default_value = "/usr/sbin/mariadbd")]
    mariadbd: PathBuf,
    /// The directory of PostgreSQL's programs.
    #[arg(long, env = "POSTGRES_BIN", default_value = "/usr/lib/postgresql/15/bin")]
    postgres_bin: PathBuf,
    #[arg(long, env = "QUESTDB_JAR", default_value = "questdb.jar")]
    questdb_jar: PathBuf,
    #[arg(long, env = "JAVA", default_value = "java")]
    java: PathBuf,
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let results = runtime.block_on(run(&options))?;
    let text = results.markdown();
    println!("{text}");
    if let Some(path) = &options.markdown {
        std::fs::write(path, text)?;
    }
    Ok(())
}

async fn run(options: &Options) -> Outcome<Results> {
    let is_wanted =
        |filter: &Option<String>, name: &str| filter.as_ref().is_none_or(|part| name.contains(part));
    let mut results = Results::default();
    for round in 0..options.rounds {
        for peer in PEERS.iter().filter(|peer| is_wanted(&options.peer, peer.name())) {
            let server = servers::start(*peer, options).await?;
            for load in LOADS.iter().filter(|load| is_wanted(&options.load, load.name)) {
                let sample = one(*peer, &server, load, options)
                    .await
                    .map_err(|error| format!("{} at {}: {error}", load.name, peer.name()))?;
                eprintln!("round {}: {:<20} {:<26} {sample}", round + 1, peer.name(), load.name);
                results.add(load.name, *peer, sample);
            }
            server.stop().await?;
        }
    }
    Ok(results)
}

/// One load into an empty table, and the check that every acknowledged row is there.
async fn one(peer: Peer, server: &servers::Server, load: &load::Load, options: &Options) -> Outcome<Sample> {
    peer.create_table(server, load.table).await?;
    // What earlier loads left to the kernel shall not disturb this one.
    tokio::task::spawn_blocking(rustix::fs::sync).await?;
    let duration = Duration::from_secs_f64(options.seconds);
    let sample = measure::measure(peer, server, load, duration).await?;
    let found = peer.count(server, load.table, sample.total_rows).await?;
    if found != sample.total_rows {
        return Err(format!("{} rows were acknowledged, the table has {found}", sample.total_rows).into());
    }
    Ok(sample)
}

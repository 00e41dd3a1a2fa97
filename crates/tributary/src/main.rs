//! The program: command line, configuration, start and stop of a server.

// The start of an engine is one deep future, whose layout this crate computes in a release build.
#![recursion_limit = "256"]

mod catalog;
mod certificate;
mod config;
mod listen;
mod log;
mod machine;
mod modes;
mod notices;
mod restore;
mod serve;
mod torture;
mod wal;

use clap::{Args, CommandFactory, Parser, Subcommand};
use config::{Config, ConfigError};
use std::path::PathBuf;
use std::process::ExitCode;

/// Loads allocate and free on different threads all the time, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Merges many small loads into large transactions of Delta Lake tables.
#[derive(Parser)]
#[command(name = "tributary", version, about, long_about = None)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts the server
    Serve(Sources),
    /// Prints all settings with their values, origins and meanings, as a configuration file
    Config(Sources),
    /// Measures a server with the loads of Doris's group commit manual
    Bench(tributary_bench::Bench),
    Load(Box<tributary_cli::Load>),
    Backup(tributary_cli::Backup),
    Restore(restore::Restore),
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    Sql(tributary_cli::Sql),
    Status(tributary_cli::Status),
    Verify(tributary_cli::Verify),
    #[command(hide = true)]
    Generate(tributary_cli::Generate),
    Torture(torture::TortureArgs),
    #[command(subcommand)]
    Wal(wal::WalCommand),
}

/// The sources of settings besides `TRIBUTARY_*` variables.
#[derive(Args, Default)]
struct Sources {
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of all data
    #[arg(long, value_name = "DIR")]
    storage_root_path: Option<String>,
    /// Address that the ports listen on
    #[arg(long, value_name = "ADDR")]
    bind: Option<String>,
    /// Port of the MySQL protocol; 0 picks a free one
    #[arg(long, value_name = "PORT")]
    query_port: Option<String>,
    /// Port of HTTP loads and APIs; 0 picks a free one
    #[arg(long, value_name = "PORT")]
    http_port: Option<String>,
    /// Second port of the HTTP service; 0 picks a free one
    #[arg(long, value_name = "PORT")]
    webserver_port: Option<String>,
    /// Only reads the tables of another server, by the settings of its store and its catalog
    #[arg(long)]
    read_only: bool,
}

impl Sources {
    fn load(self) -> Result<Config, ConfigError> {
        let pairs = [
            ("storage_root_path", self.storage_root_path),
            ("bind", self.bind),
            ("query_port", self.query_port),
            ("http_port", self.http_port),
            ("webserver_port", self.webserver_port),
            ("read_only", self.read_only.then(|| "true".to_owned())),
        ];
        let given = pairs.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        Config::load(self.config.as_deref(), std::env::vars_os(), given)
    }
}

fn main() -> ExitCode {
    modes::keep_private();
    machine::use_small_pages();
    // Each connection is an open file. Shells and services often allow 1,024 of them, and let a program ask for more.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        eprintln!("tributary: cannot raise the limit of open files: {error}");
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return tributary_cli::end_with(&error),
    };
    let outcome = match cli.command {
        Command::Serve(sources) => sources.load().map_err(Into::into).and_then(|config| serve::run(&config)),
        Command::Config(sources) => {
            sources.load().map(|config| print!("{}", config.describe())).map_err(Into::into)
        }
        Command::Bench(bench) => bench.run().map_err(Into::into),
        Command::Load(load) => return load.run(),
        Command::Backup(backup) => return backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Catalog(command) => command.run(),
        Command::Sql(sql) => return sql.run(),
        Command::Status(status) => return status.run(),
        Command::Verify(verify) => return verify.run(),
        Command::Generate(generate) => generate.run(Cli::command()).map_err(Into::into),
        Command::Torture(torture) => return torture.run(),
        Command::Wal(command) => match command.run() {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tributary: {error}");
            ExitCode::FAILURE
        }
    }
}

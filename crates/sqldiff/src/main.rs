//! `sqldiff`: compares answers. `scripts/sqldiff` starts the sides and runs it.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};
use tributary_sqldiff::check::{Check, Sides};
use tributary_sqldiff::known;
use tributary_sqldiff::report::{Finding, Report};
use tributary_sqldiff::run::{Plan, Shared};
use tributary_sqldiff::side::{DuckDb, MariaDb, Ours, SideError};

/// Compares the server's answers to random queries with those of MariaDB and DuckDB, and with its own
#[derive(Debug, Parser)]
struct Arguments {
    /// The server's address, such as 127.0.0.1:9030.
    #[arg(long)]
    server: String,
    /// The socket of a MariaDB whose root has no password; without it, its check is left out.
    #[arg(long)]
    mariadb: Option<PathBuf>,
    /// A Python that has the package duckdb; without it, its check is left out.
    #[arg(long)]
    duckdb: Option<PathBuf>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Queries of each seed's tables.
    #[arg(long, default_value_t = 200)]
    per_seed: u64,
    /// Only this query of each seed, as a finding names it.
    #[arg(long)]
    only: Option<u64>,
    /// Ends after this many queries
    #[arg(long)]
    queries: Option<u64>,
    /// Ends after this many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Connections that work at the same time; each waits for one side after the other.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Only these checks: mariadb, duckdb, split, column, prepared, derived, common, bare.
    #[arg(long, value_delimiter = ',')]
    checks: Vec<String>,
    /// A file of further known differences, such as findings that somebody is at work on.
    #[arg(long)]
    known: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sqldiff: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether there was nothing to find.
fn run(arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let mut rules = known::rules()?;
    if let Some(file) = &arguments.known {
        rules.extend(known::rules_of(&std::fs::read_to_string(file)?)?);
    }
    let checks = match &arguments.checks[..] {
        [] => Check::ALL.to_vec(),
        names => names.iter().map(|name| check(name)).collect::<Result<_, _>>()?,
    };
    let begun = Instant::now();
    // A query that is made again is one query.
    let queries = arguments.queries.or(arguments.only.map(|_| 1));
    let plan = Plan {
        seed: arguments.seed,
        per_seed: arguments.per_seed,
        only: arguments.only,
        queries: queries.unwrap_or(if arguments.seconds.is_some() { u64::MAX } else { 10_000 }),
        until: arguments.seconds.map(|seconds| begun + Duration::from_secs(seconds)),
        checks,
    };
    let jobs = if arguments.only.is_some() { 1 } else { arguments.jobs.max(1) };
    let next_seed = AtomicU64::new(plan.seed);
    let tell = |finding: &Finding| println!("{}", finding.script());
    let shared = Shared { plan, rules, report: Mutex::new(Report::default()), next_seed, tell: &tell };
    let ended = thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|job| {
                let shared = &shared;
                scope.spawn(move || shared.work(sides(arguments, job)?))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    });
    let report = shared.report.into_inner()?;
    print!("{}", report.summary(begun.elapsed()));
    // A side that fails ends its job; the queries of the others count.
    ended?;
    Ok(report.findings.is_empty())
}

fn check(name: &str) -> Result<Check, String> {
    let found = Check::ALL.into_iter().find(|check| check.name() == name);
    let names = Check::ALL.map(Check::name).join(", ");
    found.ok_or_else(|| format!("{name:?} is no check; there are {names}"))
}

/// The sides of a job. Each job has a database of its own.
fn sides(arguments: &Arguments, job: usize) -> Result<Sides, SideError> {
    let database = format!("sqldiff_{job}");
    let mut sides =
        Sides { ours: Box::new(Ours::new(&arguments.server, &database)), mariadb: None, duckdb: None };
    if let Some(socket) = &arguments.mariadb {
        sides.mariadb = Some(Box::new(MariaDb::new(socket, &database)));
    }
    if let Some(python) = &arguments.duckdb {
        sides.duckdb = Some(Box::new(DuckDb::start(python)?));
    }
    Ok(sides)
}

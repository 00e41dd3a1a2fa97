//! Plays seeds: one with its events, or a range of them on several threads.

use clap::Parser;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tributary_sim::{Counts, Outcome, libraries, run};

/// A deterministic simulation of Tributary's core: loads, crashes and bad disks, decided by a seed.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Play one seed.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Print the events of the seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Play the seeds FROM..TO (TO is not played).
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    seeds: Option<(u64, u64)>,
    /// How many seeds are played at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Go on after a violation.
    #[arg(long)]
    keep_going: bool,
    #[cfg(feature = "planted-bugs")]
    #[command(flatten)]
    planted: planted::Options,
}

fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").ok_or("a range is written FROM..TO, such as 0..1000")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("'{text}': {error}"));
    let range = (number(from)?, number(to)?);
    if range.0 < range.1 { Ok(range) } else { Err(format!("{text} has no seeds in it")) }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tributary_sim::quiet_panics();
    #[cfg(feature = "planted-bugs")]
    if let Some(code) = planted::main(&arguments.planted, arguments.jobs) {
        return code;
    }
    match (arguments.seed, arguments.seeds) {
        (Some(seed), _) => one(seed, arguments.trace),
        (None, Some(range)) => many(range, arguments.jobs.max(1), arguments.keep_going),
        (None, None) => many((0, 1000), arguments.jobs.max(1), arguments.keep_going),
    }
}

fn one(seed: u64, trace: bool) -> ExitCode {
    let outcome = run(seed, &libraries(), trace);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    println!("{}", outcome.counts);
    println!("seed {seed}, {} events, hash {:016x}", outcome.counts.events, outcome.hash);
    verdict(outcome.violation.is_none().then_some(()).ok_or(&outcome))
}

fn verdict(outcome: Result<(), &Outcome>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(outcome) => {
            println!("{}", outcome.report());
            ExitCode::FAILURE
        }
    }
}

fn many((from, to): (u64, u64), jobs: usize, keep_going: bool) -> ExitCode {
    let started = Instant::now();
    let next = AtomicU64::new(from);
    let work = || {
        // One for each, or they would wait for one another's.
        let libraries = libraries();
        let mut counts = Counts::default();
        let mut failed = 0_u64;
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to {
                return (counts, failed);
            }
            let outcome = run(seed, &libraries, false);
            counts.add(&outcome.counts);
            if outcome.violation.is_some() {
                failed += 1;
                println!("{}", outcome.report());
                if !keep_going {
                    next.store(to, Ordering::Relaxed);
                }
            }
        }
    };
    let (counts, failed) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut sum = (Counts::default(), 0);
        for thread in threads {
            let (counts, failed) = thread.join().expect("a panic in a simulation is a violation of its own");
            sum.0.add(&counts);
            sum.1 += failed;
        }
        sum
    });
    println!("{counts}");
    let seconds = started.elapsed().as_secs_f64();
    println!("{failed} violations in {} seeds, {seconds:.1} s, {jobs} at a time", counts.seeds);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(feature = "planted-bugs")]
mod planted {
    //! The table of planted bugs: how many seeds each takes to be found.

    use clap::Args;
    use std::process::ExitCode;
    use tributary_sim::planted::{Bug, SEEDS_MAX, hunt};
    use tributary_sim::{libraries, run_with};

    #[derive(Args)]
    pub struct Options {
        /// Hunt every planted bug and print a table.
        #[arg(long)]
        pub hunt: bool,
        /// Play the seed with this bug.
        #[arg(long, value_name = "NAME", requires = "seed")]
        pub bug: Option<String>,
        /// The first seed of the hunt.
        #[arg(long, default_value_t = 0)]
        pub hunt_from: u64,
        /// Only bugs whose names contain this.
        #[arg(long, default_value = "")]
        pub only: String,
        #[arg(skip)]
        pub seed: Option<u64>,
    }

    pub fn main(options: &Options, _jobs: usize) -> Option<ExitCode> {
        if let Some(name) = &options.bug {
            let bug = Bug::ALL.iter().find(|bug| bug.name() == name);
            let Some(bug) = bug else {
                println!("no bug is called {name}");
                return Some(ExitCode::FAILURE);
            };
            let seed = std::env::args().skip_while(|argument| argument != "--seed").nth(1)?.parse().ok()?;
            let outcome = run_with(seed, &libraries(), true, Some(*bug));
            outcome.trace.iter().for_each(|line| println!("{line}"));
            return Some(ExitCode::SUCCESS);
        }
        if !options.hunt {
            return None;
        }
        let mut missed = 0;
        println!("| bug | seeds | found as |\n| --- | --- | --- |");
        for bug in Bug::ALL.iter().filter(|bug| bug.name().contains(&options.only)) {
            match hunt(*bug, options.hunt_from, &libraries()) {
                Some((seeds, outcome)) => {
                    let what = outcome.violation.map(|violation| violation.to_string()).unwrap_or_default();
                    let what = what.split(": Load").next().unwrap_or_default().replace('|', "/");
                    println!("| `{}` | {seeds} | {what} |", bug.name());
                }
                None => {
                    missed += 1;
                    println!("| `{}` | not within {SEEDS_MAX} | |", bug.name());
                }
            }
        }
        Some(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

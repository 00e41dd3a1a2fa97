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
    /// Play the seed with this planted bug, and print its events.
    #[arg(long, value_name = "NAME", requires = "seed")]
    bug: Option<String>,
    /// Hunt every planted bug and print a table of how many seeds each takes.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "bug"])]
    hunt: bool,
    /// The first seed of the hunt.
    #[arg(long, requires = "hunt", default_value_t = 0)]
    from: u64,
    /// Hunt only bugs whose names contain one of these, separated by commas.
    #[arg(long, requires = "hunt", value_delimiter = ',')]
    only: Vec<String>,
    /// Build the patched copy in the release profile: it takes longer to build and plays ten times as many seeds.
    #[arg(long)]
    release: bool,
    /// Rewrite the patches of planted bugs after the code around them has changed or moved
    #[arg(long, exclusive = true)]
    refresh: bool,
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
    if arguments.refresh || arguments.hunt || arguments.bug.is_some() {
        return planted::main(&arguments).unwrap_or_else(|problems| {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            ExitCode::FAILURE
        });
    }
    match (arguments.seed, arguments.seeds) {
        (Some(seed), _) => one(seed, arguments.trace),
        (None, Some(range)) => many(range, arguments.jobs.max(1), arguments.keep_going),
        (None, None) => many((0, 1000), arguments.jobs.max(1), arguments.keep_going),
    }
}

fn one(seed: u64, trace: bool) -> ExitCode {
    let play = || run(seed, &libraries(), trace);
    let outcome = std::thread::scope(|scope| tributary_sim::spawn(scope, play).join());
    let outcome = outcome.expect("a panic in a simulation is a violation of its own");
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
        let threads: Vec<_> = (0..jobs).map(|_| tributary_sim::spawn(scope, work)).collect();
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

mod planted {
    //! Planted bugs: the hunt, a look at one, and the preparation of their patches.

    use super::Arguments;
    use std::process::{Command, ExitCode};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tributary_sim::planted::{Bug, SEEDS_MAX, hunt, workspace};
    use tributary_sim::{libraries, run_with};

    pub fn main(arguments: &Arguments) -> Result<ExitCode, Vec<String>> {
        let root = workspace::root();
        if arguments.refresh {
            let written = workspace::refresh(&root)?;
            println!("{} patches written anew {}", written.len(), written.join(" "));
            return Ok(ExitCode::SUCCESS);
        }
        let all = Bug::all().map_err(|problem| vec![problem])?;
        let wanted: Vec<&Bug> = match &arguments.bug {
            Some(name) => all.iter().filter(|bug| bug.name == *name).collect(),
            None => all
                .iter()
                .filter(|bug| {
                    arguments.only.is_empty()
                        || arguments.only.iter().any(|part| bug.name.contains(part.as_str()))
                })
                .collect(),
        };
        if wanted.is_empty() {
            let names: Vec<&str> = all.iter().map(|bug| bug.name.as_str()).collect();
            return Err(vec![format!("no planted bug is called so; there are {}", names.join(", "))]);
        }
        if !wanted.iter().all(|bug| bug.is_built_in()) {
            return elsewhere(&workspace::build_patched(&root, arguments.release)?);
        }
        match (&arguments.bug, arguments.seed) {
            (Some(_), Some(seed)) => {
                let outcome = run_with(seed, &libraries(), true, Some(wanted[0]));
                outcome.trace.iter().for_each(|line| println!("{line}"));
                Ok(ExitCode::SUCCESS)
            }
            _ => Ok(hunt_all(&wanted, arguments.from, arguments.jobs.max(1))),
        }
    }

    /// Runs the program of the patched copy.
    fn elsewhere(program: &std::path::Path) -> Result<ExitCode, Vec<String>> {
        let status = Command::new(program).args(std::env::args_os().skip(1)).status();
        let status = status.map_err(|error| vec![format!("cannot run {}: {error}", program.display())])?;
        Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn hunt_all(bugs: &[&Bug], from: u64, jobs: usize) -> ExitCode {
        let (next, missed, printing) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(()));
        println!("| bug | seeds | found as |\n| --- | ---: | --- |");
        let work = || {
            let libraries = libraries();
            while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = hunt(bug, from, &libraries);
                let _printing = printing.lock();
                match found {
                    Some((seeds, outcome)) => {
                        let what =
                            outcome.violation.map(|violation| violation.to_string()).unwrap_or_default();
                        let what = what.split(": Load").next().unwrap_or_default().replace('|', "/");
                        println!("| `{}` | {seeds} | {what} |", bug.name);
                    }
                    None => {
                        missed.fetch_add(1, Ordering::Relaxed);
                        println!("| `{}` | not within {SEEDS_MAX} | |", bug.name);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            (0..jobs).for_each(|_| drop(tributary_sim::spawn(scope, work)));
        });
        if missed.into_inner() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

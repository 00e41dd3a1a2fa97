//! Seeds that the workspace's tests play. `TRIBUTARY_SIM_SEEDS` sets how many.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_sim::{Counts, libraries, run};

/// The number of seeds of a test run by default.
const SEEDS: u64 = 150;

#[test]
fn no_seed_breaks_a_promise() {
    let seeds = std::env::var("TRIBUTARY_SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    tributary_sim::quiet_panics();
    let next = AtomicU64::new(0);
    let work = || {
        let libraries = libraries();
        let mut counts = Counts::default();
        let mut broken = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return (counts, broken);
            }
            let outcome = run(seed, &libraries, false);
            counts.add(&outcome.counts);
            if outcome.violation.is_some() {
                broken.push(outcome.report());
                // One is enough to act on.
                next.store(seeds, Ordering::Relaxed);
            }
        }
    };
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut counts = Counts::default();
    let mut broken = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| tributary_sim::spawn(scope, work)).collect();
        for thread in threads {
            let (of_thread, of_thread_broken) = thread.join().expect("panics are violations");
            counts.add(&of_thread);
            broken.extend(of_thread_broken);
        }
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    println!("{counts}");
    // A simulation in which nothing happens proves nothing.
    for (what, count) in [
        (
            "loads acknowledged",
            counts.acknowledged_async.min(counts.acknowledged_sync).min(counts.acknowledged_off),
        ),
        ("two-phase loads committed", counts.committed_two_phase),
        ("recoveries", counts.recoveries),
        ("tables flushed by woken processes", counts.woken),
        ("power cuts", counts.power_cuts),
        ("torn tails", counts.torn_tails),
        ("flushes", counts.flushes),
        ("compactions", counts.compactions),
        ("truncations", counts.truncations),
        ("errors of syncs", counts.sync_errors),
        ("errors of writes", counts.write_errors),
        ("a full disk", counts.full_errors),
        ("lost answers", counts.answers_lost),
    ] {
        assert!(count * 100 >= seeds, "{what}: {count} in {seeds} seeds");
    }
}

#[test]
fn a_seed_gives_the_same_events_again() {
    tributary_sim::quiet_panics();
    let compare = || {
        let libraries = libraries();
        for seed in 0..20 {
            let first = run(seed, &libraries, true);
            let again = run(seed, &Arc::clone(&libraries), false);
            assert_eq!(first.hash, again.hash, "seed {seed}");
            assert_eq!(first.counts, again.counts, "seed {seed}");
            assert!(!first.trace.is_empty());
        }
        assert_ne!(run(1, &libraries, false).hash, run(2, &libraries, false).hash);
    };
    // The stack of a test's own thread is too small without optimisations.
    std::thread::scope(|scope| tributary_sim::spawn(scope, compare).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

//! Each planted bug is found within the stated number of seeds. Only with the feature `planted-bugs`.
#![cfg(feature = "planted-bugs")]

use std::sync::atomic::{AtomicUsize, Ordering};
use tributary_sim::libraries;
use tributary_sim::planted::{Bug, SEEDS_MAX, hunt};

#[test]
fn every_planted_bug_is_found() {
    tributary_sim::quiet_panics();
    let next = AtomicUsize::new(0);
    let work = || {
        let libraries = libraries();
        let mut missed = Vec::new();
        while let Some(bug) = Bug::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            match hunt(*bug, 0, &libraries) {
                Some((seeds, _)) => println!("{}: {seeds} seeds", bug.name()),
                None => missed.push(bug.name()),
            }
        }
        missed
    };
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let missed: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("panics are violations")).collect()
    });
    assert!(missed.is_empty(), "not found within {SEEDS_MAX} seeds: {missed:?}");
}

//! A deterministic simulation of the core: ingest, write-ahead log and tables run on one thread, on a simulated
//! disk, clock and scheduler, and everything that happens is decided by one seed.
//!
//! [`run`] plays one seed: clients load, query, truncate and change tables while the machine loses power, the disk fails, fills
//! up and tears writes; after every recovery and in every query the model ([`model`]) checks the promises. The same seed gives
//! the same events, so a seed that fails can be replayed.
//!
//! Real: `tributary-ingest`, `tributary-wal`, `tributary-table`, `tributary-decode`'s blocks, Parquet and the Delta libraries.
//! Simulated: the disk, the object store on it, the clock, the threads, and the catalog. Not its business: protocols, SQL, and
//! the operating system's own file system.

mod audits;
mod backups;
mod catalog;
mod changes;
pub mod channels;
mod clients;
mod counts;
pub mod deletes;
mod dice;
mod engines;
pub mod feeds;
pub mod folds;
pub mod increments;
pub mod keyed;
mod lying;
mod machine;
pub mod model;
pub mod order;
pub mod partial;
pub mod partition_changes;
pub mod partitions;
mod plan;
pub mod planted;
#[cfg(test)]
mod pressure;
mod process;
mod readers;
mod records;
pub mod recycle;
pub mod recycled;
pub mod rejected;
pub mod rights;
mod rows;
mod run;
#[cfg(test)]
mod scheduling;
mod shared_job;
pub mod shares;
pub mod sleepers;
mod store;
pub mod temporary;
mod together;
mod trace;
mod updates;
pub mod winners;
mod world;

pub use counts::Counts;
pub use model::Violation;
pub use plan::Plan;
pub use run::{Outcome, libraries, quiet_panics, run, run_with};

/// The stack of a thread that plays seeds, in bytes. Work that has a thread of its own on a real machine runs within the task that asks
/// for it here, and without optimisations the frames of both need more than the usual 2 MiB.
const STACK_BYTES: usize = 16 << 20;

/// Starts a thread that plays seeds.
///
/// # Panics
/// If the system has no thread.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> std::thread::ScopedJoinHandle<'scope, T> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn_scoped(scope, work).expect("the system has a thread for seeds")
}

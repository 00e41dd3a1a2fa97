//! The readers' view: immutable snapshots, rows in memory, and rows of one schema as rows of another.
//!
//! Not here: I/O, and swapping snapshots.

pub(crate) mod evolve;
pub(crate) mod memtable;
pub(crate) mod schema;
pub(crate) mod sent;
pub(crate) mod snapshot;

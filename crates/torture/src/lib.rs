//! Torture: the real server under concurrent writers of all modes, killed with SIGKILL at random
//! moments, started again, and every acknowledged row counted.
//!
//! The program under test is a child process and is reached only through its ports, as clients
//! reach it; this crate links nothing of the server. What is checked after every start:
//!
//! - every acknowledged row exists once (asynchronous ones after `SYNC`);
//! - of every other load all rows exist or none, and none of a load that was refused;
//! - a label is used exactly if its load exists; a prepared two-phase load can be committed or aborted;
//! - rows that a query saw before the kill still exist;
//! - every partition that clients load into, empty, drop, add, overwrite and replace has the rows that the order of that leaves;
//! - every key of a table with unique keys has the row that the order of loads or their sequences decide.
//!
//! Meanwhile readers check that counts only grow and that no query ever sees half of a load, or two rows of a unique key.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `run` | rounds of writing, killing, starting and checking |
//! | `full_disk` | the same on a file system that fills up and is freed again |
//! | `server` | the child process |
//! | `writers`, `reader` | the clients |
//! | `upserts` | the same for tables with one row for each key: the clients, their books and the check |
//! | `divided` | the same for tables in partitions, whose partitions are changed meanwhile |
//! | `changes` | a client that changes columns of a table, by light and heavy changes |
//! | `keyed` | loads with names, sent again and again through a proxy that cuts connections, each counted once |
//! | `load` | the rows of a load, so that they can be written, repeated and recognised |
//! | `books` | sent, acknowledged and refused loads |
//! | `check` | the books against the tables |
//! | `report` | the figures |
//! | `rights` | a client that grants and revokes rights, creates and drops users and changes a password |
//! | `doors` | the server's ports, its certificate, and who logs in |
//! | `stream`, `mysql`, `http` | connections to the server; as much of HTTP as the clients need |

mod books;
mod changes;
mod check;
mod divided;
mod doors;
mod full_disk;
mod http;
mod keyed;
mod load;
mod mysql;
mod reader;
mod report;
mod rights;
mod run;
mod server;
mod upserts;
mod writers;

pub use keyed::KeyedFigures;
pub use report::{Figures, ModeFigures, Report};
pub use rights::RightsFigures;
pub use run::run;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's program; it is run as `PROGRAM serve …`.
    pub program: PathBuf,
    /// Directory for data and the server's log. It must be empty or not exist.
    pub directory: PathBuf,
    /// How long new rounds are begun; the last round and the last check take additional time.
    pub duration: Duration,
    /// Decides loads, moments of kills and settings. The threads' timing is not repeated.
    pub seed: u64,
    /// Concurrent writers, at least 1; 12 have each way to write once.
    pub writers: usize,
    /// Put the data on a file system that fills up and is freed again.
    pub full_disk: bool,
    /// Resident memory of a server, in bytes, above which the run reports a violation.
    pub memory_max_bytes: u64,
    /// Settings of the server that override torture's own: name and value.
    pub settings: Vec<(String, String)>,
    /// Require TLS, give each kind of client a user of its own, and change rights meanwhile.
    pub secure: bool,
    /// Send loads with idempotency keys and channels through a proxy that cuts connections, and nothing else.
    pub keyed: bool,
    /// Loads with keys after whose acknowledgement the run ends, instead of by its duration.
    pub loads: Option<u64>,
    /// Kills that a run with keys spreads over its loads or its duration; `None`: at random moments.
    pub kills: Option<u64>,
    /// One in this many loads with keys is looked for by another connection, with its receipt; at least 1.
    pub looked_for_one_in: u32,
    /// Called with the data directory after each kill: for tests that prove that torture detects loss.
    pub sabotage: Option<fn(&Path)>,
}

/// Reasons why torture could not run. A violation is not an error but part of the [`Report`].
#[derive(Debug, thiserror::Error)]
pub enum TortureError {
    /// The machine lacks something; nothing was tested.
    #[error("{0}")]
    Impossible(String),
    /// Setting up failed.
    #[error("torture: {0}")]
    Setup(String),
}

/// A line about the progress.
pub type Progress<'a> = &'a (dyn Fn(&str) + Sync);

//! The process: its identity, logs and options, its names and metrics, and space for bodies.
//!
//! Not its business: statements, loads, sessions.

pub(crate) mod clock;
pub(crate) mod host;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod node_file;
pub(crate) mod options;
pub(crate) mod start_error;
pub(crate) mod wal_dirs;

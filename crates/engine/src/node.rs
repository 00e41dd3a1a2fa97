//! The process: its identity, logs and options, its metrics, and space for bodies.
//!
//! Not here: statements, loads, sessions.

pub(crate) mod catalog_place;
pub(crate) mod clock;
pub(crate) mod health;
pub(crate) mod host;
pub(crate) mod metrics;
pub(crate) mod node_file;
pub(crate) mod options;
pub(crate) mod session_memory;
pub(crate) mod start_error;
pub(crate) mod state_dir;
pub(crate) mod table_storage;
pub(crate) mod wal_dirs;

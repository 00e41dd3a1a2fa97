//! One segment file: its format, its reader and its writer.
//!
//! Invariant: a file called `wal-*.log` has a valid header whose first LSN is the one in its name; header
//! and name are durable before the first frame is written. Not its business: which segments there are.

pub(crate) mod closed;
pub(crate) mod format;
pub(crate) mod reader;
pub(crate) mod writer;

//! Changes of files that leave rows unchanged: work under the log's lock, and the entry that it writes.
//!
//! Not here: the rows, columns and partitions of the table.

pub(super) mod commit;
pub(super) mod compact;
pub(super) mod copy;
pub(super) mod delete;
pub(super) mod divide;
pub(super) mod flush;
pub(super) mod others;
pub(super) mod sweep;
pub(super) mod update;

//! Rows stay and files change: the work of whoever holds the log's lock, and the entry that it writes.
//!
//! Not here: which rows there are, and what columns and partitions the table has.

pub(super) mod commit;
pub(super) mod compact;
pub(super) mod copy;
pub(super) mod delete;
pub(super) mod flush;
pub(super) mod sweep;

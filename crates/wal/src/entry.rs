//! An entry: what users of the log write and read back.

use bytes::Bytes;
use tributary_types::{Lsn, TableId, TxnId};

/// One event. The log orders and stores entries; it interprets only the length of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The type of the body; its meaning belongs to the writer.
    pub kind: u8,
    pub table: TableId,
    pub txn: TxnId,
    /// A number of the writer's own, such as a load's number in its transaction.
    pub tag: u32,
    /// Written unchanged; a large one is not copied on its way to the disk.
    pub body: Bytes,
}

/// The position of a submission's entries in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The LSN of the first entry. Equal to `end` for a submission without entries.
    pub first: Lsn,
    /// The LSN just after the last entry: `release(end)` declares that this submission is no longer
    /// needed.
    pub end: Lsn,
}

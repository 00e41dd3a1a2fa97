//! What the entries of the write-ahead log mean.
//!
//! | kind | body | meaning |
//! | --- | --- | --- |
//! | 0 `Skipped` | zeros | a repair put it in place of damaged bytes: entries before it may be missing |
//! | 1 `DataAsync` | block | rows of an acknowledged async load: committed even if the group's commit is missing |
//! | 2 `DataHeld` | block | rows that count only if a commit of their transaction follows |
//! | 3 `Commit` | JSON [`CommitBody`] | the transaction's rows are durable and visible |
//! | 4 `Prepare` | JSON [`PrepareBody`] | a two-phase load waits for its commit or abort |
//! | 5 `Abort` | JSON [`AbortBody`] | the transaction's rows count for nothing |
//! | 6 `Truncate` | JSON [`TruncateBody`] | all rows of lower versions are gone |
//!
//! The tag of a data entry is the load's number in its transaction.
//!
//! Bodies in JSON are few (one per transaction) and may gain fields; a reader ignores fields that
//! it does not know and fills those that are missing.

use serde::{Deserialize, Serialize};
use tributary_decode::Block;
use tributary_table::DataFile;
use tributary_types::{DbId, Label, TableId, TxnId, Version};
use tributary_wal::Entry;

/// The kinds of entries.
pub mod kind {
    pub const SKIPPED: u8 = tributary_wal::SKIPPED;
    pub const DATA_ASYNC: u8 = 1;
    pub const DATA_HELD: u8 = 2;
    pub const COMMIT: u8 = 3;
    pub const PREPARE: u8 = 4;
    pub const ABORT: u8 = 5;
    pub const TRUNCATE: u8 = 6;
}

/// A committed transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitBody {
    pub version: Version,
    pub db: DbId,
    pub label: Label,
    /// The label was chosen by a client and must stay unique.
    #[serde(default)]
    pub label_is_kept: bool,
    #[serde(default)]
    pub is_group: bool,
    pub loads: u32,
    pub rows: u64,
    pub bytes: u64,
    pub prepared_at_ms: i64,
    pub committed_at_ms: i64,
    /// Data files that hold rows of the transaction; they were durable before this record.
    #[serde(default)]
    pub files: Vec<DataFile>,
    /// Loads whose data entries do not count: their clients were told that they failed.
    #[serde(default)]
    pub excluded: Vec<u32>,
}

/// A two-phase load that is durable and waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareBody {
    pub db: DbId,
    pub label: Label,
    pub rows: u64,
    pub bytes: u64,
    pub prepared_at_ms: i64,
    #[serde(default)]
    pub files: Vec<DataFile>,
}

/// A transaction that will never be visible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbortBody {
    pub db: DbId,
    pub label: Label,
    pub reason: String,
}

/// A table that was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TruncateBody {
    pub version: Version,
}

/// The entry of one block of rows. The block's bytes are shared, not copied.
#[must_use]
pub fn data(kind: u8, table: TableId, txn: TxnId, load: u32, block: &Block) -> Entry {
    Entry { kind, table, txn, tag: load, body: block.bytes().clone() }
}

/// An entry whose body is JSON.
#[must_use]
pub fn json<T: Serialize>(kind: u8, table: TableId, txn: TxnId, body: &T) -> Entry {
    let body = serde_json::to_vec(body).expect("bodies are plain structs of numbers and strings");
    Entry { kind, table, txn, tag: 0, body: body.into() }
}

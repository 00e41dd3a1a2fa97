//! The rejected rows of a load as bytes: the body of an entry of the log, and a record of a file.
//!
//! A body is JSON. A record of a file is little-endian: length of the body (u32), CRC-32C of what follows (u32), table (u64),
//! transaction (u64), number of the load (u32), 1 if it brings rejected rows of other loads again (u8), body.

use super::{LoadRejects, RejectedLoad, ReplayedRows};
use crate::recovery::record::{self, Body, Format, kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tributary_decode::Reject;
use tributary_types::{Label, TableId, TxnId};
use tributary_wal::Entry;

/// Bytes of a record before its body.
const HEAD_BYTES: usize = 29;

/// The rejected rows of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejectedBody {
    #[serde(default = "record::format_1")]
    pub format: Format,
    pub label: Label,
    pub at_ms: i64,
    /// They count even if no commit of their transaction follows.
    #[serde(default)]
    pub is_acknowledged: bool,
    /// How many rows were rejected, kept or not.
    pub filtered: u64,
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub rows: Vec<Reject>,
    /// Rejected rows of other loads that this one brings again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<ReplayedRows>,
}

impl RejectedBody {
    pub(crate) fn of(load: &RejectedLoad, is_acknowledged: bool) -> Self {
        Self {
            format: Format::default(),
            label: load.label.clone(),
            at_ms: load.at_ms,
            is_acknowledged,
            filtered: load.rejects.filtered,
            source: load.rejects.source.clone(),
            rows: load.rejects.rows.clone(),
            replays: load.rejects.replays.clone(),
        }
    }

    /// The load with a number in its transaction.
    pub(crate) fn load(self, (table, txn, load): (TableId, TxnId, u32)) -> RejectedLoad {
        let Self { filtered, source, rows, replays, .. } = self;
        let rejects = LoadRejects { filtered, source, rows, replays };
        let (label, at_ms) = (self.label, self.at_ms);
        RejectedLoad { table, txn, load, label, at_ms, rejects, replayed_by: BTreeMap::new() }
    }
}

impl Body for RejectedBody {
    fn format(&self) -> Format {
        self.format
    }
}

/// The entry of a load's rejected rows.
pub(crate) fn rejected_entry(load: &RejectedLoad, body: &RejectedBody) -> Entry {
    Entry { tag: load.load, ..record::json(kind::REJECTED, load.table, load.txn, body) }
}

/// Adds a record.
pub(super) fn push(load: &RejectedLoad, to: &mut Vec<u8>) {
    let body = serde_json::to_vec(&RejectedBody::of(load, true)).expect("a struct of numbers and strings");
    let start = to.len();
    to.extend_from_slice(&(body.len() as u32).to_le_bytes());
    to.extend_from_slice(&[0; 4]);
    to.extend_from_slice(&load.table.0.to_le_bytes());
    to.extend_from_slice(&load.txn.0.to_le_bytes());
    to.extend_from_slice(&load.load.to_le_bytes());
    to.push(u8::from(!load.rejects.replays.is_empty()));
    to.extend_from_slice(&body);
    let sum = crc32c::crc32c(&to[start + 8..]);
    to[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

/// A record whose body is not read yet.
pub(super) struct Record<'a> {
    pub table: TableId,
    pub txn: TxnId,
    pub load: u32,
    pub has_replays: bool,
    body: &'a [u8],
}

impl Record<'_> {
    /// Reads the body. `None`: it is of a newer server.
    pub fn read(&self) -> Option<RejectedLoad> {
        let body: RejectedBody = serde_json::from_slice(self.body).ok()?;
        Some(body.load((self.table, self.txn, self.load)))
    }
}

/// Takes the next record of `bytes`. `None`: there is no whole one.
pub(super) fn next<'a>(bytes: &mut &'a [u8]) -> Option<Record<'a>> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let short = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let (body, rest) = rest.split_at_checked(short(0) as usize)?;
    if crc32c::crc32c_append(crc32c::crc32c(&head[8..]), body) != short(4) {
        return None;
    }
    *bytes = rest;
    Some(Record {
        table: TableId(long(8)),
        txn: TxnId(long(16)),
        load: short(24),
        has_replays: head[28] == 1,
        body,
    })
}

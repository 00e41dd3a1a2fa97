//! Describes the log's entries, and the loss of some of them, for `tributary wal`.
//!
//! Nothing here changes anything.

use crate::recovery::record::{
    AbortBody, CommitBody, CutBody, PrepareBody, RejectedBody, TruncateBody, kind, read, read_kept,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tributary_decode::Block;
use tributary_types::TableId;
use tributary_wal::Entry;

/// An entry of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EntryFacts {
    /// `data_async`, `data_held`, `commit`, `prepare`, `abort`, `truncate`, `cut`, `key`, `channel`, `rejected`, `skipped` or `unknown`.
    pub kind: &'static str,
    pub table: u64,
    pub txn: u64,
    /// The load's number in its transaction; of data, keys and rejected rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<u32>,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Loads of a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<u32>,
    /// Data files that a commit names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<usize>,
    /// Why the body can't be read, if it can't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Describes an entry.
#[must_use]
pub fn describe(entry: &Entry) -> EntryFacts {
    let mut facts = EntryFacts {
        kind: kind_name(entry.kind),
        table: entry.table.0,
        txn: entry.txn.0,
        bytes: entry.body.len() as u64,
        ..EntryFacts::default()
    };
    if let Err(why) = describe_body(entry, &mut facts) {
        facts.unreadable = Some(why);
    }
    facts
}

fn kind_name(number: u8) -> &'static str {
    match number {
        kind::SKIPPED => "skipped",
        kind::DATA_ASYNC => "data_async",
        kind::DATA_HELD => "data_held",
        kind::COMMIT => "commit",
        kind::PREPARE => "prepare",
        kind::ABORT => "abort",
        kind::TRUNCATE => "truncate",
        kind::CUT => "cut",
        kind::KEY => "key",
        kind::CHANNEL => "channel",
        kind::REJECTED => "rejected",
        _ => "unknown",
    }
}

fn describe_body(entry: &Entry, facts: &mut EntryFacts) -> Result<(), String> {
    match entry.kind {
        kind::DATA_ASYNC | kind::DATA_HELD => {
            facts.load = Some(entry.tag);
            let block = Block::from_bytes(entry.body.clone()).map_err(|error| error.to_string())?;
            facts.rows = Some(block.row_count() as u64);
        }
        kind::COMMIT => {
            let body: CommitBody = read(entry)?;
            facts.rows = Some(body.rows);
            facts.version = Some(body.version.0);
            facts.label = Some(body.label.to_string());
            facts.loads = Some(body.loads);
            facts.files = Some(body.files.len());
        }
        kind::PREPARE => {
            let body: PrepareBody = read(entry)?;
            facts.rows = Some(body.rows);
            facts.label = Some(body.label.to_string());
            facts.files = Some(body.files.len());
        }
        kind::KEY | kind::CHANNEL => {
            facts.load = Some(entry.tag);
            let kept = read_kept(entry).ok_or("it is no record of a key or channel")?;
            let record = kept.record();
            facts.rows = Some(record.counts.loaded);
            facts.label = Some(record.label.label().to_string());
        }
        kind::REJECTED => {
            let body: RejectedBody = read(entry)?;
            facts.load = Some(entry.tag);
            facts.rows = Some(body.filtered);
            facts.label = Some(body.label.to_string());
        }
        kind::ABORT => facts.label = Some(read::<AbortBody>(entry)?.label.to_string()),
        kind::TRUNCATE => facts.version = Some(read::<TruncateBody>(entry)?.version.0),
        kind::CUT => facts.version = Some(read::<CutBody>(entry)?.version.0),
        _ => {}
    }
    Ok(())
}

/// The losses of giving up entries, by table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses(BTreeMap<u64, TableLoss>);

/// The loss of one table, unless the rows are in its data files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableLoss {
    /// Rows of entries with data.
    pub rows: u64,
    /// Loads that were acknowledged although no commit followed yet.
    pub async_loads: u64,
    pub transactions: BTreeSet<u64>,
    pub commits: u64,
    /// Prepared two-phase loads.
    pub prepared: u64,
    /// Idempotency keys and offsets of channels: loads with them would be taken again.
    pub keys: u64,
    /// Loads whose rejected rows would not be found.
    pub rejected: u64,
    /// Aborts: the aborted loads would wait again.
    pub aborts: u64,
    /// Truncations, including those of partitions: the removed rows would come back.
    pub truncations: u64,
    /// Entries that can't be read.
    pub unreadable: u64,
}

impl Losses {
    /// Adds an entry.
    pub fn add(&mut self, entry: &Entry) {
        let facts = describe(entry);
        let loss = self.0.entry(facts.table).or_default();
        loss.transactions.insert(facts.txn);
        // Its rows can't be counted, but that it is a load, or a commit, still shows.
        loss.unreadable += u64::from(facts.unreadable.is_some() || facts.kind == "unknown");
        match entry.kind {
            kind::DATA_ASYNC => {
                loss.async_loads += 1;
                loss.rows += facts.rows.unwrap_or(0);
            }
            kind::DATA_HELD => loss.rows += facts.rows.unwrap_or(0),
            kind::COMMIT => loss.commits += 1,
            kind::PREPARE => loss.prepared += 1,
            kind::KEY | kind::CHANNEL => loss.keys += 1,
            kind::REJECTED => loss.rejected += 1,
            kind::ABORT => loss.aborts += 1,
            kind::TRUNCATE | kind::CUT => loss.truncations += 1,
            _ => {}
        }
    }

    /// Whether nothing is lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every table's loss, in the order of their ids.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &TableLoss)> {
        self.0.iter().map(|(&table, loss)| (TableId(table), loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::record;
    use crate::recovery::record::Format;
    use tributary_types::{DbId, Label, TxnId, Version};

    fn commit() -> Entry {
        let body = CommitBody {
            format: Format::default(),
            kind: None,
            version: Version(5),
            db: DbId(1),
            label: Label::new("mine").expect("a label"),
            label_is_kept: true,
            is_group: false,
            loads: 1,
            rows: 3,
            bytes: 30,
            prepared_at_ms: 0,
            committed_at_ms: 0,
            files: Vec::new(),
            replaces: None,
            excluded: Vec::new(),
            source: None,
            attachment: None,
        };
        record::json(kind::COMMIT, TableId(7), TxnId(9), &body)
    }

    #[test]
    fn a_commit_is_told_with_its_version_and_label() {
        let facts = describe(&commit());
        assert_eq!((facts.kind, facts.table, facts.txn), ("commit", 7, 9));
        assert_eq!((facts.version, facts.rows, facts.label.as_deref()), (Some(5), Some(3), Some("mine")));
    }

    #[test]
    fn a_body_that_is_garbage_is_told_as_unreadable() {
        for kind in
            [kind::DATA_ASYNC, kind::DATA_HELD, kind::COMMIT, kind::PREPARE, kind::ABORT, kind::TRUNCATE]
        {
            let entry = Entry { kind, body: b"{garbage".as_slice().into(), ..commit() };
            assert!(describe(&entry).unreadable.is_some(), "{kind}");
            let mut losses = Losses::default();
            losses.add(&entry);
            assert_eq!(losses.tables().next().map(|(_, loss)| loss.unreadable), Some(1));
        }
    }

    #[test]
    fn losses_are_summed_by_table() {
        let mut losses = Losses::default();
        assert!(losses.is_empty());
        losses.add(&commit());
        losses.add(&commit());
        let all: Vec<_> = losses.tables().collect();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].0, all[0].1.commits, all[0].1.transactions.len()), (TableId(7), 2, 1));
    }
}

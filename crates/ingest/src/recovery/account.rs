//! Counts the rows of tables by what the logs say, as a start would replay them.
//!
//! An account of the running server: the logs have what was acknowledged, whatever memory has. It is independent of queues, memtables
//! and snapshots on purpose, so that it can be compared with them.
//!
//! Nothing here changes anything.

use crate::recovery::record::{CommitBody, CutBody, PrepareBody, TruncateBody, kind, read};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use tributary_decode::Block;
use tributary_table::Replaced;
use tributary_types::{TableId, TxnId, Version};
use tributary_wal::Entry;

/// A table as the logs have it beyond its data files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedTable {
    changes: BTreeMap<Version, Change>,
    /// Rows of acknowledged loads in groups without a commit, by the groups' transactions.
    pub waiting: BTreeMap<TxnId, u64>,
    /// Sentences about entries that contradict each other or can't be read.
    pub faults: Vec<String>,
}

/// The effect of a version on the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Adds(u64),
    /// Its rows take the place of all others.
    Replaces(u64),
    /// Rows of some partitions go, and perhaps others come.
    Unknown,
}

impl LoggedTable {
    fn later(&self, persisted: Version) -> impl Iterator<Item = Change> {
        self.changes.range((Bound::Excluded(persisted), Bound::Unbounded)).map(|(_, change)| *change)
    }

    /// Rows of commits after the version `persisted`.
    #[must_use]
    pub fn rows(&self, persisted: Version) -> u64 {
        let added = |change| match change {
            Change::Adds(rows) | Change::Replaces(rows) => rows,
            Change::Unknown => 0,
        };
        self.later(persisted).map(added).sum()
    }

    /// The number of rows after all changes, if there are `rows` at the version `persisted`. `None`: the logs do not say how many rows
    /// left with their partitions.
    #[must_use]
    pub fn rows_after(&self, persisted: Version, rows: u64) -> Option<u64> {
        self.later(persisted).try_fold(rows, |rows, change| match change {
            Change::Adds(more) => Some(rows + more),
            Change::Replaces(rows) => Some(rows),
            Change::Unknown => None,
        })
    }

    /// The last version that the logs make.
    #[must_use]
    pub fn last_version(&self) -> Option<Version> {
        self.changes.last_key_value().map(|(version, _)| *version)
    }

    /// Rows of acknowledged loads whose groups have no commit yet.
    #[must_use]
    pub fn waiting_rows(&self) -> u64 {
        self.waiting.values().sum()
    }
}

/// A load of a transaction, in the log.
#[derive(Clone, Copy, Debug, Default)]
struct LoadRows {
    rows: u64,
    is_async: bool,
}

/// A transaction without a commit or abort so far.
#[derive(Debug)]
struct Pending {
    table: TableId,
    loads: BTreeMap<u32, LoadRows>,
    /// It waits for its commit by the client.
    is_prepared: bool,
}

/// The account of all tables.
#[derive(Debug)]
pub struct LogAccount {
    /// A version of each table up to which all is in data files.
    persisted: HashMap<TableId, Version>,
    tables: HashMap<TableId, LoggedTable>,
    pending: BTreeMap<TxnId, Pending>,
}

impl LogAccount {
    /// An account of tables of which the data files have all rows up to the given versions. Other tables are passed over.
    #[must_use]
    pub fn new(persisted: HashMap<TableId, Version>) -> Self {
        let tables = persisted.keys().map(|&table| (table, LoggedTable::default())).collect();
        Self { persisted, tables, pending: BTreeMap::new() }
    }

    /// Adds an entry. Those of one log come in its order; the order of the logs does not matter.
    pub fn add(&mut self, entry: &Entry) {
        let Some(&persisted) = self.persisted.get(&entry.table) else { return };
        let outcome = match entry.kind {
            kind::DATA_ASYNC | kind::DATA_HELD => self.data(entry),
            kind::COMMIT => read(entry).map(|body| self.commit(entry, persisted, &body)),
            kind::PREPARE => read::<PrepareBody>(entry).map(|_| self.pending(entry).is_prepared = true),
            kind::ABORT => {
                self.pending.remove(&entry.txn);
                Ok(())
            }
            kind::TRUNCATE => read::<TruncateBody>(entry).map(|body| {
                self.change(entry.table, persisted, body.version, Change::Replaces(0));
            }),
            kind::CUT => read::<CutBody>(entry).map(|body| {
                self.change(entry.table, persisted, body.version, Change::Unknown);
            }),
            _ => Ok(()),
        };
        if let Err(why) = outcome {
            self.fault(entry.table, format!("an entry of transaction {} can't be read: {why}", entry.txn));
        }
    }

    /// The tables, when all entries were added.
    #[must_use]
    pub fn finish(mut self) -> HashMap<TableId, LoggedTable> {
        for (txn, pending) in std::mem::take(&mut self.pending) {
            if pending.is_prepared {
                continue;
            }
            let rows = pending.loads.values().filter(|load| load.is_async).map(|load| load.rows).sum();
            if let Some(table) = self.tables.get_mut(&pending.table).filter(|_| rows > 0) {
                table.waiting.insert(txn, rows);
            }
        }
        self.tables
    }

    fn pending(&mut self, entry: &Entry) -> &mut Pending {
        let table = entry.table;
        let begun = || Pending { table, loads: BTreeMap::new(), is_prepared: false };
        self.pending.entry(entry.txn).or_insert_with(begun)
    }

    fn data(&mut self, entry: &Entry) -> Result<(), String> {
        let block = Block::from_bytes(entry.body.clone()).map_err(|error| error.to_string())?;
        let load = self.pending(entry).loads.entry(entry.tag).or_default();
        load.rows += block.row_count() as u64;
        load.is_async |= entry.kind == kind::DATA_ASYNC;
        Ok(())
    }

    fn commit(&mut self, entry: &Entry, persisted: Version, body: &CommitBody) {
        let pending = self.pending.remove(&entry.txn);
        if body.version <= persisted {
            return;
        }
        let loads = pending.map(|pending| pending.loads).unwrap_or_default();
        let logged =
            loads.iter().filter(|(load, _)| !body.excluded.contains(load)).map(|(_, load)| load.rows);
        let in_files = body.files.iter().map(|file| file.rows);
        let rows: u64 = logged.chain(in_files).sum();
        if rows != body.rows {
            let said = body.rows;
            let text = format!(
                "the commit of version {} says that it has {said} rows, and the log has {rows}",
                body.version
            );
            self.fault(entry.table, text);
        }
        let change = match body.replaces.as_deref() {
            None => Change::Adds(rows),
            Some(Replaced::All) => Change::Replaces(rows),
            Some(_) => Change::Unknown,
        };
        self.change(entry.table, persisted, body.version, change);
    }

    fn change(&mut self, table: TableId, persisted: Version, version: Version, change: Change) {
        if version <= persisted {
            return;
        }
        let Some(logged) = self.tables.get_mut(&table) else { return };
        if logged.changes.insert(version, change).is_some() {
            logged.faults.push(format!("the log has version {version} twice"));
        }
    }

    fn fault(&mut self, table: TableId, text: String) {
        if let Some(logged) = self.tables.get_mut(&table) {
            logged.faults.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::record::{self, AbortBody, Format};
    use std::sync::Arc;
    use tributary_decode::BlockBuilder;
    use tributary_types::{ColumnDef, DataType, DbId, Label, SchemaVersion, TableSchema};

    const TABLE: TableId = TableId(7);

    fn block(rows: usize) -> Block {
        let schema = TableSchema::new(SchemaVersion(1), vec![ColumnDef::new(1, "c", DataType::BigInt)]);
        let mut builder = BlockBuilder::new(&Arc::new(schema));
        for row in 0..rows {
            builder.push_i64(0, row as i64);
            builder.finish_row();
        }
        builder.finish().unwrap()
    }

    fn data(kind: u8, txn: u64, load: u32, rows: usize) -> Entry {
        record::data(kind, TABLE, TxnId(txn), load, &block(rows))
    }

    fn label() -> Label {
        Label::new("mine").expect("a label")
    }

    fn commit(txn: u64, version: u64, rows: u64, excluded: &[u32], replaces: Option<Replaced>) -> Entry {
        let body = CommitBody {
            format: Format::default(),
            kind: None,
            version: Version(version),
            db: DbId(1),
            label: label(),
            label_is_kept: false,
            is_group: true,
            loads: 1,
            rows,
            bytes: 30,
            prepared_at_ms: 0,
            committed_at_ms: 0,
            files: Vec::new(),
            replaces: replaces.map(Arc::new),
            excluded: excluded.to_vec(),
            source: None,
            attachment: None,
        };
        record::json(kind::COMMIT, TABLE, TxnId(txn), &body)
    }

    fn account(entries: &[Entry]) -> LoggedTable {
        let mut account = LogAccount::new(HashMap::from([(TABLE, Version(1))]));
        entries.iter().for_each(|entry| account.add(entry));
        account.finish().remove(&TABLE).unwrap()
    }

    #[test]
    fn rows_of_commits_count_after_the_persisted_version() {
        let entries = [
            data(kind::DATA_HELD, 1, 0, 4),
            commit(1, 1, 4, &[], None),
            data(kind::DATA_ASYNC, 2, 0, 3),
            data(kind::DATA_ASYNC, 2, 1, 5),
            data(kind::DATA_HELD, 2, 2, 100),
            commit(2, 2, 8, &[2], None),
            data(kind::DATA_HELD, 3, 0, 2),
            commit(3, 3, 2, &[], Some(Replaced::All)),
        ];
        let logged = account(&entries);
        assert_eq!(logged.faults, Vec::<String>::new());
        assert_eq!(
            (logged.rows_after(Version(1), 10), logged.rows_after(Version(3), 10)),
            (Some(2), Some(10))
        );
        assert_eq!((logged.rows(Version(1)), logged.last_version()), (10, Some(Version(3))));
        assert_eq!(account(&entries[..6]).rows_after(Version(1), 10), Some(18));
    }

    #[test]
    fn acknowledged_rows_without_a_commit_wait_and_held_ones_do_not() {
        let logged = account(&[
            data(kind::DATA_ASYNC, 5, 0, 3),
            data(kind::DATA_HELD, 5, 1, 9),
            data(kind::DATA_HELD, 6, 0, 9),
            data(kind::DATA_ASYNC, 7, 0, 2),
            record::json(
                kind::ABORT,
                TABLE,
                TxnId(7),
                &AbortBody { format: Format::default(), db: DbId(1), label: label(), reason: String::new() },
            ),
        ]);
        assert_eq!(logged.waiting, BTreeMap::from([(TxnId(5), 3)]));
        assert_eq!((logged.waiting_rows(), logged.last_version()), (3, None));
    }

    #[test]
    fn a_commit_whose_rows_are_not_there_and_one_that_is_there_twice_are_faults() {
        let lost = account(&[data(kind::DATA_ASYNC, 2, 0, 3), commit(2, 2, 8, &[], None)]);
        assert!(lost.faults[0].contains("says that it has 8 rows, and the log has 3"), "{:?}", lost.faults);
        let twice = account(&[commit(2, 2, 0, &[], None), commit(3, 2, 0, &[], None)]);
        assert!(twice.faults[0].contains("version 2 twice"), "{:?}", twice.faults);
        let damaged = Entry { body: b"{".as_slice().into(), ..commit(2, 2, 0, &[], None) };
        assert!(account(&[damaged]).faults[0].contains("can't be read"));
    }
}

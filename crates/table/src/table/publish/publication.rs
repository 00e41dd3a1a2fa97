//! Making committed rows visible: a swap of the snapshot, no I/O.

use crate::error::TableError;
use crate::file::{DataFile, LiveFile, Settled, publish_names};
use crate::table::publish::cut;
use crate::table::{Pending, Table, Unflushed};
use crate::view::evolve::{adapt, assemble, civil_now_micros};
use crate::view::memtable::{MemPart, append, batch_bytes};
use crate::view::snapshot::Snapshot;
use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::{Lsn, Partitions, TableSchema, Version, host};

/// Rows of one transaction, committed in the write-ahead log.
#[derive(Debug)]
pub struct Publication {
    /// Greater than the snapshot's version. A commit that found no space in the write-ahead log
    /// leaves a gap.
    pub version: Version,
    /// The schema of `batches`. Rows of an older schema are adapted to the table's.
    pub schema: Arc<TableSchema>,
    /// Rows for the memtable, in the order of the write-ahead log. The order is preserved: in the memtable, in data files of a
    /// table without a key, and among rows of the same key in those of others.
    pub batches: Vec<RecordBatch>,
    /// Finished files of large loads, in the order of the log. Their rows follow those of `batches`.
    pub files: Vec<DataFile>,
    /// The rows of lower versions that these take the place of.
    pub replaces: Option<Arc<Replaced>>,
    /// All rows of `batches` have one of these partitions. `None`: that is not known, or the table has no partitions.
    pub partitions: Option<Arc<Partitions>>,
    /// The first byte of the write-ahead log that holds any of this.
    pub lsn: Lsn,
}

/// Rows of lower versions that a publication takes the place of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Replaced {
    All,
    /// The rows of these partitions, which themselves stay.
    In(Partitions),
}

impl Table {
    /// Makes the rows visible to every later [`Table::snapshot`]. Does no I/O and is not blocked
    /// by a flush; durability is the write-ahead log's.
    ///
    /// Readers see either all rows that it replaces, or all rows that it adds.
    ///
    /// Rows in `files` that were written before a column with a default was added show NULL there
    /// until the next flush has rewritten them.
    ///
    /// # Errors
    /// [`TableError::OutOfOrder`] and [`TableError::SchemaMismatch`]: nothing has changed. Both
    /// are mistakes of the caller.
    pub fn publish(&self, publication: Publication) -> Result<(), TableError> {
        let Publication { version, schema, batches, files, replaces, partitions, lsn } = publication;
        let since = host::now();
        let mut unflushed = self.unflushed.lock();
        let mut current = self.snapshot.load_full();
        check_order(&current, version)?;
        match replaces.as_deref() {
            None => {}
            Some(Replaced::All) => current = Arc::new(emptied(&mut unflushed, &current, version)),
            Some(Replaced::In(partitions)) => {
                current = Arc::new(cut::emptied(&mut unflushed, &current, version, partitions)?);
            }
        }
        assert!(unflushed.frozen_parts <= current.memtable.len(), "a flush took parts that are there");
        let have_partitions = match (&partitions, current.def.partitioning.partitions()) {
            (Some(known), Some(now)) => Arc::ptr_eq(known, now),
            _ => false,
        };
        let mut memtable = current.memtable.clone();
        for batch in batches {
            if batch.num_rows() == 0 {
                continue;
            }
            let mut batch = fit(&current, &schema, &batch)?;
            if !have_partitions {
                batch = cut::with_partition(&current.def, batch)?;
            }
            if batch.num_rows() == 0 {
                continue;
            }
            let first_row = self
                .unique
                .as_ref()
                .map(|unique| unique.next_row.fetch_add(batch.num_rows() as u64, Ordering::Relaxed));
            let part = MemPart {
                version,
                bytes: batch_bytes(&batch),
                batch,
                lsn,
                since,
                first_row: first_row.unwrap_or_default(),
                superseded: None,
                deletions: None,
                is_settled: first_row.is_none(),
            };
            let fixed = self.fixed_parts(&unflushed, &memtable);
            append(&mut memtable, fixed, part)?;
        }
        if !files.is_empty() {
            unflushed.last_files = version;
        }
        let settled = if self.unique.is_some() { Settled::No } else { Settled::Yes };
        // Skipped files are swept.
        publish_names(&self.root, files.iter().map(|file| file.path.as_str()));
        let has_partition = |file: &DataFile| cut::has_partition(&current.def, file);
        let files = files.into_iter().filter(has_partition).collect();
        let all_files = with_files(&current, files, version, settled);
        unflushed.active = Pending::join(unflushed.active, Some(Pending { lsn, since }));
        self.swap(&current, |next| {
            next.version = version;
            next.memtable = memtable;
            next.files = all_files;
        });
        Ok(())
    }

    /// Makes all rows of lower versions disappear for every later snapshot. The next flush removes
    /// their files from the Delta log.
    ///
    /// # Errors
    /// [`TableError::OutOfOrder`]: nothing has changed.
    pub fn publish_truncate(&self, version: Version, lsn: Lsn) -> Result<(), TableError> {
        let mut unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        check_order(&current, version)?;
        let pending = Pending { lsn, since: host::now() };
        unflushed.active = Pending::join(unflushed.active, Some(pending));
        let empty = emptied(&mut unflushed, &current, version);
        self.swap(&empty, |next| next.version = version);
        Ok(())
    }

    /// How many leading parts of a memtable may not be merged with later ones.
    fn fixed_parts(&self, unflushed: &Unflushed, memtable: &[Arc<MemPart>]) -> usize {
        if self.unique.is_none() {
            return unflushed.frozen_parts;
        }
        let before_files = memtable.iter().rposition(|part| part.version <= unflushed.last_files);
        unflushed.frozen_parts.max(unflushed.settled_parts).max(before_files.map_or(0, |index| index + 1))
    }

    /// Replaces `current` by a changed copy. The caller holds the unflushed lock, so no other swap intervenes.
    pub(in crate::table) fn swap(&self, current: &Snapshot, change: impl FnOnce(&mut Snapshot)) {
        let mut next = current.clone();
        change(&mut next);
        self.snapshot.store(Arc::new(next));
    }
}

/// The snapshot without rows, as of `version`.
fn emptied(unflushed: &mut Unflushed, current: &Snapshot, version: Version) -> Snapshot {
    unflushed.frozen_parts = 0;
    unflushed.settled_parts = 0;
    unflushed.truncated_at = version;
    unflushed.epoch += 1;
    unflushed.leaves(current.files.iter());
    Snapshot { memtable: Vec::new(), files: Arc::default(), ..current.clone() }
}

pub(in crate::table) fn check_order(current: &Snapshot, version: Version) -> Result<(), TableError> {
    let expected = current.version.next();
    if version >= expected {
        return Ok(());
    }
    Err(TableError::OutOfOrder {
        table: current.def.name.clone(),
        current: current.version,
        expected,
        given: version,
    })
}

/// The batch under the snapshot's own schema, so that all parts share one.
pub(in crate::table) fn fit(
    current: &Snapshot,
    schema: &TableSchema,
    batch: &RecordBatch,
) -> Result<RecordBatch, TableError> {
    let wanted = &current.def.schema;
    let fitted = if schema.version == wanted.version {
        assemble(&current.schema, batch.columns().to_vec(), batch.num_rows(), wanted)
    } else {
        adapt(batch, schema, wanted, &current.schema, civil_now_micros())
    };
    fitted.map_err(|error| match error {
        TableError::SchemaMismatch { schema_version, detail, .. } => {
            TableError::SchemaMismatch { table: current.def.name.clone(), schema_version, detail }
        }
        other => other,
    })
}

/// The snapshot's files and `files`, which are published as `version`.
fn with_files(
    current: &Snapshot,
    files: Vec<DataFile>,
    version: Version,
    settled: Settled,
) -> Arc<Vec<LiveFile>> {
    if files.is_empty() {
        return Arc::clone(&current.files);
    }
    let mut all = current.files.as_ref().clone();
    let live = |file| LiveFile { settled, ..LiveFile::from(DataFile { version, ..file }) };
    all.extend(files.into_iter().map(live));
    Arc::new(all)
}

//! Settling rows of a table with unique keys: which rows supersede which, in the memtable and in data files.
//!
//! A publication only appends. Whoever reads the table, or flushes it, settles first what was published since somebody did so;
//! what is found is swapped in beside further publications. The data files' keys are read from the files when they are
//! needed for the first time.

use super::{Table, UniqueKeys};
use crate::error::{TableError, blocking};
use crate::file::{Deletes, EncodedFile, FileReader, LiveFile, RowSet, Settled};
use crate::keys::{FileKeys, KeyHasher, Keys, Marks};
use crate::memtable::{MemPart, append};
use crate::root::TableRoot;
use crate::snapshot::Snapshot;
use arrow::array::UInt64Array;
use arrow::compute::take_record_batch;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tributary_types::{TableDef, TableSchema, Version};

/// Positions of rows by the paths of data files.
pub(super) type RowsOfFiles = HashMap<String, RowSet>;

/// What `def` needs to settle keys, if it has unique ones.
pub(super) fn unique_keys(def: &TableDef) -> Result<Option<UniqueKeys>, TableError> {
    if !def.keys.is_unique() {
        return Ok(None);
    }
    let hasher = Arc::new(KeyHasher::new(&def.schema)?);
    Ok(Some(UniqueKeys { hasher, keys: tokio::sync::Mutex::default(), next_row: AtomicU64::new(0) }))
}

impl Table {
    /// A snapshot that shows one row for each key, if the table has unique keys: all that was published before the call, and
    /// perhaps more. Where nothing is to be settled this takes no time.
    ///
    /// # Errors
    /// [`TableError::Storage`] and [`TableError::DamagedFile`]: the keys of a data file could not be read.
    pub async fn settled(&self) -> Result<Arc<Snapshot>, TableError> {
        let current = self.snapshot();
        let Some(unique) = self.unique.as_ref().filter(|_| !current.is_settled()) else { return Ok(current) };
        let mut keys = unique.keys.lock().await;
        self.settle(unique, &mut keys).await
    }

    /// [`Table::settled`] for whoever has the keys.
    pub(super) async fn settle(
        &self,
        unique: &UniqueKeys,
        keys: &mut Keys,
    ) -> Result<Arc<Snapshot>, TableError> {
        loop {
            let (current, truncated_at) = {
                let mut unflushed = self.unflushed.lock();
                let current = self.snapshot.load_full();
                if current.is_settled() {
                    return Ok(current);
                }
                unflushed.settled_parts = current.memtable.len();
                (current, unflushed.truncated_at)
            };
            self.read_keys(keys, &current.files).await?;
            let marks = compute(keys, &current, truncated_at, unique).await?;
            let known_at = keys.truncated_at.take();
            if let Some(settled) = self.swap_settled(&current, truncated_at, &marks)? {
                keys.truncated_at = known_at;
                return Ok(settled);
            }
            // A truncation came between, and what is in the memtable is something else. Its keys are read anew now, as after
            // an error: they have rows that no snapshot shows as settled.
        }
    }

    /// Reads the keys of those files that are not known, and forgets those of others.
    async fn read_keys(&self, keys: &mut Keys, files: &[LiveFile]) -> Result<(), TableError> {
        let paths: HashSet<&str> = files.iter().map(LiveFile::path).collect();
        keys.files.retain(|path, _| paths.contains(path.as_str()));
        for live in files {
            if !keys.files.contains_key(live.path()) {
                let of_file = self.keys_of(live).await?;
                keys.files.insert(live.path().to_owned(), of_file);
            }
        }
        Ok(())
    }

    /// The keys of all rows of a data file.
    pub(super) async fn keys_of(&self, live: &LiveFile) -> Result<Arc<FileKeys>, TableError> {
        let hasher = self.unique.as_ref().map(|unique| Arc::clone(&unique.hasher));
        let hasher = hasher.expect("only a table of unique keys asks for them");
        read_file_keys(&self.root, live, &self.def().schema, &hasher).await
    }

    /// Shows what was settled of `settled`. Returns what it shows then; `None` if a truncation came between.
    fn swap_settled(
        &self,
        settled: &Snapshot,
        truncated_at: Version,
        marks: &Marks,
    ) -> Result<Option<Arc<Snapshot>>, TableError> {
        let mut unflushed = self.unflushed.lock();
        if unflushed.truncated_at != truncated_at {
            return Ok(None);
        }
        let current = self.snapshot.load_full();
        let (known, later) = current.memtable.split_at(settled.memtable.len());
        let mut memtable = Vec::with_capacity(current.memtable.len());
        for (index, part) in known.iter().enumerate() {
            let part = with_marks(part, &marks.memtable);
            if index < unflushed.frozen_parts {
                memtable.push(Arc::new(part));
            } else {
                append(&mut memtable, unflushed.frozen_parts, part)?;
            }
        }
        let paths: HashSet<&str> = settled.files.iter().map(LiveFile::path).collect();
        let nothing = RowSet::new();
        let with_marks = |live: &LiveFile| match marks.files.get(live.path()) {
            _ if !paths.contains(live.path()) => live.clone(),
            None if live.settled == Settled::Yes => live.clone(),
            rows => live.with_more_deletes(rows.unwrap_or(&nothing)),
        };
        let files: Arc<Vec<LiveFile>> = Arc::new(current.files.iter().map(with_marks).collect());
        let is_all = later.is_empty() && files.len() == settled.files.len();
        let of_version = Snapshot {
            version: settled.version,
            memtable: memtable.clone(),
            files: if is_all {
                Arc::clone(&files)
            } else {
                Arc::new(files.iter().filter(|live| paths.contains(live.path())).cloned().collect())
            },
            ..current.as_ref().clone()
        };
        unflushed.settled_parts = memtable.len();
        memtable.extend(later.iter().cloned());
        self.swap(&current, |next| {
            next.memtable = memtable;
            next.files = files;
        });
        Ok(Some(Arc::new(of_version)))
    }

    /// Rows of the frozen memtable that later ones have superseded since, where they are in the files that it was written to.
    /// Settled rows change only while the keys are held.
    pub(super) fn superseded_since(
        &self,
        frozen: &Snapshot,
        written: &[(LiveFile, Arc<FileKeys>)],
    ) -> Result<RowsOfFiles, TableError> {
        let Some(unique) = &self.unique else { return Ok(RowsOfFiles::new()) };
        let current = self.snapshot();
        let mut found = RowsOfFiles::new();
        for (before, now) in frozen.memtable.iter().zip(&current.memtable) {
            let rows =
                |part: &MemPart| part.superseded.as_ref().map(|rows| RowSet::clone(rows)).unwrap_or_default();
            let since = rows(now) - rows(before);
            if since.is_empty() {
                continue;
            }
            let places: UInt64Array = since.iter().collect();
            let batch = take_record_batch(&now.batch, &places)
                .map_err(TableError::arrow("taking superseded rows out of a memtable"))?;
            for hash in unique.hasher.of_batch(&batch)? {
                mark(&mut found, written, |keys| keys.find(hash).collect());
            }
        }
        Ok(found)
    }

    /// Rows that were deleted from files since they were read to be rewritten, where they are in the files that took their
    /// place. `now` has the files as they are now.
    pub(super) fn carried(
        read: &[LiveFile],
        now: impl Fn(&str) -> Option<LiveFile>,
        keys: &Keys,
        written: &[(LiveFile, Arc<FileKeys>)],
    ) -> RowsOfFiles {
        let mut found = RowsOfFiles::new();
        for before in read {
            let since = now(before.path()).map(|now| now.deleted_since(before)).unwrap_or_default();
            if since.is_empty() {
                continue;
            }
            let of_file =
                keys.files.get(before.path()).expect("the rows were found by the keys of their file");
            for (hash, _) in of_file.entries().filter(|(_, row)| since.contains((*row).into())) {
                mark(&mut found, written, |keys| keys.find(hash).collect());
            }
        }
        found
    }
}

fn mark(
    found: &mut RowsOfFiles,
    written: &[(LiveFile, Arc<FileKeys>)],
    find: impl Fn(&FileKeys) -> Vec<u32>,
) {
    for (live, keys) in written {
        for row in find(keys) {
            found.entry(live.path().to_owned()).or_default().insert(row.into());
        }
    }
}

/// Settles on a thread of its own. If the caller gives up meanwhile, the memtable's keys are read anew next time.
async fn compute(
    keys: &mut Keys,
    snapshot: &Arc<Snapshot>,
    truncated_at: Version,
    unique: &UniqueKeys,
) -> Result<Marks, TableError> {
    let files = keys.files.clone();
    let mut taken = std::mem::take(keys);
    keys.files = files;
    let (snapshot, hasher) = (Arc::clone(snapshot), Arc::clone(&unique.hasher));
    let (settled, marks) = blocking("settling keys", move || {
        if taken.truncated_at != Some(truncated_at) {
            taken.read_memtable(&snapshot, truncated_at, &hasher)?;
        }
        let marks = taken.settle(&snapshot, &hasher)?;
        Ok((taken, marks))
    })
    .await?;
    *keys = settled;
    Ok(marks)
}

/// The part, settled, with further rows of these arrival numbers superseded.
fn with_marks(part: &MemPart, rows: &RowSet) -> MemPart {
    let mut marked = RowSet::new();
    let mut numbers = rows.iter();
    numbers.advance_to(part.first_row);
    let end = part.first_row + part.batch.num_rows() as u64;
    marked.extend(numbers.take_while(|row| *row < end).map(|row| row - part.first_row));
    let superseded = match &part.superseded {
        Some(before) if marked.is_empty() => Some(Arc::clone(before)),
        Some(before) => Some(Arc::new(before.as_ref() | &marked)),
        None => (!marked.is_empty()).then(|| Arc::new(marked)),
    };
    MemPart { superseded, is_settled: true, ..part.clone() }
}

async fn read_file_keys(
    root: &TableRoot,
    live: &LiveFile,
    schema: &TableSchema,
    hasher: &KeyHasher,
) -> Result<Arc<FileKeys>, TableError> {
    let keys = schema.columns.iter().filter(|column| column.is_key).cloned().collect();
    let keys = Arc::new(TableSchema::new(schema.version, keys));
    let file = EncodedFile::open(root, &live.with_deletes(None)).await?;
    let mut reader = FileReader::new(&file, file.row_groups(), &keys, 0)?;
    let mut hashes = Vec::new();
    while let Some(batch) = reader.next().await? {
        hashes.extend(hasher.of_columns(batch.columns())?);
    }
    Ok(Arc::new(FileKeys::new(&hashes)))
}

/// The logged form of deletes is shown in place of the unlogged ones that it was made of.
pub(super) struct Stored {
    pub(super) before: Arc<Deletes>,
    pub(super) after: LiveFile,
}

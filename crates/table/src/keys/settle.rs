//! Deciding which rows are superseded.
//!
//! Items, the parts of a memtable and data files, are settled in the order of their versions; in one version the rows in
//! memory come before those in files. Within an item the later row of a key supersedes the earlier one.

use super::file::FileKeys;
use super::hash::{BuildIdentity, KeyHash, KeyHasher};
use crate::error::TableError;
use crate::file::{LiveFile, RowSet, Settled};
use crate::memtable::MemPart;
use crate::snapshot::Snapshot;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tributary_types::Version;

/// The keys of a table's settled rows, as far as they are in memory.
#[derive(Default)]
pub(crate) struct Keys {
    /// The live rows of the memtable by their arrival numbers.
    memtable: HashMap<KeyHash, u64, BuildIdentity>,
    /// By the paths of data files.
    pub(crate) files: HashMap<String, Arc<FileKeys>>,
    /// The truncation that the memtable's keys come after. `None`: they are to be read anew.
    pub(crate) truncated_at: Option<Version>,
}

/// Rows that are superseded.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Arrival numbers of rows in the memtable.
    pub(crate) memtable: RowSet,
    /// Positions in data files by their paths.
    pub(crate) files: HashMap<String, RowSet>,
}

impl Marks {
    fn mark_file(&mut self, path: &str, row: u32) {
        match self.files.get_mut(path) {
            Some(rows) => drop(rows.insert(row.into())),
            None => drop(self.files.insert(path.to_owned(), RowSet::from_iter([u64::from(row)]))),
        }
    }
}

/// A data file and its keys.
type KnownFile<'a> = (&'a LiveFile, Arc<FileKeys>);

/// What is to be settled.
enum Item<'a> {
    Part(&'a MemPart),
    File(&'a LiveFile),
}

impl Item<'_> {
    /// Items are settled in this order.
    fn order(&self) -> (Version, bool) {
        match self {
            Self::Part(part) => (part.version, false),
            Self::File(file) => (file.version(), true),
        }
    }
}

impl Keys {
    /// Forgets what was known of the memtable and reads the keys of its settled rows again.
    pub(crate) fn read_memtable(
        &mut self,
        snapshot: &Snapshot,
        truncated_at: Version,
        hasher: &KeyHasher,
    ) -> Result<(), TableError> {
        self.memtable.clear();
        for part in snapshot.memtable.iter().filter(|part| part.is_settled) {
            for (hash, row) in hasher.of_batch(&part.batch)?.into_iter().zip(part.first_row..) {
                if !part.is_superseded(row) {
                    self.memtable.insert(hash, row);
                }
            }
        }
        self.truncated_at = Some(truncated_at);
        Ok(())
    }

    /// Settles all rows of the snapshot, whose files' keys are all known.
    pub(crate) fn settle(&mut self, snapshot: &Snapshot, hasher: &KeyHasher) -> Result<Marks, TableError> {
        let mut marks = Marks::default();
        let mut settled: Vec<KnownFile<'_>> = Vec::new();
        let mut older = Vec::new();
        let mut items: Vec<Item<'_>> = Vec::new();
        for file in snapshot.files.iter() {
            match file.settled {
                Settled::Yes => settled.push((file, self.keys_of(file))),
                Settled::Older => older.push((file, self.keys_of(file))),
                Settled::No => items.push(Item::File(file)),
            }
        }
        older.iter().for_each(|file| self.settle_older(file, &settled, &mut marks));
        settled.extend(older);
        items.extend(snapshot.memtable.iter().filter(|part| !part.is_settled).map(|part| Item::Part(part)));
        items.sort_by_key(Item::order);
        for item in items {
            match item {
                Item::Part(part) => self.settle_part(part, hasher, &settled, &mut marks)?,
                Item::File(file) => {
                    self.settle_file(file, &settled, &mut marks);
                    settled.push((file, self.keys_of(file)));
                }
            }
        }
        Ok(marks)
    }

    /// The memtable of the snapshot is in those files now.
    pub(crate) fn are_in_files(&mut self, frozen: &Snapshot, files: Vec<(LiveFile, Arc<FileKeys>)>) {
        let end = frozen.memtable.last().map(|part| part.first_row + part.batch.num_rows() as u64);
        if let Some(end) = end {
            self.memtable.retain(|_, row| *row >= end);
        }
        self.files.extend(files.into_iter().map(|(live, keys)| (live.path().to_owned(), keys)));
    }

    fn keys_of(&self, file: &LiveFile) -> Arc<FileKeys> {
        Arc::clone(self.files.get(file.path()).expect("the keys of all files were read"))
    }

    fn settle_part(
        &mut self,
        part: &MemPart,
        hasher: &KeyHasher,
        files: &[KnownFile<'_>],
        marks: &mut Marks,
    ) -> Result<(), TableError> {
        let mut fresh = Vec::new();
        for (hash, row) in hasher.of_batch(&part.batch)?.into_iter().zip(part.first_row..) {
            match self.memtable.insert(hash, row) {
                Some(before) => drop(marks.memtable.insert(before)),
                // What the memtable has supersedes the files' rows already.
                None => fresh.push(hash),
            }
        }
        fresh.sort_unstable();
        supersede(files, &fresh, marks);
        Ok(())
    }

    fn settle_file(&mut self, file: &LiveFile, files: &[KnownFile<'_>], marks: &mut Marks) {
        let keys = self.keys_of(file);
        let mut fresh: Vec<KeyHash> = Vec::with_capacity(keys.len());
        let mut before: Option<(KeyHash, u32)> = None;
        for (hash, row) in keys.entries() {
            if let Some((_, superseded)) = before.filter(|(known, _)| *known == hash) {
                marks.mark_file(file.path(), superseded);
            } else if let Entry::Occupied(known) = self.memtable.entry(hash) {
                marks.memtable.insert(known.remove());
            } else {
                fresh.push(hash);
            }
            before = Some((hash, row));
        }
        supersede(files, &fresh, marks);
    }

    /// A file of rows that are older than all that the log does not have.
    fn settle_older(&self, (file, keys): &KnownFile<'_>, files: &[KnownFile<'_>], marks: &mut Marks) {
        let is_live = |live: &LiveFile, row: u32| {
            live.deletes.as_ref().is_none_or(|deletes| !deletes.rows().contains(row.into()))
        };
        for (hash, row) in keys.entries() {
            let in_file = |(live, keys): &KnownFile<'_>| keys.find(hash).any(|row| is_live(live, row));
            if self.memtable.contains_key(&hash) || files.iter().any(in_file) {
                marks.mark_file(file.path(), row);
            }
        }
    }
}

/// Marks the rows of those keys, which are sorted.
fn supersede(files: &[KnownFile<'_>], keys: &[KeyHash], marks: &mut Marks) {
    for (file, of_file) in files {
        for hash in keys {
            for row in of_file.find(*hash) {
                marks.mark_file(file.path(), row);
            }
        }
    }
}

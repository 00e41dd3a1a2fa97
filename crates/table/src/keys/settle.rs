//! Deciding which rows are superseded.
//!
//! Items, the parts of a memtable and data files, are settled in the order of their versions; within a version the rows in memory
//! precede those in files. Within an item rows are in order. A row contends for its key with the existing row: the later one
//! supersedes the other, unless its sequence is less.

use super::complete::PartialKeys;
use super::file::{FileKeys, Keyed};
use super::hash::{BuildIdentity, KeyHash};
use super::rows::{KeyReader, Sequence, sequence_at};
use crate::error::TableError;
use crate::file::{LiveFile, RowSet, Settled};
use crate::keys::side_by_side::{parts, side_by_side, sorted_by, threads_for};
use crate::view::memtable::MemPart;
use crate::view::snapshot::Snapshot;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tributary_types::Version;

/// The keys of a table's settled rows, as far as they are in memory.
#[derive(Default)]
pub(crate) struct Keys {
    /// The rows of the memtable that hold their keys, by their arrival numbers, including rows that delete.
    pub(super) memtable: HashMap<KeyHash, u64, BuildIdentity>,
    /// By the paths of data files.
    pub(crate) files: HashMap<String, Arc<FileKeys>>,
    /// The epoch of the memtable that the keys belong to. `None`: they have to be read again.
    pub(crate) known_at: Option<u64>,
    /// Keys that were superseded in files which another writer has rewritten since, and which may be in his files still.
    pub(crate) orphans: Orphans,
    /// The log has all rows up to this version; files with a later one are not in it.
    pub(crate) logged: Version,
}

pub(crate) type Orphans = HashSet<KeyHash, BuildIdentity>;

/// Rows that are superseded.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Arrival numbers of rows in the memtable that others supersede.
    pub(crate) memtable: RowSet,
    /// Arrival numbers of rows in the memtable that delete, and have their keys.
    pub(crate) deletions: RowSet,
    /// Positions in data files by their paths.
    pub(crate) files: HashMap<String, RowSet>,
}

impl Marks {
    pub(super) fn mark(&mut self, row: u64) {
        self.memtable.insert(row);
        if !self.deletions.is_empty() {
            self.deletions.remove(row);
        }
    }

    pub(super) fn mark_file(&mut self, path: &str, row: u32) {
        match self.files.get_mut(path) {
            Some(rows) => drop(rows.insert(row.into())),
            None => drop(self.files.insert(path.to_owned(), RowSet::from_iter([u64::from(row)]))),
        }
    }

    /// Many rows of a file, in any order.
    pub(super) fn mark_rows(&mut self, path: &str, rows: impl Iterator<Item = u32>) {
        let mut rows: Vec<u64> = rows.map(u64::from).collect();
        rows.sort_unstable();
        rows.dedup();
        if let Ok(more) = RowSet::from_sorted_iter(rows)
            && !more.is_empty()
        {
            *self.files.entry(path.to_owned()).or_default() |= more;
        }
    }
}

/// A data file and its keys.
pub(super) type KnownFile<'a> = (&'a LiveFile, Arc<FileKeys>);

/// An item to settle.
pub(super) enum Item<'a> {
    Part(&'a MemPart),
    File(&'a LiveFile),
}

impl Item<'_> {
    /// Items are settled in this order.
    pub(super) fn order(&self) -> (Version, bool) {
        match self {
            Self::Part(part) => (part.version, false),
            Self::File(file) => (file.version(), true),
        }
    }
}

/// Finds the sequences of rows in a memtable.
struct MemSequences<'a> {
    parts: &'a [Arc<MemPart>],
    reader: &'a KeyReader,
}

impl MemSequences<'_> {
    /// The sequence of the row with that arrival number.
    fn of(&self, row: u64) -> Sequence {
        let part = &self.parts[self.parts.partition_point(|part| part.first_row <= row) - 1];
        let array = self.reader.sequences(&part.batch)?;
        sequence_at(array, (row - part.first_row) as usize)
    }
}

/// A row that has just got its key where only files had it before, if any.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fresh {
    hash: KeyHash,
    sequence: Sequence,
}

impl Keys {
    /// A copy of the keys, for a memtable of epoch 0 that begins with the same rows as the one of `epoch`.
    pub(crate) fn copy_of(&self, epoch: u64) -> Self {
        let is_known = self.known_at == Some(epoch);
        Self {
            memtable: if is_known { self.memtable.clone() } else { HashMap::default() },
            files: self.files.clone(),
            known_at: is_known.then_some(0),
            orphans: self.orphans.clone(),
            logged: self.logged,
        }
    }

    /// Drops the memtable's keys and reads those of its settled rows again.
    pub(crate) fn read_memtable(
        &mut self,
        snapshot: &Snapshot,
        epoch: u64,
        reader: &KeyReader,
    ) -> Result<(), TableError> {
        self.memtable.clear();
        for part in snapshot.memtable.iter().filter(|part| part.is_settled) {
            for (hash, row) in reader.read(&part.batch)?.hashes.into_iter().zip(part.first_row..) {
                if part.has_key(row) {
                    self.memtable.insert(hash, row);
                }
            }
        }
        self.known_at = Some(epoch);
        Ok(())
    }

    /// Settles all rows of the snapshot, whose files' keys are all known. None of them is of a partial update.
    pub(crate) fn settle(&mut self, snapshot: &Snapshot, reader: &KeyReader) -> Result<Marks, TableError> {
        self.settle_others(snapshot, reader, &PartialKeys::default())
    }

    /// Settles all rows of the snapshot but the new ones of those keys.
    pub(super) fn settle_others(
        &mut self,
        snapshot: &Snapshot,
        reader: &KeyReader,
        partial: &PartialKeys,
    ) -> Result<Marks, TableError> {
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
        let sequences = MemSequences { parts: &snapshot.memtable, reader };
        for file in &older {
            self.settle_older(file, &sequences, &settled, &mut marks)?;
        }
        settled.extend(older);
        items.extend(snapshot.memtable.iter().filter(|part| !part.is_settled).map(|part| Item::Part(part)));
        items.sort_by_key(Item::order);
        let mut fresh = Vec::new();
        for item in items {
            match item {
                Item::Part(part) => self.settle_part(part, &sequences, partial, &mut fresh, &mut marks)?,
                Item::File(file) => {
                    self.settle_fresh(&mut fresh, &sequences, &settled, &mut marks)?;
                    self.settle_file(file, &sequences, &settled, partial, &mut marks)?;
                    settled.push((file, self.keys_of(file)));
                }
            }
        }
        self.settle_fresh(&mut fresh, &sequences, &settled, &mut marks)?;
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

    /// The rows with arrival numbers from `first_row` on are in those files instead.
    pub(crate) fn moved_to_files(&mut self, first_row: u64, files: &[(LiveFile, Arc<FileKeys>)]) {
        self.memtable.retain(|_, row| *row < first_row);
        self.files.extend(files.iter().map(|(live, keys)| (live.path().to_owned(), Arc::clone(keys))));
    }

    pub(super) fn keys_of(&self, file: &LiveFile) -> Arc<FileKeys> {
        Arc::clone(self.files.get(file.path()).expect("the keys of all files were read"))
    }

    /// Lets the rows of a part contend with those in memory. Adds the keys that only files may have to `fresh`: going through the
    /// files' keys costs about the same for one part as for many.
    fn settle_part(
        &mut self,
        part: &MemPart,
        sequences: &MemSequences<'_>,
        partial: &PartialKeys,
        fresh: &mut Vec<KeyHash>,
        marks: &mut Marks,
    ) -> Result<(), TableError> {
        let rows = sequences.reader.read(&part.batch)?;
        let has_sequence = sequences.reader.has_sequence();
        for (index, (&hash, row)) in rows.hashes.iter().zip(part.first_row..).enumerate() {
            if !partial.is_empty() && partial.contains(&hash) {
                continue;
            }
            match self.memtable.entry(hash) {
                Entry::Occupied(known)
                    if has_sequence && rows.sequence(index) < sequences.of(*known.get()) =>
                {
                    marks.mark(row);
                    continue;
                }
                Entry::Occupied(mut known) => marks.mark(known.insert(row)),
                // The memtable's row supersedes the files' rows already.
                Entry::Vacant(place) => {
                    place.insert(row);
                    fresh.push(hash);
                }
            }
            if rows.deletes(index) {
                marks.deletions.insert(row);
            }
        }
        Ok(())
    }

    /// Lets the rows with fresh keys contend with those of the files, and drops these keys.
    fn settle_fresh(
        &mut self,
        fresh: &mut Vec<KeyHash>,
        sequences: &MemSequences<'_>,
        files: &[KnownFile<'_>],
        marks: &mut Marks,
    ) -> Result<(), TableError> {
        let has_sequence = sequences.reader.has_sequence();
        let of_its_key = |hash| match has_sequence {
            true => Fresh { hash, sequence: sequences.of(self.memtable[&hash]) },
            false => Fresh { hash, sequence: None },
        };
        let fresh: Vec<Fresh> = fresh.drain(..).map(of_its_key).collect();
        let fresh = sorted_by(fresh, |fresh| fresh.hash.leading(), Ord::cmp);
        for hash in supersede(files, &fresh, has_sequence, marks)? {
            marks.mark(self.memtable.remove(&hash).expect("it contended for its key"));
        }
        Ok(())
    }

    fn settle_file(
        &mut self,
        file: &LiveFile,
        sequences: &MemSequences<'_>,
        files: &[KnownFile<'_>],
        partial: &PartialKeys,
        marks: &mut Marks,
    ) -> Result<(), TableError> {
        let has_sequence = sequences.reader.has_sequence();
        let keys = self.keys_of(file);
        let mut fresh: Vec<Fresh> = Vec::new();
        let mut rows_of_fresh: Vec<u32> = Vec::new();
        keys.for_each_key(|of_key| {
            let mut best = of_key[0];
            if !partial.is_empty() && partial.contains(&best.hash) {
                return;
            }
            for &next in &of_key[1..] {
                let is_better = next.sequence >= best.sequence;
                let loser = if is_better { std::mem::replace(&mut best, next) } else { next };
                marks.mark_file(file.path(), loser.row);
            }
            if keys.deletes(best.row) {
                marks.mark_file(file.path(), best.row);
            }
            match self.memtable.entry(best.hash) {
                Entry::Occupied(known) if has_sequence && best.sequence < sequences.of(*known.get()) => {
                    marks.mark_file(file.path(), best.row);
                }
                Entry::Occupied(known) => marks.mark(known.remove()),
                Entry::Vacant(_) => {
                    fresh.push(Fresh { hash: best.hash, sequence: best.sequence });
                    rows_of_fresh.push(best.row);
                }
            }
        })?;
        for hash in supersede(files, &fresh, has_sequence, marks)? {
            let place = fresh.partition_point(|fresh| fresh.hash < hash);
            marks.mark_file(file.path(), rows_of_fresh[place]);
        }
        Ok(())
    }

    /// A file of rows that are older than all that the log does not have. Which of the log's rows have their keys is not decided here.
    fn settle_older(
        &mut self,
        (file, keys): &KnownFile<'_>,
        sequences: &MemSequences<'_>,
        files: &[KnownFile<'_>],
        marks: &mut Marks,
    ) -> Result<(), TableError> {
        let has_sequence = sequences.reader.has_sequence();
        let mut rows: Vec<Keyed> = Vec::new();
        keys.for_each_key(|of_key| rows.extend(of_key.iter().filter(|keyed| file.is_live(keyed.row))))?;
        let mut is_superseded = Vec::with_capacity(rows.len());
        for row in &rows {
            let is_gone = self.orphans.contains(&row.hash) || keys.deletes(row.row);
            is_superseded.push(match self.memtable.entry(row.hash) {
                Entry::Occupied(known)
                    if !is_gone && has_sequence && row.sequence > sequences.of(*known.get()) =>
                {
                    marks.mark(known.remove());
                    false
                }
                Entry::Occupied(_) => true,
                Entry::Vacant(_) => is_gone,
            });
        }
        let mut beaten: Vec<(usize, &str, u32)> = Vec::new();
        for (live, of_file) in files.iter().filter(|(live, _)| live.version() > self.logged) {
            of_file.find(rows.iter().map(|keyed| keyed.hash), |place, found| {
                if !live.is_live(found.row) {
                    return;
                }
                match has_sequence && rows[place].sequence > found.sequence {
                    true => beaten.push((place, live.path(), found.row)),
                    false => is_superseded[place] = true,
                }
            })?;
        }
        for (_, path, row) in beaten.into_iter().filter(|(place, ..)| !is_superseded[*place]) {
            marks.mark_file(path, row);
        }
        let superseded = rows.iter().zip(is_superseded).filter(|(_, superseded)| *superseded);
        superseded.for_each(|(keyed, _)| marks.mark_file(file.path(), keyed.row));
        Ok(())
    }
}

/// Lets rows, one per key and sorted, contend for their keys with the rows of files, of which the later ones follow the earlier.
/// Marks the files' rows whose keys the newer rows win, and returns the keys that they lose.
///
/// Keys lie in the order of their hashes in all files, so threads can take a part of them each.
fn supersede(
    files: &[KnownFile<'_>],
    fresh: &[Fresh],
    has_sequence: bool,
    marks: &mut Marks,
) -> Result<Vec<KeyHash>, TableError> {
    let all = parts(fresh, threads_for(fresh.len()));
    let mut lost = Vec::new();
    for part in side_by_side(all, |fresh| superseded_by(files, fresh, has_sequence)) {
        let superseded = part?;
        for ((live, _), rows) in files.iter().zip(superseded.rows) {
            marks.mark_rows(live.path(), rows.into_iter());
        }
        lost.extend(superseded.lost);
    }
    Ok(lost)
}

/// The outcome for some keys.
struct Superseded {
    /// The rows of each file that newer ones supersede.
    rows: Vec<Vec<u32>>,
    /// The keys that the newer rows do not get.
    lost: Vec<KeyHash>,
}

fn superseded_by(
    files: &[KnownFile<'_>],
    fresh: &[Fresh],
    has_sequence: bool,
) -> Result<Superseded, TableError> {
    let mut greatest: Vec<Sequence> = if has_sequence { vec![None; fresh.len()] } else { Vec::new() };
    let mut found: Vec<(usize, usize, u32)> = Vec::new();
    let mut superseded: Vec<Vec<u32>> = Vec::with_capacity(files.len());
    for (file, (_, of_file)) in files.iter().enumerate() {
        let hashes = fresh.iter().map(|fresh| fresh.hash);
        let mut rows: Vec<u32> = Vec::new();
        of_file.find(hashes, |place, Keyed { row, sequence, .. }| {
            if has_sequence {
                greatest[place] = greatest[place].max(sequence);
                found.push((place, file, row));
            } else {
                rows.push(row);
            }
        })?;
        superseded.push(rows);
    }
    let loses = |place: usize| greatest[place] > fresh[place].sequence;
    for (_, file, row) in found.into_iter().filter(|(place, ..)| !loses(*place)) {
        superseded[file].push(row);
    }
    let lost = (0..greatest.len()).filter(|place| loses(*place)).map(|place| fresh[place].hash).collect();
    Ok(Superseded { rows: superseded, lost })
}

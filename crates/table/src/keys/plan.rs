//! Decides which rows are folded together, in a table of AGGREGATE KEY.
//!
//! Unsettled rows are visited in the order of [`super::settle`]. Each key with several rows gets a *slot*: its existing row, if
//! any, and all new ones are superseded, and become part of one derived row. A new row in a data file that is the only one of its
//! key stays in place.

use super::hash::KeyHash;
use super::rows::KeyReader;
use super::settle::{Item, Keys, KnownFile, Marks};
use super::work::{Source, Step, Work};
use crate::error::TableError;
use crate::file::{LiveFile, RowSet, Settled};
use crate::view::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use tributary_types::Version;

/// The rows to fold, and the rows superseded by the results.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) work: Work,
    /// The arrival number of the first derived row.
    pub(crate) first_row: u64,
    pub(crate) marks: Marks,
}

/// Rows of one part or file, each with its slot.
type Slotted = Vec<(u32, u32)>;

struct Planner<'a> {
    snapshot: &'a Snapshot,
    /// Leading parts of the memtable.
    settled_parts: usize,
    settled_files: Vec<KnownFile<'a>>,
    first_row: u64,
    slots: u32,
    marks: Marks,
    /// Keys that got a slot and were not searched for in files yet.
    fresh: Vec<(KeyHash, u32)>,
    /// Rows of files whose other rows for the key are newer.
    older: Vec<Step>,
    /// Existing rows of the keys, by parts and by files.
    bases_in_parts: BTreeMap<usize, Slotted>,
    bases_in_files: BTreeMap<&'a str, (&'a LiveFile, Slotted)>,
    new: Vec<Step>,
}

impl Keys {
    /// Decides the fate of all unsettled rows of the snapshot; the keys of its files are all known. From now on the slots' rows
    /// hold their keys. `next_row` is greater than the arrival numbers of all rows that a flush may be writing, including rows
    /// that a truncation has removed.
    pub(crate) fn plan(
        &mut self,
        snapshot: &Snapshot,
        next_row: u64,
        reader: &KeyReader,
    ) -> Result<Plan, TableError> {
        let settled_parts = snapshot.memtable.iter().take_while(|part| part.is_settled).count();
        let last = settled_parts.checked_sub(1).map(|last| &snapshot.memtable[last]);
        let mut planner = Planner {
            snapshot,
            settled_parts,
            settled_files: Vec::new(),
            first_row: last.map_or(next_row, |part| part.first_row + part.batch.num_rows() as u64),
            slots: 0,
            marks: Marks::default(),
            fresh: Vec::new(),
            older: Vec::new(),
            bases_in_parts: BTreeMap::new(),
            bases_in_files: BTreeMap::new(),
            new: Vec::new(),
        };
        let mut older = Vec::new();
        let mut items: Vec<(Item<'_>, usize)> = Vec::new();
        for file in snapshot.files.iter() {
            match file.settled {
                Settled::Yes => planner.settled_files.push((file, self.keys_of(file))),
                Settled::Older => older.push(file),
                Settled::No => items.push((Item::File(file), 0)),
            }
        }
        older.sort_by(|left: &&LiveFile, right| left.order_of_arrival().cmp(&right.order_of_arrival()));
        for file in older {
            planner.file(self, file)?;
        }
        planner.older = std::mem::take(&mut planner.new);
        let parts = snapshot.memtable.iter().enumerate().skip(settled_parts);
        items.extend(parts.map(|(place, part)| (Item::Part(part), place)));
        items.sort_by_key(|(item, _)| item.order());
        for (item, place) in items {
            match item {
                Item::Part(part) => {
                    let hashes = reader.read(&part.batch)?.hashes;
                    let slots: Vec<u32> = hashes.into_iter().map(|hash| planner.slot(self, hash)).collect();
                    let rows = (0..slots.len() as u32).collect();
                    planner.new.push(Step { source: Source::Part(place), rows, slots, sets: Vec::new() });
                }
                Item::File(file) => planner.file(self, file)?,
            }
        }
        planner.find_in_files()?;
        Ok(planner.finish(self.logged))
    }
}

impl<'a> Planner<'a> {
    /// The slot of a key that has several rows, or one that is not in a file.
    fn slot(&mut self, keys: &mut Keys, hash: KeyHash) -> u32 {
        let row = self.first_row + u64::from(self.slots);
        match keys.memtable.entry(hash) {
            Entry::Occupied(known) if *known.get() >= self.first_row => {
                return (known.get() - self.first_row) as u32;
            }
            Entry::Occupied(mut known) => {
                let base = known.insert(row);
                self.marks.mark(base);
                let settled = &self.snapshot.memtable[..self.settled_parts];
                let part = settled.partition_point(|part| part.first_row <= base) - 1;
                let of_part = (base - settled[part].first_row) as u32;
                self.bases_in_parts.entry(part).or_default().push((of_part, self.slots));
            }
            Entry::Vacant(place) => {
                place.insert(row);
                self.fresh.push((hash, self.slots));
            }
        }
        self.slots += 1;
        self.slots - 1
    }

    /// Looks for the rows that have the keys of fresh slots, in the files that are settled until now.
    fn find_in_files(&mut self) -> Result<(), TableError> {
        let mut fresh = std::mem::take(&mut self.fresh);
        if fresh.is_empty() {
            return Ok(());
        }
        fresh.sort_unstable();
        for (live, of_file) in &self.settled_files {
            let is_live = live_in(live, self.marks.files.get(live.path()));
            let mut bases = Vec::new();
            of_file.find(fresh.iter().map(|(hash, _)| *hash), |place, found| {
                if is_live(found.row) {
                    bases.push((found.row, fresh[place].1));
                }
            })?;
            drop(is_live);
            if bases.is_empty() {
                continue;
            }
            self.marks.mark_rows(live.path(), bases.iter().map(|(row, _)| *row));
            self.bases_in_files.entry(live.path()).or_insert_with(|| (*live, Vec::new())).1.extend(bases);
        }
        Ok(())
    }

    /// Which of these sorted keys have a row in the settled files.
    fn are_in_files(&self, hashes: &[KeyHash]) -> Result<Vec<bool>, TableError> {
        let mut are = vec![false; hashes.len()];
        if hashes.is_empty() {
            return Ok(are);
        }
        for (live, of_file) in &self.settled_files {
            let is_live = live_in(live, self.marks.files.get(live.path()));
            of_file.find(hashes.iter().copied(), |place, found| are[place] |= is_live(found.row))?;
        }
        Ok(are)
    }

    /// Settles the rows of a file.
    fn file(&mut self, keys: &mut Keys, file: &'a LiveFile) -> Result<(), TableError> {
        self.find_in_files()?;
        let of_file = keys.keys_of(file);
        let mut gone: Vec<u32> = Vec::new();
        // By their keys, in the order of their hashes.
        let mut alone: Vec<(KeyHash, u32)> = Vec::new();
        let mut together: Vec<(KeyHash, u32)> = Vec::new();
        of_file.for_each_key(|of_key| {
            let hash = of_key[0].hash;
            if keys.orphans.contains(&hash) {
                gone.extend(of_key.iter().map(|keyed| keyed.row));
                return;
            }
            let mut live =
                of_key.iter().filter(|keyed| file.is_live(keyed.row)).map(|keyed| (hash, keyed.row));
            let (first, second) = (live.next(), live.next());
            let is_alone = second.is_none() && !keys.memtable.contains_key(&hash);
            if is_alone { &mut alone } else { &mut together }
                .extend(first.into_iter().chain(second).chain(live));
        })?;
        let hashes: Vec<KeyHash> = alone.iter().map(|(hash, _)| *hash).collect();
        let are_in_files = self.are_in_files(&hashes)?;
        together.extend(alone.into_iter().zip(are_in_files).filter(|(_, is)| *is).map(|(row, _)| row));
        let mut folded: Slotted =
            together.into_iter().map(|(hash, row)| (row, self.slot(keys, hash))).collect();
        self.find_in_files()?;
        folded.sort_unstable();
        gone.extend(folded.iter().map(|(row, _)| *row));
        self.marks.mark_rows(file.path(), gone.into_iter());
        if !folded.is_empty() {
            self.new.push(step(Source::File(file.clone()), folded));
        }
        self.settled_files.push((file, of_file));
        Ok(())
    }

    fn finish(self, logged: Version) -> Plan {
        let of_file = |(live, mut bases): (&LiveFile, Slotted)| {
            bases.sort_unstable();
            step(Source::File(live.clone()), bases)
        };
        // An engine's rows follow the rows that the log had before, and precede all others.
        let (before, after): (Vec<_>, Vec<_>) =
            self.bases_in_files.into_values().partition(|(live, _)| live.version() <= logged);
        let mut steps: Vec<Step> = before.into_iter().map(of_file).collect();
        steps.extend(self.older);
        steps.extend(self.bases_in_parts.into_iter().map(|(part, bases)| step(Source::Part(part), bases)));
        steps.extend(after.into_iter().map(of_file));
        steps.extend(self.new);
        let work = Work::new(steps, self.slots as usize);
        Plan { work, first_row: self.first_row, marks: self.marks }
    }
}

fn step(source: Source, rows: Slotted) -> Step {
    let (rows, slots) = rows.into_iter().unzip();
    Step { source, rows, slots, sets: Vec::new() }
}

/// Tells of rows of a settled file whether they have their keys.
pub(crate) fn live_in<'a>(live: &'a LiveFile, marked: Option<&'a RowSet>) -> impl Fn(u32) -> bool + use<'a> {
    move |row| live.is_live(row) && marked.is_none_or(|marked| !marked.contains(row.into()))
}

//! Decides which rows complete those of partial updates.
//!
//! Only keys for which a row of a partial update has come are looked at here; all others are settled by [`super::settle`]. The new rows of such a
//! key are taken in the order of the log, on top of the row that has the key. A row that gives all columns takes its place; any other one
//! takes the values that it does not give from the row before it, unless there is none or that one deletes: then it stays as it came, with
//! defaults. With a sequence, a row that gives none has that of the row before it, or the column's default if it is a new key's, and one that gives a
//! smaller one is not there.
//!
//! The result for a key is either one of its rows as it is, or a *derived* row of several layers, each with the columns that it
//! gives. Invariant: decisions depend only on keys, sequences and signs of rows in the order of the log, so a replay decides the
//! same.

use super::given::GivenSets;
use super::hash::{BuildIdentity, KeyHash};
use super::plan::live_in;
use super::rows::{KeyReader, Sequence, sequence_at};
use super::settle::{Item, Keys, KnownFile, Marks};
use super::work::{Source, Step, Work};
use crate::error::TableError;
use crate::file::{LiveFile, Settled};
use crate::view::snapshot::Snapshot;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Keys for which rows of partial updates have arrived.
pub(crate) type PartialKeys = HashSet<KeyHash, BuildIdentity>;

/// For each row of a file, in the order of the file, the number of the set of columns that it gives; by paths.
pub(crate) type GivenInFiles = HashMap<String, Vec<u32>>;

/// The rows to derive, and the superseded rows.
#[derive(Default)]
pub(crate) struct Completion {
    /// Later layers come after earlier ones.
    pub(crate) work: Work,
    pub(crate) marks: Marks,
}

/// The location of a row: in a part of the memtable, or in a file, each by its index in the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// The row of defaults, below all others.
    Defaults,
    Part(usize),
    File(usize),
}

/// A new row of a key.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    hash: KeyHash,
    /// The number of the item that has it, in the order of the log.
    item: usize,
    row: u32,
    set: u32,
    sequence: Sequence,
    deletes: bool,
}

/// A row and the columns that it gives.
#[derive(Clone, Copy, Debug)]
struct Layer {
    /// The number of the item, or `None` for the row that had the key.
    item: Option<usize>,
    row: u32,
    set: u32,
}

/// The row that has a key, as far as new rows were taken.
struct Holder {
    layers: Vec<Layer>,
    sequence: Sequence,
    deletes: bool,
}

/// The row that a key had before new rows arrived.
struct Base {
    place: Place,
    row: u32,
    sequence: Sequence,
    deletes: bool,
}

/// The number of the item that is the row of defaults.
const DEFAULTS: usize = usize::MAX;

struct Completer<'a> {
    snapshot: &'a Snapshot,
    reader: &'a KeyReader,
    sets: &'a mut GivenSets,
    /// The position of the sequence's column.
    sequence: Option<usize>,
    /// The sequence that a new key has if no row gives one. `None`: NULL.
    default_sequence: Sequence,
    /// The set of all columns except the sequence, once it is needed.
    all_but_sequence: Option<u32>,
    /// The set of the sequence alone, once it is needed.
    only_sequence: Option<u32>,
    items: Vec<Place>,
    /// The arrival number of the first derived row.
    first_row: u64,
    slots: u32,
    marks: Marks,
    bases: BTreeMap<Place, Slotted>,
    by_item: Vec<Slotted>,
}

/// Rows of one part or file, each with its slot and its set.
type Slotted = Vec<(u32, u32, u32)>;

impl Keys {
    /// Settles all rows of the snapshot, whose files' keys are all known. Derived rows have the arrival numbers from `first_row`
    /// on, which no row has yet; from now on they have their keys.
    pub(crate) fn complete(
        &mut self,
        snapshot: &Snapshot,
        reader: &KeyReader,
        sets: &mut GivenSets,
        in_files: &GivenInFiles,
        first_row: u64,
        default_sequence: Sequence,
    ) -> Result<Completion, TableError> {
        let items = unsettled(snapshot);
        let of_parts = |place: &Place, sets: &mut GivenSets| match place {
            Place::Part(part) => sets.of_batch(&snapshot.memtable[*part].batch),
            Place::File(_) | Place::Defaults => Ok(None),
        };
        let in_parts: Vec<Option<Vec<u32>>> =
            items.iter().map(|place| of_parts(place, sets)).collect::<Result<_, _>>()?;
        let given: Vec<Option<&[u32]>> = items
            .iter()
            .zip(&in_parts)
            .map(|(place, in_part)| match place {
                Place::Part(_) => in_part.as_deref(),
                Place::File(file) => in_files.get(snapshot.files[*file].path()).map(Vec::as_slice),
                Place::Defaults => None,
            })
            .collect();
        let partial = self.partial_keys(snapshot, reader, &items, &given)?;
        let marks = self.settle_others(snapshot, reader, &partial)?;
        let mut arrivals = self.arrivals(snapshot, reader, &items, &given, &partial)?;
        // Rows of a key stay in their order.
        arrivals.sort_by_key(|arrival| arrival.hash);
        let mut completer = Completer {
            snapshot,
            reader,
            sequence: snapshot.def.schema.sequence_index(),
            default_sequence,
            all_but_sequence: None,
            only_sequence: None,
            sets,
            by_item: items.iter().map(|_| Vec::new()).collect(),
            items,
            first_row,
            slots: 0,
            marks,
            bases: BTreeMap::new(),
        };
        let bases = completer.bases_of(self, &partial)?;
        for of_key in arrivals.chunk_by(|one, other| one.hash == other.hash) {
            completer.key(self, of_key, bases.get(&of_key[0].hash));
        }
        Ok(completer.finish())
    }

    fn partial_keys(
        &self,
        snapshot: &Snapshot,
        reader: &KeyReader,
        items: &[Place],
        given: &[Option<&[u32]>],
    ) -> Result<PartialKeys, TableError> {
        let mut partial = PartialKeys::default();
        for (place, sets) in items.iter().zip(given) {
            let Some(sets) = sets else { continue };
            match *place {
                Place::Part(part) => {
                    let hashes = reader.read(&snapshot.memtable[part].batch)?.hashes;
                    let of_partial = hashes.into_iter().zip(*sets).filter(|(_, set)| **set != GivenSets::ALL);
                    partial.extend(of_partial.map(|(hash, _)| hash));
                }
                Place::Defaults => {}
                Place::File(file) => self.keys_of(&snapshot.files[file]).for_each_key(|of_key| {
                    if of_key.iter().any(|keyed| sets[keyed.row as usize] != GivenSets::ALL) {
                        partial.insert(of_key[0].hash);
                    }
                })?,
            }
        }
        Ok(partial)
    }

    /// The new rows of those keys, in the order of the log.
    fn arrivals(
        &self,
        snapshot: &Snapshot,
        reader: &KeyReader,
        items: &[Place],
        given: &[Option<&[u32]>],
        partial: &PartialKeys,
    ) -> Result<Vec<Arrival>, TableError> {
        let mut arrivals = Vec::new();
        for (item, (place, sets)) in items.iter().zip(given).enumerate() {
            let set_of = |row: u32| sets.map_or(GivenSets::ALL, |sets| sets[row as usize]);
            match *place {
                Place::Part(part) => {
                    let rows = reader.read(&snapshot.memtable[part].batch)?;
                    for (&hash, row) in rows.hashes.iter().zip(0_u32..) {
                        if partial.contains(&hash) {
                            let (sequence, deletes) =
                                (rows.sequence(row as usize), rows.deletes(row as usize));
                            arrivals.push(Arrival { hash, item, row, set: set_of(row), sequence, deletes });
                        }
                    }
                }
                Place::Defaults => {}
                Place::File(file) => {
                    let keys = self.keys_of(&snapshot.files[file]);
                    keys.for_each_key(|of_key| {
                        let hash = of_key[0].hash;
                        if partial.contains(&hash) {
                            arrivals.extend(of_key.iter().map(|keyed| Arrival {
                                hash,
                                item,
                                row: keyed.row,
                                set: set_of(keyed.row),
                                sequence: keyed.sequence,
                                deletes: keys.deletes(keyed.row),
                            }));
                        }
                    })?;
                }
            }
        }
        Ok(arrivals)
    }
}

/// The unsettled parts and files, in the order of the log.
fn unsettled(snapshot: &Snapshot) -> Vec<Place> {
    let parts = snapshot.memtable.iter().enumerate().filter(|(_, part)| !part.is_settled);
    let files = snapshot.files.iter().enumerate().filter(|(_, file)| file.settled == Settled::No);
    let parts = parts.map(|(place, part)| (Item::Part(part).order(), Place::Part(place)));
    let files = files.map(|(place, file)| (Item::File(file).order(), Place::File(place)));
    let mut items: Vec<_> = parts.chain(files).collect();
    // Files of one version are in their order, as parts are.
    items.sort_by_key(|(order, _)| *order);
    items.into_iter().map(|(_, place)| place).collect()
}

impl Completer<'_> {
    /// The rows that these keys had before new rows arrived.
    fn bases_of(
        &self,
        keys: &Keys,
        partial: &PartialKeys,
    ) -> Result<HashMap<KeyHash, Base, BuildIdentity>, TableError> {
        let mut bases: HashMap<KeyHash, Base, BuildIdentity> = HashMap::default();
        let mut in_files = Vec::new();
        for &hash in partial {
            match keys.memtable.get(&hash) {
                Some(&number) => drop(bases.insert(hash, self.base_in_memtable(number))),
                None => in_files.push(hash),
            }
        }
        in_files.sort_unstable();
        let settled = self.snapshot.files.iter().enumerate().filter(|(_, live)| live.settled != Settled::No);
        for (place, live) in settled {
            let (live, of_file): KnownFile<'_> = (live, keys.keys_of(live));
            let is_live = live_in(live, self.marks.files.get(live.path()));
            of_file.find(in_files.iter().copied(), |found, keyed| {
                let base = Base {
                    place: Place::File(place),
                    row: keyed.row,
                    sequence: keyed.sequence,
                    deletes: !is_live(keyed.row),
                };
                // Without a sequence, nothing is left of a row that deletes.
                if base.deletes && self.sequence.is_none() {
                    return;
                }
                let known = bases.get(&in_files[found]);
                // The greatest sequence is that of the row that has the key, deleted or not.
                let is_better = known
                    .is_none_or(|known| (base.sequence, !base.deletes) >= (known.sequence, !known.deletes));
                if is_better {
                    bases.insert(in_files[found], base);
                }
            })?;
        }
        Ok(bases)
    }

    fn base_in_memtable(&self, number: u64) -> Base {
        let parts = &self.snapshot.memtable;
        let place = parts.partition_point(|part| part.first_row <= number) - 1;
        let part = &parts[place];
        let row = (number - part.first_row) as u32;
        let deletes = part.deletions.as_ref().is_some_and(|rows| rows.contains(row.into()));
        let sequence =
            self.reader.sequences(&part.batch).and_then(|sequences| sequence_at(sequences, row as usize));
        Base { place: Place::Part(place), row, sequence, deletes }
    }

    /// Takes the new rows of a key, and decides the result.
    fn key(&mut self, keys: &mut Keys, arrivals: &[Arrival], base: Option<&Base>) {
        let hash = arrivals[0].hash;
        let mut holder = base.map(|base| Holder {
            layers: vec![Layer { item: None, row: base.row, set: GivenSets::ALL }],
            sequence: base.sequence,
            deletes: base.deletes,
        });
        for arrival in arrivals {
            holder = Some(self.taken(holder, arrival));
        }
        let holder = holder.expect("a key is here because rows have come for it");
        let kept = match holder.layers[..] {
            // All new rows have lost.
            [Layer { item: None, .. }] => return self.supersede(arrivals, None),
            [Layer { item: Some(item), row, .. }] => Some((item, row)),
            _ => None,
        };
        self.supersede(arrivals, kept);
        if let Some(base) = base {
            match base.place {
                Place::Defaults => {}
                Place::Part(part) => self.marks.mark(self.number(part, base.row)),
                Place::File(file) => {
                    self.marks.mark_file(self.snapshot.files[file].path(), base.row);
                }
            }
        }
        let Some((item, row)) = kept else { return self.derive(keys, hash, &holder, base) };
        match self.items[item] {
            Place::Defaults => {}
            Place::Part(part) => {
                let number = self.number(part, row);
                keys.memtable.insert(hash, number);
                if holder.deletes {
                    self.marks.deletions.insert(number);
                }
            }
            Place::File(file) => {
                keys.memtable.remove(&hash);
                if holder.deletes {
                    self.marks.mark_file(self.snapshot.files[file].path(), row);
                }
            }
        }
    }

    /// The row of the key after `arrival`.
    fn taken(&mut self, holder: Option<Holder>, arrival: &Arrival) -> Holder {
        let layer = |set| Layer { item: Some(arrival.item), row: arrival.row, set };
        let alone = || Holder {
            layers: vec![layer(GivenSets::ALL)],
            sequence: arrival.sequence,
            deletes: arrival.deletes,
        };
        let gives_sequence = self.sequence.is_none_or(|column| self.sets.has(arrival.set, column));
        let Some(mut holder) = holder else {
            if gives_sequence || self.default_sequence.is_none() {
                return alone();
            }
            // The row has NULL for what it does not give: its default counts, and is the row's from now on.
            let (only, others) = (self.only_sequence(), self.all_but_sequence());
            return Holder {
                layers: vec![Layer { item: Some(DEFAULTS), row: 0, set: only }, layer(others)],
                sequence: self.default_sequence,
                deletes: arrival.deletes,
            };
        };
        let has_sequence = self.sequence.is_some();
        if has_sequence && gives_sequence && arrival.sequence < holder.sequence {
            return holder;
        }
        let is_whole = arrival.set == GivenSets::ALL;
        if is_whole || (gives_sequence && (arrival.deletes || holder.deletes)) {
            return alone();
        }
        if !arrival.deletes && !holder.deletes && self.sets.changes_nothing(arrival.set) {
            return holder;
        }
        let set = if holder.deletes { self.all_but_sequence() } else { arrival.set };
        holder.layers.push(layer(set));
        holder.deletes = arrival.deletes;
        if gives_sequence {
            holder.sequence = arrival.sequence;
        }
        holder
    }

    fn all_but_sequence(&mut self) -> u32 {
        let column = self.sequence.expect("only a table with a sequence keeps it");
        *self.all_but_sequence.get_or_insert_with(|| self.sets.all_but(column))
    }

    fn only_sequence(&mut self) -> u32 {
        let column = self.sequence.expect("only a table with a sequence has a default of it");
        *self.only_sequence.get_or_insert_with(|| self.sets.only(column))
    }

    /// Marks new rows of a key, except for one.
    fn supersede(&mut self, arrivals: &[Arrival], kept: Option<(usize, u32)>) {
        for arrival in arrivals.iter().filter(|it| kept != Some((it.item, it.row))) {
            match self.items[arrival.item] {
                Place::Defaults => {}
                Place::Part(part) => self.marks.mark(self.number(part, arrival.row)),
                Place::File(file) => {
                    self.marks.mark_file(self.snapshot.files[file].path(), arrival.row);
                }
            }
        }
    }

    /// Makes a row of several the one that has the key.
    fn derive(&mut self, keys: &mut Keys, hash: KeyHash, holder: &Holder, base: Option<&Base>) {
        let slot = self.slots;
        self.slots += 1;
        for layer in &holder.layers {
            let rows = match layer.item {
                Some(DEFAULTS) => self.bases.entry(Place::Defaults).or_default(),
                Some(item) => &mut self.by_item[item],
                None => self.bases.entry(base.expect("its layer is there").place).or_default(),
            };
            rows.push((layer.row, slot, layer.set));
        }
        let number = self.first_row + u64::from(slot);
        keys.memtable.insert(hash, number);
        if holder.deletes {
            self.marks.deletions.insert(number);
        }
    }

    fn number(&self, part: usize, row: u32) -> u64 {
        self.snapshot.memtable[part].first_row + u64::from(row)
    }

    fn finish(self) -> Completion {
        let files: &[LiveFile] = &self.snapshot.files;
        let step = |place: Place, mut rows: Slotted| {
            rows.sort_unstable();
            let sets = rows.iter().map(|(_, _, set)| *set).collect();
            let (rows, slots) = rows.into_iter().map(|(row, slot, _)| (row, slot)).unzip();
            let source = match place {
                Place::Part(part) => Source::Part(part),
                Place::File(file) => Source::File(files[file].clone()),
                Place::Defaults => Source::Defaults,
            };
            Step { source, rows, slots, sets }
        };
        let items = self.items.into_iter().zip(self.by_item);
        let layers = self.bases.into_iter().chain(items).filter(|(_, rows)| !rows.is_empty());
        let steps = layers.map(|(place, rows)| step(place, rows)).collect();
        Completion { work: Work::new(steps, self.slots as usize), marks: self.marks }
    }
}

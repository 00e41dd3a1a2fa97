//! Where the rows of a data file are, by their keys.
//!
//! Entries are sorted by their hashes, whose first bits choose one of many small runs of them.

use super::hash::KeyHash;
use super::rows::{KeyedRows, Sequence};
use crate::file::RowSet;

/// Entries that share the first bits of their hashes, on average.
const RUN_ENTRIES: usize = 16;

/// The keys of all rows of one data file, deleted ones included. It never changes.
#[derive(Debug, Default)]
pub(crate) struct FileKeys {
    /// Where each run begins, and the end of the last one.
    starts: Vec<u32>,
    /// How far a hash is shifted to get its run; 64 for one run.
    shift: u32,
    high: Vec<u64>,
    low: Vec<u32>,
    rows: Vec<u32>,
    sequences: Sequences,
    /// Rows that delete the rows of their keys.
    deletions: RowSet,
}

/// A row of a file and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keyed {
    pub(crate) hash: KeyHash,
    pub(crate) row: u32,
    pub(crate) sequence: Sequence,
}

/// Collects the rows of a file.
#[derive(Default)]
pub(crate) struct FileKeysBuilder {
    hashes: Vec<KeyHash>,
    sequences: Vec<Sequence>,
    deletions: RowSet,
}

impl FileKeysBuilder {
    /// Adds the next rows of the file; `has_sequence` is the same for all.
    pub(crate) fn append(&mut self, rows: &KeyedRows, has_sequence: bool) {
        let first = self.hashes.len() as u64;
        self.hashes.extend(&rows.hashes);
        if has_sequence {
            self.sequences.extend((0..rows.hashes.len()).map(|row| rows.sequence(row)));
        }
        let deletes = (0..rows.hashes.len()).filter(|row| rows.deletes(*row));
        self.deletions.extend(deletes.map(|row| first + row as u64));
    }

    /// # Panics
    /// If there are more than 2³² rows.
    pub(crate) fn finish(self) -> FileKeys {
        FileKeys { deletions: self.deletions, ..FileKeys::new(&self.hashes, &self.sequences) }
    }
}

/// The sequences of entries, in few bytes.
#[derive(Debug, Default)]
enum Sequences {
    /// The table has none.
    #[default]
    None,
    /// The smallest number stands for NULL.
    Narrow(Vec<i64>),
    Wide(Vec<Sequence>),
}

impl Sequences {
    fn new(values: impl Iterator<Item = Sequence> + Clone) -> Self {
        let narrow = |value: Sequence| match value {
            None => Some(i64::MIN),
            Some(value) => i64::try_from(value).ok().filter(|value| *value != i64::MIN),
        };
        match values.clone().map(narrow).collect::<Option<Vec<_>>>() {
            Some(values) => Self::Narrow(values),
            None => Self::Wide(values.collect()),
        }
    }

    fn at(&self, place: usize) -> Sequence {
        match self {
            Self::None => None,
            Self::Narrow(values) => Some(values[place]).filter(|value| *value != i64::MIN).map(i128::from),
            Self::Wide(values) => values[place],
        }
    }
}

impl FileKeys {
    /// The keys of rows in the order of the file, and their sequences if the table has such.
    fn new(hashes: &[KeyHash], sequences: &[Sequence]) -> Self {
        let count = u32::try_from(hashes.len()).expect("a data file is far smaller");
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by_key(|&row| (hashes[row as usize], row));
        let bits = (hashes.len() / RUN_ENTRIES).max(1).ilog2();
        let shift = u64::BITS - bits;
        let high: Vec<u64> = order.iter().map(|&row| hashes[row as usize].high).collect();
        let low = order.iter().map(|&row| hashes[row as usize].low).collect();
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        let mut place = 0;
        for run in 0..1_u64 << bits {
            while place < high.len() && run_of(high[place], shift) < run {
                place += 1;
            }
            starts.push(place as u32);
        }
        starts.push(count);
        let sequences = match sequences {
            [] => Sequences::None,
            all => Sequences::new(order.iter().map(|&row| all[row as usize])),
        };
        Self { starts, shift, high, low, rows: order, sequences, deletions: RowSet::new() }
    }

    /// Rows that delete the rows of their keys.
    pub(crate) fn deletions(&self) -> &RowSet {
        &self.deletions
    }

    /// Whether the row deletes the row of its key.
    pub(crate) fn deletes(&self, row: u32) -> bool {
        self.deletions.contains(row.into())
    }

    /// The rows with that key in the order of the file.
    pub(crate) fn find(&self, hash: KeyHash) -> impl Iterator<Item = Keyed> {
        let run = run_of(hash.high, self.shift) as usize;
        let bounds = match self.starts.get(run..run + 2) {
            Some(bounds) => bounds[0] as usize..bounds[1] as usize,
            None => 0..0,
        };
        let is_it = move |&place: &usize| self.high[place] == hash.high && self.low[place] == hash.low;
        bounds.filter(is_it).map(|place| self.at(place))
    }

    /// All rows, those of one key together and in the order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Keyed> {
        (0..self.rows.len()).map(|place| self.at(place))
    }

    fn at(&self, place: usize) -> Keyed {
        let hash = KeyHash { high: self.high[place], low: self.low[place] };
        Keyed { hash, row: self.rows[place], sequence: self.sequences.at(place) }
    }
}

fn run_of(high: u64, shift: u32) -> u64 {
    high.checked_shr(shift).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn hash(key: u64) -> KeyHash {
        KeyHash { high: xxh3_64(&key.to_le_bytes()), low: key as u32 }
    }

    #[test]
    fn each_key_is_found_with_all_its_rows_and_others_are_not() {
        for count in [0, 1, 2, 15, 31, 32, 33, 1000, 20_000] {
            let hashes: Vec<KeyHash> = (0..count).chain(0..count / 3).map(hash).collect();
            let keys = FileKeys::new(&hashes, &[]);
            let rows = |hash| keys.find(hash).map(|found| found.row).collect::<Vec<_>>();
            assert_eq!(keys.entries().count(), hashes.len());
            for key in 0..count {
                let mut expected = vec![key as u32];
                expected.extend((key < count / 3).then_some((count + key) as u32));
                assert_eq!(rows(hash(key)), expected, "key {key} of {count}");
            }
            assert!((count..count + 100).all(|key| keys.find(hash(key)).next().is_none()));
            assert!(keys.entries().map(|entry| (entry.hash, entry.row)).is_sorted());
        }
    }

    #[test]
    fn keys_that_differ_in_the_last_bits_only_are_different() {
        let of = |low| KeyHash { high: 7, low };
        let keys = FileKeys::new(&[of(3), of(1), of(3)], &[]);
        let rows = |hash| keys.find(hash).map(|found| found.row).collect::<Vec<_>>();
        assert_eq!(rows(of(3)), [0, 2]);
        assert_eq!(rows(of(1)), [1]);
        assert_eq!(keys.find(of(2)).next(), None);
    }

    #[test]
    fn sequences_are_kept_whatever_their_range() {
        let hashes: Vec<KeyHash> = (0..5).map(hash).collect();
        let narrow = [Some(3), None, Some(i128::from(i64::MAX)), Some(-1), Some(0)];
        let wide = [Some(i128::from(i64::MIN)), None, Some(1 << 100), Some(-1), Some(0)];
        for sequences in [narrow, wide] {
            let keys = FileKeys::new(&hashes, &sequences);
            for (row, sequence) in sequences.into_iter().enumerate() {
                let expected = Keyed { hash: hashes[row], row: row as u32, sequence };
                assert_eq!(keys.find(hashes[row]).collect::<Vec<_>>(), [expected]);
            }
        }
    }
}

//! Where the rows of a data file are, by their keys.
//!
//! Entries are sorted by their hashes, whose first bits choose one of many small runs of them.

use super::hash::KeyHash;

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
}

impl FileKeys {
    /// The keys of rows in the order of the file.
    ///
    /// # Panics
    /// If there are more than 2³² rows.
    pub(crate) fn new(hashes: &[KeyHash]) -> Self {
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
        Self { starts, shift, high, low, rows: order }
    }

    /// How many rows the file has.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows with that key in the order of the file.
    pub(crate) fn find(&self, hash: KeyHash) -> impl Iterator<Item = u32> {
        let run = run_of(hash.high, self.shift) as usize;
        let bounds = match self.starts.get(run..run + 2) {
            Some(bounds) => bounds[0] as usize..bounds[1] as usize,
            None => 0..0,
        };
        let is_it = move |&place: &usize| self.high[place] == hash.high && self.low[place] == hash.low;
        bounds.filter(is_it).map(|place| self.rows[place])
    }

    /// All keys and their rows, those of one key together and in the order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (KeyHash, u32)> {
        let keys = self.high.iter().zip(&self.low).map(|(&high, &low)| KeyHash { high, low });
        keys.zip(self.rows.iter().copied())
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
            let keys = FileKeys::new(&hashes);
            assert_eq!(keys.len(), hashes.len());
            for key in 0..count {
                let mut expected = vec![key as u32];
                expected.extend((key < count / 3).then_some((count + key) as u32));
                assert_eq!(keys.find(hash(key)).collect::<Vec<_>>(), expected, "key {key} of {count}");
            }
            assert!((count..count + 100).all(|key| keys.find(hash(key)).next().is_none()));
            assert!(keys.entries().is_sorted());
        }
    }

    #[test]
    fn keys_that_differ_in_the_last_bits_only_are_different() {
        let of = |low| KeyHash { high: 7, low };
        let keys = FileKeys::new(&[of(3), of(1), of(3)]);
        assert_eq!(keys.find(of(3)).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(keys.find(of(1)).collect::<Vec<_>>(), [1]);
        assert_eq!(keys.find(of(2)).next(), None);
    }
}

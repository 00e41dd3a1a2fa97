//! The positions of a data file's rows, by key: a file of its own, on this machine, which is rebuilt when it is lost.
//!
//! Entries are sorted by their hashes, whose first bits choose one of many small runs of them. An entry has the other bits of its
//! hash and the position of its row. The larger the file, the more bits of hashes choose the run and the fewer remain, and the
//! more bits a position takes; so an entry has 11 bytes whatever the size. After a header follow the offsets of the runs, 4 bytes
//! for each 16 entries, the entries, their sequences if the table has them, and the rows that delete.

use super::build::FileKeysBuilder;
use super::hash::{KEY_BITS, KeyHash};
use super::pages::{PageReader, Pages, Source};
use super::rows::Sequence;
use crate::error::TableError;
use crate::file::RowSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Entries of a run, on average.
const RUN_ENTRIES: u32 = 16;
pub(super) const ENTRY_BYTES: usize = 11;
const START_BYTES: usize = 4;
const MAGIC: &[u8; 8] = b"TRBKEYS2";
const HEADER_BYTES: usize = 36;
/// Pages that are read at a time if most of them are needed.
const PAGES_AHEAD: usize = 32;
/// A reader that skips more bytes than this from one key to the next reads single pages.
const SKIPPED_BYTES_MAX: u64 = 16 * 1024;

/// The keys of all rows of one data file, deleted ones included. It never changes.
#[derive(Debug)]
pub(crate) struct FileKeys {
    pages: Pages,
    shape: Shape,
    /// Rows that delete the rows of their keys.
    deletions: RowSet,
    /// Whether they were found missing or damaged.
    is_lost: AtomicBool,
}

/// A row of a file and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keyed {
    pub(crate) hash: KeyHash,
    pub(crate) row: u32,
    pub(crate) sequence: Sequence,
}

/// The other numbers, derived from the number of entries and the kind of their sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) count: u32,
    /// Bytes of a sequence: 0, 8 or 16. The smallest number represents NULL.
    pub(super) sequence_bytes: usize,
    run_bits: u32,
    row_bits: u32,
}

impl Shape {
    pub(super) fn new(count: u32, sequence_bytes: usize) -> Self {
        let run_bits = (count / RUN_ENTRIES).max(1).ilog2();
        let row_bits = u32::BITS - count.saturating_sub(1).leading_zeros();
        debug_assert!(KEY_BITS - run_bits + row_bits <= ENTRY_BYTES as u32 * 8, "an entry has room");
        Self { count, sequence_bytes, run_bits, row_bits }
    }

    pub(super) fn runs(self) -> usize {
        1 << self.run_bits
    }

    pub(super) fn run_of(self, hash: KeyHash) -> usize {
        (hash.bits() >> (KEY_BITS - self.run_bits)) as usize
    }

    /// The bits of a hash that its run does not determine.
    fn rest_of(self, hash: KeyHash) -> u128 {
        hash.bits() & ((1 << (KEY_BITS - self.run_bits)) - 1)
    }

    pub(super) fn entry(self, hash: KeyHash, row: u32) -> u128 {
        self.rest_of(hash) << self.row_bits | u128::from(row)
    }

    pub(super) fn row_of(self, entry: u128) -> u32 {
        (entry & ((1 << self.row_bits) - 1)) as u32
    }

    fn hash_of(self, run: usize, entry: u128) -> KeyHash {
        KeyHash::from_bits((run as u128) << (KEY_BITS - self.run_bits) | entry >> self.row_bits)
    }

    fn start_at(run: usize) -> u64 {
        (HEADER_BYTES + run * START_BYTES) as u64
    }

    fn entry_at(self, place: u32) -> u64 {
        Self::start_at(self.runs() + 1) + u64::from(place) * ENTRY_BYTES as u64
    }

    fn sequence_at(self, place: u32) -> u64 {
        self.entry_at(self.count) + u64::from(place) * self.sequence_bytes as u64
    }
}

pub(super) fn entry_of(bytes: &[u8]) -> u128 {
    let mut whole = [0; 16];
    whole[..ENTRY_BYTES].copy_from_slice(bytes);
    u128::from_le_bytes(whole)
}

fn sequence_of(bytes: &[u8]) -> Sequence {
    if let Ok(narrow) = bytes.try_into() {
        let value = i64::from_le_bytes(narrow);
        return (value != i64::MIN).then(|| value.into());
    }
    let value = i128::from_le_bytes(bytes.try_into().ok()?);
    (value != i128::MIN).then_some(value)
}

/// The parts of the file before the entries and after the sequences.
pub(super) fn header_and_starts(shape: Shape, fingerprint: u64, deletions: usize, starts: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(shape.sequence_at(shape.count) as usize + deletions);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&fingerprint.to_le_bytes());
    bytes.extend_from_slice(&shape.count.to_le_bytes());
    bytes.extend_from_slice(&(shape.sequence_bytes as u64).to_le_bytes());
    bytes.extend_from_slice(&(deletions as u64).to_le_bytes());
    debug_assert_eq!(bytes.len(), HEADER_BYTES);
    bytes.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
    bytes
}

impl FileKeys {
    pub(super) fn new(pages: Pages, shape: Shape, deletions: RowSet) -> Self {
        Self { pages, shape, deletions, is_lost: AtomicBool::new(false) }
    }

    /// Collects the keys of a file; `fingerprint` identifies their columns.
    pub(crate) fn builder(fingerprint: u64) -> FileKeysBuilder {
        FileKeysBuilder::new(fingerprint)
    }

    /// The keys of `rows` rows stored in a file, if it exists and has that fingerprint.
    pub(crate) fn kept(path: &Path, fingerprint: u64, rows: u64) -> Option<Self> {
        let pages = Pages::File(path.to_owned());
        let read = || -> io::Result<Option<(Shape, RowSet)>> {
            let source = pages.open()?;
            let mut reader = source.reader(1);
            let header = reader.read(0, HEADER_BYTES)?;
            let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
            let count = number(16) as u32;
            let (sequence_bytes, deletions) = (number(20) as usize, number(28) as usize);
            if &header[..8] != MAGIC || number(8) != fingerprint || u64::from(count) != rows {
                return Ok(None);
            }
            let shape = Shape::new(count, sequence_bytes);
            let deletions = reader.read(shape.sequence_at(count), deletions)?;
            Ok(Some((shape, RowSet::deserialize_from(deletions)?)))
        };
        let (shape, deletions) = read().ok().flatten()?;
        Some(Self::new(pages, shape, deletions))
    }

    /// Rows that delete the rows of their keys.
    pub(crate) fn deletions(&self) -> &RowSet {
        &self.deletions
    }

    /// Whether the row deletes the row of its key.
    pub(crate) fn deletes(&self, row: u32) -> bool {
        self.deletions.contains(row.into())
    }

    /// Whether they have to be rebuilt.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Calls `found` with the index of a key in `hashes`, which are sorted, and with each row of that key, in the order of the
    /// file. Does I/O.
    ///
    /// # Errors
    /// [`TableError::LostKeys`].
    pub(crate) fn find(
        &self,
        hashes: impl ExactSizeIterator<Item = KeyHash>,
        mut found: impl FnMut(usize, Keyed),
    ) -> Result<(), TableError> {
        let skipped = u64::from(self.shape.count) * ENTRY_BYTES as u64 / (hashes.len() as u64).max(1);
        let pages = if skipped > SKIPPED_BYTES_MAX { 1 } else { PAGES_AHEAD };
        self.read(pages, |reading| {
            for (place, hash) in hashes.enumerate() {
                reading.find(hash, |keyed| found(place, keyed))?;
            }
            Ok(())
        })
    }

    /// Calls `each` with all rows of one key, in the order of the file, for each key in the order of their hashes. Does I/O.
    ///
    /// # Errors
    /// [`TableError::LostKeys`].
    pub(crate) fn for_each_key(&self, mut each: impl FnMut(&[Keyed])) -> Result<(), TableError> {
        self.read(PAGES_AHEAD, |reading| {
            let mut of_key: Vec<Keyed> = Vec::new();
            for run in 0..self.shape.runs() {
                for place in reading.places_of(run)? {
                    let keyed = reading.keyed(run, place)?;
                    if of_key.last().is_some_and(|last| last.hash != keyed.hash) {
                        each(&of_key);
                        of_key.clear();
                    }
                    of_key.push(keyed);
                }
            }
            if !of_key.is_empty() {
                each(&of_key);
            }
            Ok(())
        })
    }

    fn read(
        &self,
        pages: usize,
        read: impl FnOnce(&mut Reading<'_>) -> io::Result<()>,
    ) -> Result<(), TableError> {
        let result = self.pages.open().and_then(|source| read(&mut Reading::new(&source, self.shape, pages)));
        result.map_err(|error| {
            self.is_lost.store(true, Ordering::Relaxed);
            let file = self.pages.path().map(|path| path.display().to_string()).unwrap_or_default();
            TableError::LostKeys { file, reason: error.to_string() }
        })
    }
}

/// The parts of a file of keys, each with a reader of its own.
struct Reading<'a> {
    shape: Shape,
    starts: PageReader<'a>,
    entries: PageReader<'a>,
    sequences: PageReader<'a>,
}

impl<'a> Reading<'a> {
    fn new(source: &'a Source<'a>, shape: Shape, pages: usize) -> Self {
        Self {
            shape,
            starts: source.reader(pages),
            entries: source.reader(pages),
            sequences: source.reader(pages),
        }
    }

    fn places_of(&mut self, run: usize) -> io::Result<std::ops::Range<u32>> {
        let bytes = self.starts.read(Shape::start_at(run), 2 * START_BYTES)?;
        let (start, end) = bytes.split_at(START_BYTES);
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
        Ok(number(start)..number(end))
    }

    fn find(&mut self, hash: KeyHash, mut found: impl FnMut(Keyed)) -> io::Result<()> {
        let shape = self.shape;
        let places = self.places_of(shape.run_of(hash))?;
        let wanted = shape.rest_of(hash);
        let run = self.entries.read(shape.entry_at(places.start), places.len() * ENTRY_BYTES)?;
        for (place, bytes) in places.zip(run.chunks_exact(ENTRY_BYTES)) {
            let entry = entry_of(bytes);
            let rest = entry >> shape.row_bits;
            if rest < wanted {
                continue;
            }
            if rest > wanted {
                break;
            }
            let sequence = sequence_at(shape, &mut self.sequences, place)?;
            found(Keyed { hash, row: shape.row_of(entry), sequence });
        }
        Ok(())
    }

    fn keyed(&mut self, run: usize, place: u32) -> io::Result<Keyed> {
        let shape = self.shape;
        let entry = entry_of(self.entries.read(shape.entry_at(place), ENTRY_BYTES)?);
        let sequence = sequence_at(shape, &mut self.sequences, place)?;
        Ok(Keyed { hash: shape.hash_of(run, entry), row: shape.row_of(entry), sequence })
    }
}

fn sequence_at(shape: Shape, reader: &mut PageReader<'_>, place: u32) -> io::Result<Sequence> {
    match shape.sequence_bytes {
        0 => Ok(None),
        bytes => reader.read(shape.sequence_at(place), bytes).map(sequence_of),
    }
}

#[cfg(test)]
mod tests;

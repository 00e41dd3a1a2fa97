//! Making the keys of a data file.

use super::file::{ENTRY_BYTES, FileKeys, Shape, entry_of, header_and_starts};
use super::hash::KeyHash;
use super::pages::Pages;
use super::rows::{KeyedRows, Sequence};
use crate::error::TableError;
use crate::file::RowSet;
use std::path::Path;

/// Collects the rows of a file. Takes 27 bytes for each, plus its sequence.
pub(crate) struct FileKeysBuilder {
    fingerprint: u64,
    hashes: Vec<KeyHash>,
    sequences: Sequences,
    deletions: RowSet,
}

/// The sequences of rows, in few bytes.
enum Sequences {
    None,
    /// The smallest number represents NULL.
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

impl Sequences {
    fn push(&mut self, value: Sequence) {
        let narrow = match value {
            None => Some(i64::MIN),
            Some(value) => i64::try_from(value).ok().filter(|value| *value != i64::MIN),
        };
        match (&mut *self, narrow) {
            (Self::Wide(values), _) => values.push(value.unwrap_or(i128::MIN)),
            (Self::Narrow(values), Some(narrow)) => values.push(narrow),
            (Self::None, Some(narrow)) => *self = Self::Narrow(vec![narrow]),
            (Self::Narrow(_) | Self::None, None) => {
                let Self::Narrow(values) = std::mem::replace(self, Self::Wide(Vec::new())) else {
                    return self.push(value);
                };
                let wide = |value: i64| if value == i64::MIN { i128::MIN } else { value.into() };
                *self = Self::Wide(values.into_iter().map(wide).collect());
                self.push(value);
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Narrow(_) => size_of::<i64>(),
            Self::Wide(_) => size_of::<i128>(),
        }
    }

    fn append_to(&self, bytes: &mut Vec<u8>, row: u32) {
        match self {
            Self::None => {}
            Self::Narrow(values) => bytes.extend_from_slice(&values[row as usize].to_le_bytes()),
            Self::Wide(values) => bytes.extend_from_slice(&values[row as usize].to_le_bytes()),
        }
    }
}

impl FileKeysBuilder {
    pub(super) fn new(fingerprint: u64) -> Self {
        Self { fingerprint, hashes: Vec::new(), sequences: Sequences::None, deletions: RowSet::new() }
    }

    /// Adds the next rows of the file; `has_sequence` is the same for all.
    pub(crate) fn append(&mut self, rows: &KeyedRows, has_sequence: bool) {
        let first = self.hashes.len() as u64;
        self.hashes.extend(&rows.hashes);
        if has_sequence {
            (0..rows.hashes.len()).for_each(|row| self.sequences.push(rows.sequence(row)));
        }
        let deletes = (0..rows.hashes.len()).filter(|row| rows.deletes(*row));
        self.deletions.extend(deletes.map(|row| first + row as u64));
    }

    #[cfg(test)]
    pub(super) fn push_all(&mut self, hashes: &[KeyHash], sequences: &[Sequence]) {
        self.hashes.extend(hashes);
        sequences.iter().for_each(|sequence| self.sequences.push(*sequence));
    }

    /// Writes the keys to the file `path`, or else to memory.
    ///
    /// # Errors
    /// [`TableError::Local`].
    ///
    /// # Panics
    /// If there are more than 2³² rows.
    pub(crate) fn finish(self, path: Option<&Path>) -> Result<FileKeys, TableError> {
        let count = u32::try_from(self.hashes.len()).expect("a data file is far smaller");
        let shape = Shape::new(count, self.sequences.bytes());
        let bytes = self.bytes(shape);
        let pages = match path {
            Some(path) => Pages::write(&bytes, path).map_err(|source| TableError::Local {
                doing: "writing the keys of a data file to",
                path: path.to_owned(),
                source,
            })?,
            None => Pages::in_memory(&bytes),
        };
        Ok(FileKeys::new(pages, shape, self.deletions))
    }

    fn bytes(&self, shape: Shape) -> Vec<u8> {
        let starts = self.starts(shape);
        let deletions = self.deletions.serialized_size();
        let mut bytes = header_and_starts(shape, self.fingerprint, deletions, &starts);
        let first_entry = bytes.len();
        bytes.resize(first_entry + shape.count as usize * ENTRY_BYTES, 0);
        let entries = &mut bytes[first_entry..];
        let mut places: Vec<u32> = starts[..shape.runs()].to_vec();
        for (row, &hash) in (0..shape.count).zip(&self.hashes) {
            let place = &mut places[shape.run_of(hash)];
            let at = *place as usize * ENTRY_BYTES;
            entries[at..at + ENTRY_BYTES]
                .copy_from_slice(&shape.entry(hash, row).to_le_bytes()[..ENTRY_BYTES]);
            *place += 1;
        }
        let mut run: Vec<u128> = Vec::new();
        for bounds in starts.windows(2) {
            let of_run = &mut entries[bounds[0] as usize * ENTRY_BYTES..bounds[1] as usize * ENTRY_BYTES];
            run.clear();
            run.extend(of_run.chunks_exact(ENTRY_BYTES).map(entry_of));
            run.sort_unstable();
            for (bytes, entry) in of_run.chunks_exact_mut(ENTRY_BYTES).zip(&run) {
                bytes.copy_from_slice(&entry.to_le_bytes()[..ENTRY_BYTES]);
            }
        }
        if self.sequences.bytes() > 0 {
            for place in 0..shape.count as usize {
                let at = first_entry + place * ENTRY_BYTES;
                let row = shape.row_of(entry_of(&bytes[at..at + ENTRY_BYTES]));
                self.sequences.append_to(&mut bytes, row);
            }
        }
        self.deletions.serialize_into(&mut bytes).expect("there is memory for it, or the process has ended");
        bytes
    }

    /// The beginning of each run, and the end of the last one.
    fn starts(&self, shape: Shape) -> Vec<u32> {
        let mut starts = vec![0; shape.runs() + 1];
        for &hash in &self.hashes {
            starts[shape.run_of(hash) + 1] += 1;
        }
        for run in 1..starts.len() {
            starts[run] += starts[run - 1];
        }
        starts
    }
}

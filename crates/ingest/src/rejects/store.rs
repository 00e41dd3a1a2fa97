//! The files of rejected rows.
//!
//! A file that is damaged is read up to the damage: rejected rows are for people, who would rather have a server that starts.

use super::RejectedLoad;
use super::record;
use crate::numbered::{NumberedFiles, Numbers};
use parking_lot::RwLock;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use tributary_types::{TableId, TxnId, host};
use tributary_wal::Disk;
use tributary_wal::disk::{DiskFile, OpenMode};

/// This many neighbouring small files are merged.
const MERGED_FILES: u64 = 8;
/// Larger files are left as they are.
const SMALL_BYTES: u64 = 1024 * 1024;
const SUFFIX: &str = ".rejects";

/// A file.
pub(super) struct RejectFile {
    numbers: Numbers,
    bytes: u64,
    /// Of its last load.
    newest_ms: i64,
    /// Readers that have found it read on, even if it is deleted meanwhile.
    file: Box<dyn DiskFile>,
}

impl fmt::Debug for RejectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectFile").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl RejectFile {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn contents(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes as usize];
        let read = self.file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The loads of the tables, and all that bring rejected rows again, in the order in which they were stored.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn read(&self, is_asked: impl Fn(TableId) -> bool) -> io::Result<Vec<RejectedLoad>> {
        let contents = self.contents()?;
        let mut rest = contents.as_slice();
        let mut loads = Vec::new();
        while let Some(record) = record::next(&mut rest) {
            if is_asked(record.table) || record.has_replays {
                loads.extend(record.read());
            }
        }
        Ok(loads)
    }
}

type Files = Arc<Vec<Arc<RejectFile>>>;

/// All files. One caller at a time changes them.
#[derive(Debug)]
pub(super) struct RejectStore {
    names: NumberedFiles,
    /// Oldest first.
    files: RwLock<Files>,
}

impl RejectStore {
    /// Opens the directory, which is created if it is not there. Gives the loads of its files, too.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn open(disk: Arc<dyn Disk>, dir: PathBuf) -> io::Result<(Self, HashSet<(TxnId, u32)>)> {
        let (names, found) = NumberedFiles::open(disk, dir, SUFFIX, None)?;
        let mut loads = HashSet::new();
        let mut files = Vec::new();
        for numbers in found {
            let path = names.path(numbers);
            let file = names.disk.open(&path, OpenMode::Existing)?;
            let mut opened = RejectFile { numbers, bytes: file.len()?, newest_ms: i64::MIN, file };
            let contents = opened.contents()?;
            let mut rest = contents.as_slice();
            let mut last = None;
            while let Some(record) = record::next(&mut rest) {
                loads.insert((record.txn, record.load));
                last = Some(record);
            }
            if !rest.is_empty() {
                tracing::error!(file = %path.display(), at = contents.len() - rest.len(), "a file of rejected rows is damaged; those behind this place can't be shown");
            }
            opened.newest_ms =
                last.and_then(|record| record.read()).map_or(i64::MIN, |load: RejectedLoad| load.at_ms);
            files.push(Arc::new(opened));
        }
        Ok((Self { names, files: RwLock::new(Arc::new(files)) }, loads))
    }

    pub fn files(&self) -> Files {
        Arc::clone(&self.files.read())
    }

    /// Writes a file, which is durable on return.
    ///
    /// # Errors
    /// Those of the disk; there is no file.
    pub fn write(&self, loads: &[Arc<RejectedLoad>]) -> io::Result<RejectFile> {
        let mut bytes = Vec::new();
        loads.iter().for_each(|load| record::push(load, &mut bytes));
        let newest_ms = loads.iter().map(|load| load.at_ms).max().unwrap_or(i64::MIN);
        let numbers = Numbers::after(self.files().last().map(|file| file.numbers));
        self.write_bytes(numbers, &bytes, newest_ms)
    }

    fn write_bytes(&self, numbers: Numbers, bytes: &[u8], newest_ms: i64) -> io::Result<RejectFile> {
        let unfinished = self.names.unfinished()?;
        let file = self.names.disk.open(&unfinished, OpenMode::CreateNew)?;
        file.write_all_at(bytes, 0)?;
        file.sync_data()?;
        let path = self.names.finish(&unfinished, numbers)?;
        let file = self.names.disk.open(&path, OpenMode::Existing)?;
        Ok(RejectFile { numbers, bytes: bytes.len() as u64, newest_ms, file })
    }

    /// Takes a file that was written last.
    pub fn add(&self, file: RejectFile) {
        let mut files = self.files().to_vec();
        files.push(Arc::new(file));
        *self.files.write() = Arc::new(files);
    }

    /// Whether there are enough small files.
    pub fn has_mergeable(&self) -> bool {
        mergeable(&self.files()).is_some()
    }

    /// Merges small neighbours, once there are enough. Whether there may be more to do.
    ///
    /// # Errors
    /// Those of the disk; all loads are found as before.
    pub fn merge_some(&self) -> io::Result<bool> {
        let files = self.files();
        let Some(parts) = mergeable(&files) else { return Ok(false) };
        let mut bytes = Vec::new();
        for part in parts {
            let contents = part.contents()?;
            let mut rest = contents.as_slice();
            while record::next(&mut rest).is_some() {}
            bytes.extend_from_slice(&contents[..contents.len() - rest.len()]);
        }
        let numbers = Numbers { first: parts[0].numbers.first, last: parts[parts.len() - 1].numbers.last };
        let newest_ms = parts.iter().map(|part| part.newest_ms).max().unwrap_or(i64::MIN);
        let merged = Arc::new(self.write_bytes(numbers, &bytes, newest_ms)?);
        let place = |file: &Arc<RejectFile>| match file.numbers.first {
            first if first == numbers.first => Some(Arc::clone(&merged)),
            first if first > numbers.first && first <= numbers.last => None,
            _ => Some(Arc::clone(file)),
        };
        *self.files.write() = Arc::new(files.iter().filter_map(place).collect());
        // A later start removes the others, if this is cut off.
        parts.iter().try_for_each(|part| self.names.remove(part.numbers))?;
        Ok(true)
    }

    /// Deletes the files whose loads are all from before `before_ms`, and the oldest ones while all take more than `bytes_max`.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn purge(&self, before_ms: i64, bytes_max: u64) -> io::Result<()> {
        let files = self.files();
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let mut is_old = |file: &Arc<RejectFile>| {
            let is_old = file.newest_ms < before_ms || bytes > bytes_max;
            bytes -= if is_old { file.bytes } else { 0 };
            is_old
        };
        let (old, kept): (Vec<_>, Vec<_>) = files.iter().cloned().partition(|file| is_old(file));
        if old.is_empty() {
            return Ok(());
        }
        *self.files.write() = Arc::new(kept);
        for file in old {
            match self.names.remove(file.numbers) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.names.sync()
    }
}

/// The newest neighbours that are small, if they are enough.
fn mergeable(files: &[Arc<RejectFile>]) -> Option<&[Arc<RejectFile>]> {
    let count = host::limit(MERGED_FILES, 3) as usize;
    files.windows(count).rfind(|run| run.iter().all(|file| file.bytes < SMALL_BYTES))
}

//! The files of keys: which there are, and how they become few again.
//!
//! Invariant: a key whose record was added is found, in a file that is durable, until its time is over. Not its business: keys that
//! are not in a file yet.

use super::record::{ChannelRecord, KeyRecord};
use super::segment::{Records, Segment, SegmentWriter};
use crate::numbered::{NumberedFiles, Numbers};
use parking_lot::{Mutex, RwLock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use tributary_types::{LoadKeyId, host};
use tributary_wal::Disk;
use tributary_wal::disk::OpenMode;

/// This many files of about one size are merged.
const MERGED_FILES: usize = 8;
/// Larger files are left as they are.
const MERGED_RECORDS_MAX: u64 = 16 * 1024 * 1024;
/// Files of fewer records are of one size.
const SMALL_RECORDS: u64 = 4096;
const SUFFIX: &str = ".keys";
/// The file of all channels: for each its record's length (u32) and bytes; then CRC-32C of what is before it.
const CHANNELS: &str = "channels";

/// A file with the numbers that it holds.
#[derive(Debug)]
struct Named {
    numbers: Numbers,
    segment: Segment,
}

impl Named {
    /// The size in powers of [`MERGED_FILES`].
    fn tier(&self) -> u32 {
        (self.segment.end.records / SMALL_RECORDS).max(1).ilog2() / MERGED_FILES.ilog2()
    }
}

/// The kept keys in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    pub keys: u64,
    pub files: u64,
    pub memory_bytes: u64,
}

/// All files of keys.
#[derive(Debug)]
pub(super) struct KeyStore {
    names: NumberedFiles,
    /// Oldest first.
    files: RwLock<Arc<Vec<Arc<Named>>>>,
    /// Held by the one that adds, merges or removes files.
    changing: Mutex<()>,
}

impl KeyStore {
    /// Opens the directory, which is created if it is not there.
    ///
    /// # Errors
    /// Those of the disk; a file is damaged.
    pub fn open(disk: Arc<dyn Disk>, dir: PathBuf) -> io::Result<Self> {
        let (names, found) = NumberedFiles::open(disk, dir, SUFFIX, Some(CHANNELS))?;
        let open = |numbers| {
            let path = names.path(numbers);
            let segment = Segment::open(&*names.disk, &path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            Ok(Arc::new(Named { numbers, segment }))
        };
        let files = found.into_iter().map(open).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { names, files: RwLock::new(Arc::new(files)), changing: Mutex::default() })
    }

    fn files(&self) -> Arc<Vec<Arc<Named>>> {
        Arc::clone(&self.files.read())
    }

    /// The last record of a key. The caller decides whether its time is over.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn find(&self, id: LoadKeyId) -> io::Result<Option<KeyRecord>> {
        for file in self.files().iter().rev() {
            if let Some(record) = file.segment.find(id)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    pub fn stored(&self) -> Stored {
        let files = self.files();
        Stored {
            keys: files.iter().map(|file| file.segment.end.records).sum(),
            files: files.len() as u64,
            memory_bytes: files.iter().map(|file| file.segment.memory_bytes()).sum(),
        }
    }

    /// Adds records, which are durable and found on return. There is one of each key.
    ///
    /// # Errors
    /// Those of the disk; nothing was added.
    pub fn add(&self, mut records: Vec<KeyRecord>) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        records.sort_unstable_by_key(|record| record.id);
        let _changing = self.changing.lock();
        let numbers = Numbers::after(self.files().last().map(|file| file.numbers));
        let count = records.len() as u64;
        let added = self.write(numbers, count, records.into_iter().map(Ok))?;
        let mut files = self.files().to_vec();
        files.extend(added);
        *self.files.write() = Arc::new(files);
        Ok(())
    }

    /// Writes all channels, in place of those of before. Durable on return.
    ///
    /// # Errors
    /// Those of the disk; the file has the channels of before, or these.
    pub fn put_channels(&self, channels: &[ChannelRecord]) -> io::Result<()> {
        let _changing = self.changing.lock();
        let mut bytes = Vec::new();
        for channel in channels {
            let record = channel.to_bytes();
            bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&record);
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        let unfinished = self.names.unfinished()?;
        let file = self.names.disk.open(&unfinished, OpenMode::CreateNew)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        self.names.disk.rename(&unfinished, &self.names.dir().join(CHANNELS))?;
        self.names.sync()
    }

    /// Reads the channels that were written last.
    ///
    /// # Errors
    /// Those of the disk; the file is damaged.
    pub fn channels(&self) -> io::Result<Vec<ChannelRecord>> {
        let file = match self.names.disk.open(&self.names.dir().join(CHANNELS), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; file.len()? as usize];
        let read = file.read_at(&mut bytes, 0)?;
        let damaged = || io::Error::new(ErrorKind::InvalidData, "the file of channels is damaged");
        let (mut rest, sum) = bytes[..read].split_last_chunk::<4>().ok_or_else(damaged)?;
        if u32::from_le_bytes(*sum) != crc32c::crc32c(rest) {
            return Err(damaged());
        }
        let mut channels = Vec::new();
        while let Some((len, after)) = rest.split_first_chunk::<4>() {
            let (record, after) =
                after.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(damaged)?;
            channels.push(ChannelRecord::from_bytes(record).ok_or_else(damaged)?);
            rest = after;
        }
        Ok(channels)
    }

    /// Writes a file of the records, in the order of their keys; `None` if there are none.
    fn write(
        &self,
        numbers: Numbers,
        count: u64,
        records: impl Iterator<Item = io::Result<KeyRecord>>,
    ) -> io::Result<Option<Arc<Named>>> {
        let unfinished = self.names.unfinished()?;
        let mut writer = SegmentWriter::create(&*self.names.disk, &unfinished, count)?;
        let mut is_empty = true;
        for record in records {
            writer.add(&record?)?;
            is_empty = false;
        }
        if is_empty {
            self.names.disk.remove(&unfinished)?;
            return Ok(None);
        }
        writer.finish()?;
        let path = self.names.finish(&unfinished, numbers)?;
        Ok(Some(Arc::new(Named { numbers, segment: Segment::open(&*self.names.disk, &path)? })))
    }

    /// Whether there are enough neighbours of about one size.
    pub fn has_mergeable(&self) -> bool {
        mergeable(&self.files()).is_some()
    }

    /// Merges neighbours of about one size, once there are enough, and leaves out records from before `before_ms`. Whether there may
    /// be more to do.
    ///
    /// # Errors
    /// Those of the disk; all records are as they were.
    pub fn merge_some(&self, before_ms: i64) -> io::Result<bool> {
        let _changing = self.changing.lock();
        let files = self.files();
        let Some(from) = mergeable(&files) else { return Ok(false) };
        let parts = &files[from..from + merged_files()];
        let count = parts.iter().map(|part| part.segment.end.records).sum();
        let merged = Merge::of(parts, before_ms)?;
        let numbers = Numbers { first: parts[0].numbers.first, last: parts[parts.len() - 1].numbers.last };
        let merged = self.write(numbers, count, merged)?;
        let mut now = files[..from].to_vec();
        now.extend(merged);
        now.extend_from_slice(&files[from + merged_files()..]);
        *self.files.write() = Arc::new(now);
        parts.iter().try_for_each(|part| self.names.remove(part.numbers))?;
        Ok(true)
    }

    /// Removes the files whose keys are all from before `before_ms`.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn purge(&self, before_ms: i64) -> io::Result<()> {
        let _changing = self.changing.lock();
        let (old, kept): (Vec<_>, Vec<_>) =
            self.files().iter().cloned().partition(|file| file.segment.end.newest_ms < before_ms);
        if old.is_empty() {
            return Ok(());
        }
        *self.files.write() = Arc::new(kept);
        old.iter().try_for_each(|file| self.names.remove(file.numbers))?;
        self.names.sync()
    }
}

fn merged_files() -> usize {
    host::limit(MERGED_FILES as u64, 3) as usize
}

/// Where enough neighbours of one size begin, the newest first: small ones are merged before they become many.
fn mergeable(files: &[Arc<Named>]) -> Option<usize> {
    let is_alike = |run: &[Arc<Named>]| {
        let tier = run[0].tier();
        let records: u64 = run.iter().map(|file| file.segment.end.records).sum();
        run.iter().all(|file| file.tier() == tier) && records <= MERGED_RECORDS_MAX
    };
    files.windows(merged_files()).rposition(is_alike)
}

/// The records of several files in the order of their keys, each key's last one.
struct Merge<'a> {
    parts: Vec<Records<'a>>,
    /// The next record of each part: by its key, the newest part first.
    next: BinaryHeap<Reverse<(LoadKeyId, Reverse<usize>)>>,
    heads: Vec<Option<KeyRecord>>,
    last: Option<LoadKeyId>,
    before_ms: i64,
}

impl<'a> Merge<'a> {
    fn of(files: &'a [Arc<Named>], before_ms: i64) -> io::Result<Self> {
        let parts: Vec<_> = files.iter().map(|file| file.segment.records()).collect();
        let heads = vec![None; parts.len()];
        let mut merge = Self { parts, next: BinaryHeap::new(), heads, last: None, before_ms };
        for part in 0..merge.parts.len() {
            merge.advance(part)?;
        }
        Ok(merge)
    }

    fn advance(&mut self, part: usize) -> io::Result<()> {
        self.heads[part] = self.parts[part].next().transpose()?;
        if let Some(head) = &self.heads[part] {
            self.next.push(Reverse((head.id, Reverse(part))));
        }
        Ok(())
    }
}

impl Iterator for Merge<'_> {
    type Item = io::Result<KeyRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Reverse((id, Reverse(part))) = self.next.pop()?;
            let record = self.heads[part].take()?;
            if let Err(error) = self.advance(part) {
                return Some(Err(error));
            }
            let is_repeated = self.last.replace(id) == Some(id);
            if !is_repeated && record.at_ms >= self.before_ms {
                return Some(Ok(record));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{AnsweredAs, MadeLabel};
    use super::*;
    use tributary_decode::Counts;
    use tributary_types::{Label, LoadKey, TableId, TxnId};
    use tributary_wal::disk::{Faults, OsDisk};
    use tributary_wal::{MemDisk, disk};

    /// Keys of a file.
    const EACH: u64 = 700;

    fn record(number: u64, at_ms: i64) -> KeyRecord {
        KeyRecord {
            id: LoadKey::new(&format!("key {number}")).expect("legal").id(TableId(1)),
            table: TableId(1),
            fingerprint: number,
            txn: TxnId(number + at_ms as u64),
            label: MadeLabel::of(&Label::of_group(1)).expect("made"),
            answered_as: AnsweredAs::GroupSync,
            at_ms,
            counts: Counts { total: number, loaded: number, ..Counts::default() },
        }
    }

    fn has(store: &KeyStore, number: u64) -> Option<TxnId> {
        store.find(record(number, 0).id).expect("readable").map(|record| record.txn)
    }

    #[test]
    fn keys_are_found_after_merges_and_restarts_and_until_they_are_old() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || KeyStore::open(Arc::new(OsDisk), dir.path().join("keys")).expect("opens");
        let store = open();
        for file in 0..20 {
            let records = (file * EACH..(file + 1) * EACH).map(|number| record(number, file as i64));
            store.add(records.collect()).expect("added");
            while store.merge_some(0).expect("merged") {}
        }
        assert!(store.stored().files < 8, "{:?}", store.stored());
        let check = |store: &KeyStore| {
            for number in 0..20 * EACH {
                assert_eq!(has(store, number), Some(TxnId(number + number / EACH)), "key {number}");
            }
            assert_eq!(has(store, 20 * EACH), None);
        };
        check(&store);
        let before = store.stored();
        drop(store);
        let store = open();
        assert_eq!(store.stored(), before);
        check(&store);
        store.purge(19).expect("purged");
        assert!(has(&store, 0).is_none() && has(&store, 19 * EACH).is_some());
        assert!(store.stored().memory_bytes < 40 * store.stored().keys.max(1));
    }

    #[test]
    fn the_last_record_of_a_key_is_found_and_old_ones_leave_with_a_merge() {
        let store = KeyStore::open(Arc::new(MemDisk::new()), "/keys".into()).expect("opens");
        for at_ms in 1..=8 {
            store.add(vec![record(1, at_ms), record(100 + at_ms as u64, at_ms)]).expect("added");
        }
        assert_eq!(has(&store, 1), Some(TxnId(9)));
        assert!(store.merge_some(5).expect("merged"));
        assert_eq!(
            (has(&store, 1), has(&store, 104), has(&store, 105)),
            (Some(TxnId(9)), None, Some(TxnId(110)))
        );
        assert_eq!(store.stored().keys, 5, "of those of four files, and the one that all have");
    }

    #[test]
    fn a_file_that_was_not_written_to_its_end_is_as_if_it_had_not_been_begun() {
        let disk = MemDisk::new();
        let open = |disk: &MemDisk| KeyStore::open(Arc::new(disk.clone()), "/keys".into());
        let store = open(&disk).expect("opens");
        store.add((0..60).map(|number| record(number, 1)).collect()).expect("added");
        let mut operations = 0;
        // The power goes off at each operation of the second one.
        loop {
            disk.set_faults(Faults {
                power_off_at: Some(disk.operations() + operations),
                ..Faults::default()
            });
            let added = store.add((60..70).map(|number| record(number, 1)).collect());
            let was_off = disk.is_off();
            disk.crash(operations);
            disk.set_faults(Faults::default());
            let after = open(&disk).expect("opens");
            assert!((0..60).all(|number| has(&after, number).is_some()));
            if added.is_ok() {
                assert!(
                    (60..70).all(|number| has(&after, number).is_some()),
                    "after {operations} operations"
                );
            }
            if !was_off {
                break;
            }
            operations += 1;
        }
        assert!(operations > 3, "the power went off {operations} times");
    }

    #[test]
    fn a_damaged_file_is_named() {
        let disk = MemDisk::new();
        let store = KeyStore::open(Arc::new(disk.clone()), "/keys".into()).expect("opens");
        store.add((0..60).map(|number| record(number, 1)).collect()).expect("added");
        let path = store.names.path(Numbers::after(None));
        let file = disk.open(&path, disk::OpenMode::Existing).expect("there");
        let len = disk::DiskFile::len(&*file).expect("it has one");
        file.write_all_at(&[0x55], 100).expect("written");
        let error =
            (0..60).find_map(|number| store.find(record(number, 0).id).err()).expect("a page is damaged");
        assert_eq!(error.to_string(), "a page of a file of idempotency keys is damaged");
        file.write_all_at(&[0x55], len - 70).expect("written");
        let error = KeyStore::open(Arc::new(disk), "/keys".into()).expect_err("the index is damaged");
        assert!(
            error.to_string().starts_with("/keys/0000000000000001-0000000000000001.keys: the index"),
            "{error}"
        );
    }

    /// Resident memory of this process, in bytes.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
    }

    #[test]
    #[ignore = "a measurement of minutes and of 10 GB of disk: run it alone in the release profile, with --nocapture"]
    fn a_hundred_million_keys_take_little_memory_and_are_opened_at_once() {
        const BATCH: u64 = 1_000_000;
        let dir = tempfile::tempdir().expect("a directory");
        let open = || KeyStore::open(Arc::new(OsDisk), dir.path().join("keys")).expect("opens");
        let (begun, before) = (std::time::Instant::now(), resident());
        let store = open();
        for batch in 0..100 {
            store
                .add((batch * BATCH..(batch + 1) * BATCH).map(|number| record(number, 1)).collect())
                .expect("added");
            while store.merge_some(0).expect("merged") {}
        }
        println!("written and merged in {:?}: {:?}", begun.elapsed(), store.stored());
        drop(store);
        let begun = std::time::Instant::now();
        let store = open();
        let opened = begun.elapsed();
        let resident = resident().saturating_sub(before);
        let begun = std::time::Instant::now();
        let mut found = 0;
        for number in (0..100 * BATCH).step_by(10_007) {
            found += u64::from(has(&store, number).is_some());
        }
        let (looks, per_look) = (100 * BATCH / 10_007 + 1, begun.elapsed() / 9_994);
        let begun = std::time::Instant::now();
        for number in 0..10_000 {
            assert!(has(&store, 100 * BATCH + number).is_none());
        }
        println!(
            "opened in {opened:?}; resident memory {} MiB more; a key that is there is found in {per_look:?}, one that is not in {:?}",
            resident >> 20,
            begun.elapsed() / 10_000,
        );
        assert_eq!(found, looks);
        assert!(opened < std::time::Duration::from_secs(10));
    }
}

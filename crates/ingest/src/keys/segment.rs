//! A file of keys: records in the order of their keys, which never changes once it is written.
//!
//! | part | bytes |
//! | --- | --- |
//! | pages | 4096 each: up to 51 records, how many (u32), zeros, CRC-32C of what is before it |
//! | firsts | for each page, the first 8 bytes of its first key, as they are |
//! | filter | of all keys |
//! | end | 64: `TRBKEYS1`, records, firsts' and filter's bytes, newest and oldest time in Unix milliseconds, CRC-32C of firsts and filter (u32), zeros, CRC-32C of the end (u32) |
//!
//! Numbers are little-endian. In memory are the firsts and the filter, some 1.7 bytes for each key, so a key is found with one read,
//! and most keys that are not there without one.
//!
//! Invariant: a file that can be opened was written to its end. Not its business: names, and which files there are.

use super::filter::Filter;
use super::record::{KeyRecord, RECORD_BYTES};
use std::io::{self, ErrorKind};
use std::path::Path;
use tributary_types::LoadKeyId;
use tributary_wal::Disk;
use tributary_wal::disk::{DiskFile, OpenMode};

const PAGE_BYTES: usize = 4096;
const RECORDS_PER_PAGE: usize = 51;
const COUNT_AT: usize = RECORDS_PER_PAGE * RECORD_BYTES;
const PAGE_SUM_AT: usize = PAGE_BYTES - 4;
const END_BYTES: usize = 64;
const MAGIC: &[u8; 8] = b"TRBKEYS1";
/// Pages that are written, or read by a merge, at once.
const PAGES_AT_ONCE: usize = 64;

/// The facts at the end of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    pub records: u64,
    firsts_bytes: u64,
    filter_bytes: u64,
    pub newest_ms: i64,
    pub oldest_ms: i64,
    sum: u32,
}

impl End {
    fn to_bytes(self) -> [u8; END_BYTES] {
        let mut bytes = [0; END_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, MAGIC);
        put(8, &self.records.to_le_bytes());
        put(16, &self.firsts_bytes.to_le_bytes());
        put(24, &self.filter_bytes.to_le_bytes());
        put(32, &self.newest_ms.to_le_bytes());
        put(40, &self.oldest_ms.to_le_bytes());
        put(48, &self.sum.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..END_BYTES - 4]);
        bytes[END_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; END_BYTES]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let is_whole =
            bytes[..8] == *MAGIC && short(END_BYTES - 4) == crc32c::crc32c(&bytes[..END_BYTES - 4]);
        is_whole.then(|| Self {
            records: long(8),
            firsts_bytes: long(16),
            filter_bytes: long(24),
            newest_ms: long(32) as i64,
            oldest_ms: long(40) as i64,
            sum: short(48),
        })
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{what} of a file of idempotency keys is damaged"))
}

/// A file of keys that is open.
pub(super) struct Segment {
    file: Box<dyn DiskFile>,
    firsts: Vec<u64>,
    filter: Filter,
    pub end: End,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("end", &self.end).finish_non_exhaustive()
    }
}

impl Segment {
    /// Opens a file.
    ///
    /// # Errors
    /// `InvalidData`: it is damaged or was not written to its end; or those of the disk.
    pub fn open(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        let file = disk.open(path, OpenMode::Existing)?;
        let len = file.len()?;
        let mut bytes = [0; END_BYTES];
        let end_at = len.checked_sub(END_BYTES as u64).ok_or_else(|| damaged("the end"))?;
        read_exactly(&*file, &mut bytes, end_at)?;
        let end = End::from_bytes(&bytes).ok_or_else(|| damaged("the end"))?;
        let pages = end.records.div_ceil(RECORDS_PER_PAGE as u64);
        let firsts_at = pages * PAGE_BYTES as u64;
        if end.firsts_bytes != pages * 8 || firsts_at + end.firsts_bytes + end.filter_bytes != end_at {
            return Err(damaged("the length"));
        }
        let mut index = vec![0; (end.firsts_bytes + end.filter_bytes) as usize];
        read_exactly(&*file, &mut index, firsts_at)?;
        if crc32c::crc32c(&index) != end.sum {
            return Err(damaged("the index"));
        }
        let (firsts, filter) = index.split_at(end.firsts_bytes as usize);
        let firsts = firsts.as_chunks::<8>().0.iter().map(|first| u64::from_be_bytes(*first)).collect();
        let filter = Filter::from_bytes(filter).ok_or_else(|| damaged("the filter"))?;
        Ok(Self { file, firsts, filter, end })
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        (self.firsts.len() * 8 + self.filter.len_bytes()) as u64
    }

    /// The record of a key, if it is here.
    ///
    /// # Errors
    /// A page is damaged, or can't be read.
    pub fn find(&self, id: LoadKeyId) -> io::Result<Option<KeyRecord>> {
        if !self.filter.may_have(id) {
            return Ok(None);
        }
        let prefix = prefix(id);
        // Pages before it begin with lower keys; equal beginnings are all but impossible, and looked at.
        let mut page = self.firsts.partition_point(|first| *first < prefix).saturating_sub(1);
        while page < self.firsts.len() && self.firsts[page] <= prefix {
            let records = self.read_pages(page, 1)?;
            if let Ok(at) = records.binary_search_by_key(&id, |record| record.id) {
                return Ok(Some(records[at]));
            }
            page += 1;
        }
        Ok(None)
    }

    /// The records of some pages.
    fn read_pages(&self, first: usize, count: usize) -> io::Result<Vec<KeyRecord>> {
        let mut bytes = vec![0; count * PAGE_BYTES];
        read_exactly(&*self.file, &mut bytes, (first * PAGE_BYTES) as u64)?;
        let mut records = Vec::with_capacity(count * RECORDS_PER_PAGE);
        for page in bytes.as_chunks::<PAGE_BYTES>().0 {
            let short = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
            let count = short(COUNT_AT) as usize;
            if short(PAGE_SUM_AT) != crc32c::crc32c(&page[..PAGE_SUM_AT]) || count > RECORDS_PER_PAGE {
                return Err(damaged("a page"));
            }
            for bytes in page[..count * RECORD_BYTES].as_chunks::<RECORD_BYTES>().0 {
                records.push(KeyRecord::from_bytes(bytes).ok_or_else(|| damaged("a record"))?);
            }
        }
        Ok(records)
    }

    /// Reads all records, in the order of their keys.
    pub fn records(&self) -> Records<'_> {
        Records { segment: self, next_page: 0, read: Vec::new().into_iter() }
    }
}

/// All records of a file.
pub(super) struct Records<'a> {
    segment: &'a Segment,
    next_page: usize,
    read: std::vec::IntoIter<KeyRecord>,
}

impl Iterator for Records<'_> {
    type Item = io::Result<KeyRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.read.next() {
            return Some(Ok(record));
        }
        let count = (self.segment.firsts.len() - self.next_page).min(PAGES_AT_ONCE);
        if count == 0 {
            return None;
        }
        match self.segment.read_pages(self.next_page, count) {
            Ok(records) => self.read = records.into_iter(),
            Err(error) => return Some(Err(error)),
        }
        self.next_page += count;
        self.read.next().map(Ok)
    }
}

fn prefix(id: LoadKeyId) -> u64 {
    u64::from_be_bytes(id.0[..8].try_into().expect("eight bytes"))
}

fn read_exactly(file: &dyn DiskFile, bytes: &mut [u8], at: u64) -> io::Result<()> {
    if file.read_at(bytes, at)? == bytes.len() { Ok(()) } else { Err(damaged("the length")) }
}

/// A file of keys that is being written.
pub(super) struct SegmentWriter {
    file: Box<dyn DiskFile>,
    filter: Filter,
    firsts: Vec<u8>,
    /// Records of the page that is not full yet.
    page: Vec<u8>,
    /// Full pages that are not written yet.
    pages: Vec<u8>,
    written: u64,
    end: End,
}

impl SegmentWriter {
    /// Creates a file for at most about this many records.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn create(disk: &dyn Disk, path: &Path, records: u64) -> io::Result<Self> {
        Ok(Self {
            file: disk.open(path, OpenMode::CreateNew)?,
            filter: Filter::for_keys(records),
            firsts: Vec::new(),
            page: Vec::with_capacity(PAGE_BYTES),
            pages: Vec::new(),
            written: 0,
            end: End { newest_ms: i64::MIN, oldest_ms: i64::MAX, ..End::default() },
        })
    }

    /// Adds a record; its key is greater than those before.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn add(&mut self, record: &KeyRecord) -> io::Result<()> {
        if self.page.is_empty() {
            self.firsts.extend_from_slice(&record.id.0[..8]);
        }
        self.filter.add(record.id);
        self.page.extend_from_slice(&record.to_bytes());
        self.end.records += 1;
        self.end.newest_ms = self.end.newest_ms.max(record.at_ms);
        self.end.oldest_ms = self.end.oldest_ms.min(record.at_ms);
        if self.page.len() == COUNT_AT {
            self.end_page();
            if self.pages.len() >= PAGES_AT_ONCE * PAGE_BYTES {
                self.write_pages()?;
            }
        }
        Ok(())
    }

    fn end_page(&mut self) {
        let count = (self.page.len() / RECORD_BYTES) as u32;
        self.page.resize(COUNT_AT, 0);
        self.page.extend_from_slice(&count.to_le_bytes());
        self.page.resize(PAGE_SUM_AT, 0);
        let sum = crc32c::crc32c(&self.page);
        self.page.extend_from_slice(&sum.to_le_bytes());
        self.pages.append(&mut self.page);
    }

    fn write_pages(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.pages, self.written)?;
        self.written += self.pages.len() as u64;
        self.pages.clear();
        Ok(())
    }

    /// Ends the file. Its contents are durable on return; its name is the caller's business.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn finish(mut self) -> io::Result<()> {
        if !self.page.is_empty() {
            self.end_page();
        }
        let mut index = self.firsts.clone();
        index.extend_from_slice(&self.filter.to_bytes());
        self.end.firsts_bytes = self.firsts.len() as u64;
        self.end.filter_bytes = self.filter.len_bytes() as u64;
        self.end.sum = crc32c::crc32c(&index);
        self.pages.append(&mut index);
        self.pages.extend_from_slice(&self.end.to_bytes());
        self.write_pages()?;
        self.file.sync_data()
    }
}

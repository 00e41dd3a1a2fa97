//! The write-ahead log, read back.
//!
//! *Bytes*: segments are made of the input, piece by piece: raw bytes, or frames whose checksums are right and whose other fields
//! may be wrong. A second reader, written from the drawing of the format alone, determines the entries; the log must return
//! exactly those, and an error exactly where there is damage. A log that was read can be written, and then contains the entries
//! read and those written.
//!
//! *Damage*: a valid log is written and then damaged in one place. It must return the same entries as before, or a prefix of them
//! and an error. Without an error, only frames touched by the damage may be missing (at the end of the newest segment, which
//! cannot be distinguished from an unfinished write).

mod bytes;
mod damage;
mod model;

pub use bytes::wal_bytes;
pub use damage::wal_damage;

use ::bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_types::Lsn;
use tributary_wal::{Disk, Entry, LogCore, MemDisk, Recovered, Wal, WalError, WalOptions};

const SEGMENT_BYTES: u64 = 16 << 10;

fn dir() -> PathBuf {
    PathBuf::from("/wal")
}

fn segment_path(first: u64) -> PathBuf {
    dir().join(format!("wal-{first:020}.log"))
}

fn open(disk: &MemDisk) -> Result<Recovered, WalError> {
    let options = WalOptions { segment_bytes: SEGMENT_BYTES, salt_seed: Some(1), ..WalOptions::default() };
    Wal::recover(Arc::new(disk.clone()), &dir(), options)
}

/// The entries up to the end or to an error.
fn read(disk: &MemDisk) -> (Vec<(Lsn, Entry)>, Result<(), WalError>) {
    let mut entries = Vec::new();
    let mut recovered = match open(disk) {
        Ok(recovered) => recovered,
        Err(error) => return (entries, Err(error)),
    };
    loop {
        match recovered.next() {
            Ok(Some(entry)) => entries.push(entry),
            Ok(None) => return (entries, Ok(())),
            Err(error) => return (entries, Err(error)),
        }
    }
}

/// Opens the log for writing.
fn core(disk: &MemDisk) -> Result<LogCore, WalError> {
    Ok(open(disk)?.into_core()?.0)
}

fn entry(number: u64, body: &[u8]) -> Entry {
    Entry {
        kind: number as u8,
        table: tributary_types::TableId(number % 7),
        txn: tributary_types::TxnId(number),
        tag: number as u32 % 3,
        body: Bytes::copy_from_slice(body),
    }
}

/// The segment files: path and first LSN, oldest first.
fn segments(disk: &MemDisk) -> Vec<(PathBuf, u64)> {
    let files = disk.list(Path::new("/wal")).expect("the disk works");
    let first = |name: &str| name.strip_prefix("wal-")?.strip_suffix(".log")?.parse::<u64>().ok();
    let mut segments: Vec<_> =
        files.iter().filter_map(|(name, _)| Some((dir().join(name), first(name)?))).collect();
    segments.sort_by_key(|(_, first)| *first);
    segments
}

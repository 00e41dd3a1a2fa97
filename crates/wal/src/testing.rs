//! Helpers for the tests of several modules.

pub(crate) use crate::disk::mem::Dice;
use crate::{Entry, Extent, LogCore, MemDisk, Recovered, Wal, WalError, WalOptions};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_types::{Lsn, TableId, TxnId};

pub(crate) const SEGMENT_BYTES: u64 = 16 << 10;

pub(crate) fn dir() -> PathBuf {
    PathBuf::from("/wal")
}

pub(crate) fn options() -> WalOptions {
    WalOptions { segment_bytes: SEGMENT_BYTES, salt_seed: Some(1), ..WalOptions::default() }
}

/// Makes an entry that its number distinguishes from all others.
pub(crate) fn entry(number: u64, body_bytes: usize) -> Entry {
    Entry {
        kind: number as u8,
        table: TableId(number % 7),
        txn: TxnId(number),
        tag: number as u32 % 3,
        body: Bytes::from(vec![number as u8 ^ 0x5a; body_bytes]),
    }
}

pub(crate) fn open(disk: &MemDisk) -> Result<Recovered, WalError> {
    Wal::recover(Arc::new(disk.clone()), &dir(), options())
}

pub(crate) fn core(disk: &MemDisk) -> LogCore {
    open(disk).unwrap().into_core().unwrap().0
}

/// Reads a log to its end.
pub(crate) fn read(recovered: &mut Recovered) -> Result<Vec<(Lsn, Entry)>, WalError> {
    let mut entries = Vec::new();
    while let Some(next) = recovered.next()? {
        entries.push(next);
    }
    Ok(entries)
}

pub(crate) fn read_all(disk: &MemDisk) -> Result<(Vec<(Lsn, Entry)>, Extent), WalError> {
    let mut recovered = open(disk)?;
    let entries = read(&mut recovered)?;
    Ok((entries, recovered.report().clone()))
}

pub(crate) fn segment_path(first: u64) -> PathBuf {
    Path::new(&dir()).join(crate::segment::format::segment_name(Lsn(first)))
}

//! A log as it is at one moment, to be copied while it goes on.
//!
//! Invariant: at that moment no log writes and no callback of one runs; so what the caller reads meanwhile (snapshots of tables)
//! agrees with what is before the cuts, in all logs. Copies of a cut's pieces are a log that is read back like one whose process
//! ended there. The files stay as they are as long as nothing is released ([`Wal::release`]); that is up to the caller.
//!
//! Not its business: where the copies go, and the meaning of the entries.

use crate::core::LogCore;
use crate::disk::Disk;
use crate::entry::Entry;
use crate::error::WalError;
use crate::log::Wal;
use crate::segment::format::decode_entry;
use crate::segment::reader::SegmentReader;
use std::path::PathBuf;
use tributary_types::Lsn;
use tributary_types::lock::RankedGuard;

/// The contents of a log at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The log's directory.
    pub dir: PathBuf,
    /// Everything before it is durable, and nothing after it is in the pieces.
    pub end: Lsn,
    /// From the oldest segment that is needed on.
    pub pieces: Vec<Piece>,
}

/// The beginning of a segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub path: PathBuf,
    /// The LSN of its first frame.
    pub first: Lsn,
    /// How much of the file counts, from its beginning.
    pub bytes: u64,
}

impl Cut {
    fn of(wal: &Wal, core: &LogCore) -> Self {
        let (shared, active) = (wal.shared(), core.active());
        let released = shared.counters.released();
        let mut pieces: Vec<Piece> = shared
            .inventory
            .closed_beyond(released)
            .into_iter()
            .map(|segment| Piece { bytes: segment.used_bytes(), first: segment.first, path: segment.path })
            .collect();
        pieces.push(Piece {
            path: active.path().to_owned(),
            first: active.first(),
            bytes: active.used_bytes(),
        });
        Self { dir: wal.dir().to_owned(), end: active.end(), pieces }
    }

    /// Passes the entries to `visit`, oldest first, read from the files as they are on the disk now.
    ///
    /// # Errors
    /// [`WalError::Damaged`] where a frame is missing or its checksum is wrong, [`WalError::Io`].
    pub fn read(&self, disk: &dyn Disk, visit: &mut dyn FnMut(Entry)) -> Result<(), WalError> {
        for piece in &self.pieces {
            let mut reader = SegmentReader::open(disk, &piece.path, piece.first)?;
            while reader.offset() < piece.bytes {
                let offset = reader.offset();
                let frame = reader.next_frame()?;
                let frame = frame.map_err(|none| WalError::damaged(&piece.path, offset, none.reason))?;
                let mut at = 0;
                for _ in 0..frame.entries {
                    let Some((entry, next)) = decode_entry(&frame.payload, at) else {
                        return Err(WalError::damaged(
                            &piece.path,
                            offset,
                            "an entry is longer than its frame",
                        ));
                    };
                    visit(entry);
                    at = next;
                }
            }
        }
        Ok(())
    }
}

/// Stops the logs for a moment, each between two frames, and calls `read` with the cut of each. Waits for frames that are being
/// written. `None` if one of the logs has ended.
///
/// The order of `logs` is the same in all calls: that of their directories in the options.
pub fn at_rest<T>(logs: &[&Wal], read: impl FnOnce(Vec<Cut>) -> T) -> Option<T> {
    let mut held: Vec<RankedGuard<'_, Option<LogCore>>> = Vec::with_capacity(logs.len());
    for log in logs {
        let core = &log.shared().core;
        let guard = match held.last() {
            Some(before) => core.lock_after(before),
            None => core.lock(),
        };
        held.push(guard);
    }
    let cuts = logs.iter().zip(&held).map(|(log, core)| Some(Cut::of(log, core.as_ref()?)));
    let cuts = cuts.collect::<Option<Vec<Cut>>>()?;
    Some(read(cuts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, MemDisk, OpenMode};
    use crate::entry::Entry;
    use crate::options::WalOptions;
    use std::path::Path;
    use std::sync::Arc;
    use tributary_types::{TableId, TxnId};

    fn open(disk: &MemDisk, dir: &Path) -> (Wal, Vec<u32>) {
        let options = WalOptions { segment_bytes: 16 << 10, ..WalOptions::default() };
        let mut found = Wal::recover(Arc::new(disk.clone()), dir, options).unwrap();
        let mut tags = Vec::new();
        while let Some((_, entry)) = found.next().unwrap() {
            tags.push(entry.tag);
        }
        (found.start().unwrap().0, tags)
    }

    fn copy(disk: &MemDisk, cut: &Cut, to: &Path) {
        disk.create_dir_all(to).unwrap();
        for piece in &cut.pieces {
            let mut bytes = vec![0; piece.bytes as usize];
            assert_eq!(
                disk.open(&piece.path, OpenMode::Existing).unwrap().read_at(&mut bytes, 0).unwrap(),
                bytes.len()
            );
            let file = disk.open(&to.join(piece.path.file_name().unwrap()), OpenMode::CreateNew).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
        }
    }

    fn entry(tag: u32) -> Entry {
        Entry { kind: 1, table: TableId(1), txn: TxnId(1), tag, body: vec![7; 3000].into() }
    }

    #[tokio::test]
    async fn the_copy_of_a_cut_is_a_log_that_ends_there() {
        let disk = MemDisk::new();
        let (here, there) = (Path::new("/wal"), Path::new("/copy"));
        let (log, _) = open(&disk, here);
        for tag in 0..20 {
            log.append(vec![entry(tag)]).await.unwrap();
        }
        let cut = at_rest(&[&log], |cuts| cuts[0].clone()).unwrap();
        assert!(cut.pieces.len() > 2 && cut.end == log.end_lsn(), "{cut:?}");
        for tag in 20..30 {
            log.append(vec![entry(tag)]).await.unwrap();
        }
        let mut read = Vec::new();
        cut.read(&disk, &mut |entry| read.push(entry.tag)).unwrap();
        assert_eq!(read, (0..20).collect::<Vec<u32>>());
        copy(&disk, &cut, there);
        let (copied, tags) = open(&disk, there);
        assert_eq!(tags, (0..20).collect::<Vec<u32>>());
        copied.append(vec![entry(99)]).await.unwrap();
        copied.shutdown();
        assert_eq!(open(&disk, there).1.len(), 21, "it goes on");
    }

    #[tokio::test]
    async fn a_byte_that_changed_on_the_disk_is_found() {
        let disk = MemDisk::new();
        let (log, _) = open(&disk, Path::new("/wal"));
        for tag in 0..3 {
            log.append(vec![entry(tag)]).await.unwrap();
        }
        let cut = at_rest(&[&log], |cuts| cuts[0].clone()).unwrap();
        let file = disk.open(&cut.pieces[0].path, OpenMode::Existing).unwrap();
        file.write_all_at(&[9], cut.pieces[0].bytes - 2000).unwrap();
        let mut read = 0;
        let error = cut.read(&disk, &mut |_| read += 1).unwrap_err();
        assert!(matches!(error, WalError::Damaged { .. }) && read == 2, "{read}: {error}");
    }

    #[tokio::test]
    async fn a_discounted_segment_is_not_live_and_is_part_of_cuts() {
        let disk = MemDisk::new();
        let (log, _) = open(&disk, Path::new("/wal"));
        log.append(vec![entry(0)]).await.unwrap();
        log.discount(log.end_lsn());
        assert_eq!(log.live_bytes(), 0);
        let first = at_rest(&[&log], |cuts| cuts[0].pieces[0].path.clone()).unwrap();
        for tag in 1..20 {
            log.append(vec![entry(tag)]).await.unwrap();
        }
        let cut = at_rest(&[&log], |cuts| cuts[0].clone()).unwrap();
        assert_eq!(cut.pieces[0].path, first, "{cut:?}");
        let mut read = Vec::new();
        cut.read(&disk, &mut |entry| read.push(entry.tag)).unwrap();
        assert_eq!(read, (0..20).collect::<Vec<u32>>());
        assert!(log.would_free(log.end_lsn()));
        assert!(log.live_bytes() < log.end_lsn().0, "what came after it is live, and it is not");
    }

    #[tokio::test]
    async fn released_segments_are_not_part_of_a_cut_and_an_empty_one_is() {
        let disk = MemDisk::new();
        let (log, _) = open(&disk, Path::new("/wal"));
        let (other, _) = open(&disk, Path::new("/other"));
        for tag in 0..20 {
            log.append(vec![entry(tag)]).await.unwrap();
        }
        log.release(log.end_lsn());
        let cuts = at_rest(&[&log, &other], |cuts| cuts).unwrap();
        assert_eq!(cuts[0].pieces.len(), 1, "the active segment alone: {cuts:?}");
        copy(&disk, &cuts[1], Path::new("/copy"));
        assert_eq!(open(&disk, Path::new("/copy")).1, Vec::<u32>::new());
        other.shutdown();
        assert!(at_rest(&[&log, &other], |_| ()).is_none(), "one of them has ended");
    }
}

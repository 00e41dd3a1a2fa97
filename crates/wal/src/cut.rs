//! A log as it is at one moment, to be copied while it goes on.
//!
//! Invariant: at that moment no log writes and no callback of one runs; so what the caller reads meanwhile (snapshots of tables)
//! agrees with what is before the cuts, in all logs. Copies of a cut's pieces are a log that is read back like one whose process
//! ended there. The files stay as they are as long as nothing is released ([`Wal::release`]); that is up to the caller.
//!
//! Not its business: where the copies go.

use crate::core::LogCore;
use crate::log::Wal;
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
            .map(|segment| Piece { bytes: segment.used_bytes(), path: segment.path })
            .collect();
        pieces.push(Piece { path: active.path().to_owned(), bytes: active.used_bytes() });
        Self { dir: wal.dir().to_owned(), end: active.end(), pieces }
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
        copy(&disk, &cut, there);
        let (copied, tags) = open(&disk, there);
        assert_eq!(tags, (0..20).collect::<Vec<u32>>());
        copied.append(vec![entry(99)]).await.unwrap();
        copied.shutdown();
        assert_eq!(open(&disk, there).1.len(), 21, "it goes on");
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

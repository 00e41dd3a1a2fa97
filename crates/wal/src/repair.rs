//! Repairs a damaged log once its owner has decided which entries to give up.
//!
//! There are two ways. **Cut**: the log ends before the damage, and everything after it is given up. **Skip**: one entry of kind
//! [`SKIPPED`] replaces the damaged bytes, and the entries after it survive. Files that are changed or removed are first copied
//! into a directory of their own below the log's.
//!
//! Invariant: at any instant a crash leaves a log that is either damaged as before or repaired, with a complete backup: first the
//! backup becomes durable, then the change, then the removal of files that the change made superfluous. Not its business: which
//! way to take.

#[cfg(test)]
mod tests;

use crate::disk::OpenMode;
use crate::entry::Entry;
use crate::error::WalError;
use crate::frame::FrameBuilder;
use crate::log_id::LogId;
use crate::recovery::list_files;
use crate::segment::format::{
    ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, SEGMENT_HEADER_BYTES, SegmentHeader,
    segment_name, spare_name,
};
use crate::survey::{Damage, DamageKind, Survey, header_of};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use tributary_types::{Lsn, TableId, TxnId};

/// The kind of the entry that replaces skipped bytes. Its body is zeros; entries may be missing at its position.
pub const SKIPPED: u8 = 0;

/// Files are copied and cleared in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The directory of the copies.
    pub backup: PathBuf,
    /// Files that were changed; the backup has them as they were.
    pub changed: Vec<PathBuf>,
    /// Files that were moved to the backup.
    pub moved: Vec<PathBuf>,
}

/// The reason why a log can't be repaired in this way.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RepairError {
    #[error(transparent)]
    Wal(#[from] WalError),
    #[error("{} at byte {} can't be skipped: {why}; cut the log there instead", damage.file.display(), damage.offset)]
    CannotSkip { damage: Box<Damage>, why: &'static str },
    #[error("the backup directory {} exists already; try again in a second", .0.display())]
    BackupExists(PathBuf),
}

impl Survey<'_> {
    /// Ends the log before `damage`. `header_value` ([`crate::Extent::header_value`]) must be greater than every
    /// transaction id that the log ever had, so that no id is assigned twice. `backup` is the name of a new directory
    /// below the log's. Durable on return.
    ///
    /// # Errors
    /// [`RepairError::BackupExists`], or [`RepairError::Wal`] if files can't be read or written.
    pub fn cut(&self, damage: &Damage, header_value: u64, backup: &str) -> Result<Repaired, RepairError> {
        let backup = self.new_backup(backup)?;
        let (segments, _) = list_files(self.disk, &self.dir)?;
        let whole = damage.kind == DamageKind::Header;
        let later = segments
            .iter()
            .filter(|segment| segment.path > damage.file || whole && segment.path == damage.file);
        let moved: Vec<PathBuf> = later.map(|segment| segment.path.clone()).collect();
        // The segment that becomes the newest says which transaction ids were given.
        let newest = segments.iter().rev().find(|segment| !moved.contains(&segment.path));
        let headers: Vec<_> = segments
            .iter()
            .filter_map(|segment| header_of(self.disk, &segment.path, segment.first))
            .collect();
        let log = LogId::of_log(&headers);
        let mut changed = Vec::new();
        if let Some(newest) = newest {
            self.back_up(&newest.path, &backup)?;
            changed.push(newest.path.clone());
        }
        // From the newest on, so that a crash between two leaves no gap.
        for path in moved.iter().rev() {
            self.move_away(path, &backup)?;
        }
        match newest {
            Some(newest) => {
                if !whole {
                    self.clear(&newest.path, damage.offset, newest.file_bytes)?;
                }
                self.raise_header_value(&newest.path, newest.first, header_value)?;
            }
            None => self.begin_again(damage.lsn, header_value, log)?,
        }
        Ok(Repaired { backup, changed, moved })
    }

    /// Replaces the damaged bytes by an entry of kind [`SKIPPED`]. Durable on return.
    ///
    /// # Errors
    /// [`RepairError::CannotSkip`] if the damage is not a hole between valid frames; the errors of [`Survey::cut`].
    pub fn skip(&self, damage: &Damage, backup: &str) -> Result<Repaired, RepairError> {
        let cannot = |why| Err(RepairError::CannotSkip { damage: Box::new(damage.clone()), why });
        match damage.kind {
            DamageKind::TornTail => return cannot("it is the end of the log, which a start cuts by itself"),
            DamageKind::Header => return cannot("without its header no frame of the segment can be read"),
            DamageKind::Hole => {}
        }
        let head = (FRAME_HEADER_BYTES + ENTRY_HEADER_BYTES) as u64;
        if damage.bytes < head {
            return cannot("it is smaller than the smallest frame");
        }
        if damage.bytes - FRAME_HEADER_BYTES as u64 > FRAME_PAYLOAD_BYTES_MAX {
            return cannot("it is larger than the largest frame");
        }
        let first = Lsn(damage.lsn.0 + SEGMENT_HEADER_BYTES - damage.offset);
        let Some(header) = header_of(self.disk, &damage.file, first) else {
            return cannot("the header of the segment can't be read");
        };
        let backup = self.new_backup(backup)?;
        self.back_up(&damage.file, &backup)?;
        let body = Bytes::from(vec![0; (damage.bytes - head) as usize]);
        let entry = Entry { kind: SKIPPED, table: TableId(0), txn: TxnId(0), tag: 0, body };
        let mut frame = FrameBuilder::default();
        frame.build(&[[entry]], damage.lsn, header.salt);
        let file = self.open_file(&damage.file)?;
        file.write_vectored_all_at(&mut frame.slices(), damage.offset)
            .and_then(|()| file.sync_data())
            .map_err(|error| WalError::io("write to", &damage.file, error))?;
        Ok(Repaired { backup, changed: vec![damage.file.clone()], moved: Vec::new() })
    }

    fn new_backup(&self, name: &str) -> Result<PathBuf, RepairError> {
        let backup = self.dir.join(name);
        if backup.exists() {
            return Err(RepairError::BackupExists(backup));
        }
        self.disk.create_dir_all(&backup).map_err(|error| WalError::io("create", &backup, error))?;
        Ok(backup)
    }

    fn open_file(&self, path: &Path) -> Result<Box<dyn crate::DiskFile>, WalError> {
        self.disk.open(path, OpenMode::Existing).map_err(|error| WalError::io("open", path, error))
    }

    /// Copies a file into the backup, durably.
    fn back_up(&self, path: &Path, backup: &Path) -> Result<(), WalError> {
        let target = in_backup(path, backup);
        let from = self.open_file(path)?;
        let to = self
            .disk
            .open(&target, OpenMode::CreateNew)
            .map_err(|error| WalError::io("create", &target, error))?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut at = 0;
        loop {
            let read = from.read_at(&mut piece, at).map_err(|error| WalError::io("read", path, error))?;
            if read == 0 {
                break;
            }
            to.write_all_at(&piece[..read], at).map_err(|error| WalError::io("write", &target, error))?;
            at += read as u64;
        }
        to.sync_data().map_err(|error| WalError::io("sync", &target, error))?;
        self.sync(backup)
    }

    fn move_away(&self, path: &Path, backup: &Path) -> Result<(), WalError> {
        let target = in_backup(path, backup);
        self.disk.rename(path, &target).map_err(|error| WalError::io("move", path, error))?;
        self.sync(backup)?;
        self.sync(&self.dir)
    }

    /// Overwrites the file with zeros from `offset` to its end.
    fn clear(&self, path: &Path, offset: u64, file_bytes: u64) -> Result<(), WalError> {
        let file = self.open_file(path)?;
        file.zero_fill(offset, file_bytes.saturating_sub(offset))
            .and_then(|()| file.sync_data())
            .map_err(|error| WalError::io("clear the end of", path, error))
    }

    fn raise_header_value(&self, path: &Path, first: Lsn, value: u64) -> Result<(), WalError> {
        let Some(header) = header_of(self.disk, path, first) else { return Ok(()) };
        if header.value >= value {
            return Ok(());
        }
        let file = self.open_file(path)?;
        file.write_all_at(&SegmentHeader { value, ..header }.encode(), 0)
            .and_then(|()| file.sync_data())
            .map_err(|error| WalError::io("write the header of", path, error))
    }

    /// Writes an empty segment, so that the log continues with new LSNs and transaction ids.
    fn begin_again(&self, first: Lsn, value: u64, log: Option<LogId>) -> Result<(), WalError> {
        let path = self.dir.join(segment_name(first));
        let prepared = self.dir.join(spare_name(u32::MAX.into()));
        let header = SegmentHeader { first, salt: 0, value, log };
        self.disk
            .open(&prepared, OpenMode::CreateNew)
            .and_then(|file| file.write_all_at(&header.encode(), 0).and_then(|()| file.sync_data()))
            .and_then(|()| self.disk.rename(&prepared, &path))
            .map_err(|error| WalError::io("write", &path, error))?;
        self.sync(&self.dir)
    }

    fn sync(&self, dir: &Path) -> Result<(), WalError> {
        self.disk.sync_dir(dir).map_err(|error| WalError::io("sync the directory", dir, error))
    }
}

fn in_backup(path: &Path, backup: &Path) -> PathBuf {
    backup.join(path.file_name().unwrap_or(path.as_os_str()))
}

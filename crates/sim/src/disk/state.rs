//! What the simulated disk holds, now and durably, and what goes wrong on it.

use crate::dice::Dice;
use crate::trace::{Trace, note};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

const SECTOR_BYTES: usize = 512;

/// What goes wrong, by the numbers of operations.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The power goes off at that operation.
    pub power_off_at: Option<u64>,
    /// One operation in so many fails with EIO; 0 for none.
    pub io_error_one_in: u64,
    /// One sync in so many fails; 0 for none.
    pub sync_error_one_in: u64,
    /// No space between these times, in ms since 1970.
    pub full: Option<(u64, u64)>,
    /// Reads of this file fail with EIO.
    pub unreadable: Option<PathBuf>,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    pub operations: u64,
    pub syncs: u64,
    pub power_cuts: u64,
    pub torn_writes: u64,
    pub lost_writes: u64,
    pub lost_names: u64,
    pub write_errors: u64,
    pub sync_errors: u64,
    pub full_errors: u64,
    pub read_errors: u64,
}

#[derive(Debug, Default)]
struct Inode {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync: offset and bytes.
    unsynced: Vec<(usize, Vec<u8>)>,
    changed_ms: u64,
}

#[derive(Clone, Debug)]
enum NameChange {
    Link { path: PathBuf, inode: u64 },
    Rename { from: PathBuf, to: PathBuf, inode: u64 },
    Unlink { path: PathBuf, inode: u64 },
}

/// What becomes of an operation.
enum Outcome {
    Done,
    Fails(io::Error),
    PowerGoesOff,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) faults: Faults,
    pub(super) operations: u64,
    pub(super) is_off: bool,
    pub(super) generation: u64,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) counts: DiskCounts,
    pub(super) now_ms: u64,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names that were not synced, in order.
    unsynced_names: Vec<NameChange>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    dice: Dice,
    trace: Trace,
}

impl State {
    pub(super) fn new(seed: u64, trace: Trace) -> Self {
        Self {
            faults: Faults::default(),
            operations: 0,
            is_off: false,
            generation: 0,
            locks: BTreeSet::new(),
            counts: DiskCounts::default(),
            now_ms: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            inodes: BTreeMap::new(),
            next_inode: 1,
            dice: Dice::new(seed),
            trace,
        }
    }

    pub(super) fn powered(&self) -> io::Result<()> {
        if self.is_off { Err(power_off()) } else { Ok(()) }
    }

    fn is_full(&self) -> bool {
        self.faults.full.is_some_and(|(from, to)| (from..to).contains(&self.now_ms))
    }

    pub(super) fn available(&self) -> u64 {
        if self.is_full() { 0 } else { 1 << 40 }
    }

    /// Counts an operation and says what becomes of it.
    fn operation(&mut self, is_sync: bool, needs_space: bool) -> io::Result<Outcome> {
        self.powered()?;
        let full = self.is_full();
        let number = self.operations;
        self.operations += 1;
        self.counts.operations += 1;
        if self.faults.power_off_at.is_some_and(|at| number >= at) {
            self.is_off = true;
            note!(self.trace, "POWER", number, 0, "goes off at operation {number}");
            return Ok(Outcome::PowerGoesOff);
        }
        let one_in = if is_sync { self.faults.sync_error_one_in } else { self.faults.io_error_one_in };
        if one_in > 0 && self.dice.one_in(one_in) {
            let count = if is_sync { &mut self.counts.sync_errors } else { &mut self.counts.write_errors };
            *count += 1;
            note!(
                self.trace,
                "EIO",
                number,
                is_sync,
                "at operation {number}, {}",
                if is_sync { "a sync" } else { "a change" }
            );
            return Ok(Outcome::Fails(io::Error::other("simulated I/O error")));
        }
        if full && needs_space {
            self.counts.full_errors += 1;
            note!(self.trace, "ENOSPC", number, 0, "at operation {number}");
            return Ok(Outcome::Fails(io::ErrorKind::StorageFull.into()));
        }
        Ok(Outcome::Done)
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.names.contains_key(path)
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<u64> {
        self.powered()?;
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.powered()?;
        if self.has(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, Inode { changed_ms: self.now_ms, ..Inode::default() });
        self.change_names(NameChange::Link { path: path.to_owned(), inode }, true)?;
        note!(self.trace, "create", inode, 0, "{}", path.display());
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        note!(self.trace, "rename", inode, 0, "{} to {}", from.display(), to.display());
        self.change_names(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), inode }, false)
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let inode = self.find(path)?;
        note!(self.trace, "remove", inode, 0, "{}", path.display());
        self.change_names(NameChange::Unlink { path: path.to_owned(), inode }, false)
    }

    /// A change of names happens unless it fails; if the power goes off with it, it happened but is not durable.
    fn change_names(&mut self, change: NameChange, needs_space: bool) -> io::Result<()> {
        let outcome = self.operation(false, needs_space)?;
        if let Outcome::Fails(error) = outcome {
            return Err(error);
        }
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
        if matches!(outcome, Outcome::PowerGoesOff) { Err(power_off()) } else { Ok(()) }
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.counts.syncs += 1;
        let outcome = self.operation(true, false)?;
        note!(self.trace, "syncdir", self.operations, 0, "{}", dir.display());
        match outcome {
            Outcome::PowerGoesOff => return Err(power_off()),
            // The changes stay as they are: later syncs of a directory write its blocks again.
            Outcome::Fails(error) => return Err(error),
            Outcome::Done => {}
        }
        let (synced, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unsynced_names).into_iter().partition(|change| change.is_in(dir));
        self.unsynced_names = rest;
        for change in synced {
            change.apply(&mut self.durable_names);
        }
        self.forget_unlinked();
        Ok(())
    }

    pub(super) fn files_below(&self, dir: &Path) -> io::Result<Vec<(PathBuf, u64, u64)>> {
        self.powered()?;
        let below = self.names.range(dir.to_owned()..).take_while(|(path, _)| path.starts_with(dir));
        Ok(below
            .map(|(path, inode)| {
                let inode = &self.inodes[inode];
                (path.clone(), inode.current.len() as u64, inode.changed_ms)
            })
            .collect())
    }

    pub(super) fn write(&mut self, inode: u64, buf: &[u8], offset: u64) -> io::Result<()> {
        let outcome = self.operation(false, true)?;
        note!(self.trace, "write", inode, offset, "file {inode}: {} bytes at {offset}", buf.len());
        let done = match &outcome {
            Outcome::Fails(_) => &buf[..buf.len() / 2],
            _ => buf,
        };
        let now_ms = self.now_ms;
        let file = self.inode(inode)?;
        file.changed_ms = now_ms;
        file.write(done, offset as usize);
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Fails(error) => Err(error),
            Outcome::PowerGoesOff => Err(power_off()),
        }
    }

    pub(super) fn sync(&mut self, inode: u64) -> io::Result<()> {
        self.counts.syncs += 1;
        let outcome = self.operation(true, false)?;
        note!(self.trace, "sync", inode, 0, "file {inode}");
        let mut dice = self.dice.split();
        let file = self.inode(inode)?;
        match outcome {
            Outcome::PowerGoesOff => Err(power_off()),
            Outcome::Done => {
                file.sync();
                Ok(())
            }
            Outcome::Fails(error) => {
                // Some of it may have got there. The rest is forgotten as if it had.
                for (offset, bytes) in std::mem::take(&mut file.unsynced) {
                    if dice.one_in(3) {
                        put(&mut file.durable, offset, &bytes);
                    }
                }
                Err(error)
            }
        }
    }

    pub(super) fn read(&mut self, inode: u64, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.powered()?;
        if let Some(unreadable) = &self.faults.unreadable
            && self.names.get(unreadable) == Some(&inode)
        {
            self.counts.read_errors += 1;
            return Err(io::Error::other("simulated I/O error: the file cannot be read"));
        }
        let current = &self.inode(inode)?.current;
        let from = current.len().min(offset as usize);
        let len = buf.len().min(current.len() - from);
        buf[..len].copy_from_slice(&current[from..from + len]);
        Ok(len)
    }

    pub(super) fn read_file(&mut self, path: &Path) -> io::Result<(Vec<u8>, u64)> {
        let inode = self.find(path)?;
        let mut bytes = vec![0; self.len(inode)? as usize];
        self.read(inode, &mut bytes, 0)?;
        Ok((bytes, self.inode(inode)?.changed_ms))
    }

    pub(super) fn stat(&self, path: &Path) -> io::Result<(u64, u64)> {
        let inode = &self.inodes[&self.find(path)?];
        Ok((inode.current.len() as u64, inode.changed_ms))
    }

    pub(super) fn len(&self, inode: u64) -> io::Result<u64> {
        self.powered()?;
        self.inodes.get(&inode).map(|inode| inode.current.len() as u64).ok_or_else(gone)
    }

    pub(super) fn atomic_change(&mut self, what: &'static str) -> Result<(), (io::Error, bool)> {
        let outcome = self.operation(false, true).map_err(|error| (error, false))?;
        note!(self.trace, "catalog", self.operations, 0, "{what}");
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Fails(error) => Err((error, false)),
            Outcome::PowerGoesOff => Err((power_off(), self.dice.one_in(2))),
        }
    }

    pub(super) fn process_ended(&mut self) {
        self.generation += 1;
        self.locks.clear();
        self.faults = Faults::default();
    }

    pub(super) fn power_cut(&mut self) {
        self.counts.power_cuts += 1;
        note!(self.trace, "POWER", self.operations, 1, "is back");
        let mut dice = self.dice.split();
        let keep = dice.below(4);
        let mut names = std::mem::take(&mut self.durable_names);
        for change in std::mem::take(&mut self.unsynced_names) {
            if keeps(keep, &mut dice) {
                note!(self.trace, "kept", 0, 0, "{change:?}");
                change.apply(&mut names);
            } else {
                self.counts.lost_names += 1;
                note!(self.trace, "lost", 1, 0, "{change:?}");
            }
        }
        self.durable_names = names.clone();
        self.names = names;
        for (number, inode) in &mut self.inodes {
            let keep = dice.below(4);
            for (offset, bytes) in std::mem::take(&mut inode.unsynced) {
                let kept = kept_of(&bytes, keep, &mut dice);
                note!(
                    self.trace,
                    "unsynced",
                    *number,
                    kept.len(),
                    "file {number}: kept {kept:?} of {} bytes at {offset}",
                    bytes.len()
                );
                match kept.as_slice() {
                    [] => self.counts.lost_writes += 1,
                    [(0, len)] if *len == bytes.len() => {}
                    _ => self.counts.torn_writes += 1,
                }
                for (from, to) in kept {
                    put(&mut inode.durable, offset + from, &bytes[from..to]);
                }
            }
            inode.current.clone_from(&inode.durable);
        }
        self.is_off = false;
        self.process_ended();
        self.forget_unlinked();
    }

    fn inode(&mut self, inode: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&inode).ok_or_else(gone)
    }

    /// Frees files that no name leads to any more, nor can.
    fn forget_unlinked(&mut self) {
        let linked: BTreeSet<u64> = self
            .names
            .values()
            .chain(self.durable_names.values())
            .copied()
            .chain(self.unsynced_names.iter().map(NameChange::inode))
            .collect();
        self.inodes.retain(|inode, _| linked.contains(inode));
    }
}

/// Whether an unsynced change survives: none, all or some of them do.
fn keeps(policy: u64, dice: &mut Dice) -> bool {
    match policy {
        0 => false,
        1 => true,
        _ => dice.one_in(2),
    }
}

/// Which parts of an unsynced write survive.
fn kept_of(bytes: &[u8], policy: u64, dice: &mut Dice) -> Vec<(usize, usize)> {
    match policy {
        0 => Vec::new(),
        1 => vec![(0, bytes.len())],
        2 => match dice.below(bytes.len() as u64 + 1) as usize {
            0 => Vec::new(),
            torn_at => vec![(0, torn_at)],
        },
        _ => {
            let sectors = (0..bytes.len()).step_by(SECTOR_BYTES);
            let kept = sectors.filter(|_| dice.one_in(2));
            kept.map(|from| (from, bytes.len().min(from + SECTOR_BYTES))).collect()
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Self::Link { path, inode } => {
                names.insert(path.clone(), *inode);
            }
            Self::Rename { from, to, inode } => {
                // Without its link, which was lost, there is nothing to rename.
                if names.get(from) == Some(inode) {
                    names.remove(from);
                    names.insert(to.clone(), *inode);
                }
            }
            Self::Unlink { path, inode } => {
                if names.get(path) == Some(inode) {
                    names.remove(path);
                }
            }
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        let (Self::Link { path, .. } | Self::Rename { to: path, .. } | Self::Unlink { path, .. }) = self;
        path.parent() == Some(dir)
    }

    const fn inode(&self) -> u64 {
        let (Self::Link { inode, .. } | Self::Rename { inode, .. } | Self::Unlink { inode, .. }) = self;
        *inode
    }
}

impl Inode {
    fn write(&mut self, buf: &[u8], offset: usize) {
        if buf.is_empty() {
            return;
        }
        put(&mut self.current, offset, buf);
        self.unsynced.push((offset, buf.to_vec()));
    }

    fn sync(&mut self) {
        for (offset, bytes) in std::mem::take(&mut self.unsynced) {
            put(&mut self.durable, offset, &bytes);
        }
    }
}

fn put(into: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if into.len() < end {
        into.resize(end, 0);
    }
    into[offset..end].copy_from_slice(bytes);
}

fn power_off() -> io::Error {
    io::Error::other("the power of the simulated machine is off")
}

fn gone() -> io::Error {
    io::Error::other("the file is gone from the simulated disk")
}

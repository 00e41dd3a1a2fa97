//! The contents of a simulated disk, current and durable, and the outcome of operations.

use super::{Dice, DiskCounts, Fault, Faults, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Arguments;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Unit that a disk usually writes atomically.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) faults: Faults,
    pub(super) capacity: Option<u64>,
    pub(super) now_ms: u64,
    pub(super) is_off: bool,
    /// Counts restarts; files opened before the last one are dead.
    pub(super) generation: u64,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) counts: DiskCounts,
    pub(super) dice: Dice,
    pub(super) watcher: Option<Box<dyn Watcher>>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names since the last sync of their directory, in order.
    unsynced_names: Vec<NameChange>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
}

#[derive(Debug, Default)]
struct Inode {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync, in order: offset and bytes.
    unsynced: Vec<(usize, Vec<u8>)>,
    changed_ms: u64,
}

/// A file gets its first name (`to`), another one, or loses it (`from`).
#[derive(Debug)]
struct NameChange {
    inode: u64,
    from: Option<PathBuf>,
    to: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// It needs space, and that many more bytes of files.
    Grows(u64),
    ChangesNames,
    SyncsFile,
    SyncsDir,
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Fails(Fault),
    PowerGoesOff,
}

impl State {
    fn note(&self, kind: &'static str, a: u64, b: u64, text: Arguments<'_>) {
        if let Some(watcher) = &self.watcher {
            watcher.note(kind, a, b, text);
        }
    }

    pub(super) fn powered(&self) -> io::Result<()> {
        if self.is_off { Err(power_off()) } else { Ok(()) }
    }

    fn is_full(&self) -> bool {
        self.faults.full.is_some_and(|(from, to)| (from..to).contains(&self.now_ms))
    }

    pub(super) fn available(&self) -> u64 {
        if self.is_full() { 0 } else { self.room() }
    }

    /// Remaining capacity.
    fn room(&self) -> u64 {
        let used = || self.inodes.values().map(|inode| inode.current.len() as u64).sum();
        self.capacity.map_or(1 << 50, |capacity| capacity.saturating_sub(used()))
    }

    /// Counts an operation and decides its outcome.
    fn operation(&mut self, operation: Operation) -> io::Result<Outcome> {
        self.powered()?;
        let number = self.counts.operations;
        self.counts.operations += 1;
        if self.faults.power_off_at.is_some_and(|at| number >= at) {
            self.is_off = true;
            self.note("POWER", number, 0, format_args!("goes off at operation {number}"));
            return Ok(Outcome::PowerGoesOff);
        }
        let is_sync = matches!(operation, Operation::SyncsFile | Operation::SyncsDir);
        let one_in = if is_sync { self.faults.sync_error_one_in } else { self.faults.io_error_one_in };
        let fails = (one_in > 0 && self.dice.one_in(one_in))
            || (operation == Operation::SyncsFile && std::mem::take(&mut self.faults.fail_next_sync));
        let has_space = !matches!(operation, Operation::Grows(by) if self.is_full() || by > self.room());
        let fault = match self.faults.planned.remove(&number) {
            _ if fails => Fault::Io,
            _ if !has_space => Fault::NoSpace,
            Some(planned) => planned,
            None => return Ok(Outcome::Done),
        };
        *match fault {
            Fault::NoSpace => &mut self.counts.full_errors,
            Fault::Io if is_sync => &mut self.counts.sync_errors,
            Fault::Io => &mut self.counts.write_errors,
        } += 1;
        self.note("FAULT", number, is_sync.into(), format_args!("{fault:?} at operation {number}"));
        Ok(Outcome::Fails(fault))
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<u64> {
        self.powered()?;
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn expect_free(&self, path: &Path) -> io::Result<()> {
        self.powered()?;
        if self.names.contains_key(path) { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(()) }
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.expect_free(path)?;
        let inode = self.new_inode(Vec::new());
        let change = NameChange { inode, from: None, to: Some(path.to_owned()) };
        self.change_names(Operation::Grows(0), change)?;
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        let change = NameChange { inode, from: Some(from.to_owned()), to: Some(to.to_owned()) };
        self.change_names(Operation::ChangesNames, change)
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let inode = self.find(path)?;
        let change = NameChange { inode, from: Some(path.to_owned()), to: None };
        self.change_names(Operation::ChangesNames, change)
    }

    /// Performs a change of names unless it fails; if the power fails during it, it happened but is not durable.
    fn change_names(&mut self, operation: Operation, change: NameChange) -> io::Result<()> {
        let outcome = self.operation(operation)?;
        self.note("name", change.inode, 0, format_args!("{change:?}"));
        if !matches!(outcome, Outcome::Fails(_)) {
            change.apply(&mut self.names);
            self.unsynced_names.push(change);
        }
        outcome.answer()
    }

    /// If it fails, the changes stay as they are: later syncs of a directory write its blocks again.
    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let outcome = self.operation(Operation::SyncsDir)?;
        self.note("syncdir", self.counts.operations, 0, format_args!("{}", dir.display()));
        outcome.answer()?;
        for change in self.unsynced_names.extract_if(.., |change| change.is_in(dir)) {
            change.apply(&mut self.durable_names);
        }
        self.forget_lost_inodes();
        Ok(())
    }

    pub(super) fn atomic_change(&mut self, what: &'static str) -> Result<(), (io::Error, bool)> {
        let outcome = self.operation(Operation::Grows(0)).map_err(|error| (error, false))?;
        self.note("change", self.counts.operations, 0, format_args!("{what}"));
        let happened = outcome == Outcome::PowerGoesOff && self.dice.one_in(2);
        outcome.answer().map_err(|error| (error, happened))
    }

    pub(super) fn files_below(&self, dir: &Path) -> io::Result<Vec<(PathBuf, u64, u64)>> {
        self.powered()?;
        let below = self.names.range(dir.to_owned()..).take_while(|(path, _)| path.starts_with(dir));
        let files = below.map(|(path, inode)| (path.clone(), &self.inodes[inode]));
        Ok(files.map(|(path, inode)| (path, inode.current.len() as u64, inode.changed_ms)).collect())
    }

    pub(super) fn stat(&self, path: &Path) -> io::Result<(u64, u64)> {
        let inode = &self.inodes[&self.find(path)?];
        Ok((inode.current.len() as u64, inode.changed_ms))
    }

    pub(super) fn len(&self, inode: u64) -> io::Result<u64> {
        self.powered()?;
        self.inodes.get(&inode).map(|inode| inode.current.len() as u64).ok_or_else(gone)
    }

    pub(super) fn write(&mut self, inode: u64, buf: &[u8], offset: u64) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        let len = self.len(inode)?;
        let outcome = self.operation(Operation::Grows(end.saturating_sub(len)))?;
        self.note("write", inode, offset, format_args!("file {inode}: {} bytes at {offset}", buf.len()));
        let done = match outcome {
            Outcome::Fails(_) => {
                let fits = (len + self.room()).saturating_sub(offset);
                &buf[..(buf.len() / 2).min(fits as usize)]
            }
            _ => buf,
        };
        let now_ms = self.now_ms;
        let file = self.inode(inode)?;
        file.changed_ms = now_ms;
        put(&mut file.current, offset as usize, done);
        file.unsynced.push((offset as usize, done.to_vec()));
        outcome.answer()
    }

    pub(super) fn sync(&mut self, inode: u64) -> io::Result<()> {
        let outcome = self.operation(Operation::SyncsFile)?;
        self.note("sync", inode, 0, format_args!("file {inode}"));
        let mut dice = Dice(self.dice.next());
        let file = self.inode(inode)?;
        if outcome != Outcome::PowerGoesOff {
            for (offset, bytes) in std::mem::take(&mut file.unsynced) {
                // A failing sync makes some writes durable and forgets the rest as if it had.
                if outcome == Outcome::Done || dice.one_in(3) {
                    put(&mut file.durable, offset, &bytes);
                }
            }
        }
        outcome.answer()
    }

    pub(super) fn read(&mut self, inode: u64, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.powered()?;
        let unreadable = self.faults.unreadable.as_ref();
        if unreadable.is_some_and(|path| self.names.get(path) == Some(&inode)) {
            self.counts.read_errors += 1;
            return Err(Fault::Io.error());
        }
        let current = &self.inode(inode)?.current;
        let from = current.len().min(offset as usize);
        let len = buf.len().min(current.len() - from);
        buf[..len].copy_from_slice(&current[from..from + len]);
        Ok(len)
    }

    pub(super) fn contents(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let inode = self.find(path)?;
        let mut bytes = vec![0; self.len(inode)? as usize];
        self.read(inode, &mut bytes, 0)?;
        Ok(bytes)
    }

    pub(super) fn put(&mut self, path: &Path, contents: Vec<u8>) {
        let inode = self.new_inode(contents);
        self.names.insert(path.to_owned(), inode);
        self.durable_names.insert(path.to_owned(), inode);
    }

    pub(super) fn take_away(&mut self, path: &Path) {
        self.names.remove(path);
        self.durable_names.remove(path);
    }

    pub(super) fn kill_process(&mut self) {
        self.generation += 1;
        self.locks.clear();
        self.faults = Faults::default();
        self.is_off = false;
    }

    pub(super) fn crash(&mut self, seed: u64) {
        let mut dice = Dice(seed);
        self.counts.power_cuts += 1;
        self.note("POWER", self.counts.operations, 1, format_args!("is back"));
        let policy = dice.below(4);
        for change in std::mem::take(&mut self.unsynced_names) {
            let is_kept = policy == 1 || (policy > 1 && dice.one_in(2));
            let kind = if is_kept { "kept" } else { "lost" };
            self.note(kind, change.inode, 0, format_args!("{change:?}"));
            if is_kept {
                change.apply(&mut self.durable_names);
            } else {
                self.counts.lost_names += 1;
            }
        }
        self.names.clone_from(&self.durable_names);
        let mut inodes = std::mem::take(&mut self.inodes);
        for (number, inode) in &mut inodes {
            let policy = dice.below(4);
            for (offset, bytes) in std::mem::take(&mut inode.unsynced) {
                let (kept, len) = (kept_of(offset, bytes.len(), policy, &mut dice), bytes.len());
                self.note(
                    "unsynced",
                    *number,
                    kept.len() as u64,
                    format_args!("file {number}: kept {kept:?} of {len} bytes at {offset}"),
                );
                match kept.iter().map(Range::len).sum::<usize>() {
                    sum if sum == len => {}
                    0 => self.counts.lost_writes += 1,
                    _ => self.counts.torn_writes += 1,
                }
                for part in kept {
                    put(&mut inode.durable, offset + part.start, &bytes[part]);
                }
            }
            inode.current.clone_from(&inode.durable);
        }
        self.inodes = inodes;
        self.forget_lost_inodes();
        self.kill_process();
    }

    fn new_inode(&mut self, contents: Vec<u8>) -> u64 {
        self.next_inode += 1;
        let inode = Inode {
            durable: contents.clone(),
            current: contents,
            unsynced: Vec::new(),
            changed_ms: self.now_ms,
        };
        self.inodes.insert(self.next_inode, inode);
        self.next_inode
    }

    fn inode(&mut self, inode: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&inode).ok_or_else(gone)
    }

    /// Frees files that no name leads to any more, nor can.
    fn forget_lost_inodes(&mut self) {
        let linked = self.names.values().chain(self.durable_names.values()).copied();
        let linked: BTreeSet<u64> =
            linked.chain(self.unsynced_names.iter().map(|change| change.inode)).collect();
        self.inodes.retain(|inode, _| linked.contains(inode));
    }
}

/// Decides which parts of an unsynced write survive: nothing, all, its beginning, or some of the file's sectors.
fn kept_of(offset: usize, len: usize, policy: u64, dice: &mut Dice) -> Vec<Range<usize>> {
    let mut kept = Vec::new();
    match policy {
        0 => {}
        1 => kept.push(0..len),
        2 => kept.push(0..dice.below(len as u64 + 1) as usize),
        _ => {
            let mut from = 0;
            while from < len {
                let to = len.min(from + SECTOR_BYTES - (offset + from) % SECTOR_BYTES);
                if dice.one_in(2) {
                    kept.push(from..to);
                }
                from = to;
            }
        }
    }
    kept
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        if let Some(from) = &self.from {
            // Without its link, which was lost, there is nothing to rename or remove.
            if names.get(from) != Some(&self.inode) {
                return;
            }
            names.remove(from);
        }
        if let Some(to) = &self.to {
            names.insert(to.clone(), self.inode);
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        self.to.as_ref().or(self.from.as_ref()).is_some_and(|path| path.parent() == Some(dir))
    }
}

impl Outcome {
    fn answer(self) -> io::Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Fails(fault) => Err(fault.error()),
            Self::PowerGoesOff => Err(power_off()),
        }
    }
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Self::Io => io::Error::other("simulated I/O error"),
            Self::NoSpace => io::ErrorKind::StorageFull.into(),
        }
    }
}

fn put(into: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len();
    if into.len() < end {
        // Much faster than `resize` in a build without optimisation.
        into.extend_from_slice(&vec![0; end - into.len()]);
    }
    into[offset..end].copy_from_slice(bytes);
}

fn power_off() -> io::Error {
    io::Error::other("the power of the simulated disk is off")
}

fn gone() -> io::Error {
    io::Error::other("the file is gone from the simulated disk")
}

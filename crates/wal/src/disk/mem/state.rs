//! What a simulated disk holds, now and durably.

use super::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub(super) struct State {
    /// Counts restarts; files opened before the last one are dead.
    pub(super) generation: u64,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) operations: u64,
    pub(super) power_off_at: Option<u64>,
    pub(super) faults: BTreeMap<u64, Fault>,
    pub(super) fail_next_sync: bool,
    pub(super) capacity: Option<u64>,
    off: bool,
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
    /// Sectors written since the last sync.
    unsynced: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Link { path: PathBuf, inode: u64 },
    Rename { from: PathBuf, to: PathBuf, inode: u64 },
    Unlink { path: PathBuf },
}

/// What becomes of an operation.
enum Outcome {
    Done,
    Fails(Fault),
    PowerGoesOff,
}

impl State {
    pub(super) fn powered(&self) -> io::Result<()> {
        if self.off { Err(power_off()) } else { Ok(()) }
    }

    pub(super) fn available(&self) -> u64 {
        let used: u64 = self.inodes.values().map(|inode| inode.current.len() as u64).sum();
        self.capacity.map_or(1 << 50, |capacity| capacity.saturating_sub(used))
    }

    /// Counts an operation and says what becomes of it.
    fn operation(&mut self) -> io::Result<Outcome> {
        self.powered()?;
        let number = self.operations;
        self.operations += 1;
        if self.power_off_at == Some(number) {
            self.off = true;
            return Ok(Outcome::PowerGoesOff);
        }
        Ok(self.faults.remove(&number).map_or(Outcome::Done, Outcome::Fails))
    }

    /// Counts an operation on names. It happens unless it fails; when the power goes off it was the last.
    fn name_operation(&mut self) -> io::Result<Option<io::Error>> {
        match self.operation()? {
            Outcome::Done => Ok(None),
            Outcome::Fails(fault) => Err(fault.error()),
            Outcome::PowerGoesOff => Ok(Some(power_off())),
        }
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<u64> {
        self.powered()?;
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        if self.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let then = self.name_operation()?;
        let inode = self.new_inode(Inode::default());
        self.change(NameChange::Link { path: path.to_owned(), inode });
        then.map_or(Ok(inode), Err)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        let then = self.name_operation()?;
        self.change(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), inode });
        then.map_or(Ok(()), Err)
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        let then = self.name_operation()?;
        self.change(NameChange::Unlink { path: path.to_owned() });
        then.map_or(Ok(()), Err)
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        if let Some(error) = self.name_operation()? {
            return Err(error);
        }
        let (synced, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unsynced_names).into_iter().partition(|change| change.is_in(dir));
        self.unsynced_names = rest;
        for change in synced {
            change.apply(&mut self.durable_names);
        }
        self.forget_lost_inodes();
        Ok(())
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        self.powered()?;
        let files = self.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        Ok(files.map(|(path, inode)| (file_name(path), self.inodes[inode].current.len() as u64)).collect())
    }

    pub(super) fn write(&mut self, inode: u64, buf: &[u8], offset: u64) -> io::Result<()> {
        let outcome = self.operation()?;
        let growth = (offset + buf.len() as u64).saturating_sub(self.len(inode)?);
        let full = growth > self.available();
        let done = match outcome {
            Outcome::Fails(_) => &buf[..buf.len() / 2],
            _ if full => &buf[..(buf.len() as u64 - (growth - self.available())) as usize],
            _ => buf,
        };
        self.inode(inode)?.write(done, offset);
        match outcome {
            Outcome::Done if full => Err(Fault::NoSpace.error()),
            Outcome::Done => Ok(()),
            Outcome::Fails(fault) => Err(fault.error()),
            Outcome::PowerGoesOff => Err(power_off()),
        }
    }

    pub(super) fn read(&mut self, inode: u64, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.powered()?;
        let current = &self.inode(inode)?.current;
        let from = current.len().min(offset as usize);
        let len = buf.len().min(current.len() - from);
        buf[..len].copy_from_slice(&current[from..from + len]);
        Ok(len)
    }

    pub(super) fn sync(&mut self, inode: u64) -> io::Result<()> {
        let outcome = self.operation()?;
        let fails = std::mem::take(&mut self.fail_next_sync);
        let file = self.inode(inode)?;
        match outcome {
            Outcome::PowerGoesOff => Err(power_off()),
            Outcome::Done if !fails => {
                file.sync();
                Ok(())
            }
            Outcome::Fails(fault) => {
                file.unsynced.clear();
                Err(fault.error())
            }
            Outcome::Done => {
                file.unsynced.clear();
                Err(Fault::Io.error())
            }
        }
    }

    pub(super) fn len(&self, inode: u64) -> io::Result<u64> {
        self.powered()?;
        self.inodes.get(&inode).map(|inode| inode.current.len() as u64).ok_or_else(gone)
    }

    pub(super) fn kill_process(&mut self) {
        self.generation += 1;
        self.locks.clear();
        self.faults.clear();
        self.fail_next_sync = false;
        self.power_off_at = None;
        self.off = false;
        self.forget_lost_inodes();
    }

    pub(super) fn crash(&mut self, seed: u64) {
        let mut chance = Chance(seed);
        let mut names = std::mem::take(&mut self.durable_names);
        let keep = chance.policy();
        for change in std::mem::take(&mut self.unsynced_names) {
            if keep.decide(&mut chance) {
                change.apply(&mut names);
            }
        }
        self.durable_names = names.clone();
        self.names = names;
        for inode in self.inodes.values_mut() {
            inode.crash(&mut chance);
        }
        self.kill_process();
    }

    pub(super) fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        self.names.get(path).map(|inode| self.inodes[inode].current.clone())
    }

    pub(super) fn put(&mut self, path: &Path, contents: Vec<u8>) {
        let inode =
            self.new_inode(Inode { durable: contents.clone(), current: contents, unsynced: BTreeSet::new() });
        self.names.insert(path.to_owned(), inode);
        self.durable_names.insert(path.to_owned(), inode);
    }

    pub(super) fn take_away(&mut self, path: &Path) {
        self.names.remove(path);
        self.durable_names.remove(path);
    }

    fn new_inode(&mut self, inode: Inode) -> u64 {
        self.next_inode += 1;
        self.inodes.insert(self.next_inode, inode);
        self.next_inode
    }

    fn inode(&mut self, inode: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&inode).ok_or_else(gone)
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    /// Frees files that no name, durable or not, leads to any more.
    fn forget_lost_inodes(&mut self) {
        let linked: BTreeSet<u64> = self.names.values().chain(self.durable_names.values()).copied().collect();
        let pending: BTreeSet<u64> = self.unsynced_names.iter().filter_map(NameChange::inode).collect();
        self.inodes.retain(|inode, _| linked.contains(inode) || pending.contains(inode));
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Self::Link { path, inode } => {
                names.insert(path.clone(), *inode);
            }
            Self::Rename { from, to, inode } => {
                if names.get(from) == Some(inode) {
                    names.remove(from);
                    names.insert(to.clone(), *inode);
                }
            }
            Self::Unlink { path } => {
                names.remove(path);
            }
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        let (Self::Link { path, .. } | Self::Rename { to: path, .. } | Self::Unlink { path }) = self;
        path.parent() == Some(dir)
    }

    fn inode(&self) -> Option<u64> {
        match self {
            Self::Link { inode, .. } | Self::Rename { inode, .. } => Some(*inode),
            Self::Unlink { .. } => None,
        }
    }
}

impl Inode {
    fn write(&mut self, buf: &[u8], offset: u64) {
        if buf.is_empty() {
            return;
        }
        let end = offset + buf.len() as u64;
        lengthen(&mut self.current, end as usize);
        self.current[offset as usize..end as usize].copy_from_slice(buf);
        self.unsynced.extend(offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
    }

    fn sync(&mut self) {
        for sector in std::mem::take(&mut self.unsynced) {
            self.persist(sector);
        }
    }

    fn persist(&mut self, sector: u64) {
        let from = (sector * SECTOR_BYTES) as usize;
        let to = (from + SECTOR_BYTES as usize).min(self.current.len());
        lengthen(&mut self.durable, to);
        self.durable[from..to].copy_from_slice(&self.current[from..to]);
    }

    fn crash(&mut self, chance: &mut Chance) {
        let keep = chance.policy();
        for sector in std::mem::take(&mut self.unsynced) {
            if keep.decide(chance) {
                self.persist(sector);
            }
        }
        self.current.clone_from(&self.durable);
    }
}

/// Adds zeros. (Much faster than `resize` in a build without optimisation.)
fn lengthen(bytes: &mut Vec<u8>, to: usize) {
    if bytes.len() < to {
        bytes.extend_from_slice(&vec![0; to - bytes.len()]);
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

/// What is kept of unsynced changes.
enum Keep {
    Nothing,
    All,
    Some,
}

impl Keep {
    fn decide(&self, chance: &mut Chance) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Some => chance.next() & 1 == 1,
        }
    }
}

/// A small generator (SplitMix64): repeatable, no more is needed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        crate::segment::format::split_mix(&mut self.0)
    }

    fn policy(&mut self) -> Keep {
        match self.next() % 4 {
            0 => Keep::Nothing,
            1 => Keep::All,
            _ => Keep::Some,
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn power_off() -> io::Error {
    io::Error::other("the power of the simulated disk is off")
}

fn gone() -> io::Error {
    io::Error::other("the file is gone from the simulated disk")
}

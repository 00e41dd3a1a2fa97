//! A simulated disk: it knows what is durable and what is not, loses power on command, and fails on command or at random. Tests
//! and the simulation (`crates/sim`) run on it; only they enable its feature `test-util`.
//!
//! Every change of a file or a name and every sync is one numbered *operation*. A test runs its work once to
//! count them, then again and again with the power going off (or a fault) at each number.
//!
//! Invariant: [`MemDisk::crash`] decides the fate of everything that was not synced. Each such write is dropped, retained, torn
//! at any byte, or retained in some of the file's 512-byte sectors; a created, renamed or removed name either happened or did
//! not. A failed sync leaves some of the writes on the disk and forgets the others (as Linux does): readers still see them, but
//! no later sync makes them durable.

mod state;
#[cfg(test)]
mod tests;

use super::{DirLock, Disk, DiskDir, DiskFile, OpenMode};
use parking_lot::Mutex;
use state::State;
use std::collections::BTreeMap;
use std::fmt::{Arguments, Debug};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error. A write has been half done; data that a sync should have made durable may never be.
    Io,
    /// The disk is full. A write has been done by half, if that much fits.
    NoSpace,
}

/// The faults to inject. Operations are counted from 0 over the disk's life.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The power fails at that operation, or at the first one after it.
    pub power_off_at: Option<u64>,
    /// These operations fail.
    pub planned: BTreeMap<u64, Fault>,
    /// The next sync of a file's contents fails.
    pub fail_next_sync: bool,
    /// One change in this many fails with EIO; 0 for none.
    pub io_error_one_in: u64,
    /// One sync in this many fails; 0 for none.
    pub sync_error_one_in: u64,
    /// There is no space between these times (see [`MemDisk::set_time`]), not even to write in place.
    pub full: Option<(u64, u64)>,
    /// Reads of this file fail with EIO.
    pub unreadable: Option<PathBuf>,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    pub operations: u64,
    pub power_cuts: u64,
    pub torn_writes: u64,
    pub lost_writes: u64,
    pub lost_names: u64,
    pub write_errors: u64,
    pub sync_errors: u64,
    pub full_errors: u64,
    pub read_errors: u64,
}

/// A witness of what happens on a disk: the kind of each event, two numbers and the whole as text.
pub trait Watcher: Debug + Send {
    fn note(&self, kind: &'static str, a: u64, b: u64, text: Arguments<'_>);
}

/// A small generator (SplitMix64): all it needs to be is repeatable.
#[derive(Debug, Default)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        crate::segment::format::split_mix(&mut self.0)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct MemDisk {
    state: Arc<Mutex<State>>,
}

impl MemDisk {
    /// An empty disk of unlimited size.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty disk whose chance is decided by `seed` and whose events go to the watcher.
    #[must_use]
    pub fn watched(seed: u64, watcher: impl Watcher + 'static) -> Self {
        let mut state = State::default();
        state.dice = Dice(seed);
        state.watcher = Some(Box::new(watcher));
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Limits the bytes of all files together; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Sets the time, in ms since 1970.
    pub fn set_time(&self, now_ms: u64) {
        self.state.lock().now_ms = now_ms;
    }

    /// Replaces everything that is to go wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// Makes the power fail at `operation` (counted from 0 over the disk's life): a sync is not done, a write or a change of
    /// names is not durable, and all later operations and reads fail until [`MemDisk::crash`] restores the power.
    pub fn power_off_at(&self, operation: u64) {
        self.state.lock().faults.power_off_at = Some(operation);
    }

    /// Makes the operation (counted from 0 over the disk's life) fail.
    pub fn fail_operation(&self, operation: u64, fault: Fault) {
        self.state.lock().faults.planned.insert(operation, fault);
    }

    /// Makes the next sync of a file's contents fail.
    pub fn fail_next_sync(&self) {
        self.state.lock().faults.fail_next_sync = true;
    }

    /// Simulates a power loss and a restart: unsynced contents and names are retained, dropped or torn as `seed` decides, locks
    /// are released, files that were open stay unusable, and faults are reset.
    pub fn crash(&self, seed: u64) {
        self.state.lock().crash(seed);
    }

    /// Simulates a kill and a restart of the process: everything written remains visible, but unsynced data is still not durable.
    /// Locks are released, files that were open stay unusable, and faults are reset.
    pub fn kill_process(&self) {
        self.state.lock().kill_process();
    }

    /// Whether the power went off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.state.lock().is_off
    }

    /// Number of operations (writes, syncs, changes of names) so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.counts().operations
    }

    /// Numbers of operations and faults.
    #[must_use]
    pub fn counts(&self) -> DiskCounts {
        self.state.lock().counts
    }

    /// A file's contents as a reader sees them now.
    ///
    /// # Errors
    /// `NotFound`, a planned I/O error, or that the power is off.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.state.lock().contents(path)
    }

    /// Length and time of the last change of a file.
    ///
    /// # Errors
    /// `NotFound`, or that the power is off.
    pub fn stat(&self, path: &Path) -> io::Result<(u64, u64)> {
        self.state.lock().stat(path)
    }

    /// All files below a directory, in the order of their names: path, length, time of the last change.
    ///
    /// # Errors
    /// The power is off.
    pub fn files_below(&self, dir: &Path) -> io::Result<Vec<(PathBuf, u64, u64)>> {
        self.state.lock().files_below(dir)
    }

    /// Gives a file a name that must be free.
    ///
    /// # Errors
    /// `AlreadyExists`, or like [`Disk::rename`].
    pub fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.expect_free(to)?;
        state.rename(from, to)
    }

    /// An operation that is atomic and durable on something that is not a file of the log, such as a database.
    ///
    /// # Errors
    /// The error, and whether the change happened nevertheless: it may have if the power failed during it.
    pub fn atomic_change(&self, what: &'static str) -> Result<(), (io::Error, bool)> {
        self.state.lock().atomic_change(what)
    }

    /// Replaces (or creates) a file durably, as damage or an operator would: no operation is counted.
    pub fn put(&self, path: &Path, contents: Vec<u8>) {
        self.state.lock().put(path, contents);
    }

    /// Removes a file durably, as an operator would: no operation is counted.
    pub fn take_away(&self, path: &Path) {
        self.state.lock().take_away(path);
    }
}

impl Disk for MemDisk {
    fn create_dir_all(&self, _dir: &Path) -> io::Result<()> {
        self.state.lock().powered()
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Option<DirLock>> {
        let mut state = self.state.lock();
        state.powered()?;
        if !state.locks.insert(dir.to_owned()) {
            return Ok(None);
        }
        let generation = state.generation;
        Ok(Some(Box::new(MemLock { disk: self.clone(), dir: dir.to_owned(), generation })))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state.lock();
        let inode = match mode {
            OpenMode::CreateNew => state.create(path)?,
            OpenMode::Existing => state.find(path)?,
        };
        let generation = state.generation;
        Ok(Box::new(MemFile { disk: self.clone(), inode, generation }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        let mut files = self.files_below(dir)?;
        files.retain(|(path, ..)| path.parent() == Some(dir));
        let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(files.into_iter().filter_map(|(path, bytes, _)| Some((name(path)?, bytes))).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state.lock().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state.lock().remove(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(MemDir { disk: self.clone(), dir: dir.to_owned() }))
    }

    fn available_bytes(&self, _dir: &Path) -> io::Result<u64> {
        let state = self.state.lock();
        state.powered()?;
        Ok(state.available())
    }
}

struct MemLock {
    disk: MemDisk,
    dir: PathBuf,
    generation: u64,
}

impl Drop for MemLock {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.generation == self.generation {
            state.locks.remove(&self.dir);
        }
    }
}

struct MemDir {
    disk: MemDisk,
    dir: PathBuf,
}

impl DiskDir for MemDir {
    fn sync(&self) -> io::Result<()> {
        self.disk.state.lock().sync_dir(&self.dir)
    }
}

struct MemFile {
    disk: MemDisk,
    inode: u64,
    generation: u64,
}

impl MemFile {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.state.lock();
        if state.generation != self.generation {
            return Err(io::Error::other("the file was opened before the simulated restart"));
        }
        act(&mut state)
    }
}

impl DiskFile for MemFile {
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state| state.write(self.inode, buf, offset))
    }

    fn write_vectored_all_at(&self, bufs: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let slices: Vec<&[u8]> = bufs.iter().map(|slice| &**slice).collect();
        self.write_all_at(&slices.concat(), offset)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|state| state.read(self.inode, buf, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|state| state.sync(self.inode))
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|state| state.len(self.inode))
    }
}

//! A simulated disk for tests: it knows what is durable and what is not, loses power on command, and fails
//! when it is told to.
//!
//! Every change of a file or a name and every sync is one numbered *operation*. A test runs its work once to
//! count them, then again and again with the power going off (or a fault) at each number.
//!
//! Invariant: after [`MemDisk::crash`] a file holds its synced contents, plus any choice of the 512-byte
//! sectors that were written since; a directory has its synced names, plus any choice of the later changes.
//! A failed sync forgets that anything was unsynced (as Linux does): readers still see the written bytes, but
//! no later sync makes them durable.

mod state;
#[cfg(test)]
mod tests;

use super::{DirLock, Disk, DiskDir, DiskFile, OpenMode};
use parking_lot::Mutex;
use state::State;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error. A write has been done by half; what a sync should have made durable never will be.
    Io,
    /// The disk is full. A write has been done by half.
    NoSpace,
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

    /// Limits the bytes of all files together; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// How many operations (writes, syncs, changes of names) were asked for so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// The power goes off at that operation (counted from 0 over the disk's life): a sync is not done, a
    /// write or a change of names is not durable, and all later operations and reads fail until
    /// [`MemDisk::crash`] brings the power back.
    pub fn power_off_at(&self, operation: u64) {
        self.state.lock().power_off_at = Some(operation);
    }

    /// Makes that operation (counted from 0 over the disk's life) fail.
    pub fn fail_operation(&self, operation: u64, fault: Fault) {
        self.state.lock().faults.insert(operation, fault);
    }

    /// Makes the next sync of a file's contents fail.
    pub fn fail_next_sync(&self) {
        self.state.lock().fail_next_sync = true;
    }

    /// The machine loses power and starts again: unsynced contents and names are kept, dropped or torn as
    /// `seed` decides, locks are gone, files that were open stay unusable, planned faults are forgotten.
    pub fn crash(&self, seed: u64) {
        self.state.lock().crash(seed);
    }

    /// The process is killed and starts again: everything written is still to be seen, but what was not
    /// synced is still not durable. Locks are gone, files that were open stay unusable.
    pub fn kill_process(&self) {
        self.state.lock().kill_process();
    }

    /// A file's contents as a reader sees them now.
    #[must_use]
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        self.state.lock().contents(path)
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
        self.state.lock().list(dir)
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

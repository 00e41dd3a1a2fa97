//! The simulated disk: the write-ahead log, the Delta tables and the catalog of a simulation lie on it.
//!
//! Invariant: what was not synced is at the mercy of [`SimDisk::power_cut`]. A write that was not synced is
//! dropped, kept, torn at any byte or kept in some of its sectors; a created, renamed or removed name that was
//! not synced happened or did not. A failed sync makes nothing durable, and no later sync makes up for it,
//! although readers still see the bytes (as Linux does). Every change and every sync is one numbered operation,
//! at which the power may go off.

mod state;

use crate::trace::Trace;
use parking_lot::Mutex;
use state::State;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_wal::disk::{DirLock, DiskDir};
use tributary_wal::{Disk, DiskFile, OpenMode};

pub use state::{DiskCounts, Faults};

/// The disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    #[must_use]
    pub fn new(seed: u64, trace: Trace) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(seed, trace))) }
    }

    /// What goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// How many operations there were.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Whether the power went off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.state.lock().is_off
    }

    /// The power comes back after it went off (or goes off and comes back): what was not synced is lost,
    /// kept or torn.
    pub fn power_cut(&self) {
        self.state.lock().power_cut();
    }

    /// The process ended and its files are closed; what it wrote is still to be seen.
    pub fn process_ended(&self) {
        self.state.lock().process_ended();
    }

    /// What went wrong and what was done.
    #[must_use]
    pub fn counts(&self) -> DiskCounts {
        self.state.lock().counts
    }

    /// A file's contents as a reader sees them.
    ///
    /// # Errors
    /// `NotFound`, a planned I/O error, or that the power is off.
    pub fn read(&self, path: &Path) -> io::Result<(Vec<u8>, u64)> {
        self.state.lock().read_file(path)
    }

    /// Length and time of the last change (ms since 1970) of a file.
    ///
    /// # Errors
    /// Like [`SimDisk::read`].
    pub fn stat(&self, path: &Path) -> io::Result<(u64, u64)> {
        self.state.lock().stat(path)
    }

    /// Gives a file a name that must be free.
    ///
    /// # Errors
    /// `AlreadyExists`, or what is planned.
    pub fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.has(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.rename(from, to)
    }

    /// All files below a directory, in the order of their names: path, length, time of the last change.
    ///
    /// # Errors
    /// The power is off.
    pub fn files_below(&self, dir: &Path) -> io::Result<Vec<(PathBuf, u64, u64)>> {
        self.state.lock().files_below(dir)
    }

    /// Sets the time, in ms since 1970.
    pub fn set_time(&self, now_ms: u64) {
        self.state.lock().now_ms = now_ms;
    }

    /// One atomic, durable change of something that is not a file of ours (the catalog's database). `true`: it
    /// happened, also if the power goes off with it.
    ///
    /// # Errors
    /// With whether it happened.
    pub fn atomic_change(&self, what: &'static str) -> Result<(), (io::Error, bool)> {
        self.state.lock().atomic_change(what)
    }
}

impl Disk for SimDisk {
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
        Ok(Some(Box::new(Lock { disk: self.clone(), dir: dir.to_owned(), generation })))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state.lock();
        let inode = match mode {
            OpenMode::CreateNew => state.create(path)?,
            OpenMode::Existing => state.find(path)?,
        };
        Ok(Box::new(OpenFile { disk: self.clone(), inode, generation: state.generation }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        let files = self.files_below(dir)?;
        let own = files.into_iter().filter(|(path, ..)| path.parent() == Some(dir));
        let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(own.map(|(path, bytes, _)| (name(path).unwrap_or_default(), bytes)).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state.lock().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state.lock().remove(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(OpenDir { disk: self.clone(), dir: dir.to_owned() }))
    }

    fn available_bytes(&self, _dir: &Path) -> io::Result<u64> {
        let state = self.state.lock();
        state.powered()?;
        Ok(state.available())
    }
}

struct Lock {
    disk: SimDisk,
    dir: PathBuf,
    generation: u64,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.generation == self.generation {
            state.locks.remove(&self.dir);
        }
    }
}

struct OpenDir {
    disk: SimDisk,
    dir: PathBuf,
}

impl DiskDir for OpenDir {
    fn sync(&self) -> io::Result<()> {
        self.disk.state.lock().sync_dir(&self.dir)
    }
}

struct OpenFile {
    disk: SimDisk,
    inode: u64,
    generation: u64,
}

impl OpenFile {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.state.lock();
        if state.generation != self.generation {
            return Err(io::Error::other("the file was opened by a process that has ended"));
        }
        act(&mut state)
    }
}

impl DiskFile for OpenFile {
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

//! A disk whose syncs wait until the test lets them end, so that a log is busy for as long as it takes, and that counts how
//! often the log has found it full.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use tributary_wal::disk::{DirLock, DiskDir};
use tributary_wal::{Disk, DiskFile, MemDisk, OpenMode};

/// A [`MemDisk`] with a gate before each sync of a file.
#[derive(Clone, Debug)]
pub struct GatedDisk {
    disk: MemDisk,
    gate: Arc<Gate>,
    full: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

/// The gate is closed until this is dropped.
pub struct Held(Arc<Gate>);

impl Drop for Held {
    fn drop(&mut self) {
        *self.0.is_closed.lock().unwrap() = false;
        self.0.opened.notify_all();
    }
}

impl GatedDisk {
    pub fn new(disk: MemDisk) -> Self {
        Self { disk, gate: Arc::default(), full: Arc::default() }
    }

    /// How often a log's writer had to write and found no space at all.
    pub fn refusals(&self) -> u64 {
        self.full.load(Ordering::SeqCst)
    }

    pub fn hold(&self) -> Held {
        *self.gate.is_closed.lock().unwrap() = true;
        Held(Arc::clone(&self.gate))
    }
}

impl Disk for GatedDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Option<DirLock>> {
        self.disk.lock_dir(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(path, mode)?;
        Ok(Box::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        self.disk.open_dir(dir)
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<u64> {
        let available = self.disk.available_bytes(dir)?;
        // The keeper queries it, too, ahead of time.
        if available == 0 && std::thread::current().name() == Some("wal-writer") {
            self.full.fetch_add(1, Ordering::SeqCst);
        }
        Ok(available)
    }
}

struct GatedFile {
    file: Box<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl DiskFile for GatedFile {
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buf, offset)
    }

    fn write_vectored_all_at(&self, bufs: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.file.write_vectored_all_at(bufs, offset)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        let is_closed = self.gate.is_closed.lock().unwrap();
        drop(self.gate.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

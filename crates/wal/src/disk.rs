//! The file system as the log needs it: a trait, so that a simulated disk can replace it.
//!
//! Invariant: nothing is durable before the sync that belongs to it has returned `Ok`: contents with
//! [`DiskFile::sync_data`], names (created, renamed, removed) with [`Disk::sync_dir`]. Not its
//! business: what the files mean.

#[cfg(any(test, feature = "test-util"))]
pub(crate) mod mem;
mod os;

#[cfg(any(test, feature = "test-util"))]
pub use mem::{DiskCounts, Fault, Faults, MemDisk, Watcher};
pub use os::OsDisk;

use std::any::Any;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::path::Path;

/// How to open a file. Both ways allow reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must not exist.
    CreateNew,
    /// The file must exist.
    Existing,
}

/// Keeps a directory locked until it is dropped.
pub type DirLock = Box<dyn Any + Send + Sync>;

/// A file system.
pub trait Disk: Send + Sync + Debug + 'static {
    /// Creates a directory and its parents; they are durable on return.
    ///
    /// # Errors
    /// The operating system's error.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Locks the directory for this process by its file `LOCK`. Returns `None` if another process has it.
    ///
    /// # Errors
    /// The operating system's error.
    fn lock_dir(&self, dir: &Path) -> io::Result<Option<DirLock>>;

    /// Opens a file. The name of a created one is durable only after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, or the operating system's error.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;

    /// The directory's files: name and length in bytes, in no particular order. Files whose names are
    /// not UTF-8 and directories are left out.
    ///
    /// # Errors
    /// The operating system's error.
    fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>>;

    /// Renames a file, replacing `to` if it exists. Durable only after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// The operating system's error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Durable only after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// The operating system's error.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Opens a directory, so that its names can be made durable later without opening anything: the process may have no
    /// file descriptor left then.
    ///
    /// # Errors
    /// The operating system's error.
    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>>;

    /// Makes the directory's names durable.
    ///
    /// # Errors
    /// The operating system's error.
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.open_dir(dir)?.sync()
    }

    /// Bytes that can still be written in that directory.
    ///
    /// # Errors
    /// The operating system's error.
    fn available_bytes(&self, dir: &Path) -> io::Result<u64>;
}

/// An open directory.
pub trait DiskDir: Send + Sync {
    /// Makes the directory's names durable.
    ///
    /// # Errors
    /// The operating system's error.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Writes all of `buf` at `offset` (bytes). After an error any part of it may have been written.
    ///
    /// # Errors
    /// The operating system's error.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bufs`, one after another, at `offset` (bytes). After an error any part may have been written. Consumes the
    /// slices.
    ///
    /// # Errors
    /// The operating system's error.
    fn write_vectored_all_at(&self, bufs: &mut [IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// Reads at `offset` until `buf` is full or the file ends; returns how many bytes were read.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Makes contents and length durable.
    ///
    /// # Errors
    /// The operating system's error; the contents of the disk are then unknown, even if a later sync succeeds.
    fn sync_data(&self) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// The operating system's error.
    fn len(&self) -> io::Result<u64>;

    /// Writes `len` zeros at `offset`. Blocks that are merely reserved (`fallocate`) would make every later sync write metadata
    /// too, which doubles its time.
    ///
    /// # Errors
    /// The operating system's error.
    fn zero_fill(&self, offset: u64, len: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let mut done = 0;
        while done < len {
            let step = (len - done).min(ZEROS.len() as u64);
            self.write_all_at(&ZEROS[..step as usize], offset + done)?;
            done += step;
        }
        Ok(())
    }

    /// Whether the file is empty.
    ///
    /// # Errors
    /// The operating system's error.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

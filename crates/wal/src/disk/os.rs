//! The operating system's file system.

use super::{DirLock, Disk, DiskDir, DiskFile, OpenMode};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The most slices that one call to the operating system takes (`IOV_MAX`).
const SLICES_MAX: usize = 1024;

/// Files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        let parent = match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.create_dir_all(parent)?;
        let above = self.open_dir(parent)?;
        match std::fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !dir.is_dir() => return Err(error),
            _ => {}
        }
        above.sync()
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Option<DirLock>> {
        let path = dir.join(crate::segment::format::LOCK_NAME);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(mode == OpenMode::CreateNew);
        Ok(Box::new(OsFile(options.open(path)?)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                files.push((name, metadata.len()));
            }
        }
        Ok(files)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(OsDir(File::open(dir)?)))
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

struct OsDir(File);

impl DiskDir for OsDir {
    fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

struct OsFile(File);

impl DiskFile for OsFile {
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn write_vectored_all_at(&self, mut bufs: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        IoSlice::advance_slices(&mut bufs, 0);
        while !bufs.is_empty() {
            let some = &bufs[..bufs.len().min(SLICES_MAX)];
            match rustix::io::pwritev(&self.0, some, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut bufs, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.0.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

//! The directory of a server, which one process uses at a time.

use crate::node::start_error::StartError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use tributary_wal::{Disk, OsDisk};

/// Makes the directory if it is not there, and locks it as long as the file is open.
///
/// # Errors
/// [`StartError::Locked`], [`StartError::Io`].
pub(crate) fn lock(root: &Path) -> Result<File, StartError> {
    let failed =
        |action: &'static str, path: &Path, source| StartError::Io { action, path: path.to_owned(), source };
    OsDisk.create_dir_all(root).map_err(|error| failed("create", root, error))?;
    let path = root.join("LOCK");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| failed("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::Locked(root.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed("lock", &path, error)),
    }
}

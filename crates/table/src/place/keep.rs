//! Whether files of tables may be deleted: not while a backup copies them.
//!
//! Every deletion asks, and what it leaves is found by a later sweep. Not its business: which files are without use.

use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The permission to delete files of a store's tables. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletions(Arc<RwLock<()>>);

/// No file is deleted as long as this exists.
#[derive(Debug)]
#[must_use]
pub struct KeepFiles {
    _stopped: OwnedRwLockWriteGuard<()>,
}

impl Deletions {
    /// The permission for one piece of work; `None` if files are kept, or about to be.
    pub(crate) fn allowed(&self) -> Option<OwnedRwLockReadGuard<()>> {
        Arc::clone(&self.0).try_read_owned().ok()
    }

    /// Waits for work that has the permission, and gives none until the value is dropped.
    pub(crate) async fn stop(&self) -> KeepFiles {
        KeepFiles { _stopped: Arc::clone(&self.0).write_owned().await }
    }
}

//! Complete data files that are in no snapshot yet.
//!
//! Invariant: a sweep spares them as long as their owner lives, and beyond if they may be in a log. Not the business of this
//! module: writing them, and deciding their fate.

use super::DataFile;
use super::write::publish_names;
use crate::place::root::TableRoot;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Durable data files of one load that are in no snapshot. Dropped, they are left to the next sweep, unless they were published
/// or [submitted](UnpublishedFiles::are_submitted).
pub struct UnpublishedFiles {
    /// `None` without files, or if others protect them.
    root: Option<Arc<TableRoot>>,
    files: Vec<DataFile>,
    is_submitted: AtomicBool,
}

impl UnpublishedFiles {
    /// Takes over files that were protected by their names alone.
    pub(crate) fn new(root: &Arc<TableRoot>, files: Vec<DataFile>) -> Self {
        Self { root: Some(Arc::clone(root)), files, is_submitted: AtomicBool::new(false) }
    }

    /// Records that the files may be in an entry of a log: only that entry's fate decides about them now.
    pub fn are_submitted(&self) {
        self.is_submitted.store(true, Ordering::Release);
    }

    /// Records that the log has refused the entry: nothing refers to the files.
    pub fn are_refused(&self) {
        self.is_submitted.store(false, Ordering::Release);
    }

    /// Hands over the files: the caller publishes or [discards](crate::Table::discard) them.
    #[must_use]
    pub fn into_files(mut self) -> Vec<DataFile> {
        self.root = None;
        std::mem::take(&mut self.files)
    }
}

impl From<Vec<DataFile>> for UnpublishedFiles {
    /// Wraps files that a snapshot has, or that are [pinned](crate::Table::pin) for longer than this lives.
    fn from(files: Vec<DataFile>) -> Self {
        Self { root: None, files, is_submitted: AtomicBool::new(true) }
    }
}

impl Default for UnpublishedFiles {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl Deref for UnpublishedFiles {
    type Target = [DataFile];

    fn deref(&self) -> &[DataFile] {
        &self.files
    }
}

impl fmt::Debug for UnpublishedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.files).finish()
    }
}

impl Drop for UnpublishedFiles {
    fn drop(&mut self) {
        if let Some(root) = &self.root
            && !*self.is_submitted.get_mut()
        {
            // The names of published files are no longer listed.
            publish_names(root, self.files.iter().map(|file| file.path.as_str()));
        }
    }
}

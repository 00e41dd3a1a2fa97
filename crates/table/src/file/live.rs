//! A data file as part of a table's version: the file, and which of its rows are deleted.
//!
//! The file never changes; its deletes may from version to version. Snapshots, flushes, compactions and entries of the
//! Delta log differ by sets of live files, never by sets of paths. So far nothing deletes single rows: `deletes` is
//! always `None`, and logs of others that have deletion vectors are refused.

use super::DataFile;
use deltalake_core::kernel::{Add, Remove};
use std::sync::Arc;
use tributary_types::{TableSchema, Version};

/// A file of a table and the rows of it that are deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFile {
    pub file: Arc<DataFile>,
    /// `None`: all rows are live.
    pub deletes: Option<Arc<DeletesRef>>,
}

/// Rows of one data file that are deleted, as a deletion vector that never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletesRef {
    /// What Delta calls the vector's unique id: two of the same id delete the same rows.
    pub id: String,
    /// How many rows are deleted.
    pub rows: u64,
}

impl LiveFile {
    /// Relative to the table's location.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.file.path
    }

    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.file.size_bytes
    }

    /// [`DataFile::version`].
    #[must_use]
    pub fn version(&self) -> Version {
        self.file.version
    }

    /// Rows that a query sees. [`DataFile::rows`] counts deleted ones, too, as the file's footer and its bounds do.
    ///
    /// # Panics
    /// If more rows are deleted than there are.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        let deleted = self.deletes.as_ref().map_or(0, |deletes| deletes.rows);
        let live = self.file.rows.checked_sub(deleted);
        live.expect("deletes are rows of their file")
    }

    /// Whether both are the same file with the same deletes.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let id = |live: &Self| live.deletes.as_ref().map(|deletes| deletes.id.clone());
        self.path() == other.path() && id(self) == id(other)
    }

    pub(crate) fn to_add(&self, schema: &TableSchema, data_change: bool) -> Add {
        assert!(self.deletes.is_none(), "the entry of '{}' would show deleted rows", self.path());
        self.file.to_add(schema, data_change)
    }

    pub(crate) fn to_remove(&self, data_change: bool, now_ms: i64) -> Remove {
        assert!(self.deletes.is_none(), "the entry of '{}' would not name its deletes", self.path());
        self.file.to_remove(data_change, now_ms)
    }
}

impl From<DataFile> for LiveFile {
    fn from(file: DataFile) -> Self {
        Self { file: Arc::new(file), deletes: None }
    }
}

//! A data file as part of a table's version: the file, and which of its rows are deleted.
//!
//! The file never changes; its deletes may from version to version. Snapshots, flushes, compactions and entries of the
//! Delta log differ by sets of live files, never by sets of paths.

use super::DataFile;
use super::deletes::{Deletes, RowSet};
use deltalake_core::kernel::{Add, Remove};
use std::sync::Arc;
use tributary_types::{TableSchema, Version};

/// A file of a table and its deleted rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFile {
    pub file: Arc<DataFile>,
    /// `None`: all rows are live.
    pub deletes: Option<Arc<Deletes>>,
    /// Whether it is known which rows its rows supersede; always in a table whose rows all stay.
    pub settled: Settled,
}

/// The known order of a data file among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Settled {
    #[default]
    Yes,
    /// It is not known yet which rows its rows supersede.
    No,
    /// It supersedes nothing; it is not known yet which of its rows later ones supersede.
    Older,
}

impl LiveFile {
    /// The file with all its rows.
    pub(crate) fn from_arc(file: Arc<DataFile>) -> Self {
        Self { file, deletes: None, settled: Settled::Yes }
    }

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

    /// Orders files of other engines that are found in the log together.
    pub(crate) fn order_of_arrival(&self) -> (i64, &str) {
        (self.file.modification_time_ms, self.path())
    }

    /// Rows that a query sees. [`DataFile::rows`] counts deleted ones, too, as the file's footer and its bounds do.
    ///
    /// # Panics
    /// If more rows are deleted than there are.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        let live = self.file.rows.checked_sub(self.deleted_rows());
        live.expect("deletes are rows of their file")
    }

    /// Rows of the file that no query sees.
    #[must_use]
    pub fn deleted_rows(&self) -> u64 {
        self.deletes.as_ref().map_or(0, |deletes| deletes.count())
    }

    /// Roughly how many bytes a file of the live rows alone would have.
    pub(crate) fn live_bytes(&self) -> u64 {
        let bytes =
            u128::from(self.size_bytes()) * u128::from(self.live_rows()) / u128::from(self.file.rows.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The file with other deletes, all its rows settled.
    pub(crate) fn with_deletes(&self, deletes: Option<Arc<Deletes>>) -> Self {
        Self { file: Arc::clone(&self.file), deletes, settled: Settled::Yes }
    }

    /// The file with further rows deleted, which no log has yet.
    pub(crate) fn with_more_deletes(&self, rows: &RowSet) -> Self {
        let before = self.deletes.as_ref().map(|deletes| deletes.rows());
        let all = before.map_or_else(|| rows.clone(), |before| before | rows);
        if before.is_some_and(|before| before.len() == all.len()) || all.is_empty() {
            return self.with_deletes(self.deletes.clone());
        }
        self.with_deletes(Some(Arc::new(Deletes::unlogged(all))))
    }

    /// The file with those rows live again.
    pub(crate) fn with_fewer_deletes(&self, rows: &RowSet) -> Self {
        let Some(before) = self.deletes.as_ref().filter(|_| !rows.is_empty()) else { return self.clone() };
        let left = before.rows() - rows;
        self.with_deletes((!left.is_empty()).then(|| Arc::new(Deletes::unlogged(left))))
    }

    /// Whether a row of the file is not deleted.
    pub(crate) fn is_live(&self, row: u32) -> bool {
        self.deletes.as_ref().is_none_or(|deletes| !deletes.rows().contains(row.into()))
    }

    /// Rows that are deleted now and were not `before`.
    pub(crate) fn deleted_since(&self, before: &Self) -> RowSet {
        let rows =
            |live: &Self| live.deletes.as_ref().map(|deletes| deletes.rows().clone()).unwrap_or_default();
        rows(self) - rows(before)
    }

    /// Whether both are the same file with the same deletes. A file that was dropped with its partition and recovered is another one: its
    /// partition has a new id.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_file = self.path() == other.path() && self.file.partition == other.file.partition;
        is_same_file && self.deletes == other.deletes
    }

    pub(crate) fn to_add(&self, schema: &TableSchema, data_change: bool) -> Add {
        let deletion_vector = self.deletes.as_ref().map(|deletes| deletes.vector().clone());
        // Bounds and counts remain those of the whole file.
        let stats = self.file.stats.to_delta_json(self.file.rows, deletion_vector.is_none(), schema);
        Add { deletion_vector, stats: Some(stats), ..self.file.to_add(data_change) }
    }

    pub(crate) fn to_remove(&self, data_change: bool, now_ms: i64) -> Remove {
        let deletion_vector = self.deletes.as_ref().map(|deletes| deletes.vector().clone());
        Remove { deletion_vector, ..self.file.to_remove(data_change, now_ms) }
    }
}

impl From<DataFile> for LiveFile {
    fn from(file: DataFile) -> Self {
        Self::from_arc(Arc::new(file))
    }
}

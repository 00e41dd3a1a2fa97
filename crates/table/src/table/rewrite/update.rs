//! Change of single rows of a table that retains all rows: one entry of the Delta log deletes them from their files and adds files
//! with their new values.
//!
//! As for a deletion, everything published before is flushed first, and the write-ahead log is not involved. Rows are found and
//! written while flushes continue; compactions leave the files alone. If a file that rows were found in is changed meanwhile (by a
//! deletion, a truncation, a schema change or another writer), the new files are void, and the search starts over. So a row is
//! changed once, and never by values from before another change of it.

use crate::error::TableError;
use crate::file::{DataFile, LiveFile, RowSet, UnpublishedFiles};
use crate::log::LogState;
use crate::table::Table;
use crate::table::rewrite::commit::has;
use crate::table::rewrite::delete::{DeleteReport, FoundRows, RowEntry, Searched, note};
use crate::view::snapshot::Snapshot;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tributary_types::TableDef;

/// Searches before an update gives up, because others change its rows each time.
const ROUNDS_MAX: usize = 4;

/// Rows to remove, and files with the rows that replace them.
#[derive(Debug)]
pub struct RowUpdate {
    pub rows: FoundRows,
    /// As many rows, with the schema of the snapshot that was searched.
    pub files: UnpublishedFiles,
}

impl Table {
    /// Replaces rows that were published before the call. `find` selects them and writes their new values to files: it gets a
    /// snapshot of the table's data files, without a memtable, and is called again if others change the files meanwhile.
    /// `predicate` is for the log's readers. On return the change is durable and visible; it is visible as a whole or not at all.
    ///
    /// # Errors
    /// The errors of `find`; [`TableError::Outrun`], [`TableError::Storage`], and those of the log. Nothing was changed, unless
    /// writing the log's entry failed and it was written nevertheless: then the change is visible with the next entry.
    pub async fn update<E: From<TableError>, F: Future<Output = Result<RowUpdate, E>>>(
        &self,
        predicate: &str,
        mut find: impl FnMut(Arc<Snapshot>) -> F,
    ) -> Result<DeleteReport, E> {
        if self.unique.is_some() {
            return Err(TableError::KeyedUpdate { table: self.def().name.clone() }.into());
        }
        let _leaves_files = LeavesFiles::new(&self.updates);
        for _ in 0..ROUNDS_MAX {
            let view = {
                let mut state = self.lock_log().await?;
                self.flush_racing(&mut state, None).await?;
                match self.unsearched(&state, &Searched::new()) {
                    Some(view) => view,
                    None => return Ok(nothing(&state)),
                }
            };
            let found = find(Arc::clone(&view)).await?;
            let mut searched = Searched::new();
            note(&mut searched, &view, found.rows);
            let mut state = self.lock_log().await?;
            if let Some(report) =
                self.log_update(&mut state, &view, &searched, &found.files, predicate).await?
            {
                return Ok(report);
            }
            self.discard(&found.files).await;
        }
        Err(TableError::Outrun { table: self.def().name.clone() }.into())
    }

    /// Writes the entry. `None` if others have changed the table since the rows were found.
    async fn log_update(
        &self,
        state: &mut LogState,
        view: &Snapshot,
        searched: &Searched,
        files: &[DataFile],
        predicate: &str,
    ) -> Result<Option<DeleteReport>, TableError> {
        let snapshot = loop {
            let snapshot = self.snapshot();
            if !self.has_unlogged_cut(state) {
                break snapshot;
            }
            // A replay of it would remove new rows of the partition, too.
            self.flush_racing(state, None).await?;
        };
        // A partition that was dropped is gone from the snapshot first.
        let shown: HashSet<&str> = snapshot.files.iter().map(LiveFile::path).collect();
        let is_there = |(live, rows): &(LiveFile, RowSet)| {
            rows.is_empty() || has(&state.live, live) && shown.contains(live.path())
        };
        let removed: u64 = searched.values().map(|(_, rows)| rows.len()).sum();
        let written: u64 = files.iter().map(|file| file.rows).sum();
        let is_as_found = snapshot.def.schema.version == view.def.schema.version
            && searched.values().all(is_there)
            && files.iter().all(|file| is_placed(&snapshot.def, file))
            && removed == written;
        if !is_as_found {
            return Ok(None);
        }
        let version = snapshot.version;
        let added: Vec<LiveFile> =
            files.iter().map(|file| LiveFile::from(DataFile { version, ..file.clone() })).collect();
        let entry = RowEntry { operation: "UPDATE", predicate, added: &added };
        self.log_deletes(state, &snapshot, searched, &entry).await
    }

    /// Whether rows were removed by a truncation, or with their partitions, that the Delta log does not have.
    pub(in crate::table) fn has_unlogged_cut(&self, state: &LogState) -> bool {
        let unflushed = self.unflushed.lock();
        unflushed.truncated_at > state.app_version
            || unflushed.dropping.is_some()
            || unflushed.cut_at.values().any(|cut| *cut > state.app_version)
    }

    /// Whether updates are looking for rows, so that files should stay as they are.
    pub(super) fn is_updating(&self) -> bool {
        self.updates.load(Ordering::Acquire) > 0
    }
}

/// Whether the table is not partitioned, or has the file's partition. A file of none has rows whose partition was dropped before they
/// were written.
fn is_placed(def: &TableDef, file: &DataFile) -> bool {
    let Some(partitions) = def.partitioning.partitions() else { return true };
    file.partition.is_some_and(|id| partitions.by_id(id).is_some())
}

fn nothing(state: &LogState) -> DeleteReport {
    DeleteReport { rows: 0, files: 0, delta_version: crate::table::delta_version(state) }
}

/// Keeps compactions from a table as long as it lives.
struct LeavesFiles<'t>(&'t AtomicUsize);

impl<'t> LeavesFiles<'t> {
    fn new(updates: &'t AtomicUsize) -> Self {
        updates.fetch_add(1, Ordering::AcqRel);
        Self(updates)
    }
}

impl Drop for LeavesFiles<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

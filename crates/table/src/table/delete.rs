//! Deletion of single rows: their files get deletion vectors, in one entry of the Delta log.
//!
//! What is deleted are rows of data files that the log has, so everything published before is flushed first; the write-ahead
//! log has no part in it. Finding the rows may take long. Flushes and compactions go on meanwhile, and files that came or
//! changed are searched again; in the last round they wait.

use super::Table;
use super::commit::{Committed, FileSet, Goal, has};
use crate::error::TableError;
use crate::file::{LiveFile, RowSet};
use crate::log::LogState;
use crate::snapshot::Snapshot;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rounds in which others may change the log while rows are being found.
const FREE_ROUNDS: usize = 2;

/// Positions of rows that are to be deleted, by the path of their data file.
pub type FoundRows = HashMap<String, RowSet>;

/// What a deletion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteReport {
    pub rows: u64,
    /// Data files that the rows were in.
    pub files: usize,
    pub delta_version: i64,
}

/// Files after the deletion, by path. `None`: nothing is left of it.
type Changed = HashMap<String, Option<LiveFile>>;

/// What is known of the files that were searched, by path.
type Searched = BTreeMap<String, (LiveFile, RowSet)>;

impl Table {
    /// Deletes rows that were published before the call, and perhaps some that are published during it. `find` tells which:
    /// it is given a snapshot of some of the table's data files, without a memtable, and is called again for files that came
    /// or changed meanwhile. `predicate` is for the log's readers. On return the deletion is durable and visible; it is
    /// visible as a whole or not at all.
    ///
    /// # Errors
    /// Those of `find`; [`TableError::Storage`], and those of the log. Nothing was deleted, unless writing the log's entry
    /// failed and it got there nevertheless: then the rows are gone with the next entry.
    pub async fn delete<E: From<TableError>, F: Future<Output = Result<FoundRows, E>>>(
        &self,
        predicate: &str,
        mut find: impl FnMut(Arc<Snapshot>) -> F,
    ) -> Result<DeleteReport, E> {
        if self.unique.is_some() {
            return Err(TableError::UniqueDelete { table: self.def().name.clone() }.into());
        }
        let mut searched = Searched::new();
        let mut state = self.lock_log().await?;
        self.flush_locked(&mut state, None).await?;
        for round in 0.. {
            let Some(view) = self.unsearched(&state, &searched) else {
                match self.log_deletes(&mut state, &searched, predicate).await? {
                    Some(report) => return Ok(report),
                    // Another writer changed files meanwhile.
                    None => continue,
                }
            };
            let found = if round < FREE_ROUNDS {
                drop(state);
                let found = find(Arc::clone(&view)).await?;
                state = self.lock_log().await?;
                found
            } else {
                find(Arc::clone(&view)).await?
            };
            note(&mut searched, &view, found);
        }
        unreachable!("rounds go on until the rows are deleted")
    }

    /// The visible and logged files that are not searched as they are now.
    fn unsearched(&self, state: &LogState, searched: &Searched) -> Option<Arc<Snapshot>> {
        let current = self.snapshot();
        let is_searched =
            |live: &LiveFile| searched.get(live.path()).is_some_and(|(known, _)| known.is_same(live));
        let is_due = |live: &&LiveFile| has(&state.live, live) && !is_searched(live);
        let files: Vec<_> = current.files.iter().filter(is_due).cloned().collect();
        if files.is_empty() {
            return None;
        }
        Some(Arc::new(Snapshot { files: Arc::new(files), memtable: Vec::new(), ..current.as_ref().clone() }))
    }

    /// Writes the entry, for which all live files were searched. `None`: another writer changed one of them.
    async fn log_deletes(
        &self,
        state: &mut LogState,
        searched: &Searched,
        predicate: &str,
    ) -> Result<Option<DeleteReport>, TableError> {
        let hit: Vec<(&LiveFile, &RowSet)> = searched
            .values()
            .filter(|(live, rows)| !rows.is_empty() && has(&state.live, live))
            .map(|(live, rows)| (live, rows))
            .collect();
        let report = DeleteReport {
            rows: hit.iter().map(|(_, rows)| rows.len()).sum(),
            files: hit.len(),
            delta_version: super::delta_version(state),
        };
        if hit.is_empty() {
            return Ok(Some(report));
        }
        let mut files: FileSet = state.live.clone();
        for (live, rows) in &hit {
            let after = live.with_more_deletes(rows);
            match after.live_rows() {
                0 => files.remove(live.path()),
                _ => files.insert(live.path().to_owned(), after),
            };
        }
        let stored = self.store_deletes(&mut files).await?;
        let changed: Changed =
            hit.iter().map(|(live, _)| (live.path().to_owned(), files.get(live.path()).cloned())).collect();
        let goal = Goal {
            operation: "DELETE",
            parameters: vec![("predicate", json!(predicate))],
            def: self.def(),
            files,
            version: state.app_version,
            data_change: true,
            inputs: hit.iter().map(|(live, _)| LiveFile::clone(live)).collect(),
        };
        let committed = self.commit(state, goal).await;
        self.show_stored(&stored, false);
        if committed? == Committed::Void {
            return Ok(None);
        }
        self.swap_deletes(searched, &changed);
        self.checkpoint_if_due(state).await;
        Ok(Some(DeleteReport { delta_version: super::delta_version(state), ..report }))
    }

    /// Shows the files with their deletes. A truncation meanwhile has removed them already.
    fn swap_deletes(&self, searched: &Searched, changed: &Changed) {
        let _unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        let files = current.files.iter().filter_map(|live| match changed.get(live.path()) {
            Some(after) if searched[live.path()].0.is_same(live) => after.clone(),
            _ => Some(live.clone()),
        });
        let files = Arc::new(files.collect());
        self.swap(&current, |next| next.files = files);
    }
}

/// Notes for each file of `view` what was found in it.
fn note(searched: &mut Searched, view: &Snapshot, mut found: FoundRows) {
    for live in view.files.iter() {
        let mut rows = found.remove(live.path()).unwrap_or_default();
        if let Some(deletes) = &live.deletes {
            rows -= deletes.rows();
        }
        assert!(
            rows.max().is_none_or(|last| last < live.file.rows),
            "'{}' has the rows that were found",
            live.path()
        );
        searched.insert(live.path().to_owned(), (live.clone(), rows));
    }
    assert!(found.is_empty(), "rows were found in files that were searched");
}

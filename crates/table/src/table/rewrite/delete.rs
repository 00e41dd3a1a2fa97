//! Deletion of single rows: their files get deletion vectors, in one entry of the Delta log. An UPDATE adds files with it
//! ([`super::update`]).
//!
//! Only rows of data files that the log has are deleted, so everything published before is flushed first; the write-ahead log is
//! not involved. Finding the rows may take long. Flushes and compactions continue meanwhile, and files that were added or changed
//! are searched again; in the last round they wait.
//!
//! In a table with AGGREGATE KEY they wait from the beginning, and so does folding: a row folded into a later one during the
//! search would survive in it. For the same reason no folding happens before it is known whether an entry whose answer was lost
//! is in the log.

use crate::error::TableError;
use crate::file::{LiveFile, RowSet};
use crate::log::{LogState, Written, commit_info};
use crate::table::Table;
use crate::table::change::light::Replacement;
use crate::table::rewrite::commit::{Committed, FileSet, Goal, has};
use crate::view::snapshot::Snapshot;
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rounds in which others may change the log while rows are being found.
const FREE_ROUNDS: usize = 2;

/// Positions of rows to delete, by the path of their data file.
pub type FoundRows = HashMap<String, RowSet>;

/// The result of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteReport {
    pub rows: u64,
    /// Data files that the rows were in.
    pub files: usize,
    pub delta_version: i64,
}

/// Files after the deletion, by path. `None` if no rows are left.
type Changed = HashMap<String, Option<LiveFile>>;

/// The files searched so far, by path.
pub(super) type Searched = BTreeMap<String, (LiveFile, RowSet)>;

/// The entry of the log that removes rows.
pub(super) struct RowEntry<'a> {
    pub operation: &'static str,
    /// For the log's readers.
    pub predicate: &'a str,
    /// Files with the rows that replace the removed ones.
    pub added: &'a [LiveFile],
}

impl Table {
    /// Deletes rows that were published before the call, and perhaps some that are published during it. `find` selects them: it
    /// gets a snapshot of some of the table's data files, without a memtable, and is called again for files that were added or
    /// changed meanwhile. `predicate` is for the log's readers. On return the deletion is durable and visible; it is visible as a
    /// whole or not at all.
    ///
    /// # Errors
    /// The errors of `find`; [`TableError::Storage`], and those of the log. Nothing was deleted, unless writing the log's entry
    /// failed and it was written nevertheless: then the rows disappear with the next entry.
    pub async fn delete<E: From<TableError>, F: Future<Output = Result<FoundRows, E>>>(
        &self,
        predicate: &str,
        mut find: impl FnMut(Arc<Snapshot>) -> F,
    ) -> Result<DeleteReport, E> {
        if self.with_def(|def| def.keys.is_unique()) {
            return Err(TableError::UniqueDelete { table: self.def().name.clone() }.into());
        }
        let mut searched = Searched::new();
        let folding = match &self.unique {
            Some(unique) => Some(unique.folding.write().await),
            None => None,
        };
        let free_rounds = if folding.is_some() { 0 } else { FREE_ROUNDS };
        let mut state = self.lock_log().await?;
        self.flush_racing(&mut state, None).await?;
        let entry = RowEntry { operation: "DELETE", predicate, added: &[] };
        for round in 0.. {
            let Some(view) = self.unsearched(&state, &searched) else {
                match self.log_deletes(&mut state, &self.snapshot(), &searched, &entry).await? {
                    Some(report) => return Ok(report),
                    // Another writer changed files meanwhile.
                    None => {
                        if self.unique.is_some() {
                            // Its rows are folded with ours first.
                            self.unflushed.lock().log_behind = true;
                            self.flush_racing(&mut state, None).await?;
                        }
                        continue;
                    }
                }
            };
            let found = if round < free_rounds {
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
    pub(super) fn unsearched(&self, state: &LogState, searched: &Searched) -> Option<Arc<Snapshot>> {
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

    /// Writes the entry, after all live files were searched; what is published after `snapshot` follows it. `None` if another
    /// writer changed one of them.
    pub(super) async fn log_deletes(
        &self,
        state: &mut LogState,
        snapshot: &Snapshot,
        searched: &Searched,
        entry: &RowEntry<'_>,
    ) -> Result<Option<DeleteReport>, TableError> {
        let shown: HashSet<&str> = snapshot.files.iter().map(LiveFile::path).collect();
        // Rows that a truncation has removed from the snapshot must not return in copies.
        let copies = snapshot.def.properties.copies_on_write();
        let is_there = |live: &LiveFile| has(&state.live, live) && (!copies || shown.contains(live.path()));
        let hit: Vec<(&LiveFile, &RowSet)> = searched
            .values()
            .filter(|(live, rows)| !rows.is_empty() && is_there(live))
            .map(|(live, rows)| (live, rows))
            .collect();
        let report = DeleteReport {
            rows: hit.iter().map(|(_, rows)| rows.len()).sum(),
            files: hit.len(),
            delta_version: crate::table::delta_version(state),
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
        let mut copied = self.copy_changed(&snapshot.def, snapshot.version, &mut files).await?;
        if copies {
            let none = Replacement { inputs: Vec::new(), outputs: Vec::new(), version: snapshot.version };
            let copied = copied.get_or_insert(none);
            // Including those without remaining rows.
            copied.inputs = hit.iter().map(|(live, _)| LiveFile::clone(live)).collect();
            copied.outputs.extend_from_slice(entry.added);
        }
        files.extend(entry.added.iter().map(|live| (live.path().to_owned(), live.clone())));
        let stored = self.store_deletes(&mut files).await?;
        let changed: Changed =
            hit.iter().map(|(live, _)| (live.path().to_owned(), files.get(live.path()).cloned())).collect();
        let goal = Goal {
            operation: entry.operation,
            parameters: vec![("predicate", json!(entry.predicate))],
            def: self.def(),
            files,
            version: state.app_version,
            data_change: true,
            inputs: hit.iter().map(|(live, _)| LiveFile::clone(live)).collect(),
            change: None,
            completes_drop: false,
        };
        self.is_in_doubt(true);
        let copied = self.copies_on_the_way(copied);
        let committed = self.commit(state, goal).await;
        self.show_stored(&stored, false);
        let committed = match committed {
            // The snapshot has the other writer's changes now.
            Err(TableError::Raced { attempts: 1, .. }) => Committed::Void,
            committed => committed?,
        };
        if committed == Committed::Void {
            self.is_in_doubt(false);
            return Ok(None);
        }
        // Nobody may fold rows that the log has deleted and the snapshot still has.
        copied.arrived(state).await?;
        self.is_in_doubt(false);
        if !copies {
            self.swap_deletes(searched, &changed, entry.added);
        }
        self.checkpoint_if_due(state).await;
        Ok(Some(DeleteReport { delta_version: crate::table::delta_version(state), ..report }))
    }

    /// Records for a table that folds whether it is unknown if the log has a deletion.
    fn is_in_doubt(&self, is: bool) {
        if let Some(unique) = &self.unique {
            unique.in_doubt.store(is, Ordering::Release);
        }
    }

    /// Finds out whether a deletion whose answer was lost is in the log: takes its next version, unless the deletion has.
    ///
    /// # Errors
    /// The errors of the log; it is still unknown.
    pub(in crate::table) async fn end_doubt(&self, state: &mut LogState) -> Result<(), TableError> {
        if !self.unique.as_ref().is_some_and(|unique| unique.in_doubt.load(Ordering::Acquire)) {
            return Ok(());
        }
        let version = state.version + 1;
        match self.root.log.write(version, commit_info("DELETE", false, &[]), &[]).await? {
            Written::Yes => {
                state.version = version;
                state.uncheckpointed += 1;
                self.log_is_at(state);
            }
            Written::Taken => self.take_in_others(state).await?,
        }
        self.is_in_doubt(false);
        Ok(())
    }

    /// Shows the files with their deletes, and the added ones. A truncation meanwhile has removed them already.
    fn swap_deletes(&self, searched: &Searched, changed: &Changed, added: &[LiveFile]) {
        let unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        let files = current.files.iter().filter_map(|live| match changed.get(live.path()) {
            Some(after) if searched[live.path()].0.is_same(live) => after.clone(),
            _ => Some(live.clone()),
        });
        let mut files: Vec<LiveFile> = files.collect();
        // The snapshot has them if the entry was read back from the log.
        let shown: HashSet<&str> = current.files.iter().map(LiveFile::path).collect();
        let is_due = |live: &&LiveFile| {
            let is_truncated = unflushed.truncated_at > live.version();
            !shown.contains(live.path())
                && !is_truncated
                && !unflushed.is_cut(&current.def, live, live.version())
        };
        files.extend(added.iter().filter(is_due).cloned());
        let files = Arc::new(files);
        self.swap(&current, |next| next.files = files);
    }
}

/// Records the findings for each file of `view`.
pub(super) fn note(searched: &mut Searched, view: &Snapshot, mut found: FoundRows) {
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

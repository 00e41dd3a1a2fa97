//! Rows of equal keys in files of other engines, in a table of unique keys.
//!
//! Delta has no keys, so an engine may append a row whose key another row has: of the same file, of another one of its commit, or of
//! an earlier entry. A flush that takes such files in gives the log an entry first that deletes the rows that lose; nothing else is written
//! before, and queries wait for it. It depends on nothing but the log, so if it fails, or the process ends, the next one does the same.
//!
//! Order: rows of an engine's file follow those of all files that the log had before. Files that are found together are in the order
//! of their times of modification, then of their paths; within a file the later row follows. With a sequence the greater one stays, and
//! of equal ones the later row.
//!
//! Not the business of this module: rows that no log has yet. They are later than all of these ([`crate::keys::settle`]). Nor tables
//! that fold rows, which fold those of engines like any others.

use crate::error::{TableError, blocking};
use crate::file::{LiveFile, RowSet, Settled};
use crate::keys::{Keyed, live_in};
use crate::log::LogState;
use crate::table::Table;
use crate::table::change::light::Replacement;
use crate::table::publish::settle::{RowsOfFiles, WithKeys};
use crate::table::rewrite::commit::{Committed, Goal};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::Version;

/// Commits of other engines that may come between in a row.
const ATTEMPTS_MAX: u32 = 16;

impl Table {
    /// Whether files of other engines are in the log whose rows may have the keys of others there.
    pub(in crate::table) fn has_others(&self) -> bool {
        self.unique.as_ref().is_some_and(|unique| unique.has_others.load(Ordering::Acquire))
    }

    /// Notes files that another engine has brought to the log, if that matters to the table.
    pub(in crate::table) fn note_others<'f>(
        &self,
        state: &mut LogState,
        added: impl Iterator<Item = &'f LiveFile>,
    ) {
        let Some(unique) = self.unique.as_ref().filter(|_| self.with_def(|def| !def.keys.is_aggregate()))
        else {
            return;
        };
        state.others.extend(added.filter(|live| is_of_others(live)).map(|live| live.path().to_owned()));
        unique.has_others.store(!state.others.is_empty(), Ordering::Release);
    }

    /// Deletes the rows that lose their keys to others in the log. Takes no time if no engine has written.
    ///
    /// # Errors
    /// [`TableError::Raced`], [`TableError::Storage`], [`TableError::DamagedFile`] and those of the log: some may be left.
    pub(in crate::table) async fn settle_others(&self, state: &mut LogState) -> Result<(), TableError> {
        if !self.has_others() {
            return Ok(());
        }
        // So that those who call it, and usually have nothing to settle, need no room for it.
        Box::pin(self.settle_all_others(state)).await
    }

    async fn settle_all_others(&self, state: &mut LogState) -> Result<(), TableError> {
        let (mut attempts, mut losses) = (0, 0);
        while attempts < ATTEMPTS_MAX {
            let (known, others) = self.known_and_others(state).await?;
            let has_sequence = self.with_def(|def| def.schema.sequence.is_some());
            let losers = blocking("comparing keys of other engines' files", move || {
                losers(&known, &others, has_sequence)
            });
            let losers = match losers.await {
                // Each is made again once.
                Err(TableError::LostKeys { .. }) if losses <= state.live.len() => {
                    losses += 1;
                    continue;
                }
                losers => losers?,
            };
            if losers.is_empty() || self.log_losers(state, &losers).await? == Committed::Yes {
                state.others.clear();
                self.note_others(state, [].into_iter());
                return Ok(());
            }
            attempts += 1;
        }
        Err(TableError::Raced { location: self.root.log.location().to_owned(), attempts })
    }

    /// [`Table::settle_others`] for a query, which is answered with all rows of a key rather than not at all.
    pub(in crate::table) async fn settle_others_if_possible(&self) {
        if !self.has_others() {
            return;
        }
        let settled = Box::pin(async {
            let mut state = self.lock_log().await?;
            self.settle_others(&mut state).await
        });
        if let Err(error) = settled.await {
            tracing::warn!(table = %self.id, %error, "rows of other engines with the keys of others are shown for now");
        }
    }

    /// The files of the log that the snapshot shows, with their keys: the ones that are settled among each other, and the ones that are not,
    /// in their order.
    async fn known_and_others(&self, state: &LogState) -> Result<(Vec<WithKeys>, Vec<WithKeys>), TableError> {
        let snapshot = self.snapshot();
        let (mut known, mut others) = (Vec::new(), Vec::new());
        // What the snapshot does not show leaves the log with the next flush.
        for live in snapshot.files.iter().filter_map(|live| state.live.get(live.path())) {
            let with_keys = (live.clone(), self.known_keys_of(live).await?);
            let is_other = state.others.contains(live.path());
            if is_other { &mut others } else { &mut known }.push(with_keys);
        }
        others.sort_by(|(left, _), (right, _)| left.order_of_arrival().cmp(&right.order_of_arrival()));
        Ok((known, others))
    }

    /// Writes the entry that deletes these rows, and shows it. `Void` if another engine came between.
    async fn log_losers(&self, state: &mut LogState, losers: &RowsOfFiles) -> Result<Committed, TableError> {
        let snapshot = self.snapshot();
        let def = Arc::clone(&snapshot.def);
        let mut files = state.live.clone();
        let mut inputs = Vec::with_capacity(losers.len());
        for (path, rows) in losers {
            let Some(live) = state.live.get(path) else { continue };
            inputs.push(live.clone());
            let after = live.with_more_deletes(rows);
            match after.live_rows() {
                0 => files.remove(path),
                _ => files.insert(path.clone(), after),
            };
        }
        let mut copied = self.copy_changed(&def, snapshot.version, &mut files).await?;
        let copies = def.properties.copies_on_write();
        if copies {
            let none = Replacement { inputs: Vec::new(), outputs: Vec::new(), version: snapshot.version };
            let copied = copied.get_or_insert(none);
            // Including files without remaining rows.
            copied.inputs.clone_from(&inputs);
            // Rows that no log has may supersede theirs.
            copied.outputs.iter_mut().for_each(|live| live.settled = Settled::Older);
        }
        let stored = self.store_deletes(&mut files).await?;
        let logged = inputs.iter().map(|live| (live.path().to_owned(), files.get(live.path()).cloned()));
        let logged: HashMap<String, Option<LiveFile>> = logged.collect();
        let goal = Goal {
            operation: "DELETE",
            parameters: vec![("predicate", json!("another row has the key"))],
            def,
            files,
            version: state.app_version,
            data_change: true,
            inputs,
            change: None,
            completes_drop: false,
        };
        let copied = self.copies_on_the_way(copied);
        let committed = self.commit(state, goal).await;
        self.show_stored(&stored, false);
        match committed {
            Ok(Committed::Yes) => {}
            // The snapshot has the other engine's changes now.
            Ok(Committed::Void) | Err(TableError::Raced { attempts: 1, .. }) => return Ok(Committed::Void),
            Err(error) => return Err(error),
        }
        copied.arrived(state).await?;
        if !copies {
            self.show_losers(losers, &logged);
        }
        let rows: u64 = losers.values().map(RowSet::len).sum();
        tracing::info!(table = %self.id, rows, "rows of other engines, or older ones with their keys, are deleted");
        Ok(Committed::Yes)
    }

    /// Deletes the rows in the snapshot, which may have deleted more rows of these files. `logged` are the files as the log has them.
    fn show_losers(&self, losers: &RowsOfFiles, logged: &HashMap<String, Option<LiveFile>>) {
        let _unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        let shown = |live: &LiveFile| {
            let (Some(rows), Some(logged)) = (losers.get(live.path()), logged.get(live.path())) else {
                return Some(live.clone());
            };
            let logged = logged.as_ref()?;
            let now = live.with_more_deletes(rows);
            let is_all = now.deleted_since(logged).is_empty();
            let deletes = if is_all { logged.deletes.clone() } else { now.deletes };
            Some(LiveFile { deletes, ..live.clone() })
        };
        let files = Arc::new(current.files.iter().filter_map(shown).collect());
        self.swap(&current, |next| next.files = files);
    }
}

/// Whether a file of the log was perhaps written by another engine: ours have versions, unless they have rows of engines alone.
pub(in crate::table) fn is_of_others(live: &LiveFile) -> bool {
    live.version() == Version(0)
}

/// The rows that lose their keys. No two live rows of `known` have the same key; each of the others follows those, and the others
/// before it.
fn losers(known: &[WithKeys], others: &[WithKeys], has_sequence: bool) -> Result<RowsOfFiles, TableError> {
    let mut losers = RowsOfFiles::new();
    for (place, (live, keys)) in others.iter().enumerate() {
        let mut lost = RowSet::new();
        // One row for each key, in the order of the keys.
        let mut best: Vec<Keyed> = Vec::new();
        keys.for_each_key(|of_key| {
            let mut rows = of_key.iter().filter(|keyed| live.is_live(keyed.row));
            let Some(mut winner) = rows.next().copied() else { return };
            for &next in rows {
                let is_better = next.sequence >= winner.sequence;
                let loser = if is_better { std::mem::replace(&mut winner, next) } else { next };
                lost.insert(loser.row.into());
            }
            best.push(winner);
        })?;
        let mut loses = vec![false; best.len()];
        let mut met: Vec<(usize, &str, u32)> = Vec::new();
        for (earlier, of_earlier) in known.iter().chain(&others[..place]) {
            let is_live = live_in(earlier, losers.get(earlier.path()));
            of_earlier.find(best.iter().map(|keyed| keyed.hash), |at, found| {
                let is_live = is_live(found.row);
                // A row that deletes is remembered for its sequence.
                if is_live || has_sequence && of_earlier.deletes(found.row) {
                    loses[at] |= found.sequence > best[at].sequence;
                }
                if is_live {
                    met.push((at, earlier.path(), found.row));
                }
            })?;
        }
        lost.extend(best.iter().zip(&loses).filter(|(_, loses)| **loses).map(|(row, _)| u64::from(row.row)));
        for (_, path, row) in met.into_iter().filter(|(at, ..)| !loses[*at]) {
            losers.entry(path.to_owned()).or_default().insert(row.into());
        }
        if !lost.is_empty() {
            *losers.entry(live.path().to_owned()).or_default() |= lost;
        }
    }
    Ok(losers)
}

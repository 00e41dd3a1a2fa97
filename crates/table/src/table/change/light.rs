//! Light schema changes: the snapshot follows at once, the Delta log after it.
//!
//! The catalog's definition is the truth. Commit a change there first, then call [`Table::alter`]; after a crash between the two,
//! opening the table completes the change. One change cannot be light: a new column whose default is not NULL must have that
//! value in files that other Delta readers open, so those files are rewritten before the column is visible.

use crate::error::TableError;
use crate::file::{LiveFile, publish_names};
use crate::keys::Keys;
use crate::log::LogState;
use crate::table::publish::cut;
use crate::table::publish::settle::{Stored, find_rows};
use crate::table::rewrite::commit::{Committed, FileSet, Goal};
use crate::table::{Table, Unflushed, delta_version};
use crate::view::evolve::{adapt, check_change, civil_now_micros, fills_old_rows};
use crate::view::memtable::{MemPart, batch_bytes};
use crate::view::snapshot::Snapshot;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::{TableDef, TableSchema, Version};

/// Commits of other engines that may come before the entry of a change in a row.
const ATTEMPTS_MAX: u32 = 16;

/// Files that take the place of others with the same rows.
#[derive(Clone)]
pub(in crate::table) struct Replacement {
    pub(in crate::table) inputs: Vec<LiveFile>,
    pub(in crate::table) outputs: Vec<LiveFile>,
    /// The version of the snapshot that had the inputs.
    pub(in crate::table) version: Version,
}

impl Table {
    /// Makes `new_def` the table's definition: added, dropped and renamed columns, properties.
    /// Every later snapshot has it on return, with the memtable's rows adapted; so are publications
    /// with rows of the old schema.
    ///
    /// The Delta log has the change on return too, unless writing it failed; then the failure is logged and the next flush writes
    /// it. Dropping or renaming a column enables Delta's column mapping. Adding a column with a default other than NULL flushes,
    /// rewrites all data files and is the only change that takes long; publications continue meanwhile.
    ///
    /// # Errors
    /// When rows cannot follow ([`TableError::TypeChange`], [`TableError::BadDefault`],
    /// [`TableError::AddedColumnNeedsDefault`], [`TableError::PhysicalNameReused`]) or when
    /// rewriting failed: then nothing has changed, and the catalog should be reverted.
    pub async fn alter(&self, new_def: Arc<TableDef>) -> Result<(), TableError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(TableError::Closed { table: new_def.name.clone() });
        }
        let before = self.snapshot();
        check_change(&before.def, &new_def, before.rows() > 0)?;
        if fills_new_columns(&before.def.schema, &new_def.schema) {
            return self.alter_with_rewrite(new_def).await;
        }
        self.check_names(&new_def).await?;
        if cut::only_adds(&before.def, &new_def) {
            // A new partition may take what a dropped one had.
            self.complete_drop().await?;
            // Neither the log's files nor its metadata change.
            return self.swap_schema(&new_def, &[]);
        }
        let mut state = if cut::drops(&before.def, &new_def) {
            let mut state = self.lock_log().await?;
            self.take_in_newest(&mut state).await?;
            self.divide_locked(&mut state).await?;
            let noted = self.drops_from(self.def().partitioning.partitions());
            if let Err(error) = self.swap_schema(&new_def, &[]) {
                self.unflushed.lock().dropping = noted;
                return Err(error);
            }
            state
        } else {
            self.swap_schema(&new_def, &[])?;
            self.lock_log().await?
        };
        if let Err(error) = self.log_schema(&mut state, &new_def).await {
            self.unflushed.lock().log_behind = true;
            tracing::warn!(table = new_def.name, %error, "the Delta log will have the schema change with the next flush");
        }
        self.checkpoint_if_due(&mut state).await;
        Ok(())
    }

    /// Refuses a physical name that data files may still hold, before anything is changed.
    async fn check_names(&self, new_def: &Arc<TableDef>) -> Result<(), TableError> {
        let known: HashSet<_> = self.def().schema.columns.iter().map(|column| column.id).collect();
        if new_def.schema.columns.iter().all(|column| known.contains(&column.id)) {
            return Ok(());
        }
        let state = self.lock_log().await?;
        crate::view::schema::metadata_for(new_def, Some(&state.metadata), false).map(drop)
    }

    /// Writes the entry of a change. Files that other engines bring meanwhile are divided by the partitions before it, until the entry
    /// follows the version of the log that was divided.
    pub(in crate::table) async fn log_schema(
        &self,
        state: &mut LogState,
        def: &Arc<TableDef>,
    ) -> Result<(), TableError> {
        let goal = |state: &LogState| Goal {
            operation: "ALTER TABLE",
            parameters: Vec::new(),
            def: Arc::clone(def),
            // Files of dropped partitions are removed by the same entry.
            files: state
                .live
                .iter()
                .filter(|(_, live)| cut::has_partition(def, &live.file))
                .map(|(path, live)| (path.clone(), live.clone()))
                .collect(),
            version: state.app_version,
            data_change: true,
            inputs: Vec::new(),
            change: None,
            completes_drop: true,
        };
        for _ in 0..ATTEMPTS_MAX {
            if self.is_dropping() {
                // Other entries may have met files of other engines.
                Box::pin(self.divide_locked(state)).await?;
            }
            let attempt = goal(state);
            match self.commit(state, attempt).await {
                // The snapshot has the other engine's files now.
                Err(TableError::Raced { attempts: 1, .. }) => Box::pin(self.divide_locked(state)).await?,
                Err(error) => return Err(error),
                Ok(_) => {
                    let mut unflushed = self.unflushed.lock();
                    (unflushed.log_behind, unflushed.dropping) = (false, None);
                    return Ok(());
                }
            }
        }
        Err(TableError::Raced { location: self.root.log.location().to_owned(), attempts: ATTEMPTS_MAX })
    }

    async fn alter_with_rewrite(&self, new_def: Arc<TableDef>) -> Result<(), TableError> {
        let mut state = self.lock_log().await?;
        crate::view::schema::metadata_for(&new_def, Some(&state.metadata), false)?;
        self.flush_locked(&mut state, None).await?;
        let replacement = self.rewrite_stale(&mut state, &new_def).await?;
        self.swap_rewritten(&new_def, replacement).await?;
        self.checkpoint_if_due(&mut state).await;
        Ok(())
    }

    /// Brings the log to the snapshot's definition, rewriting files that lack a default. For the
    /// opening of a table.
    pub(in crate::table) async fn align_log(&self) -> Result<(), TableError> {
        let mut state = self.lock_log().await?;
        let def = self.def();
        let replacement = self.rewrite_stale(&mut state, &def).await?;
        self.swap_rewritten(&def, replacement).await
    }

    /// Shows `def` and the rewritten files.
    async fn swap_rewritten(
        &self,
        def: &Arc<TableDef>,
        mut replacement: Replacement,
    ) -> Result<(), TableError> {
        let Some(unique) = &self.unique else { return self.swap_schema(def, &[replacement]) };
        let logged = self.logged_already(replacement.clone());
        let mut keys = unique.keys.lock().await;
        self.carry_visible(&mut keys, &mut replacement).await?;
        self.swap_schema(def, &[replacement])?;
        logged.are_shown();
        Ok(())
    }

    /// Deletes from the outputs those rows that the snapshot has deleted from the inputs since they were read.
    async fn carry_visible(&self, keys: &mut Keys, replacement: &mut Replacement) -> Result<(), TableError> {
        let current = self.snapshot();
        let by_path: HashMap<&str, &LiveFile> =
            current.files.iter().map(|live| (live.path(), live)).collect();
        self.carry(keys, replacement, |path| by_path.get(path).map(|live| LiveFile::clone(live))).await
    }

    /// Deletes from the outputs those rows that were deleted from the inputs since they were read; `now` has these as they
    /// are now.
    async fn carry(
        &self,
        keys: &mut Keys,
        replacement: &mut Replacement,
        now: impl Fn(&str) -> Option<LiveFile>,
    ) -> Result<(), TableError> {
        let mut written = Vec::with_capacity(replacement.outputs.len());
        for live in &replacement.outputs {
            let of_file = self.keys_in(keys, live).await?;
            keys.files.insert(live.path().to_owned(), Arc::clone(&of_file));
            written.push((live.clone(), of_file));
        }
        let deleted_keys = self.deleted_since(&replacement.inputs, now, keys).await?;
        let deleted = find_rows(deleted_keys, &written).await?;
        for live in &mut replacement.outputs {
            if let Some(rows) = deleted.get(live.path()) {
                *live = LiveFile { settled: live.settled, ..live.with_more_deletes(rows) };
            }
        }
        Ok(())
    }

    /// Rewrites the logged files that are stale under `def` and logs the result together with the
    /// schema, as one entry. The snapshot still has the old files.
    async fn rewrite_stale(
        &self,
        state: &mut LogState,
        def: &Arc<TableDef>,
    ) -> Result<Replacement, TableError> {
        loop {
            let snapshot = self.snapshot();
            // As the log has them: the snapshot may know of more deleted rows, which are carried over.
            let stale = |live: &&LiveFile| live.file.is_stale(&def.schema);
            let logged = |live: &LiveFile| state.live.get(live.path()).cloned();
            let inputs: Vec<_> = snapshot.files.iter().filter(stale).filter_map(logged).collect();
            if !inputs.is_empty() && self.has_others() {
                self.settle_others(state).await?;
                continue;
            }
            let outputs = self.rewrite(&inputs, def, civil_now_micros()).await?;
            let replacement = Replacement { inputs, outputs, version: snapshot.version };
            if let Some(replacement) =
                self.log_replacement(state, def, replacement, "ALTER TABLE", true).await?
            {
                return Ok(replacement);
            }
        }
    }

    /// Logs that `outputs` took the place of `inputs`, if all inputs are live still; rows that the log has deleted from
    /// them meanwhile are deleted from the outputs. Otherwise (`None`) the outputs are deleted. After an error they are
    /// left to the sweep, because the entry may have reached the log. What is returned is as the log has it.
    pub(in crate::table) async fn log_replacement(
        &self,
        state: &mut LogState,
        def: &Arc<TableDef>,
        mut replacement: Replacement,
        operation: &'static str,
        data_change: bool,
    ) -> Result<Option<Replacement>, TableError> {
        let stored = match self.with_logged_deletes(state, &mut replacement).await {
            Ok(stored) => stored,
            Err(error) => {
                self.discard_live(&replacement.outputs).await;
                return Err(error);
            }
        };
        let mut files = state.live.clone();
        replacement.inputs.iter().for_each(|file| drop(files.remove(file.path())));
        files.extend(replacement.outputs.iter().map(|file| (file.path().to_owned(), file.clone())));
        let goal = Goal {
            operation,
            parameters: Vec::new(),
            def: Arc::clone(def),
            files,
            version: state.app_version,
            data_change,
            inputs: replacement.inputs.clone(),
            change: None,
            completes_drop: false,
        };
        let committed = match self.commit(state, goal).await {
            // Others changed files whose rows have to be settled or divided first.
            Err(TableError::Raced { attempts, .. }) if self.unique.is_some() || attempts == 1 => {
                Ok(Committed::Void)
            }
            ended => ended,
        };
        self.show_stored(&stored, false);
        if matches!(committed, Ok(Committed::Void)) {
            self.discard_live(&replacement.outputs).await;
        } else {
            publish_names(&self.root, replacement.outputs.iter().map(LiveFile::path));
        }
        Ok((committed? == Committed::Yes).then_some(replacement))
    }

    /// Takes the inputs as the log has them now, and applies to the outputs, durably, the deletions that the log has made in the
    /// inputs since they were read.
    async fn with_logged_deletes(
        &self,
        state: &LogState,
        replacement: &mut Replacement,
    ) -> Result<Vec<Stored>, TableError> {
        let Some(unique) = &self.unique else { return Ok(Vec::new()) };
        let mut keys = unique.keys.lock().await;
        let logged = |path: &str| state.live.get(path).cloned();
        self.carry(&mut keys, replacement, logged).await?;
        replacement.inputs = replacement.inputs.iter().filter_map(|live| logged(live.path())).collect();
        let outputs = replacement.outputs.iter().map(|file| (file.path().to_owned(), file.clone()));
        let mut outputs: FileSet = outputs.collect();
        let stored = self.store_deletes(&mut outputs).await?;
        replacement.outputs = outputs.into_values().collect();
        Ok(stored)
    }

    /// Shows `def` and the replaced files, with the memtable's rows adapted.
    fn swap_schema(&self, def: &Arc<TableDef>, replacements: &[Replacement]) -> Result<(), TableError> {
        let mut unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        let arrow = def.schema.arrow();
        let now = civil_now_micros();
        let adapted = |part: &Arc<MemPart>| -> Result<Arc<MemPart>, TableError> {
            let batch = adapt(&part.batch, &current.def.schema, &def.schema, &arrow, now)?;
            Ok(Arc::new(MemPart { bytes: batch_bytes(&batch), batch, ..part.as_ref().clone() }))
        };
        let mut memtable = current.memtable.iter().map(adapted).collect::<Result<Vec<_>, _>>()?;
        let mut files = Arc::clone(&current.files);
        for replacement in replacements {
            files = replacement.apply(&current, &files, &mut unflushed);
        }
        if def.partitioning != current.def.partitioning {
            let adapted = Snapshot { memtable, ..current.as_ref().clone() };
            memtable = cut::without_dropped(&adapted, def)?;
            let stays = |live: &&LiveFile| cut::has_partition(def, &live.file);
            files = Arc::new(files.iter().filter(stays).cloned().collect());
            unflushed.epoch += 1;
        }
        if replacements.is_empty() && !cut::only_adds(&current.def, def) {
            unflushed.log_behind = true;
        }
        self.swap(&current, |next| {
            next.def = Arc::clone(def);
            next.schema = arrow;
            next.memtable = memtable;
            next.files = files;
        });
        Ok(())
    }

    /// Shows replaced files, whose inputs are as the log had them.
    pub(in crate::table) async fn swap_files(
        &self,
        replacement: &Replacement,
        state: &LogState,
    ) -> Result<(), TableError> {
        let Some(unique) = &self.unique else {
            self.swap_replaced(replacement, state);
            return Ok(());
        };
        let mut keys = unique.keys.lock().await;
        let mut carried = replacement.clone();
        self.carry_visible(&mut keys, &mut carried).await?;
        self.swap_replaced(&carried, state);
        Ok(())
    }

    pub(in crate::table) fn swap_replaced(&self, replacement: &Replacement, state: &LogState) {
        let mut unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        let files = replacement.apply(&current, &current.files, &mut unflushed);
        self.swap(&current, |next| {
            next.files = files;
            next.delta_version = delta_version(state);
        });
    }
}

impl Replacement {
    /// Replaces the inputs among `files` by the outputs; queries that began before may still read the inputs. If a truncation came after the inputs were read, their rows are removed
    /// and so are the outputs'.
    fn apply(
        &self,
        current: &Snapshot,
        files: &Arc<Vec<LiveFile>>,
        unflushed: &mut Unflushed,
    ) -> Arc<Vec<LiveFile>> {
        assert!(current.version >= self.version, "snapshots go forward only");
        if self.inputs.is_empty() && self.outputs.is_empty() {
            return Arc::clone(files);
        }
        let mine: HashSet<&str> = self.inputs.iter().chain(&self.outputs).map(LiveFile::path).collect();
        let (gone, mut kept): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|file| mine.contains(file.path()));
        unflushed.leaves(gone.iter());
        if unflushed.truncated_at <= self.version {
            let is_cut = |live: &&LiveFile| unflushed.is_cut(&current.def, live, self.version);
            kept.extend(self.outputs.iter().filter(|live| !is_cut(live)).cloned());
        }
        Arc::new(kept)
    }
}

/// Whether all rows are in files.
pub(in crate::table) fn mem_is_empty(snapshot: &Snapshot) -> bool {
    snapshot.memtable.is_empty() && snapshot.is_settled()
}

/// Whether `new` adds a column that existing rows must get a value for.
fn fills_new_columns(old: &TableSchema, new: &TableSchema) -> bool {
    new.columns.iter().any(|column| old.index_of_id(column.id).is_none() && fills_old_rows(column))
}

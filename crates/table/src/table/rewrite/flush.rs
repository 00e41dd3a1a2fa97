//! Moving the memtable into data files and the Delta log.
//!
//! Two steps, either of which may fail without losing a row. *Spill*: the memtable's rows are written to sorted files and the
//! snapshot reads them from there. *Log*: one Delta entry brings the log to the frozen version. A crash between leaves
//! unreferenced files, and the write-ahead log still has their rows. Publications continue meanwhile.
//!
//! A table of unique keys is settled before it is frozen, so that an entry of the log has one row for each key. What later rows
//! supersede meanwhile is looked up in the new files when they are shown.

use crate::error::TableError;
use crate::file::{
    DataFile, Deletes, EncodedFile, LiveFile, Progress, RunWriter, delete_files, publish_names, write_vectors,
};
use crate::log::LogState;
use crate::table::publish::settle::{Stored, find_rows};
use crate::table::rewrite::commit::{FileSet, Goal};
use crate::table::{Table, UniqueKeys};
use crate::view::evolve::civil_now_micros;
use crate::view::snapshot::Snapshot;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tributary_types::{TableDef, Version};

/// How often a flush starts over because of entries by others.
const RACES_MAX: u32 = 3;

/// The result of a flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlushReport {
    /// All rows up to this version are in the Delta log now.
    pub version: Version,
    pub delta_version: i64,
    /// Rows of the memtable.
    pub rows: u64,
    /// Files that this flush wrote.
    pub files: usize,
    pub bytes: u64,
}

impl Table {
    /// Moves everything published so far into data files and the Delta log. `None`: there was
    /// nothing to do. On return the rows up to the report's version are durable without the
    /// write-ahead log.
    ///
    /// # Errors
    /// [`TableError::Storage`], [`TableError::Parquet`], and errors of the log. No row is lost or duplicated: unwritten rows stay
    /// in the memtable, rows written but not logged stay visible, and [`Table::oldest_unflushed_lsn`] keeps the write-ahead log
    /// from being trimmed.
    pub async fn flush(&self) -> Result<Option<FlushReport>, TableError> {
        self.flush_and_tell(None).await
    }

    /// Like [`Table::flush`], but calls `progress` on its threads with the bytes of the memtable that were
    /// encoded since the last call: loads may take that much memory again.
    ///
    /// # Errors
    /// See [`Table::flush`]; progress that was reported is void then.
    pub async fn flush_with(
        &self,
        progress: Arc<dyn Fn(u64) + Send + Sync>,
    ) -> Result<Option<FlushReport>, TableError> {
        self.flush_and_tell(Some(progress)).await
    }

    async fn flush_and_tell(&self, progress: Option<Progress>) -> Result<Option<FlushReport>, TableError> {
        let flushed = self.flush_once(progress).await;
        if !matches!(flushed, Err(TableError::Closed { .. })) {
            self.note_flushing(&flushed);
        }
        flushed
    }

    async fn flush_once(&self, progress: Option<Progress>) -> Result<Option<FlushReport>, TableError> {
        let mut state = self.lock_log().await?;
        let report = self.flush_racing(&mut state, progress).await?;
        self.checkpoint_if_due(&mut state).await;
        Ok(report)
    }

    /// [`Table::flush_locked`], again while others write files to the log whose rows have to be settled or divided first.
    pub(in crate::table) async fn flush_racing(
        &self,
        state: &mut LogState,
        progress: Option<Progress>,
    ) -> Result<Option<FlushReport>, TableError> {
        let mut races = 0;
        loop {
            match self.flush_locked(state, progress.clone()).await {
                // The snapshot has the other writer's changes now.
                Err(TableError::Raced { attempts, .. })
                    if (self.unique.is_some() || attempts == 1) && races < RACES_MAX =>
                {
                    races += 1;
                }
                ended => return ended,
            }
        }
    }

    pub(in crate::table) async fn flush_locked(
        &self,
        state: &mut LogState,
        progress: Option<Progress>,
    ) -> Result<Option<FlushReport>, TableError> {
        self.end_doubt(state).await?;
        self.settle_others(state).await?;
        if self.has_unlogged_cut(state) {
            self.divide_locked(state).await?;
        }
        let frozen = match &self.unique {
            Some(unique) => self.freeze_settled(unique).await?,
            None => self.freeze(),
        };
        let Some(frozen) = frozen else { return Ok(None) };
        let (mut files, written) = self.spill(&frozen, state, progress).await?;
        let copied = self.copy_changed(&frozen.def, frozen.version, &mut files).await?;
        let stored = self.store_deletes(&mut files).await?;
        let goal = Goal {
            operation: "WRITE",
            parameters: vec![("mode", json!("Append"))],
            def: Arc::clone(&frozen.def),
            files,
            version: frozen.version,
            data_change: true,
            inputs: Vec::new(),
            change: None,
            completes_drop: true,
        };
        let copied = self.copies_on_the_way(copied);
        let committed = self.commit(state, goal).await;
        self.show_stored(&stored, committed.is_ok());
        committed?;
        copied.arrived(state).await?;
        self.all_is_logged();
        Ok(Some(FlushReport {
            version: state.app_version,
            delta_version: crate::table::delta_version(state),
            rows: frozen.memtable_rows(),
            files: written.len(),
            bytes: written.iter().map(LiveFile::size_bytes).sum(),
        }))
    }

    /// The snapshot to flush, `None` when the log has everything.
    fn freeze(&self) -> Option<Arc<Snapshot>> {
        let mut unflushed = self.unflushed.lock();
        unflushed.settles();
        unflushed.freeze(self.snapshot.load_full())
    }

    /// The snapshot to flush of a table whose rows are settled first: rows published meanwhile stay in the memtable, however
    /// many, so that a flush settles once.
    async fn freeze_settled(&self, unique: &UniqueKeys) -> Result<Option<Arc<Snapshot>>, TableError> {
        let mut keys = unique.keys.lock().await;
        loop {
            let (settled, epoch) = self.settle_in_epoch(&mut keys).await?;
            let mut unflushed = self.unflushed.lock();
            if unflushed.epoch == epoch {
                return Ok(unflushed.freeze(settled));
            }
            // Some of its rows have disappeared since.
        }
    }

    /// [`Table::discard`] of files that are described as live ones.
    pub(in crate::table) async fn discard_live(&self, files: &[LiveFile]) {
        let names: Vec<String> = files.iter().map(|live| live.path().to_owned()).collect();
        delete_files(&self.root, &names).await;
    }

    /// Makes deletes durable that no log has yet. Nothing refers to them before an entry does.
    pub(in crate::table) async fn store_deletes(
        &self,
        files: &mut FileSet,
    ) -> Result<Vec<Stored>, TableError> {
        let deletes_of = |live: &LiveFile| live.deletes.clone().filter(|deletes| !deletes.is_logged());
        let unlogged: Vec<Arc<Deletes>> = files.values().filter_map(deletes_of).collect();
        let sets = unlogged.iter().map(|deletes| deletes.rows().clone()).collect();
        let mut written = write_vectors(&self.root, sets).await?.into_iter();
        let mut stored = Vec::with_capacity(unlogged.len());
        for live in files.values_mut() {
            let Some(before) = deletes_of(live) else { continue };
            *live = live.with_deletes(written.next());
            stored.push(Stored { before, after: live.clone() });
        }
        Ok(stored)
    }

    /// Shows stored deletes in place of the same ones, if the log has them. In any case they may be swept from now on if it
    /// does not.
    pub(in crate::table) fn show_stored(&self, stored: &[Stored], are_logged: bool) {
        let paths: Vec<String> =
            stored.iter().filter_map(|stored| stored.after.deletes.as_ref()?.path()).collect();
        publish_names(&self.root, paths.iter().map(String::as_str));
        if stored.is_empty() || !are_logged {
            return;
        }
        let _unflushed = self.unflushed.lock();
        let current = self.snapshot.load_full();
        let logged: HashMap<&str, &Stored> =
            stored.iter().map(|stored| (stored.after.path(), stored)).collect();
        let shown = |live: &LiveFile| match logged.get(live.path()) {
            Some(stored) if live.deletes.as_ref() == Some(&stored.before) => {
                LiveFile { settled: live.settled, ..stored.after.clone() }
            }
            _ => live.clone(),
        };
        let files = Arc::new(current.files.iter().map(shown).collect());
        self.swap(&current, |next| next.files = files);
    }

    fn all_is_logged(&self) {
        let mut unflushed = self.unflushed.lock();
        unflushed.frozen = None;
        unflushed.log_behind = false;
        unflushed.dropping = None;
    }

    /// Writes the frozen memtable to files, and rewrites the unlogged files that lack a column's default. Returns all files of
    /// the frozen version, and the newly written ones.
    async fn spill(
        &self,
        frozen: &Snapshot,
        state: &LogState,
        progress: Option<Progress>,
    ) -> Result<(FileSet, Vec<LiveFile>), TableError> {
        let schema = &frozen.def.schema;
        let stale = |live: &&LiveFile| !state.live.contains_key(live.path()) && live.file.is_stale(schema);
        let replaced: Vec<_> = frozen.files.iter().filter(stale).cloned().collect();
        let written = self.write_memtable(frozen, progress).await?;
        let mut written: Vec<_> = written.into_iter().map(LiveFile::from).collect();
        match self.rewrite(&replaced, &frozen.def, civil_now_micros()).await {
            Ok(files) => written.extend(files),
            Err(error) => {
                self.discard_live(&written).await;
                return Err(error);
            }
        }
        let gone: HashSet<&str> = replaced.iter().map(LiveFile::path).collect();
        match &self.unique {
            Some(unique) => match self.swap_spilled_keys(unique, frozen, &replaced, &written).await {
                Ok(with_deletions) => written = with_deletions,
                Err(error) => {
                    self.discard_live(&written).await;
                    return Err(error);
                }
            },
            None => self.swap_spilled(frozen, &gone, written.clone()),
        }
        let kept = frozen.files.iter().filter(|file| !gone.contains(file.path()));
        let files: FileSet =
            kept.chain(&written).map(|file| (file.path().to_owned(), file.clone())).collect();
        let rows = files.values().map(LiveFile::live_rows).sum::<u64>();
        assert_eq!(rows, frozen.rows(), "the files of a flush have the rows of the snapshot that it took");
        Ok((files, written))
    }

    async fn write_memtable(
        &self,
        frozen: &Snapshot,
        progress: Option<Progress>,
    ) -> Result<Vec<DataFile>, TableError> {
        if frozen.memtable.is_empty() {
            return Ok(Vec::new());
        }
        let mut writer = RunWriter::new(&self.root, &frozen.def).with_progress(progress);
        let has_sequence = frozen.def.schema.sequence.is_some();
        for part in &frozen.memtable {
            writer.at(part.version);
            // Rows that delete are of use only against later ones of a smaller sequence.
            let batch = if has_sequence { part.kept_batch() } else { part.live_batch() };
            let appended = match batch {
                Ok(batch) => writer.append(batch).await,
                Err(error) => Err(error),
            };
            if let Err(error) = appended {
                writer.abort().await;
                return Err(error);
            }
        }
        writer.finish().await
    }

    /// Writes the live rows of `inputs` to new files under `def`, which are durable and in no log. Rows of later versions follow
    /// those of earlier ones, or follow them among rows of the same key.
    pub(in crate::table) async fn rewrite(
        &self,
        inputs: &[LiveFile],
        def: &TableDef,
        now_micros: i64,
    ) -> Result<Vec<LiveFile>, TableError> {
        let schema = &def.schema;
        let mut inputs = inputs.to_vec();
        inputs.sort_by_key(|live| (live.file.partition, live.version()));
        if schema.sequence.is_some() {
            inputs = self.with_deletions(inputs).await?;
        }
        let mut outputs = Vec::new();
        // A writer for each partition: a file is not younger than the rows that it has.
        for of_partition in inputs.chunk_by(|left, right| left.file.partition == right.file.partition) {
            match self.rewrite_partition(of_partition, def, now_micros).await {
                Ok(files) => outputs.extend(files),
                Err(error) => {
                    self.discard(&outputs).await;
                    return Err(error);
                }
            }
        }
        let read: u64 = inputs.iter().map(LiveFile::live_rows).sum();
        let written: u64 = outputs.iter().map(|file| file.rows).sum();
        assert_eq!(written, read, "a rewrite keeps every live row once");
        let mut outputs: Vec<_> = outputs.into_iter().map(LiveFile::from).collect();
        if schema.sequence.is_some() {
            for live in &mut outputs {
                *live = live.with_more_deletes(self.keys_of(live).await?.deletions());
            }
        }
        Ok(outputs)
    }

    /// [`Table::rewrite`] of files of one partition, in their order.
    async fn rewrite_partition(
        &self,
        inputs: &[LiveFile],
        def: &TableDef,
        now_micros: i64,
    ) -> Result<Vec<DataFile>, TableError> {
        let mut writer = RunWriter::new(&self.root, def);
        for live in inputs {
            let copied = match EncodedFile::open(&self.root, live).await {
                Ok(file) => writer.append_file(&file, now_micros).await,
                Err(error) => Err(error),
            };
            if let Err(error) = copied {
                writer.abort().await;
                return Err(error);
            }
        }
        writer.finish().await
    }

    /// [`Table::swap_spilled`], with the rows deleted that later ones have superseded meanwhile. Returns the files as an entry of
    /// the log for the frozen version has them.
    async fn swap_spilled_keys(
        &self,
        unique: &UniqueKeys,
        frozen: &Snapshot,
        replaced: &[LiveFile],
        written: &[LiveFile],
    ) -> Result<Vec<LiveFile>, TableError> {
        let mut with_keys = Vec::with_capacity(written.len());
        for live in written {
            let of_file = self.keys_of(live).await?;
            with_keys.push((live.with_more_deletes(of_file.deletions()), of_file));
        }
        let mut keys = unique.keys.lock().await;
        let current = self.snapshot();
        let now = |path: &str| current.files.iter().find(|live| live.path() == path).cloned();
        let mut gone_keys = self.deleted_since(replaced, now, &keys).await?;
        gone_keys.extend(self.superseded_since(frozen)?);
        let deleted = find_rows(gone_keys, &with_keys).await?;
        let gone: HashSet<&str> = replaced.iter().map(LiveFile::path).collect();
        let shown = |live: &LiveFile| match deleted.get(live.path()) {
            Some(rows) => live.with_more_deletes(rows),
            None => live.clone(),
        };
        let written: Vec<LiveFile> = with_keys.iter().map(|(live, _)| live.clone()).collect();
        self.swap_spilled(frozen, &gone, written.iter().map(shown).collect());
        keys.are_in_files(frozen, with_keys);
        Ok(written)
    }

    /// Shows the frozen rows from files instead of the memtable. A truncation since then has
    /// removed them already.
    fn swap_spilled(&self, frozen: &Snapshot, gone: &HashSet<&str>, written: Vec<LiveFile>) {
        let mut unflushed = self.unflushed.lock();
        publish_names(&self.root, written.iter().map(LiveFile::path));
        if unflushed.truncated_at > frozen.version {
            return;
        }
        let current = self.snapshot.load_full();
        let frozen_parts = std::mem::take(&mut unflushed.frozen_parts);
        unflushed.settled_parts = unflushed.settled_parts.saturating_sub(frozen_parts);
        assert_eq!(
            frozen_parts,
            frozen.memtable.len(),
            "the parts that a flush took are there until it shows them"
        );
        unflushed.leaves(current.files.iter().filter(|live| gone.contains(live.path())));
        let mut files: Vec<_> =
            current.files.iter().filter(|file| !gone.contains(file.path())).cloned().collect();
        let is_cut = |live: &LiveFile| unflushed.is_cut(&current.def, live, frozen.version);
        files.extend(written.into_iter().filter(|live| !is_cut(live)));
        self.swap(&current, |next| {
            next.memtable.drain(..frozen_parts);
            next.files = Arc::new(files);
        });
    }
}

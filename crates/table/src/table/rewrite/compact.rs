//! Few files of the target size instead of many small ones.

use crate::error::TableError;
use crate::file::{LiveFile, Settled};
use crate::log::LogState;
use crate::table::Table;
use crate::table::change::light::Replacement;
use crate::table::rewrite::commit::has;
use crate::view::evolve::civil_now_micros;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One compaction reads at most this many times the target size.
const READ_TARGETS_MAX: u64 = 8;
/// A file that is this many times larger than all smaller ones together waits for more of them, so
/// that a row is rewritten only a few times, however many files there are.
const SIZE_RATIO_MAX: u64 = 4;
/// A single file is rewritten if one in this number of its rows is deleted.
const ROWS_OF_DELETED: u64 = 4;

/// The result of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactReport {
    pub files_before: usize,
    pub files_after: usize,
    pub rows: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub delta_version: i64,
}

impl Table {
    /// Rewrites small files into large ones if there are enough of them. `None`: it is not worth
    /// it, or another writer changed the files meanwhile. No row is shown twice or lost; on return
    /// the Delta log has the new files.
    ///
    /// # Errors
    /// [`TableError::Storage`], [`TableError::Parquet`], [`TableError::DamagedFile`], and errors of the log: the snapshot still
    /// has the old files.
    pub async fn compact(&self) -> Result<Option<CompactReport>, TableError> {
        self.compact_from(self.root.options.compact_min_files).await
    }

    /// Like [`Table::compact`], also where `min_files` small files are fewer than the options say.
    /// For a table that is at rest.
    ///
    /// # Errors
    /// See [`Table::compact`].
    pub async fn compact_from(&self, min_files: usize) -> Result<Option<CompactReport>, TableError> {
        if self.is_changing() {
            // Files that are converted already would be converted again.
            return Ok(None);
        }
        if self.is_updating() {
            return Ok(None);
        }
        if self.has_undivided() {
            self.divide().await?;
        }
        let (snapshot, inputs) = {
            let mut state = self.lock_log().await?;
            self.end_doubt(&mut state).await?;
            self.settle_others(&mut state).await?;
            if let Some(unique) = self.unique.as_ref().filter(|_| !self.snapshot().files.iter().all(is_known))
            {
                self.settle(&mut *unique.keys.lock().await).await?;
            }
            let snapshot = self.snapshot();
            let kept = self.kept_deletions().await;
            let inputs = self.small_files(&snapshot.files, &state, min_files.max(2), &kept);
            (snapshot, inputs)
        };
        if inputs.is_empty() {
            return Ok(None);
        }
        // Flushes continue meanwhile: they only add files. A deletion of rows makes inputs stale.
        let outputs = self.rewrite(&inputs, &snapshot.def, civil_now_micros()).await?;
        let mut state = match self.lock_log().await {
            Ok(state) => state,
            Err(error) => {
                self.discard_live(&outputs).await;
                return Err(error);
            }
        };
        let is_there = |file: &LiveFile| match &self.unique {
            // Rows that were superseded meanwhile are carried over.
            Some(_) => state.live.contains_key(file.path()),
            None => has(&state.live, file),
        };
        let is_stale = !Arc::ptr_eq(&snapshot.def, &self.def()) || !inputs.iter().all(is_there);
        if is_stale {
            self.discard_live(&outputs).await;
            return Ok(None);
        }
        let replacement = Replacement { inputs, outputs, version: snapshot.version };
        let Some(replacement) =
            self.log_replacement(&mut state, &snapshot.def, replacement, "OPTIMIZE", false).await?
        else {
            return Ok(None);
        };
        self.logged_already(replacement.clone()).arrived(&state).await?;
        self.checkpoint_if_due(&mut state).await;
        // Data files stay for readers of older versions, but their keys are not needed any more.
        if let Err(error) = self.sweep_keys().await {
            tracing::warn!(table = %self.def().table_ref(), %error, "keys of data files that are gone stay for now");
        }
        Ok(Some(report(&replacement, crate::table::delta_version(&state))))
    }

    /// Rows that delete the rows of their keys, as far as they are known, where they stay.
    async fn kept_deletions(&self) -> KeptDeletions {
        let Some(unique) = self.unique.as_ref().filter(|_| self.def().schema.sequence.is_some()) else {
            return KeptDeletions::new();
        };
        let keys = unique.keys.lock().await;
        keys.files.iter().map(|(path, keys)| (path.clone(), keys.deletions().len())).collect()
    }

    /// The files to rewrite, in the order of the snapshot: small ones of each partition, if together they fill a file of the
    /// target size or are many; otherwise one with many deleted rows. Files of different partitions are never merged.
    fn small_files(
        &self,
        files: &[LiveFile],
        state: &LogState,
        min_files: usize,
        kept: &KeptDeletions,
    ) -> Vec<LiveFile> {
        let target = self.root.options.target_file_bytes.get();
        let mut by_partition: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, file) in files.iter().enumerate() {
            if file.live_bytes() < target / 4 * 3 && is_known(file) && has(&state.live, file) {
                by_partition.entry(file.file.partition).or_default().push((place, file));
            }
        }
        let (mut chosen, mut bytes) = (Vec::new(), 0);
        for small in by_partition.into_values() {
            let room = target.saturating_mul(READ_TARGETS_MAX).saturating_sub(bytes);
            let Some((of_partition, more)) = alike(small, target, min_files, room) else { continue };
            chosen.extend(of_partition);
            bytes += more;
        }
        if chosen.is_empty() {
            return most_deleted(files, state, kept).into_iter().collect();
        }
        chosen.sort_by_key(|(place, _)| *place);
        chosen.into_iter().map(|(_, file)| file.clone()).collect()
    }
}

/// The small files of a partition that are worth a rewrite, and their bytes, which are at most `room`.
fn alike(
    mut small: Vec<(usize, &LiveFile)>,
    target: u64,
    min_files: usize,
    room: u64,
) -> Option<(Vec<(usize, &LiveFile)>, u64)> {
    small.sort_by_key(|(_, file)| file.live_bytes());
    let (mut bytes, mut count, mut chosen) = (0, 0, (0, 0));
    for (_, file) in &small {
        let live_bytes = file.live_bytes();
        if bytes + live_bytes > room {
            break;
        }
        let is_alike = live_bytes <= bytes.saturating_mul(SIZE_RATIO_MAX);
        (bytes, count) = (bytes + live_bytes, count + 1);
        if is_alike {
            chosen = (bytes, count);
        }
    }
    if chosen.1 < 2 || (chosen.0 < target && chosen.1 < min_files) {
        return None;
    }
    small.truncate(chosen.1);
    Some((small, chosen.0))
}

/// Whether it is known which rows of a file are superseded: of one that another engine has written it is not before the next settling,
/// which would not look into a copy of it.
fn is_known(file: &LiveFile) -> bool {
    file.settled != Settled::Older
}

/// How many rows a rewrite of a file may have to retain although they are deleted, by the paths of files.
type KeptDeletions = HashMap<String, u64>;

/// The logged file with the most deleted rows, if they are many of its rows.
fn most_deleted(files: &[LiveFile], state: &LogState, kept: &KeptDeletions) -> Option<LiveFile> {
    let is_worth_it = |file: &&LiveFile| {
        let kept = kept.get(file.path()).copied().unwrap_or_default();
        let deleted = file.deleted_rows().saturating_sub(kept);
        deleted * ROWS_OF_DELETED >= file.file.rows.max(1) && is_known(file) && has(&state.live, file)
    };
    files.iter().filter(is_worth_it).max_by_key(|file| file.deleted_rows()).cloned()
}

fn report(replacement: &Replacement, delta_version: i64) -> CompactReport {
    let bytes = |files: &[LiveFile]| files.iter().map(LiveFile::size_bytes).sum();
    CompactReport {
        files_before: replacement.inputs.len(),
        files_after: replacement.outputs.len(),
        rows: replacement.outputs.iter().map(LiveFile::live_rows).sum(),
        bytes_before: bytes(&replacement.inputs),
        bytes_after: bytes(&replacement.outputs),
        delta_version,
    }
}

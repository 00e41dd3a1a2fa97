//! Few files of the target size instead of many small ones.

use super::Table;
use super::alter::Replacement;
use super::commit::Committed;
use crate::error::TableError;
use crate::evolve::civil_now_micros;
use crate::file::DataFile;
use crate::log::LogState;
use std::sync::Arc;

/// Files smaller than the target size divided by this are small.
const SMALL_DIVISOR: u64 = 4;
/// One compaction reads at most this many times the target size.
const READ_TARGETS_MAX: u64 = 8;

/// What a compaction did.
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
    /// it, or another writer changed the files meanwhile. Shows no row twice and none less; on
    /// return the Delta log has the new files.
    ///
    /// # Errors
    /// Of storage, Parquet or the log: the snapshot has the old files still.
    pub async fn compact(&self) -> Result<Option<CompactReport>, TableError> {
        let mut state = self.lock_log().await?;
        let snapshot = self.snapshot();
        let inputs = self.small_files(&snapshot.files, &state);
        if inputs.len() < self.root.options.compact_min_files.max(2) {
            return Ok(None);
        }
        let outputs = self.rewrite(&inputs, &snapshot.def.schema, civil_now_micros()).await?;
        let replacement = Replacement {
            inputs,
            outputs: outputs.into_iter().map(Arc::new).collect(),
            version: snapshot.version,
        };
        let committed =
            self.log_replacement(&mut state, &snapshot.def, &replacement, "OPTIMIZE", false).await?;
        if committed == Committed::Void {
            return Ok(None);
        }
        self.swap_files(&replacement, &state);
        self.checkpoint_if_due(&mut state).await;
        Ok(Some(report(&replacement, super::delta_version(&state))))
    }

    fn small_files(&self, files: &[Arc<DataFile>], state: &LogState) -> Vec<Arc<DataFile>> {
        let target = self.root.options.target_file_bytes;
        let mut bytes = 0;
        files
            .iter()
            .filter(|file| file.size_bytes < target / SMALL_DIVISOR && state.live.contains_key(&file.path))
            .take_while(|file| {
                bytes += file.size_bytes;
                bytes <= target.saturating_mul(READ_TARGETS_MAX)
            })
            .cloned()
            .collect()
    }
}

fn report(replacement: &Replacement, delta_version: i64) -> CompactReport {
    let bytes = |files: &[Arc<DataFile>]| files.iter().map(|file| file.size_bytes).sum();
    CompactReport {
        files_before: replacement.inputs.len(),
        files_after: replacement.outputs.len(),
        rows: replacement.outputs.iter().map(|file| file.rows).sum(),
        bytes_before: bytes(&replacement.inputs),
        bytes_after: bytes(&replacement.outputs),
        delta_version,
    }
}

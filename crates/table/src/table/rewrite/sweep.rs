//! Deletes files that left the table, and leftovers of crashes and failures.

use crate::ambient::now_ms;
use crate::error::{TableError, blocking};
use crate::file::{delete_files, is_vector_file};
use crate::log::LogState;
use crate::table::Table;
use futures::TryStreamExt;
use object_store::ObjectMeta;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The files that a sweep deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    pub files: u64,
    pub bytes: u64,
}

impl Table {
    /// Deletes data files and deletion vectors that are neither in the Delta log nor in the snapshot nor being written,
    /// once they have been out of use for the store's `keep_removed_files_ms`. Older versions of
    /// the Delta table can then not be read any more.
    ///
    /// # Errors
    /// [`TableError::Storage`], [`TableError::Delta`], and [`TableError::Local`] for staged files. It may be repeated.
    pub async fn sweep(&self) -> Result<SweepReport, TableError> {
        if self.followed.is_some() || self.keeps_all_files.load(Ordering::Relaxed) {
            return Ok(SweepReport::default());
        }
        let Some(_allowed) = self.root.deletions.allowed() else { return Ok(SweepReport::default()) };
        let mut state = self.lock_log().await?;
        let keep_ms = self.root.options.keep_removed_files_ms.get();
        let now = now_ms();
        let before_ms = now.saturating_sub_unsigned(keep_ms);
        let listed = self.old_files(before_ms).await?;
        // `state` is not sufficient: a commit that failed may be in the log, and others write there, too.
        let mut used: HashSet<String> = self.root.log.files_in_use(before_ms).await?;
        let snapshot = self.snapshot.load();
        for live in state.live.values().chain(snapshot.files.iter()) {
            used.extend(live.deletes.as_ref().and_then(|deletes| deletes.path()));
            used.insert(live.path().to_owned());
        }
        used.extend(self.root.unpublished.lock().iter().cloned());
        {
            let mut unflushed = self.unflushed.lock();
            let persisted = self.persisted_version();
            unflushed.left.retain(|left| left.since_ms > before_ms || left.version > persisted);
            used.extend(unflushed.left.iter().map(|left| left.path.clone()));
        }
        let mut unused = listed;
        unused.retain(|meta| !used.contains(meta.location.as_ref()));
        keep_young_vectors(&mut state, &mut unused, before_ms, now);
        let names: Vec<String> = unused.iter().map(|meta| meta.location.to_string()).collect();
        delete_files(&self.root, &names).await;
        self.sweep_keys().await?;
        self.root.storage.sweep_staged(&self.root.prefix, Duration::from_millis(keep_ms)).await?;
        Ok(SweepReport { files: names.len() as u64, bytes: unused.iter().map(|meta| meta.size).sum() })
    }

    /// Deletes key files of data files that left the table. Those of files that are being written stay.
    pub(in crate::table) async fn sweep_keys(&self) -> Result<(), TableError> {
        if self.unique.is_none() {
            return Ok(());
        }
        let mut files: HashSet<String> = self.root.unpublished.lock().clone();
        files.extend(self.snapshot.load().files.iter().map(|live| live.path().to_owned()));
        let root = Arc::clone(&self.root);
        let swept = blocking("deleting kept keys", move || Ok(root.sweep_keys(&files))).await?;
        swept.map_err(|source| TableError::Local {
            doing: "deleting old keys in",
            path: self.root.keys_directory().unwrap_or_default(),
            source,
        })
    }

    /// Data files and deletion vectors in storage that were written before `before_ms`.
    async fn old_files(&self, before_ms: i64) -> Result<Vec<ObjectMeta>, TableError> {
        let is_data = |meta: &ObjectMeta| {
            let path = meta.location.as_ref();
            let is_ours = path.ends_with(".parquet") || is_vector_file(path);
            is_ours && !path.starts_with("_delta_log/")
        };
        self.root
            .store
            .list(None)
            .try_filter(|meta| {
                let old = meta.last_modified.timestamp_millis() <= before_ms;
                futures::future::ready(old && is_data(meta))
            })
            .try_collect()
            .await
            .map_err(TableError::storage(format!("listing the files of '{}'", self.root.log.location())))
    }
}

/// Spares the deletion vectors that were first seen unused only after `before_ms`.
fn keep_young_vectors(state: &mut LogState, unused: &mut Vec<ObjectMeta>, before_ms: i64, now: i64) {
    let known = std::mem::take(&mut state.unused_vectors);
    unused.retain(|meta| {
        let path = meta.location.as_ref();
        if !is_vector_file(path) {
            return true;
        }
        let since_ms = known.get(path).copied().unwrap_or(now);
        let is_old = since_ms <= before_ms;
        if !is_old {
            state.unused_vectors.insert(path.to_owned(), since_ms);
        }
        is_old
    });
}

//! Files of partitions that were dropped and can be recovered.
//!
//! They stay where they are. The Delta log removes them when their partition is dropped, and adds them again when it is recovered
//! ([`Table::switch_partitions`]); until then they are pinned, like unpublished files, so that the sweep spares them. Invariant:
//! pinned files are registered again after each opening of the table ([`Table::keep_files`]), before a sweep.
//!
//! Not the business of this module: how long they are retained, and where that is recorded.

use crate::error::TableError;
use crate::file::{DataFile, Deletes, LiveFile, VectorReader, vector_path};
use crate::log::LogState;
use crate::table::Table;
use crate::table::change::light::mem_is_empty;
use crate::table::change::replace::CopiedFiles;
use crate::table::publish::cut;
use deltalake_core::kernel::DeletionVectorDescriptor;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tributary_types::{PartitionId, TableDef};

/// A data file of a dropped partition, in the form in which it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    pub file: DataFile,
    /// Its deleted rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deletes: Option<DeletionVectorDescriptor>,
}

impl KeptFile {
    /// The file as the log has it.
    fn of(live: &LiveFile) -> Self {
        let deletes = live.deletes.as_ref().map(|deletes| deletes.vector().clone());
        Self { file: live.file.as_ref().clone(), deletes }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let vector = self.deletes.as_ref().and_then(vector_path);
        std::iter::once(self.file.path.clone()).chain(vector)
    }
}

/// Records what partitions leave behind that go.
pub trait Leaving: Sync {
    /// Called before the Delta log removes the files, and again if the record has to be rewritten. The record is durable on
    /// return.
    ///
    /// # Errors
    /// A description for the user who drops the partitions; nothing has changed then.
    fn record(&self, files: Vec<KeptFile>) -> BoxFuture<'_, Result<(), String>>;
}

impl Table {
    /// Whether all rows are in the Delta log.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        let is_empty = mem_is_empty(&self.snapshot());
        is_empty && self.unflushed.lock().pending().is_none()
    }

    /// Protects all files from the sweep as long as the table is open: the files of a dropped partition are unknown.
    pub fn keep_all_files(&self) {
        self.keeps_all_files.store(true, Ordering::Relaxed);
    }

    /// Keeps the files of dropped partitions from the sweep until they are [let go](Table::let_files_go).
    pub fn keep_files(&self, files: &[KeptFile]) {
        self.root.unpublished.lock().extend(files.iter().flat_map(KeptFile::names));
    }

    /// Unpins the files, because their partition has been recovered or never will be.
    pub fn let_files_go(&self, files: &[KeptFile]) {
        let mut unpublished = self.root.unpublished.lock();
        for name in files.iter().flat_map(KeptFile::names) {
            unpublished.remove(&name);
        }
    }

    /// Whether rows of the files are right under the columns that the table has now, if they have the types of these.
    #[must_use]
    pub fn can_take(&self, files: &[KeptFile]) -> bool {
        let def = self.def();
        files.iter().all(|kept| !kept.file.is_stale(&def.schema))
    }

    /// The files as files of a partition, for [`Table::switch_partitions`].
    ///
    /// # Errors
    /// A deletion vector can't be read.
    pub async fn kept_files(
        &self,
        kept: &[KeptFile],
        partition: PartitionId,
    ) -> Result<CopiedFiles, TableError> {
        let mut vectors = VectorReader::new(&self.root.store, self.root.log.location());
        let mut files = Vec::with_capacity(kept.len());
        for KeptFile { file, deletes } in kept {
            let deletes = match deletes {
                // Rewritten: the vector's own file may contain those of others.
                Some(vector) => {
                    let deletes = vectors.read(vector.clone(), file.rows).await?;
                    Some(Arc::new(Deletes::unlogged(deletes.rows().clone())))
                }
                None => None,
            };
            let file = DataFile { partition: Some(partition), ..file.clone() };
            files.push(LiveFile::from(file).with_deletes(deletes));
        }
        Ok(CopiedFiles(files))
    }

    /// Records the files for which `def` has no partition, and pins them in place of those in `recorded`.
    pub(in crate::table) async fn record_leaving(
        &self,
        state: &LogState,
        def: &TableDef,
        leaving: &dyn Leaving,
        recorded: &mut Vec<KeptFile>,
    ) -> Result<(), TableError> {
        self.let_files_go(recorded);
        let goes = |live: &&LiveFile| !cut::has_partition(def, &live.file);
        *recorded = state.live.values().filter(goes).map(KeptFile::of).collect();
        self.keep_files(recorded);
        leaving
            .record(recorded.clone())
            .await
            .map_err(|reason| TableError::NotRecorded { table: def.name.clone(), reason })
    }
}

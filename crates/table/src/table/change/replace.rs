//! Partitions whose place others take, with the rows that these have in a table beside; partitions that are dropped and kept
//! ([`crate::table::change::recycle`]).
//!
//! The files of a table beside are copied first, by name only if the storage can do that. Then ONE Delta entry removes the files
//! of the replaced partitions and adds the copies. The change happens with that entry; like a heavy schema change it has a
//! number, by which a start recognises that the catalog lags behind.
//!
//! Not the business of this module: which partitions a table gets, and that no rows arrive meanwhile.

use crate::error::TableError;
use crate::file::{DataFile, Deletes, LiveFile, new_file_name, publish_names};
use crate::keys::Keys;
use crate::place::deadline::Deadline;
use crate::table::change::heavy::Watch;
use crate::table::change::light::mem_is_empty;
use crate::table::publish::cut;
use crate::table::rewrite::commit::{Committed, FileSet};
use crate::table::{KeptFile, Leaving, Table};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use std::collections::HashMap;
use std::sync::Arc;
use tributary_types::{PartitionId, Partitioning, Partitions, TableDef};

/// Files that were copied into a table, which does not show them yet. Give them back with [`Table::discard_copies`] if they are
/// not [switched to](Table::switch_partitions).
#[derive(Debug, Default)]
pub struct CopiedFiles(pub(in crate::table) Vec<LiveFile>);

impl Table {
    /// Copies the files of some partitions of `from`, a table with the same columns; each becomes one of the partition of this table
    /// that it is paired with. No row of `from` may be under way. The copies are durable on return.
    ///
    /// # Errors
    /// Some rows of `from` are not in files yet ([`TableError::Busy`]); it has a file of another writer
    /// ([`TableError::Undivided`]); the columns differ ([`TableError::SchemaMismatch`]); errors of flushing and copying. No copy
    /// is left.
    pub async fn copy_partitions(
        &self,
        from: &Self,
        pairs: &[(PartitionId, PartitionId)],
    ) -> Result<CopiedFiles, TableError> {
        from.flush().await?;
        let pairs: HashMap<PartitionId, PartitionId> = pairs.iter().copied().collect();
        let files: Vec<LiveFile> = {
            let mut state = from.lock_log().await?;
            from.divide_locked(&mut state).await?;
            let snapshot = from.snapshot();
            self.check_columns(&snapshot.def)?;
            if !mem_is_empty(&snapshot) || from.unflushed.lock().pending().is_some() {
                return Err(TableError::Busy { table: snapshot.def.name.clone() });
            }
            state.live.values().cloned().collect()
        };
        if let Some(live) = files.iter().find(|live| live.file.partition.is_none()) {
            return Err(TableError::Undivided { file: live.path().to_owned() });
        }
        let mut copies = CopiedFiles::default();
        for live in files {
            let Some(to) = live.file.partition.and_then(|id| pairs.get(&id)) else { continue };
            if let Err(error) = self.copy_file(from, &live, *to, &mut copies).await {
                self.discard_copies(copies).await;
                return Err(error);
            }
        }
        Ok(copies)
    }

    fn check_columns(&self, other: &TableDef) -> Result<(), TableError> {
        let own = self.def();
        if own.schema == other.schema {
            return Ok(());
        }
        Err(TableError::SchemaMismatch {
            table: own.name.clone(),
            schema_version: own.schema.version.0,
            detail: format!("table '{}' has other columns", other.name),
        })
    }

    async fn copy_file(
        &self,
        from: &Self,
        live: &LiveFile,
        partition: PartitionId,
        copies: &mut CopiedFiles,
    ) -> Result<(), TableError> {
        let name = new_file_name();
        self.root.unpublished.lock().insert(name.clone());
        let file = DataFile { path: name, partition: Some(partition), ..live.file.as_ref().clone() };
        let (source, target) =
            (from.object_root()?.path_of(&live.file)?, self.object_root()?.path_of(&file)?);
        let deletes =
            live.deletes.as_ref().map(|deletes| Arc::new(Deletes::unlogged(deletes.rows().clone())));
        copies.0.push(LiveFile::from(file).with_deletes(deletes));
        let doing = format!("copying the data file '{}'", from.root.shown(live.path()));
        let objects: Arc<dyn ObjectStore> =
            Arc::new(Deadline::new(self.root.storage.objects(), self.root.options.call_timeout));
        copy(&objects, &source, &target).await.map_err(TableError::storage(doing))
    }

    /// Deletes copies that are not used.
    pub async fn discard_copies(&self, copies: CopiedFiles) {
        self.discard_live(&copies.0).await;
    }

    /// Gives the table these partitions, in place of its own. One Delta entry with the number `id` removes the files of
    /// partitions that disappear and adds the copies; before it, `leaving` records the removed files, which stay pinned unless it
    /// is known that nothing has changed. When this is called, no row may be under way that the log does not have, and none may
    /// arrive before the catalog has the returned definition.
    ///
    /// # Errors
    /// [`TableError::Busy`] and others: nothing has changed, and the caller may retry or discard the copies. While it is unknown
    /// whether the log has the entry, it is retried; only if it is stopped then, that is an error ([`TableError::Unsure`]), and
    /// the next start of the server finds out.
    pub async fn switch_partitions(
        &self,
        id: u64,
        partitions: &Arc<Partitions>,
        copies: &CopiedFiles,
        leaving: Option<&dyn Leaving>,
        watch: &dyn Watch,
    ) -> Result<Arc<TableDef>, TableError> {
        let mut recorded = Vec::new();
        let switched =
            self.switch_recorded(id, partitions, copies, leaving.map(|to| (to, &mut recorded)), watch);
        let switched = switched.await;
        if !matches!(switched, Ok(_) | Err(TableError::Unsure { .. })) {
            self.let_files_go(&recorded);
        }
        switched
    }

    /// [`Table::switch_partitions`], with the files that were recorded last.
    async fn switch_recorded(
        &self,
        id: u64,
        partitions: &Arc<Partitions>,
        copies: &CopiedFiles,
        mut leaving: Option<(&dyn Leaving, &mut Vec<KeptFile>)>,
        watch: &dyn Watch,
    ) -> Result<Arc<TableDef>, TableError> {
        let mut state = self.lock_log().await?;
        loop {
            self.flush_locked(&mut state, None).await?;
            if !mem_is_empty(&self.snapshot()) || self.unflushed.lock().pending().is_some() {
                return Err(TableError::Busy { table: self.def().name.clone() });
            }
            self.divide_locked(&mut state).await?;
            let def = Arc::new(TableDef {
                partitioning: Partitioning::By(Arc::clone(partitions)),
                // The flush has completed an earlier drop.
                drop_mark: None,
                ..TableDef::clone(&self.def())
            });
            if let Some((leaving, recorded)) = &mut leaving {
                self.record_leaving(&state, &def, *leaving, recorded).await?;
            }
            let stays = |live: &&LiveFile| cut::has_partition(&def, &live.file);
            let mut files: FileSet = state
                .live
                .values()
                .filter(stays)
                .chain(&self.with_version(copies))
                .map(|live| (live.path().to_owned(), live.clone()))
                .collect();
            let stored = self.store_deletes(&mut files).await?;
            let committed = self.commit_surely(&mut state, id, Vec::new(), &def, files.clone(), watch).await;
            self.show_stored(&stored, false);
            if committed? == Committed::Void {
                // Another writer has changed files.
                continue;
            }
            publish_names(&self.root, files.keys().map(String::as_str));
            // Not before: what another engine has written is taken in with the keys.
            let mut keys = match &self.unique {
                Some(unique) => Some(unique.keys.lock().await),
                None => None,
            };
            self.show_changed(true, &def, &state);
            if let Some(keys) = &mut keys {
                **keys = Keys::default();
            }
            drop(keys);
            self.checkpoint_if_due(&mut state).await;
            return Ok(def);
        }
    }

    /// Their rows follow the table's existing ones, and precede later ones.
    fn with_version(&self, copies: &CopiedFiles) -> Vec<LiveFile> {
        let version = self.snapshot().version;
        let with_version = |live: &LiveFile| LiveFile {
            file: Arc::new(DataFile { version, ..live.file.as_ref().clone() }),
            ..live.clone()
        };
        copies.0.iter().map(with_version).collect()
    }
}

async fn copy(
    store: &Arc<dyn object_store::ObjectStore>,
    source: &Path,
    target: &Path,
) -> object_store::Result<()> {
    store.copy(source, target).await
}

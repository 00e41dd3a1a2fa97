//! `BACKUP SERVER`: this server as `tributary-backup` copies it.
//!
//! Not its business: what is copied when, and the form of backups.

use crate::engine::Engine;
use crate::queries::namespace::{Facts, RunningBackup};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_backup::{
    Announcement, BackupError, CatalogSource, Layout, Pace, Removed, Repository, SavedCatalog, SavedTable,
    Server, Taken, take,
};
use tributary_catalog::{Catalog, CatalogLocation, FrozenCatalog};
use tributary_files::{Properties, store_at};
use tributary_query::Grid;
use tributary_sql::Backup;
use tributary_types::host::unix_ms;
use tributary_types::{ErrorCode, SqlError};
use tributary_wal::{Disk, OsDisk};

/// The directory below the storage root in which the catalog's copy is made.
const SCRATCH: &str = "backup";
const COLUMNS: [&str; 10] = [
    "Name",
    "Place",
    "Tables",
    "Files",
    "Bytes",
    "CopiedFiles",
    "CopiedBytes",
    "RemovedBackups",
    "RemovedBytes",
    "Note",
];

/// The catalog, and where its copy is made.
struct Source {
    catalog: Arc<Catalog>,
    scratch: PathBuf,
}

struct Frozen {
    catalog: FrozenCatalog,
    scratch: PathBuf,
}

#[async_trait]
impl CatalogSource for Source {
    async fn freeze(&self) -> Result<Box<dyn tributary_backup::FrozenCatalog>, String> {
        let catalog = self.catalog.freeze().await.map_err(|error| error.to_string())?;
        Ok(Box::new(Frozen { catalog, scratch: self.scratch.clone() }))
    }
}

#[async_trait]
impl tributary_backup::FrozenCatalog for Frozen {
    async fn save(mut self: Box<Self>) -> Result<SavedCatalog, String> {
        let shown = |error: &dyn std::error::Error| error.to_string();
        empty(&self.scratch).map_err(|error| shown(&error))?;
        let file = self.scratch.join("catalog.db");
        self.catalog.save(&file).await.map_err(|error| shown(&error))?;
        let Self { catalog, scratch } = *self;
        drop(catalog);
        // Before it is opened, which may change it.
        let bytes = tokio::fs::read(&file).await.map_err(|error| shown(&error))?;
        let copy = Catalog::open(&CatalogLocation::Sqlite(file)).await.map_err(|error| shown(&error))?;
        let present = copy.all_tables();
        let recycled = copy.recycle_bin();
        copy.close().await;
        empty(&scratch).map_err(|error| shown(&error))?;
        let recycled = recycled.tables.values().map(|table| &table.def);
        let mut tables: Vec<SavedTable> = present
            .iter()
            .chain(recycled)
            .map(|def| SavedTable {
                id: def.id,
                name: def.table_ref().to_string(),
                location: def.location.clone(),
            })
            .collect();
        tables.sort_by_key(|table| table.id);
        Ok(SavedCatalog { file: Bytes::from(bytes), tables })
    }
}

/// A backup that is among the jobs until this is dropped.
struct Shown(Arc<Facts>);

impl Drop for Shown {
    fn drop(&mut self) {
        *self.0.backup.lock() = None;
    }
}

/// Makes the directory, and empties it of what a process left that ended.
fn empty(scratch: &std::path::Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::create_dir(scratch)
}

impl Engine {
    /// Takes a backup of the server.
    // A value of its own, because the compiler cannot prove of the caller's whole future that it may change threads.
    pub(crate) fn backup(self: &Arc<Self>, statement: Backup) -> BoxFuture<'static, Result<Grid, SqlError>> {
        let engine = Arc::clone(self);
        Box::pin(async move { engine.take_backup(&statement).await })
    }

    async fn take_backup(&self, statement: &Backup) -> Result<Grid, SqlError> {
        let Ok(_turn) = self.backing_up.try_lock() else {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                "another backup of this server runs; wait for its end",
            ));
        };
        let pace = Pace::new(self.options.backup_bytes_per_second.clone());
        let repository = self.repository(statement)?.at_pace(pace.clone());
        let _shown = self.show_backup(repository.shown().to_owned(), pace);
        let logs = self.ingest.log_dirs();
        let names: Vec<String> = (1..=logs.len()).map(log_name).collect();
        let layout = Layout {
            catalog: "catalog.db".to_owned(),
            node: "node.json".to_owned(),
            keys: "load_keys".to_owned(),
            rejected: "rejected_rows".to_owned(),
            tables: String::new(),
            logs: names.clone(),
        };
        let node = self.node_file();
        let kept = logs.into_iter().zip(names).collect::<Vec<_>>();
        let source =
            Source { catalog: Arc::clone(&self.catalog), scratch: self.options.state_dir.join(SCRATCH) };
        let server = Server {
            ingest: &self.ingest,
            store: self.ddl.store(),
            disk: Arc::new(OsDisk) as Arc<dyn Disk>,
            catalog: &source,
            layout,
            node: (node.id(), Bytes::from(node.text_for_copy(&kept))),
            version: env!("CARGO_PKG_VERSION"),
        };
        let announced = repository.announce(&server.node.0).await.map_err(refused)?;
        let taken = tokio::select! {
            taken = take(&server, &repository, statement.name.as_deref(), || ()) => taken,
            error = announced.renew() => Err(error),
        };
        // Files of tables that were dropped meanwhile.
        self.ddl.collect_garbage_later();
        let removed = match (&taken, statement.keep) {
            (Ok(_), Some(keep)) => Some(removed(&announced, keep).await),
            _ => None,
        };
        announced.end().await;
        Ok(grid(&taken.map_err(refused)?, repository.shown(), removed))
    }

    /// Shows the backup among the jobs until the value is dropped.
    fn show_backup(&self, place: String, pace: Pace) -> Shown {
        let written = Box::new(move || pace.written());
        *self.facts().backup.lock() = Some(RunningBackup { place, begun_ms: unix_ms(), written });
        Shown(Arc::clone(self.facts()))
    }

    fn repository(&self, statement: &Backup) -> Result<Repository, SqlError> {
        let mut properties: Properties = statement.properties.0.iter().cloned().collect();
        let repository = match (&statement.place, &self.options.backup_dir) {
            (Some(uri), _) if uri.starts_with("file:") => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "a backup to a directory goes where the setting `backup_path` says; leave TO out, or name a \
                     store: TO 's3://bucket/path'",
                ));
            }
            (Some(uri), _) => {
                let (store, prefix, shown) = store_at(uri, &mut properties, &self.options.egress)?;
                Repository::new(store, prefix, shown)
            }
            (None, Some(directory)) => {
                let failed = |error: std::io::Error| {
                    SqlError::detail(
                        ErrorCode::Unknown,
                        format!(
                            "the directory {} of the setting `backup_path`: {error}",
                            directory.display()
                        ),
                    )
                };
                std::fs::create_dir_all(directory).map_err(failed)?;
                let directory = directory.canonicalize().map_err(failed)?;
                Repository::in_directory(&directory).map_err(refused)?
            }
            (None, None) => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    "where to? Name a directory by the setting `backup_path`, or a store by BACKUP SERVER TO \
                     's3://bucket/path' PROPERTIES (…)",
                ));
            }
        };
        match properties.rest().next() {
            Some((name, _)) => Err(SqlError::detail(
                ErrorCode::Unknown,
                format!("Unknown properties: {name}; there are only those of an S3 store"),
            )),
            None => Ok(repository),
        }
    }
}

/// The directory of a log in the restored server.
fn log_name(number: usize) -> String {
    if number == 1 { "wal".to_owned() } else { format!("wal-{number}") }
}

fn refused(error: BackupError) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, error.to_string())
}

/// Removes old backups. The new one exists, whatever happens to them.
async fn removed(announced: &Announcement, keep: NonZero<usize>) -> Removed {
    announced.remove_all_but(keep).await.unwrap_or_else(|error| {
        let text = format!("old backups were not removed: {error}");
        tracing::warn!("{text}");
        Removed { postponed: Some(text), ..Removed::default() }
    })
}

fn grid(taken: &Taken, place: &str, removed: Option<Removed>) -> Grid {
    let manifest = &taken.manifest;
    let removed = removed.unwrap_or_default();
    Grid::new(&COLUMNS).with_row(vec![
        manifest.name.as_str().into(),
        place.into(),
        (manifest.tables.len() as u64).into(),
        (manifest.files.len() as u64).into(),
        manifest.bytes().into(),
        (taken.copied_files as u64).into(),
        taken.copied_bytes.into(),
        (removed.backups.len() as u64).into(),
        removed.bytes.into(),
        removed.postponed.into(),
    ])
}

//! Takes a backup of a running server.
//!
//! Data files are copied first, while everything goes on. Then the catalog takes no change, and for some microseconds no log a
//! frame: that is the backup's moment. The logs are copied before they may be released, and what is left of the tables after them.
//!
//! Invariant: nothing that the copy needs goes before it is copied: files of tables are kept from the beginning to the end, logs from
//! before the moment until they are copied.

use crate::error::BackupError;
use crate::manifest::{FORMAT, Manifest, ManifestTable, SavedFile, at};
use crate::repository::Repository;
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tributary_ingest::{Ingest, KeptLogs, Moment};
use tributary_table::{CopiedObject, TableCut, TableStore};
use tributary_types::{TableId, host};
use tributary_wal::{Cut, Disk, OpenMode};

/// Data files that are copied at a time.
const COPIED_AT_ONCE: usize = 4;
/// How much of a local file is read at a time.
const READ_BYTES: u64 = 1 << 20;
const NAME_MAX: usize = 64;

/// The catalog of a server.
#[async_trait]
pub trait CatalogSource: Sync {
    /// Waits for a change under way and admits no other until the value is dropped or saved.
    ///
    /// # Errors
    /// A description of what failed.
    async fn freeze(&self) -> Result<Box<dyn FrozenCatalog>, String>;
}

/// A catalog that takes no change.
#[async_trait]
pub trait FrozenCatalog: Send {
    /// Called at the backup's moment; must not wait.
    fn at_moment(&mut self) {}

    /// The catalog as it was at that moment.
    ///
    /// # Errors
    /// A description of what failed.
    async fn save(self: Box<Self>) -> Result<SavedCatalog, String>;
}

/// A copy of a catalog.
#[derive(Clone, Debug, Default)]
pub struct SavedCatalog {
    /// Its file.
    pub file: Bytes,
    /// All tables that have files, those in the recycle bin included.
    pub tables: Vec<SavedTable>,
}

/// A table of a copied catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTable {
    pub id: TableId,
    pub name: String,
    pub location: String,
}

/// Where a server has its files, relative to its directory.
#[derive(Clone, Debug)]
pub struct Layout {
    pub catalog: String,
    pub node: String,
    /// One for each log, as the restored server will have them.
    pub logs: Vec<String>,
    pub keys: String,
    pub rejected: String,
    /// Locations of tables are below it. Empty: the directory itself.
    pub tables: String,
}

/// A running server.
pub struct Server<'a> {
    pub ingest: &'a Ingest,
    pub store: &'a TableStore,
    pub disk: Arc<dyn Disk>,
    pub catalog: &'a dyn CatalogSource,
    pub layout: Layout,
    /// The id of the node, and the file that says so to the restored server.
    pub node: (String, Bytes),
    pub version: &'a str,
}

/// A backup that was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    pub manifest: Manifest,
    /// Of these files, the ones that the repository did not have.
    pub copied_files: usize,
    pub copied_bytes: u64,
}

/// Takes a backup of the server into the repository. `name` is its name, by default the time; `seen` is called at its moment. The
/// backup exists when this returns `Ok`. Dropping the future ends it and leaves objects that the next one uses or replaces.
///
/// # Errors
/// [`BackupError`].
pub async fn take(
    server: &Server<'_>,
    repository: &Repository,
    name: Option<&str>,
    seen: impl FnOnce(),
) -> Result<Taken, BackupError> {
    let begun_ms = host::unix_ms();
    let name = match name {
        Some(name) => checked_name(name)?.to_owned(),
        None => name_of(begun_ms),
    };
    let mut copy = Copy::new(server, repository, name).await?;
    let files = server.store.keep_files().await;
    for cut in server.ingest.cuts() {
        copy.data_of(&cut).await?;
    }
    let logs = server.ingest.keep_logs().await;
    let (moment, moment_ms, catalog) = at_moment(server, &logs, seen).await?;
    copy.logs(&moment.logs).await?;
    copy.directory(server.ingest.keys_dir(), &server.layout.keys).await?;
    copy.directory(server.ingest.rejected_dir(), &server.layout.rejected).await?;
    drop(logs);
    let tables = copy.tables(&catalog.tables, &moment.tables).await?;
    drop(files);
    copy.own(&server.layout.catalog, catalog.file).await?;
    // Without it no server starts, so it is restored last.
    copy.own(&server.layout.node, server.node.1.clone()).await?;
    let manifest = Manifest {
        format: FORMAT,
        name: copy.name,
        server_version: server.version.to_owned(),
        node: server.node.0.clone(),
        moment_ms,
        tables,
        files: copy.files,
    };
    repository.publish(&manifest).await?;
    Ok(Taken { manifest, copied_files: copy.copied_files, copied_bytes: copy.copied_bytes })
}

async fn at_moment(
    server: &Server<'_>,
    logs: &KeptLogs<'_>,
    seen: impl FnOnce(),
) -> Result<(Moment, i64, SavedCatalog), BackupError> {
    let mut frozen = server.catalog.freeze().await.map_err(BackupError::Catalog)?;
    let mut moment_ms = 0;
    let moment = server.ingest.moment(logs, || {
        moment_ms = host::unix_ms();
        frozen.at_moment();
        seen();
    })?;
    Ok((moment, moment_ms, frozen.save().await.map_err(BackupError::Catalog)?))
}

/// The name of a backup that was begun at a time, in milliseconds since 1970: `2026-11-28T08-49-27.350Z`.
fn name_of(begun_ms: i64) -> String {
    at(begun_ms).format("%Y-%m-%dT%H-%M-%S%.3fZ").to_string()
}

fn checked_name(name: &str) -> Result<&str, BackupError> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins_well && name.len() <= NAME_MAX && name.bytes().all(is_legal) {
        return Ok(name);
    }
    Err(BackupError::BadName { name: name.to_owned() })
}

/// A backup that is being taken.
struct Copy<'a> {
    server: &'a Server<'a>,
    repository: &'a Repository,
    name: String,
    /// Data that need not be copied, by objects.
    known: HashMap<String, SavedFile>,
    files: Vec<SavedFile>,
    copied_files: usize,
    copied_bytes: u64,
}

impl<'a> Copy<'a> {
    async fn new(
        server: &'a Server<'a>,
        repository: &'a Repository,
        name: String,
    ) -> Result<Self, BackupError> {
        let manifests = repository.manifests().await?;
        if manifests.iter().any(|manifest| manifest.name == name) {
            return Err(BackupError::Exists { name });
        }
        let known = data_of(manifests);
        Ok(Self { server, repository, name, known, files: Vec::new(), copied_files: 0, copied_bytes: 0 })
    }

    fn object_of_own(&self, path: &str) -> String {
        format!("backups/{}/{path}", self.name)
    }

    fn table_path(&self, location: &str, path: &str) -> String {
        match self.server.layout.tables.as_str() {
            "" => format!("{location}/{path}"),
            tables => format!("{tables}/{location}/{path}"),
        }
    }

    /// Copies the data files that a table has now, so that fewer are left to copy after the moment. A table that is dropped
    /// meanwhile is left alone.
    async fn data_of(&mut self, cut: &TableCut) -> Result<(), BackupError> {
        let location = cut.location();
        match self.server.store.copy_of(location, None, &cut.files()).await {
            Ok(copy) => self.data(location, &copy.objects).await.map(drop),
            Err(error) => {
                tracing::info!(location, %error, "the backup copies a table only after its moment");
                Ok(())
            }
        }
    }

    /// Copies data files and deletion vectors that the repository does not have, and returns all of them.
    async fn data(
        &mut self,
        location: &str,
        objects: &[CopiedObject],
    ) -> Result<Vec<SavedFile>, BackupError> {
        let saved = |object: &CopiedObject| SavedFile {
            path: self.table_path(location, &object.path),
            object: format!("data/{location}/{}", object.path),
            bytes: object.bytes,
            hash: String::new(),
        };
        let wanted: Vec<(&CopiedObject, SavedFile)> =
            objects.iter().filter(|object| object.is_data).map(|object| (object, saved(object))).collect();
        let is_known =
            |file: &SavedFile| self.known.get(&file.object).is_some_and(|known| known.bytes == file.bytes);
        let missing: Vec<_> = wanted.iter().filter(|(_, file)| !is_known(file)).cloned().collect();
        let (store, repository) = (self.server.store.object_store(), self.repository);
        // Boxed, because the compiler cannot prove that a stream of borrowing futures may change threads.
        let copies: Vec<BoxFuture<'_, Result<SavedFile, BackupError>>> = missing
            .into_iter()
            .map(|(object, file)| copied(Arc::clone(&store), object.clone(), repository, file).boxed())
            .collect();
        let copied: Vec<SavedFile> =
            futures::stream::iter(copies).buffered(COPIED_AT_ONCE).try_collect().await?;
        for file in copied {
            self.counts(&file);
            self.known.insert(file.object.clone(), file);
        }
        Ok(wanted.into_iter().filter_map(|(_, file)| self.known.get(&file.object).cloned()).collect())
    }

    fn counts(&mut self, file: &SavedFile) {
        self.copied_files += 1;
        self.copied_bytes += file.bytes;
    }

    /// Writes a file of this backup alone.
    async fn stream(
        &mut self,
        path: String,
        bytes: u64,
        contents: BoxStream<'_, Result<Bytes, BackupError>>,
    ) -> Result<(), BackupError> {
        let object = self.object_of_own(&path);
        let (bytes, hash) = self.repository.write(&object, bytes, contents).await?;
        let file = SavedFile { path, object, bytes, hash };
        self.counts(&file);
        self.files.push(file);
        Ok(())
    }

    async fn own(&mut self, path: &str, contents: Bytes) -> Result<(), BackupError> {
        let bytes = contents.len() as u64;
        self.stream(path.to_owned(), bytes, futures::stream::iter([Ok(contents)]).boxed()).await
    }

    async fn logs(&mut self, cuts: &[Cut]) -> Result<(), BackupError> {
        let dirs = self.server.layout.logs.clone();
        for (cut, dir) in cuts.iter().zip(dirs) {
            for piece in &cut.pieces {
                self.local(&piece.path, &dir, piece.bytes).await?;
            }
        }
        Ok(())
    }

    /// Copies all files of a directory that does not change.
    async fn directory(&mut self, dir: &Path, to: &str) -> Result<(), BackupError> {
        let failed = |source| BackupError::Source { file: dir.display().to_string(), source };
        let mut files = self.server.disk.list(dir).map_err(failed)?;
        files.sort();
        for (name, bytes) in files {
            self.local(&dir.join(name), to, bytes).await?;
        }
        Ok(())
    }

    /// Copies the first `bytes` bytes of a local file.
    async fn local(&mut self, file: &Path, to: &str, bytes: u64) -> Result<(), BackupError> {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let contents = pieces(Arc::clone(&self.server.disk), file.to_owned(), bytes);
        self.stream(format!("{to}/{name}"), bytes, contents).await
    }

    /// Copies what is left of the tables as they were at the moment.
    async fn tables(
        &mut self,
        tables: &[SavedTable],
        cuts: &[TableCut],
    ) -> Result<Vec<ManifestTable>, BackupError> {
        let mut all = Vec::with_capacity(tables.len());
        for SavedTable { id, name, location } in tables {
            let cut = cuts.iter().find(|cut| cut.id == *id);
            let version = cut.and_then(|cut| u64::try_from(cut.delta_version()).ok());
            let beside = cut.map_or_else(HashSet::new, TableCut::files);
            let copy = self.server.store.copy_of(location, version, &beside).await?;
            let data = self.data(location, &copy.objects).await?;
            self.files.extend(data);
            let store = self.server.store.object_store();
            for object in copy.objects.iter().filter(|object| !object.is_data) {
                let contents = contents(&*store, object).await?;
                self.stream(self.table_path(location, &object.path), object.bytes, contents).await?;
            }
            all.push(ManifestTable { name: name.clone(), location: location.clone(), version: copy.version });
        }
        Ok(all)
    }
}

/// The data files and deletion vectors that backups have, by their objects.
fn data_of(manifests: Vec<Manifest>) -> HashMap<String, SavedFile> {
    let files = manifests.into_iter().flat_map(|manifest| manifest.files);
    let data = files.filter(|file| file.object.starts_with("data/"));
    data.map(|file| (file.object.clone(), file)).collect()
}

/// Copies a data file.
async fn copied(
    store: Arc<dyn ObjectStore>,
    source: CopiedObject,
    repository: &Repository,
    file: SavedFile,
) -> Result<SavedFile, BackupError> {
    let contents = contents(&*store, &source).await?;
    let (bytes, hash) = repository.write(&file.object, source.bytes, contents).await?;
    Ok(SavedFile { bytes, hash, ..file })
}

async fn contents(
    store: &dyn ObjectStore,
    object: &CopiedObject,
) -> Result<BoxStream<'static, Result<Bytes, BackupError>>, BackupError> {
    let doing = format!("reading {}", object.source);
    let got = store.get(&object.source).await.map_err(BackupError::place(doing.clone()))?;
    Ok(got.into_stream().map_err(move |error| BackupError::place(doing.clone())(error)).boxed())
}

/// The first `bytes` bytes of a file. Nothing of them changes any more.
fn pieces(disk: Arc<dyn Disk>, path: PathBuf, bytes: u64) -> BoxStream<'static, Result<Bytes, BackupError>> {
    let read = move |offset: u64| {
        let length = READ_BYTES.min(bytes - offset);
        let mut piece = vec![0; length as usize];
        let found = disk.open(&path, OpenMode::Existing).and_then(|file| file.read_at(&mut piece, offset));
        let failed = |source| BackupError::Source { file: path.display().to_string(), source };
        match found {
            Ok(count) if count as u64 == length => Ok(Bytes::from(piece)),
            Ok(_) => Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(failed(error)),
        }
    };
    let offsets = (0..bytes).step_by(READ_BYTES as usize);
    futures::stream::iter(offsets.map(read)).boxed()
}

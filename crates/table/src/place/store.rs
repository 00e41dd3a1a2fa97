//! One storage root: creates, opens and removes tables in it.

use crate::error::TableError;
use crate::log::{DeltaLog, Written, commit_info};
use crate::options::StoreOptions;
use crate::place::cache::{CacheFacts, ReadCache};
use crate::place::deadline::Deadline;
use crate::place::durable::{DurableLocal, create_dirs};
use crate::place::keep::{Deletions, KeepFiles};
use crate::place::root::{Settling, TableRoot};
use crate::place::storage::{ObjectStorage, TableStorage};
use crate::place::traffic::StoreTraffic;
use crate::table::{Table, Writer};
use crate::view::schema::{last_change, metadata_for, protocol_for, with_settings};
use deltalake_core::kernel::Action;
use deltalake_core::logstore::{StorageConfig, default_logstore};
use futures::future::ready;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use parquet::basic::ZstdLevel;
use std::collections::HashSet;
use std::sync::Arc;
use tributary_types::TableDef;
use tributary_types::lock::{Rank, Ranked};
use url::Url;

/// A storage root, on any object store. Cheap to share behind an `Arc`.
pub struct TableStore {
    /// The store of `storage`, whose calls have a time limit.
    store: Arc<dyn ObjectStore>,
    /// Ends in `/`.
    url: Url,
    storage: Arc<dyn TableStorage>,
    options: Arc<StoreOptions>,
    zstd: ZstdLevel,
    settling: Arc<Settling>,
    deletions: Deletions,
    /// Of files in a store that is far away.
    pub(super) cache: Option<Arc<ReadCache>>,
    /// The server that writes the tables. `None`: this one does, or it is not asked.
    writer: Option<Arc<dyn Writer>>,
}

impl TableStore {
    /// A root in the local directory `root`, which is created. Every write is durable when it
    /// returns ([`DurableLocal`]).
    ///
    /// # Errors
    /// [`TableError::Local`] when the directory cannot be created, [`TableError::BadOption`].
    pub fn local(root: &std::path::Path, options: StoreOptions) -> Result<Self, TableError> {
        let failed = |doing| {
            let path = root.to_owned();
            move |source| TableError::Local { doing, path, source }
        };
        let absolute = std::path::absolute(root).map_err(failed("resolving the storage root"))?;
        create_dirs(&absolute).map_err(failed("creating the storage root"))?;
        let root = root.canonicalize().map_err(failed("resolving the storage root"))?;
        let url = Url::from_directory_path(&root).map_err(|()| TableError::BadRoot {
            url: root.display().to_string(),
            reason: "it is not an absolute path".to_owned(),
        })?;
        Self::with_storage(Arc::new(DurableLocal::default()), url, options)
    }

    /// A root at `url` in `store`, which must be rooted where the URL's path begins: a bucket, or
    /// `/` of a file system. The store must make writes durable before it confirms them and must
    /// support put-if-absent.
    ///
    /// # Errors
    /// [`TableError::BadRoot`] when the URL cannot have paths below it, [`TableError::BadOption`].
    pub fn with_object_store(
        store: Arc<dyn ObjectStore>,
        url: Url,
        options: StoreOptions,
    ) -> Result<Self, TableError> {
        Self::with_storage(Arc::new(ObjectStorage { objects: store, url: url.clone() }), url, options)
    }

    /// A root at `url` in `storage`, which must be rooted where the URL's path begins.
    ///
    /// # Errors
    /// [`TableError::BadRoot`] when the URL cannot have paths below it, [`TableError::BadOption`].
    pub fn with_storage(
        storage: Arc<dyn TableStorage>,
        mut url: Url,
        options: StoreOptions,
    ) -> Result<Self, TableError> {
        if url.cannot_be_a_base() {
            return Err(TableError::BadRoot { url: url.to_string(), reason: "it has no path".to_owned() });
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let zstd = zstd_level(&options)?;
        let settling = Arc::new(Settling::new(&options));
        let store = Arc::new(Deadline::new(storage.objects(), options.call_timeout));
        let deletions = Deletions::default();
        let (cache, writer) = (None, None);
        Ok(Self { store, storage, url, zstd, options: Arc::new(options), settling, deletions, cache, writer })
    }

    /// The store of a server that only reads, whose queries ask this one.
    #[must_use]
    pub fn with_writer(self, writer: Option<Arc<dyn Writer>>) -> Self {
        Self { writer, ..self }
    }

    #[must_use]
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// The store that holds all files; its paths are those of URLs, without the first `/`.
    #[must_use]
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    pub(crate) fn storage(&self) -> &Arc<dyn TableStorage> {
        &self.storage
    }

    /// The figures of the read cache, if there is one.
    #[must_use]
    pub fn read_cache(&self) -> Option<CacheFacts> {
        self.cache.as_ref().map(|cache| cache.facts())
    }

    /// The requests to a store that is far away.
    #[must_use]
    pub fn traffic(&self) -> Option<StoreTraffic> {
        self.storage.traffic()
    }

    /// The URL of the storage root, ending in `/`.
    #[must_use]
    pub fn root_url(&self) -> &Url {
        &self.url
    }

    /// The URL of a table's location, ending in `/`.
    #[must_use]
    pub fn url(&self, def: &TableDef) -> String {
        self.table_url(&def.location).to_string()
    }

    fn table_url(&self, location: &str) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(location.split('/').filter(|part| !part.is_empty())).push("");
        }
        url
    }

    /// Deletes no file of any table from now on until the value is dropped, so that a backup can copy them. Waits for deletions
    /// that have begun.
    pub async fn keep_files(&self) -> KeepFiles {
        self.deletions.stop().await
    }

    pub(crate) fn root(&self, location: &str) -> Result<Arc<TableRoot>, TableError> {
        self.root_in(&self.store, location)
    }

    /// The root without a cache before the store.
    pub(crate) fn direct_root(&self, location: &str) -> Result<Arc<TableRoot>, TableError> {
        let direct: Arc<dyn ObjectStore> =
            Arc::new(Deadline::new(self.storage.direct(), self.options.call_timeout));
        self.root_in(&direct, location)
    }

    fn root_in(&self, objects: &Arc<dyn ObjectStore>, location: &str) -> Result<Arc<TableRoot>, TableError> {
        let parts_are_names = location.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !parts_are_names {
            return Err(TableError::BadRoot {
                url: location.to_owned(),
                reason: "a table's location must be a relative path without '.', '..' and empty parts"
                    .to_owned(),
            });
        }
        let url = self.table_url(location);
        let prefix = Path::from_url_path(url.path())
            .map_err(|error| TableError::BadRoot { url: url.to_string(), reason: error.to_string() })?;
        let store: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(Arc::clone(objects), prefix.clone()));
        let log_store =
            default_logstore(Arc::clone(&store), Arc::clone(objects), &url, &StorageConfig::default());
        Ok(Arc::new(TableRoot {
            store,
            log: DeltaLog::new(log_store, &self.options, location.to_owned()),
            options: Arc::clone(&self.options),
            zstd: self.zstd,
            url,
            storage: Arc::clone(&self.storage),
            prefix,
            unpublished: Ranked::new(Rank::Unpublished, HashSet::new()),
            settling: Arc::clone(&self.settling),
            deletions: self.deletions.clone(),
        }))
    }

    /// Creates the Delta table of `def`, durable on return. If a log of the same table already exists (from before a crash), it
    /// is opened instead.
    ///
    /// # Errors
    /// [`TableError::LocationTaken`] when the location holds another table's log.
    pub async fn create(&self, def: &Arc<TableDef>) -> Result<Arc<Table>, TableError> {
        let root = self.root(&def.location)?;
        let metadata = metadata_for(def, None, false)?;
        let metadata = with_settings(&metadata, self.options.retention())?.unwrap_or(metadata);
        let protocol = protocol_for(&metadata, None)?;
        let info = commit_info("CREATE TABLE", false, &[]);
        let mut actions = vec![Action::Protocol(protocol), Action::Metadata(metadata)];
        actions.extend(root.log.seal_action());
        if root.log.write(0, info, &actions).await? == Written::Taken {
            tracing::info!(location = def.location, "the Delta log exists already and is opened");
        }
        Table::open(root, def).await
    }

    /// Opens the table and updates its log to `def` if the catalog is ahead: a schema change that a crash interrupted is
    /// completed, including the rewriting of files. The table of another server is opened as it is.
    ///
    /// # Errors
    /// [`TableError::NotFound`] without a log, [`TableError::LocationTaken`] with another table's,
    /// [`TableError::UnsupportedLog`] when another writer used features that we cannot read.
    pub async fn open(&self, def: &Arc<TableDef>) -> Result<Arc<Table>, TableError> {
        let root = self.root(&def.location)?;
        match self.options.max_staleness {
            None => Table::open(root, def).await,
            Some(_) => Table::open_followed(root, def, self.writer.clone()).await,
        }
    }

    /// Seals the table's Delta log, and returns the number of its last heavy schema change, or `None`. A process from which this one
    /// has taken over makes no other after that.
    ///
    /// # Errors
    /// [`TableError::NotFound`] without a log; errors of reading and sealing it.
    pub async fn last_schema_change(&self, def: &TableDef) -> Result<Option<u64>, TableError> {
        let root = self.root(&def.location)?;
        let mut state = root.log.open(def).await?;
        root.log.seal(&mut state, def).await?;
        Ok(last_change(&state.metadata))
    }

    /// Deletes all files of a dropped table. May be repeated after a failure. Close the table
    /// first ([`Table::close`]); queries that still read it fail.
    ///
    /// # Errors
    /// [`TableError::Storage`], [`TableError::Local`]; then some files are left. [`TableError::FilesKept`] during a backup; then
    /// all are.
    pub async fn remove(&self, location: &str) -> Result<(), TableError> {
        let root = self.root(location)?;
        if self.options.max_staleness.is_some() {
            return Err(TableError::OnlyRead { location: location.to_owned() });
        }
        let Some(_allowed) = self.deletions.allowed() else {
            return Err(TableError::FilesKept { location: location.to_owned() });
        };
        let doing = format!("removing the files of '{location}'");
        let paths = root.store.list(None).map_ok(|meta| meta.location).boxed();
        // A process from which this one has taken over may be at the same work.
        let deleted = root.store.delete_stream(paths).filter(|outcome| ready(!is_gone(outcome)));
        deleted.try_for_each(|_| ready(Ok(()))).await.map_err(TableError::storage(doing))?;
        if let Some(keys) = root.keys_directory().filter(|keys| keys.exists()) {
            let removed = std::fs::remove_dir_all(&keys);
            removed.map_err(|source| TableError::Local { doing: "removing", path: keys, source })?;
        }
        self.storage.remove_empty(&root.prefix).await
    }
}

/// Whether an object could not be deleted because it was not there.
fn is_gone(outcome: &object_store::Result<Path>) -> bool {
    matches!(outcome, Err(object_store::Error::NotFound { .. }))
}

fn zstd_level(options: &StoreOptions) -> Result<ZstdLevel, TableError> {
    ZstdLevel::try_new(options.zstd_level).map_err(|_| TableError::BadOption {
        name: "zstd_level",
        value: options.zstd_level.to_string(),
        allowed: "1 to 22",
    })
}

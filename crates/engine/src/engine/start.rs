//! Starts and stops a server: its parts are made, and end, in the order in which they depend on each
//! other.
//!
//! Invariant: a start that is refused, or ends anywhere, leaves a storage root that the next start can open. The node's file
//! precedes the catalog: a root with a catalog has an identity.

use super::Engine;
use crate::access::processes::Processes;
use crate::access::{Access, Everything};
use crate::background::record;
use crate::ddl::change::records;
use crate::ddl::change::schema::SchemaChanges;
use crate::ddl::change::turns::Turns;
use crate::ddl::partitions::dynamic::DynamicTables;
use crate::files::FileReading;
use crate::jobs::broker_load::BrokerLoads;
use crate::jobs::export::Exports;
use crate::jobs::routine_load::Jobs;
use crate::load::auto_increment::CatalogIncrements;
use crate::load::builders::Builders;
use crate::load::error_log::ErrorLog;
use crate::load::generated::GeneratedColumns;
use crate::load::labels::{CatalogLabels, CatalogSchemas};
use crate::load::load_records::LoadRecords;
use crate::load::overwrites::RunningOverwrites;
use crate::load::row_changes::RowChanges;
use crate::node::host::{SpoolDisk, SpoolRoom, disk_limit, emptied};
use crate::node::metrics::Metrics;
use crate::node::names::Names;
use crate::node::node_file::NodeFile;
use crate::node::options::EngineOptions;
use crate::node::start_error::StartError;
use crate::node::wal_dirs::{self, WalDirs};
use crate::queries::namespace::{EngineNamespace, Facts};
use futures::{StreamExt, TryStreamExt};
use parking_lot::{Mutex, RwLock};
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::future::Future;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tributary_catalog::{Catalog, CatalogError, CatalogLocation, NodeEntry};
use tributary_ingest::{AutoIncrements, Ingest, IngestMetrics, IngestOptions, RecoveryReport};
use tributary_kafka::Broker;
use tributary_query::{QueryEngine, QueryOptions, Spill};
use tributary_table::{StoreOptions, Table, TableError, TableStore};
use tributary_types::TableDef;
use tributary_types::host::unix_ms;
use tributary_wal::{Disk, OsDisk, is_in_use};

/// How many tables are opened at a time.
const TABLES_OPENED_AT_ONCE: usize = 16;
/// How often error logs are purged.
const PURGE_INTERVAL: Duration = Duration::from_secs(3600);
/// Minimum interval for checking the recycle bin, which happens at least once per retention time.
const EXPIRE_INTERVAL_MIN: Duration = Duration::from_secs(1);
const EXPIRE_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// State that lives from start to stop and is used only there.
pub(super) struct Running {
    background: Mutex<Vec<JoinHandle<()>>>,
    node: NodeFile,
    wal_dirs: WalDirs,
    /// Locked while this process has the state directory.
    _lock: File,
}

impl Engine {
    /// Opens the storage root: catalog, tables, logs. Every acknowledged row is in its table, once,
    /// when this returns.
    ///
    /// # Errors
    /// See [`StartError`]; nothing was changed that the next start would not correct.
    pub async fn open(options: EngineOptions) -> Result<(Arc<Self>, RecoveryReport), StartError> {
        let directory = options.tables.directory().to_owned();
        Self::open_with(options, Arc::new(Everything), |options| TableStore::local(&directory, options)).await
    }

    pub(crate) async fn open_with(
        options: EngineOptions,
        access: Arc<dyn Access>,
        store: impl FnOnce(StoreOptions) -> Result<TableStore, TableError>,
    ) -> Result<(Arc<Self>, RecoveryReport), StartError> {
        let started = Instant::now();
        let lock = lock_state(&options.state_dir)?;
        let metrics = Metrics::new()?;
        let ingest_metrics = Arc::new(IngestMetrics::new(metrics.registry())?);
        let (node, catalog) = open_catalog(&options).await?;
        let keys_directory = Some(options.state_dir.join("keys"));
        let store_options = StoreOptions { node: node.id(), keys_directory, ..options.store.clone() };
        let store = Arc::new(store(store_options)?);
        record::check(&catalog.jobs(&node.id()).await?)?;
        records::complete(&catalog, &store, &node.id()).await?;
        let tables = open_tables(&catalog, &store).await?;
        let wal_dirs = wal_dirs::to_open(&node, &options.state_dir, &options.ingest.wal_dirs)?;
        let (ingest, report) = Ingest::open(
            IngestOptions { retired_wal_dirs: wal_dirs.retired.clone(), ..options.ingest.clone() },
            Arc::new(OsDisk),
            ingest_metrics,
            Arc::new(CatalogLabels { catalog: Arc::clone(&catalog), node: node.id() }),
            &CatalogSchemas(Arc::clone(&catalog)),
            tables.clone(),
        )
        .await?;
        wal_dirs.remember(&node)?;
        let disk_bytes = disk_limit(options.spool_limit_bytes, &options.state_dir);
        let facts = Arc::new(Facts {
            names: names(&catalog, tables),
            catalog: Arc::clone(&catalog),
            processes: Processes::default(),
            globals: RwLock::default(),
            ports: OnceLock::new(),
            host: options.host.clone(),
            node: node.id(),
            tables: options.tables.clone(),
            files: FileReading {
                room: SpoolRoom {
                    memory: Arc::clone(ingest.memory()),
                    directory: empty_directory(options.state_dir.join("spool"))?,
                    disk: Arc::new(SpoolDisk::new(disk_bytes)),
                },
                local_dir: options.secure_load_dir.clone(),
                egress: Arc::clone(&options.egress),
                parallel: options.query.target_partitions,
            },
            started,
            started_unix_ms: unix_ms(),
            engine: OnceLock::new(),
        });
        let spill =
            Spill { directory: empty_directory(options.state_dir.join("spill"))?, limit_bytes: disk_bytes };
        let query_options = QueryOptions { spill: Some(spill), ..options.query.clone() };
        let nobody = EngineNamespace { facts: Arc::clone(&facts), viewer: None };
        let query = QueryEngine::new(Arc::new(nobody), &store, query_options).map_err(StartError::Query)?;
        let engine = Arc::new(Self {
            catalog: Arc::clone(&catalog),
            store,
            ingest,
            query,
            error_log: Arc::new(ErrorLog::new(options.state_dir.join("error_log"))),
            builders: Builders::default(),
            increments: AutoIncrements::new(Arc::new(CatalogIncrements(Arc::clone(&catalog)))),
            generated: GeneratedColumns::default(),
            jobs: Jobs::new(node.id(), Arc::new(Broker { egress: Arc::clone(&options.egress) })),
            decode_threads: crate::load::body::parts::DecodeThreads::new(),
            file_loads: crate::load::sink::file_loads(),
            broker_loads: BrokerLoads::new(Arc::clone(&catalog), node.id()),
            exports: Exports::new(Arc::clone(&catalog), node.id()),
            schema_changes: SchemaChanges::new(Arc::clone(&catalog), node.id()),
            load_records: LoadRecords::default(),
            row_changes: RowChanges::default(),
            overwrites: RunningOverwrites::default(),
            dynamic_tables: DynamicTables::default(),
            options,
            lines: crate::front::mysql::text_lines,
            facts,
            access,
            metrics,
            changing: tokio::sync::Mutex::new(()),
            turns: Turns::default(),
            running: Running { background: Mutex::default(), node, wal_dirs, _lock: lock },
        });
        drop(engine.facts.engine.set(Arc::downgrade(&engine)));
        engine.keep_recycled_files();
        engine.drop_unfinished_tables().await.map_err(StartError::Query)?;
        engine.drop_left_beside().await.map_err(StartError::Query)?;
        engine.collect_garbage().await.map_err(StartError::Query)?;
        engine.resume_broker_loads().await.map_err(StartError::Query)?;
        engine.resume_exports().await.map_err(StartError::Query)?;
        engine.resume_schema_changes().await.map_err(StartError::Query)?;
        engine.start_background();
        engine.start_jobs().await.map_err(StartError::Query)?;
        Ok((engine, report))
    }

    fn start_background(self: &Arc<Self>) {
        let mut tasks = self.ingest.start_maintenance();
        tasks.extend([
            self.repeat("purging_jobs", Self::purge_ended),
            self.repeat("scheduling_partitions", Self::schedule_partitions_now),
            self.repeat("emptying_recycle_bin", Self::empty_recycle_bin),
        ]);
        self.running.background.lock().extend(tasks);
    }

    /// Runs `work` repeatedly in a watched task, with the returned pause in between, as long as the engine exists.
    fn repeat<W: Future<Output = Duration> + Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        work: fn(Arc<Self>) -> W,
    ) -> JoinHandle<()> {
        let weak = Arc::downgrade(self);
        let repeated = move || {
            let weak = Weak::clone(&weak);
            async move {
                while let Some(engine) = weak.upgrade() {
                    let pause = work(engine).await;
                    tokio::time::sleep(pause).await;
                }
            }
        };
        self.ingest.watcher().spawn_watched(name, repeated).expect("an engine is never simulated")
    }

    async fn purge_ended(self: Arc<Self>) -> Duration {
        self.purge_error_logs().await;
        let before_ms = unix_ms() - self.options.ingest.label_keep.as_millis() as i64;
        self.purge_jobs(before_ms).await;
        self.broker_loads.purge(before_ms).await;
        self.exports.purge(before_ms).await;
        self.schema_changes.purge(before_ms).await;
        PURGE_INTERVAL
    }

    async fn schedule_partitions_now(self: Arc<Self>) -> Duration {
        self.schedule_partitions(unix_ms()).await;
        self.options.dynamic_partition_interval
    }

    async fn empty_recycle_bin(self: Arc<Self>) -> Duration {
        if let Err(error) = self.expire_recycled(unix_ms()).await {
            tracing::warn!(%error, "what was dropped long ago stays for now");
        }
        self.options.trash_expire.clamp(EXPIRE_INTERVAL_MIN, EXPIRE_INTERVAL_MAX)
    }

    /// Commits open groups, flushes all tables, stops the logs. Call it when no client is served
    /// any more.
    pub async fn shutdown(&self) {
        self.broker_loads.pause().await;
        self.exports.pause().await;
        self.schema_changes.pause().await;
        self.stop_jobs().await;
        let Running { background, node, wal_dirs, .. } = &self.running;
        let background = std::mem::take(&mut *background.lock());
        background.iter().for_each(JoinHandle::abort);
        for task in background {
            // Cancelled, as requested. Until then it may flush and release the logs.
            drop(task.await);
        }
        self.turns.end_switches().await;
        self.ingest.shutdown().await;
        if let Err(error) = wal_dirs.forget_empty(node, &self.ingest) {
            tracing::warn!(%error, "the list of write-ahead logs stays as it was");
        }
        self.catalog.close().await;
    }
}

/// Makes or empties a directory of files that no start needs.
fn empty_directory(path: PathBuf) -> Result<PathBuf, StartError> {
    emptied(path.clone()).map_err(|source| StartError::Io { action: "empty", path, source })
}

fn lock_state(root: &Path) -> Result<File, StartError> {
    let failed =
        |action: &'static str, path: &Path, source| StartError::Io { action, path: path.to_owned(), source };
    OsDisk.create_dir_all(root).map_err(|error| failed("create", root, error))?;
    let path = root.join("LOCK");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| failed("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::Locked(root.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed("lock", &path, error)),
    }
}

/// Opens this node's identity, and its catalog, which records it.
async fn open_catalog(options: &EngineOptions) -> Result<(NodeFile, Arc<Catalog>), StartError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let dir = &options.state_dir;
    let location = CatalogLocation::in_directory(dir);
    let mut found = NodeFile::read(Arc::clone(&disk), dir)?;
    if !location.exists() {
        refuse_missing_catalog(&location, options, found.as_ref())?;
        if found.is_none() {
            found = Some(NodeFile::create(Arc::clone(&disk), dir)?);
        }
    }
    keep_private(&location);
    let catalog = Catalog::open(&location).await?;
    let entry = catalog.node_entry().await?;
    let node = NodeFile::settle(found, &entry, disk, dir)?;
    if !matches!(entry, NodeEntry::InFile(_)) {
        catalog.node_is_in_file(&node.id()).await?;
    }
    Ok((node, Arc::new(catalog)))
}

/// Restricts reading of the catalog to the server's user: it contains the keys of stores that jobs need, in clear.
fn keep_private(location: &CatalogLocation) {
    let CatalogLocation::Sqlite(file) = location;
    // The files beside it inherit its mode.
    let kept = OpenOptions::new().create(true).append(true).mode(0o600).open(file).and_then(|file| {
        let mode = file.metadata()?.permissions().mode();
        let others = mode & 0o077;
        if others == 0 { Ok(()) } else { file.set_permissions(Permissions::from_mode(mode & 0o700)) }
    });
    if let Err(error) = kept {
        tracing::warn!(catalog = %location, %error, "others may be able to read the catalog, which has keys of stores");
    }
    for end in ["-wal", "-shm"] {
        let mut beside = file.clone().into_os_string();
        beside.push(end);
        // They exist while a catalog is open, and after a crash.
        let _ = std::fs::set_permissions(beside, Permissions::from_mode(0o600));
    }
}

/// A new catalog beside the tables and logs of an old one would give up every row.
fn refuse_missing_catalog(
    location: &CatalogLocation,
    options: &EngineOptions,
    node: Option<&NodeFile>,
) -> Result<(), StartError> {
    let tables = options.tables.directory().join("tables");
    let log = || options.ingest.wal_dirs.iter().find(|dir| is_in_use(dir)).cloned();
    let table =
        || std::fs::read_dir(&tables).is_ok_and(|mut inside| inside.next().is_some()).then(|| tables.clone());
    let node = || node.filter(|node| !node.wal_dirs().is_empty()).map(NodeFile::path);
    log().or_else(table).or_else(node).map_or(Ok(()), |evidence| {
        Err(CatalogError::Missing { path: location.to_string(), evidence: evidence.display().to_string() }
            .into())
    })
}

async fn open_tables(catalog: &Catalog, store: &Arc<TableStore>) -> Result<Vec<Arc<Table>>, TableError> {
    // In tasks of their own, so that all processors open tables.
    let open = |def: Arc<TableDef>| {
        let store = Arc::clone(store);
        // Unwatched: the caller waits for it and passes its panic on.
        tokio::spawn(async move { store.open(&def).await })
    };
    let opened =
        futures::stream::iter(catalog.all_tables()).map(open).buffer_unordered(TABLES_OPENED_AT_ONCE);
    opened.map(|opened| opened.unwrap_or_else(|error| resume_unwind(error.into_panic()))).try_collect().await
}

fn names(catalog: &Catalog, tables: Vec<Arc<Table>>) -> Names {
    let names = Names::default();
    for database in catalog.databases() {
        if let Some(id) = catalog.database_id(&database) {
            names.add_database(&database, id);
        }
    }
    for table in tables {
        names.add_table(table);
    }
    names
}

//! What a server is made of, started and stopped in the right order.

use crate::access::{Access, Everything, Object, Privilege};
use crate::builders::Builders;
use crate::error_log::ErrorLog;
use crate::labels::{CatalogLabels, CatalogSchemas};
use crate::metrics::{self, Gauges};
use crate::names::Names;
use crate::namespace::{EngineNamespace, Facts};
use crate::options::{EngineOptions, Ports};
use crate::processes::Processes;
use crate::start_error::StartError;
use crate::variables::Variables;
use crate::wal_dirs::{self, WalDirs};
use futures::{StreamExt, TryStreamExt};
use parking_lot::RwLock;
use prometheus::Registry;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tributary_catalog::{Catalog, CatalogError, CatalogLocation};
use tributary_ingest::{Ingest, IngestMetrics, IngestOptions, RecoveryReport};
use tributary_query::QueryEngine;
use tributary_table::{Table, TableError, TableStore};
use tributary_types::host::unix_ms;
use tributary_types::system::is_information_schema;
use tributary_types::{DbId, ErrorCode, PasswordHash, Principal, SqlError};
use tributary_wal::OsDisk;

/// How many tables are opened at a time.
const TABLES_OPENED_AT_ONCE: usize = 16;
/// How often error logs are purged.
const PURGE_INTERVAL: Duration = Duration::from_secs(3600);

/// A server's parts.
pub struct Engine {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) store: TableStore,
    pub(crate) ingest: Arc<Ingest>,
    /// Queries of nobody, who sees no table: for expressions over the fields of a load.
    pub(crate) query: QueryEngine,
    facts: Arc<Facts>,
    access: Arc<dyn Access>,
    pub(crate) names: Arc<Names>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) error_log: Arc<ErrorLog>,
    registry: Registry,
    gauges: Gauges,
    pub(crate) builders: Builders,
    /// Turns of loads that write data files.
    pub(crate) file_loads: Arc<Semaphore>,
    pub(crate) options: EngineOptions,
    /// Held by a change of the catalog from its check to its end.
    pub(crate) changing: tokio::sync::Mutex<()>,
    globals: Arc<RwLock<Variables>>,
    ports: Arc<OnceLock<Ports>>,
    started: Instant,
    background: parking_lot::Mutex<Vec<tokio::task::JoinHandle<()>>>,
    wal_dirs: WalDirs,
    /// Locked while this process has the storage root.
    _lock: std::fs::File,
}

impl Engine {
    /// Opens the storage root: catalog, tables, logs. Every acknowledged row is in its table, once,
    /// when this returns.
    ///
    /// # Errors
    /// See [`StartError`]; nothing was changed that the next start would not put right.
    pub async fn open(options: EngineOptions) -> Result<(Arc<Self>, RecoveryReport), StartError> {
        Self::open_with(options, Arc::new(Everything)).await
    }

    pub(crate) async fn open_with(
        options: EngineOptions,
        access: Arc<dyn Access>,
    ) -> Result<(Arc<Self>, RecoveryReport), StartError> {
        let started = Instant::now();
        let lock = lock_state(&options.state_dir)?;
        let registry = Registry::new();
        let ingest_metrics = Arc::new(IngestMetrics::new(&registry)?);
        let gauges = Gauges::new(&registry)?;
        let location = CatalogLocation::in_directory(&options.state_dir);
        if !location.exists() {
            refuse_missing_catalog(&location, &options)?;
        }
        let catalog = Arc::new(Catalog::open(&location).await?);
        let node = catalog.node().node_id.clone();
        let store_options = tributary_table::StoreOptions { node: node.clone(), ..options.store.clone() };
        let store = TableStore::local(options.tables.directory(), store_options)?;
        let tables = open_tables(&catalog, &store).await?;
        let wal_dirs = wal_dirs::to_open(&catalog, &options.state_dir, &options.ingest.wal_dirs).await?;
        let (ingest, report) = Ingest::open(
            IngestOptions { retired_wal_dirs: wal_dirs.retired.clone(), ..options.ingest.clone() },
            Arc::new(OsDisk),
            ingest_metrics,
            Arc::new(CatalogLabels(Arc::clone(&catalog))),
            &CatalogSchemas(Arc::clone(&catalog)),
            tables.clone(),
        )
        .await?;
        wal_dirs.remember(&catalog).await?;
        let names = Arc::new(Names::default());
        for database in catalog.databases() {
            if let Some(id) = catalog.database_id(&database) {
                names.add_database(&database, id);
            }
        }
        for table in tables {
            names.add_table(table);
        }
        let processes = Arc::new(Processes::default());
        let globals: Arc<RwLock<Variables>> = Arc::default();
        let ports: Arc<OnceLock<Ports>> = Arc::default();
        let facts = Arc::new(Facts {
            catalog: Arc::clone(&catalog),
            names: Arc::clone(&names),
            processes: Arc::clone(&processes),
            globals: Arc::clone(&globals),
            ports: Arc::clone(&ports),
            host: options.host.clone(),
            node,
            tables: options.tables.clone(),
            started,
            started_unix_ms: unix_ms(),
        });
        let nobody = EngineNamespace { facts: Arc::clone(&facts), viewer: None };
        let query =
            QueryEngine::new(Arc::new(nobody), &store, options.query.clone()).map_err(StartError::Query)?;
        let error_log = Arc::new(ErrorLog::new(options.state_dir.join("error_log")));
        let engine = Arc::new(Self {
            catalog,
            store,
            ingest,
            query,
            facts,
            access,
            names,
            processes,
            error_log,
            registry,
            gauges,
            builders: Builders::default(),
            file_loads: crate::sink::file_loads(),
            options,
            changing: tokio::sync::Mutex::new(()),
            globals,
            ports,
            started,
            background: parking_lot::Mutex::default(),
            wal_dirs,
            _lock: lock,
        });
        engine.collect_garbage().await.map_err(StartError::Query)?;
        engine.start_background();
        Ok((engine, report))
    }

    fn start_background(self: &Arc<Self>) {
        let maintain = tokio::spawn(Arc::clone(&self.ingest).maintain());
        let engine = Arc::downgrade(self);
        let purge = tokio::spawn(async move {
            while let Some(engine) = engine.upgrade() {
                engine.purge_error_logs().await;
                drop(engine);
                tokio::time::sleep(PURGE_INTERVAL).await;
            }
        });
        self.background.lock().extend([maintain, purge]);
    }

    /// Commits open groups, flushes all tables, stops the logs. Call it when no client is served
    /// any more.
    pub async fn shutdown(&self) {
        let background = std::mem::take(&mut *self.background.lock());
        background.iter().for_each(tokio::task::JoinHandle::abort);
        for task in background {
            // Cut off, as it was told to be. Until it is, it may flush and release the logs.
            drop(task.await);
        }
        self.ingest.shutdown().await;
        if let Err(error) = self.wal_dirs.forget_empty(&self.catalog, &self.ingest).await {
            tracing::warn!(%error, "the list of write-ahead logs stays as it was");
        }
        self.catalog.close().await;
    }

    /// Tells the ports that the server listens on, once.
    pub fn set_ports(&self, ports: Ports) {
        if self.ports.set(ports).is_err() {
            tracing::warn!("the ports were set twice; the first ones stay");
        }
    }

    pub(crate) fn ports(&self) -> Ports {
        self.ports.get().copied().unwrap_or_default()
    }

    /// All metrics in Prometheus' text format.
    pub(crate) fn metrics_text(&self) -> String {
        self.gauges.read(&self.ingest, &self.names.all_tables(), self.processes.all().len());
        metrics::text(&self.registry)
    }

    /// The users that have no password.
    #[must_use]
    pub fn users_without_password(&self) -> Vec<String> {
        let users = self.catalog.users();
        let open = users.iter().filter(|user| user.password_hash.is_empty());
        let mut names: Vec<String> = open.map(|user| user.name.clone()).collect();
        names.sort();
        names
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn unix_ms(&self) -> i64 {
        unix_ms()
    }

    /// Asks whether `principal` may.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn check(
        &self,
        principal: &Principal,
        privilege: Privilege,
        object: Object<'_>,
    ) -> Result<(), SqlError> {
        self.access.check(principal, privilege, object)
    }

    /// Queries over what `principal` may see.
    pub(crate) fn queries(&self, principal: &Principal) -> QueryEngine {
        let viewer = Some((Arc::clone(&self.access), principal.clone()));
        self.query.with_namespace(Arc::new(EngineNamespace { facts: Arc::clone(&self.facts), viewer }))
    }

    /// The database of that name.
    ///
    /// # Errors
    /// No privilege, or an unknown database.
    pub(crate) fn database(
        &self,
        principal: &Principal,
        privilege: Privilege,
        name: &str,
    ) -> Result<DbId, SqlError> {
        self.check(principal, privilege, Object::Database(name))?;
        self.names.database_id(name)
    }

    /// The table that a statement names: `name` in `db`, or in the session's database.
    ///
    /// # Errors
    /// No database selected, no privilege, unknown database or table.
    pub(crate) fn table(
        &self,
        principal: &Principal,
        privilege: Privilege,
        session_db: Option<&str>,
        db: Option<&str>,
        name: &str,
    ) -> Result<Arc<Table>, SqlError> {
        let db = db.or(session_db);
        let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        if is_information_schema(db) {
            return Err(SqlError::new(
                ErrorCode::DbAccessDenied,
                "Access denied: tables of information_schema can be read only",
            ));
        }
        self.check(principal, privilege, Object::Table { db, table: name })?;
        self.names.table(db, name)
    }

    pub(crate) fn global_variables(&self) -> Variables {
        self.globals.read().clone()
    }

    /// Shows a setting of the server as a variable of sessions that begin later.
    pub fn announce(&self, variable: &'static str, value: u64) {
        self.set_global(variable, Some(&value.to_string())).expect("a setting is legal as its variable");
    }

    pub(crate) fn set_global(&self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let mut globals = self.globals.write();
        match value {
            Some(value) => globals.set_global(name, value),
            None => globals.reset(name),
        }
    }

    /// The server's time zone.
    pub(crate) fn time_zone(&self) -> String {
        self.globals.read().values().time_zone.name.clone()
    }

    pub(crate) fn kill_connection(&self, principal: &Principal, id: u32) -> Result<(), SqlError> {
        self.check(principal, Privilege::Admin, Object::Connection(id))?;
        self.process(id).map(|process| process.kill())
    }

    pub(crate) fn kill_statement(&self, principal: &Principal, id: u32) -> Result<(), SqlError> {
        self.check(principal, Privilege::Admin, Object::Connection(id))?;
        self.process(id).map(|process| process.stop.set())
    }

    fn process(&self, id: u32) -> Result<Arc<crate::processes::Process>, SqlError> {
        self.processes
            .find(id)
            .ok_or_else(|| SqlError::new(ErrorCode::UnknownThread, format!("Unknown thread id: {id}")))
    }

    /// Sets the password of every user of that name.
    pub(crate) async fn set_password(&self, name: &str, hash: PasswordHash) -> Result<(), SqlError> {
        let hosts: Vec<String> = self
            .catalog
            .users()
            .iter()
            .filter(|user| user.name == name)
            .map(|user| user.host.clone())
            .collect();
        if hosts.is_empty() {
            return Err(CatalogError::UnknownUser { name: name.to_owned(), host: "%".to_owned() }.into());
        }
        for host in hosts {
            self.catalog.set_password(name, &host, hash).await?;
        }
        Ok(())
    }

    /// A user whose password was checked.
    pub(crate) fn principal(&self, user: &str, host: &str) -> Principal {
        Principal::new(user, host, self.names.generation())
    }

    pub(crate) fn has_password(&self, name: &str) -> bool {
        self.catalog.users().iter().any(|user| user.name == name && !user.password_hash.is_empty())
    }

    /// The user with that password, which came in the clear (HTTP Basic).
    ///
    /// # Errors
    /// [`ErrorCode::AccessDenied`].
    pub(crate) fn authenticate(&self, name: &str, password: &str, host: &str) -> Result<Principal, SqlError> {
        // `user@cluster` is an older way to name a user.
        let name = name.split('@').next().unwrap_or(name);
        let matches = self
            .catalog
            .find_user(name, host)
            .is_some_and(|user| user.password_hash == PasswordHash::of(password));
        if matches {
            return Ok(self.principal(name, host));
        }
        let using = if password.is_empty() { "NO" } else { "YES" };
        Err(SqlError::new(
            ErrorCode::AccessDenied,
            format!("Access denied for user '{name}'@'{host}' (using password: {using})"),
        ))
    }
}

fn lock_state(root: &std::path::Path) -> Result<std::fs::File, StartError> {
    let failed = |action: &'static str, path: &std::path::Path, source| StartError::Io {
        action,
        path: path.to_owned(),
        source,
    };
    std::fs::create_dir_all(root).map_err(|error| failed("create", root, error))?;
    let path = root.join("LOCK");
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| failed("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StartError::Locked(root.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(failed("lock", &path, error)),
    }
}

/// A new catalog beside the tables and logs of an old one would give up every row.
fn refuse_missing_catalog(location: &CatalogLocation, options: &EngineOptions) -> Result<(), StartError> {
    let tables = options.tables.directory().join("tables");
    let evidence = options.ingest.wal_dirs.iter().find(|dir| wal_dirs::is_in_use(dir)).or_else(|| {
        std::fs::read_dir(&tables).is_ok_and(|mut inside| inside.next().is_some()).then_some(&tables)
    });
    evidence.map_or(Ok(()), |evidence| {
        Err(CatalogError::Missing { path: location.to_string(), evidence: evidence.display().to_string() }
            .into())
    })
}

async fn open_tables(catalog: &Catalog, store: &TableStore) -> Result<Vec<Arc<Table>>, TableError> {
    futures::stream::iter(catalog.all_tables())
        .map(|def| async move { store.open(&def).await })
        .buffer_unordered(TABLES_OPENED_AT_ONCE)
        .try_collect()
        .await
}

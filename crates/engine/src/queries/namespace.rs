//! The query engine's view of the server: names and facts.

use crate::access::events::Events;
use crate::access::limits::Limits;
use crate::access::names::Names;
use crate::access::processes::{Process, Processes};
use crate::access::{Access, Object, Privilege, Readable, Resource};
use crate::ddl::partitions::temporary::name_beside;
use crate::files::FileReading;
use crate::node::clock::date_time;
use crate::node::options::{Ports, ServerSettings, StorageRoot};
use crate::queries::live;
use crate::queries::nodes::{self, Nodes, cpu_cores};
use crate::variables::{VERSION_COMMENT, Variables};
use crate::watch::Watch;
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use tributary_catalog::Catalog;
use tributary_ingest::Ingest;
use tributary_query::{
    Cell, Decommission, FileTable, JobKind, LiveTable, Namespace, PageCacheFigures, ProcessRow,
    SchemaChangeRow, ServerFacts, SessionView,
};
use tributary_sql::{FileCall, FileFunction};
use tributary_table::{Table, TableStore};
use tributary_types::privilege::Grants;
use tributary_types::{
    ColumnChange, ErrorCode, Principal, SqlError, TableDef, TableId, UserProperty, ViewDef,
};

/// The common part of all users' views, with which the engine looks up names and connections.
pub(crate) struct Facts {
    pub catalog: Arc<Catalog>,
    pub nodes: Nodes,
    pub names: Arc<Names>,
    pub limits: Arc<Limits>,
    pub processes: Arc<Processes>,
    pub ingest: Arc<Ingest>,
    pub store: Arc<TableStore>,
    pub watch: Arc<Watch>,
    pub events: Arc<Events>,
    /// Shows and changes the settings; set before the server listens.
    pub settings: OnceLock<Arc<dyn ServerSettings>>,
    pub globals: Arc<RwLock<Variables>>,
    pub ports: OnceLock<Ports>,
    pub host: String,
    pub node: String,
    pub tables: StorageRoot,
    pub files: FileReading,
    pub started: Instant,
    pub started_unix_ms: i64,
    /// Memory of what is made after this; set once the server is assembled.
    pub memory: OnceLock<Box<dyn Fn() -> OtherMemory + Send + Sync>>,
    /// The backup that is being taken.
    pub backup: Mutex<Option<RunningBackup>>,
    /// Source of the jobs; set once the server is assembled.
    pub jobs: OnceLock<Weak<dyn ShownJobs>>,
}

impl Facts {
    /// The work left to a server that takes no loads. `None`: it takes them.
    pub fn decommission(&self) -> Option<Decommission> {
        if !self.limits.is_draining() {
            return None;
        }
        // In the order of a load's way: what moves meanwhile is counted twice rather than not at all.
        let loads = self.limits.running_loads();
        let groups = self.ingest.open_groups();
        let wal_bytes = self.ingest.wal_spaces().iter().map(|space| space.wal.live_bytes()).sum();
        Some(Decommission { loads, groups, wal_bytes })
    }
}

/// Memory of sessions and queries, and the most that there may be, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OtherMemory {
    pub sessions: u64,
    pub sessions_limit: u64,
    pub queries: u64,
    pub queries_limit: u64,
    pub page_cache: PageCacheFigures,
}

/// A backup of the server that is being taken.
pub(crate) struct RunningBackup {
    pub place: String,
    pub begun_ms: i64,
    /// Files and bytes that were written so far.
    pub written: Box<dyn Fn() -> (u64, u64) + Send + Sync>,
}

/// The jobs of the server, as `information_schema` and SHOW have them.
pub(crate) trait ShownJobs: Send + Sync {
    /// Heavy schema changes of a database's tables, oldest first.
    fn schema_changes(&self, db: &str) -> Vec<SchemaChangeRow>;

    /// Jobs of a database, as `who` may see them.
    fn rows(&self, kind: JobKind, who: &Principal, db: &str) -> Vec<Vec<Cell>>;

    /// Jobs that run an INSERT at given times, or their runs, as `who` may see them.
    fn scheduled(&self, who: &Principal, runs: bool) -> Vec<Vec<Cell>>;
}

/// A kept rejected row, as its table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RejectId {
    pub txn: u64,
    /// The load's number in its transaction.
    pub load: u64,
    /// Its number among the kept ones of the load, from 1.
    pub reject: u64,
}

/// The server as one user may see it.
pub(crate) struct EngineNamespace {
    pub facts: Arc<Facts>,
    /// `None`: no user; sees no tables.
    pub viewer: Option<(Arc<dyn Access>, Principal)>,
    /// `Some`: of the rejected rows only these are seen.
    pub rejects: Option<Arc<BTreeSet<RejectId>>>,
}

impl Facts {
    /// The table that has the temporary partitions of this one, if it has any.
    pub fn beside(&self, def: &TableDef) -> Option<Arc<Table>> {
        self.names.find_of_any_role(&def.db, &name_beside(def.id))
    }
}

impl EngineNamespace {
    fn shows(&self, object: Object<'_>) -> bool {
        self.viewer.as_ref().is_some_and(|(access, who)| access.allows(who, Privilege::Show, object))
    }
}

impl EngineNamespace {
    /// Heavy schema changes in the form of jobs, of tables that the user may see.
    fn schema_change_jobs(&self, jobs: &dyn ShownJobs, db: &str) -> Vec<Vec<Cell>> {
        let tables = self.facts.names.all_tables();
        let row = |change: SchemaChangeRow| {
            let def = tables.iter().find(|table| table.id() == change.table)?.def();
            let is_shown = def.role.is_own() && self.shows(Object::Table { db: &def.db, table: &def.name });
            is_shown.then(|| {
                vec![
                    change.job.into(),
                    "SCHEMA_CHANGE".into(),
                    def.db.as_str().into(),
                    def.name.as_str().into(),
                    Cell::Null,
                    change.state.into(),
                    change.progress.into(),
                    date_time(change.created_ms).into(),
                    change.finished_ms.map(date_time).into(),
                    Cell::Null,
                    Some(change.message).filter(|text| !text.is_empty()).into(),
                ]
            })
        };
        jobs.schema_changes(db).into_iter().filter_map(row).collect()
    }

    /// The backup that is being taken, for those who may take one.
    fn running_backup(&self) -> Option<Vec<Cell>> {
        let (access, who) = self.viewer.as_ref()?;
        if !access.allows(who, Privilege::Node, Object::Server) {
            return None;
        }
        let running = self.facts.backup.lock();
        let RunningBackup { place, begun_ms, written } = running.as_ref()?;
        let (files, bytes) = written();
        Some(vec![
            Cell::Null,
            "BACKUP".into(),
            Cell::Null,
            Cell::Null,
            place.as_str().into(),
            "RUNNING".into(),
            format!("{files} files, {bytes} bytes").into(),
            date_time(*begun_ms).into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ])
    }

    /// A user's own connections are shown to it.
    fn shows_process(&self, process: &Process) -> bool {
        self.viewer.as_ref().is_some_and(|(_, who)| process.is_of(who))
            || self.shows(Object::Connection(process.id))
    }
}

/// Checks that a user may read a table or view, or some of its columns.
fn check_readable(access: &dyn Access, who: &Principal, db: &str, table: &str) -> Result<(), SqlError> {
    access.check(who, Privilege::Select, Object::Table { db, table }).or_else(|refused| {
        match access.readable(who, db, table) {
            Readable::Nothing => Err(refused),
            Readable::All | Readable::Only(_) => Ok(()),
        }
    })
}

impl Namespace for EngineNamespace {
    fn databases(&self) -> Vec<String> {
        let all = self.facts.names.databases();
        all.into_iter().filter(|name| self.shows(Object::Database(name))).collect()
    }

    fn tables(&self, database: &str) -> Vec<Arc<Table>> {
        let mut all = self.facts.names.tables(database);
        all.retain(|table| {
            let def = table.def();
            def.role.is_own() && self.shows(Object::Table { db: database, table: &def.name })
        });
        all
    }

    fn tables_called(&self, database: &str, names: &BTreeSet<String>) -> Vec<Arc<Table>> {
        let is_shown = |name: &&String| self.shows(Object::Table { db: database, table: name.as_str() });
        names.iter().filter(is_shown).filter_map(|name| self.facts.names.find(database, name)).collect()
    }

    fn table(&self, database: &str, name: &str) -> Result<Option<Arc<Table>>, SqlError> {
        let Some((access, who)) = &self.viewer else { return Ok(None) };
        check_readable(&**access, who, database, name)?;
        Ok(self.table_of_view(database, name))
    }

    fn grants(&self) -> Vec<(String, Grants)> {
        let Some((access, who)) = &self.viewer else { return Vec::new() };
        let sees_all = access.allows(who, Privilege::Grant, Object::Server);
        let users = self.facts.catalog.users();
        let shown = users
            .iter()
            .filter(|user| sees_all || (user.name == who.user() && user.host == who.account_host()));
        let grants = shown.map(|user| {
            let grants = self.facts.catalog.grants_of(&user.name, &user.host).unwrap_or_default();
            (format!("'{}'@'{}'", user.name, user.host), grants)
        });
        grants.collect()
    }

    fn readable_columns(&self, database: &str, name: &str) -> Option<Arc<BTreeSet<String>>> {
        let (access, who) = self.viewer.as_ref()?;
        match access.readable(who, database, name) {
            Readable::Only(columns) => Some(columns),
            Readable::All | Readable::Nothing => None,
        }
    }

    fn views(&self, database: &str) -> Vec<Arc<ViewDef>> {
        let mut all = self.facts.catalog.views(database);
        all.retain(|view| self.shows(Object::Table { db: database, table: &view.name }));
        all
    }

    fn view(&self, database: &str, name: &str) -> Result<Option<Arc<ViewDef>>, SqlError> {
        let Some((access, who)) = &self.viewer else { return Ok(None) };
        check_readable(&**access, who, database, name)?;
        Ok(self.view_of_view(database, name))
    }

    fn described_table(&self, database: &str, name: &str) -> Result<Option<Arc<Table>>, SqlError> {
        let Some((access, who)) = &self.viewer else { return Ok(None) };
        access.check(who, Privilege::Show, Object::Table { db: database, table: name })?;
        Ok(self.table_of_view(database, name))
    }

    fn described_view(&self, database: &str, name: &str) -> Result<Option<Arc<ViewDef>>, SqlError> {
        let Some((access, who)) = &self.viewer else { return Ok(None) };
        access.check(who, Privilege::Show, Object::Table { db: database, table: name })?;
        Ok(self.view_of_view(database, name))
    }

    fn table_of_view(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        self.facts.names.find(database, name)
    }

    fn beside(&self, def: &TableDef) -> Option<Arc<Table>> {
        self.facts.beside(def)
    }

    fn view_of_view(&self, database: &str, name: &str) -> Option<Arc<ViewDef>> {
        self.facts.catalog.view(database, name)
    }

    fn column_changes(&self, table: TableId) -> Vec<ColumnChange> {
        self.facts.catalog.column_changes(table)
    }

    fn schema_changes(&self, database: &str) -> Vec<SchemaChangeRow> {
        let jobs = self.facts.jobs.get().and_then(Weak::upgrade);
        jobs.map(|jobs| jobs.schema_changes(database)).unwrap_or_default()
    }

    fn files<'a>(
        &'a self,
        call: &'a FileCall,
        session: &'a SessionView,
    ) -> BoxFuture<'a, Result<Arc<dyn FileTable>, SqlError>> {
        Box::pin(async move {
            match &self.viewer {
                Some((access, who)) => {
                    let resource = match call.function {
                        FileFunction::S3 => Resource::S3,
                        FileFunction::Http => Resource::Http,
                        FileFunction::Local => Resource::Local,
                    };
                    access.check(who, Privilege::Usage, Object::Resource(resource))?;
                }
                None => {
                    let text = "files can't be read here: name them in FROM of a query of its own";
                    return Err(SqlError::detail(ErrorCode::NotSupported, text));
                }
            }
            self.facts.files.open(call, session).await
        })
    }

    fn jobs(&self, kind: JobKind) -> Vec<Vec<Cell>> {
        let jobs = self.facts.jobs.get().and_then(Weak::upgrade);
        let (Some(jobs), Some((_, who))) = (jobs, &self.viewer) else { return Vec::new() };
        if matches!(kind, JobKind::Scheduled | JobKind::ScheduledRuns) {
            return jobs.scheduled(who, kind == JobKind::ScheduledRuns);
        }
        let databases = self.databases();
        let mut rows: Vec<_> = databases.iter().flat_map(|db| jobs.rows(kind, who, db)).collect();
        if kind == JobKind::Every {
            rows.extend(databases.iter().flat_map(|db| self.schema_change_jobs(&*jobs, db)));
            rows.extend(self.running_backup());
        }
        rows
    }

    fn query_memory_bytes_max(&self) -> Option<u64> {
        let (_, who) = self.viewer.as_ref()?;
        self.facts.limits.value(who, UserProperty::ExecMemLimit)
    }

    fn processes(&self) -> Vec<ProcessRow> {
        let all = self.facts.processes.all();
        all.iter()
            .filter(|process| self.shows_process(process))
            .map(|process| {
                let state = process.state();
                let is_running = state.is_running;
                ProcessRow {
                    id: process.id,
                    user: state.principal.user().to_owned(),
                    host: process.peer.to_string(),
                    login_time: date_time(process.login_unix_ms),
                    database: state.database,
                    command: if is_running { "Query" } else { "Sleep" }.to_owned(),
                    seconds: state.since.elapsed().as_secs(),
                    state: if is_running { "OK" } else { "" }.to_owned(),
                    query_id: String::new(),
                    statement: process.shown_statement(),
                }
            })
            .collect()
    }

    fn live(&self, table: LiveTable) -> Vec<Vec<Cell>> {
        let shows =
            |def: &TableDef| def.role.is_own() && self.shows(Object::Table { db: &def.db, table: &def.name });
        let shows_server = || {
            let viewer = self.viewer.as_ref();
            viewer.is_some_and(|(access, who)| access.allows(who, Privilege::Admin, Object::Server))
        };
        let reads = |def: &TableDef| {
            let table = Object::Table { db: &def.db, table: &def.name };
            let viewer = self.viewer.as_ref();
            def.role.is_own()
                && viewer.is_some_and(|(access, who)| access.allows(who, Privilege::Select, table))
        };
        live::rows(table, &self.facts, shows, (reads, self.rejects.as_deref()), shows_server)
    }

    fn check_shows_server(&self) -> Result<(), SqlError> {
        match &self.viewer {
            Some((access, who)) => access.check(who, Privilege::Show, Object::Server),
            None => {
                let text =
                    "the nodes of the server can't be read here: name them in FROM of a query of its own";
                Err(SqlError::detail(ErrorCode::NotSupported, text))
            }
        }
    }

    fn server_facts(&self) -> ServerFacts {
        let ports = self.facts.ports.get().copied().unwrap_or_default();
        let tables = self.facts.names.all_tables();
        let data_bytes = tables
            .iter()
            .flat_map(|table| table.snapshot().files.to_vec())
            .map(|file| file.size_bytes())
            .sum();
        let disk = rustix::fs::statvfs(self.facts.tables.directory()).ok();
        ServerFacts {
            node_name: self.facts.node.clone(),
            host: self.facts.host.clone(),
            query_port: ports.mysql,
            http_port: ports.http,
            webserver_port: ports.webserver,
            flight_port: ports.flight,
            version: VERSION_COMMENT.to_lowercase().replace(' ', "-"),
            start_time: date_time(self.facts.started_unix_ms),
            uptime_seconds: self.facts.started.elapsed().as_secs(),
            data_bytes,
            disk_available_bytes: disk.as_ref().map_or(0, |disk| disk.f_bavail * disk.f_frsize),
            disk_total_bytes: disk.as_ref().map_or(0, |disk| disk.f_blocks * disk.f_frsize),
            cpu_cores: cpu_cores(),
            status: vec![
                ("Uptime".to_owned(), self.facts.started.elapsed().as_secs().to_string()),
                ("Threads_connected".to_owned(), self.facts.processes.all().len().to_string()),
                ("Open_tables".to_owned(), tables.len().to_string()),
            ],
            decommission: self.facts.decommission(),
            reads_only: self.facts.nodes.reads_only,
            node_number: nodes::number(&self.facts.node, self.facts.nodes.reads_only),
            others: nodes::others(&self.facts),
            ..ServerFacts::default()
        }
    }

    fn global_variables(&self) -> Vec<(String, String)> {
        let shown = self.facts.globals.read().shown();
        shown.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

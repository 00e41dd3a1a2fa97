//! The parts of a server, and who may look up what in it.
//!
//! Invariant: a name is looked up for a principal, and only after [`Access`] has said yes; the names themselves are
//! known to this module and to those below it alone.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `start` | the parts are made, started and stopped in the right order |

mod start;

use crate::access::finished::RequestMetrics;
use crate::access::processes::{Process, Processes};
use crate::access::{Access, Object, Privilege};
use crate::ddl::change::schema::SchemaChanges;
use crate::ddl::change::turns::Turns;
use crate::ddl::partitions::dynamic::DynamicTables;
use crate::files::outfile::LineFormat;
use crate::jobs::broker_load::BrokerLoads;
use crate::jobs::export::Exports;
use crate::jobs::routine_load::Jobs;
use crate::load::body::parts::DecodeThreads;
use crate::load::builders::Builders;
use crate::load::error_log::ErrorLog;
use crate::load::generated::GeneratedColumns;
use crate::load::load_records::LoadRecords;
use crate::load::overwrites::RunningOverwrites;
use crate::load::row_changes::RowChanges;
use crate::node::host::SpoolRoom;
use crate::node::metrics::Metrics;
use crate::node::names::Names;
use crate::node::options::{EngineOptions, Ports};
use crate::queries::namespace::{EngineNamespace, Facts};
use crate::variables::Variables;
use start::Running;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tributary_catalog::{Catalog, CatalogError};
use tributary_ingest::{AutoIncrements, Ingest};
use tributary_query::QueryEngine;
use tributary_table::{Table, TableStore};
use tributary_types::host::unix_ms;
use tributary_types::system::is_information_schema;
use tributary_types::{DbId, ErrorCode, PasswordHash, Principal, SqlError, TableId};

/// A server's parts.
pub struct Engine {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) store: Arc<TableStore>,
    pub(crate) ingest: Arc<Ingest>,
    /// Queries without a user, who sees no tables: for expressions over the fields of a load.
    pub(crate) query: QueryEngine,
    pub(crate) error_log: Arc<ErrorLog>,
    pub(crate) builders: Builders,
    /// Values of AUTO_INCREMENT columns.
    pub(crate) increments: AutoIncrements,
    /// Expressions of generated columns.
    pub(crate) generated: GeneratedColumns,
    pub(crate) jobs: Jobs,
    /// Threads that decode parts of large bodies.
    pub(crate) decode_threads: DecodeThreads,
    /// Turns of loads that write data files.
    pub(crate) file_loads: Arc<Semaphore>,
    pub(crate) broker_loads: BrokerLoads,
    pub(crate) exports: Exports,
    pub(crate) schema_changes: SchemaChanges,
    pub(crate) load_records: LoadRecords,
    /// Turns of statements that change rows which they have read.
    pub(crate) row_changes: RowChanges,
    /// The targets of running INSERT OVERWRITE statements.
    pub(crate) overwrites: RunningOverwrites,
    /// How tables with dynamic partitions were when they were last looked at.
    pub(crate) dynamic_tables: DynamicTables,
    pub(crate) options: EngineOptions,
    /// How files of text have rows.
    pub(crate) lines: LineFormat,
    /// Names, connections, variables: what users see parts of.
    pub(crate) facts: Arc<Facts>,
    pub(crate) access: Arc<dyn Access>,
    pub(crate) metrics: Metrics,
    /// Held while the names and the catalog change together.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) turns: Turns,
    running: Running,
}

impl Engine {
    /// Sets the ports that the server listens on, once.
    pub fn set_ports(&self, ports: Ports) {
        if self.facts.ports.set(ports).is_err() {
            tracing::warn!("the ports were set twice; the first ones stay");
        }
    }

    pub(crate) fn ports(&self) -> Ports {
        self.facts.ports.get().copied().unwrap_or_default()
    }

    /// All metrics in Prometheus' text format.
    pub(crate) fn metrics_text(&self) -> String {
        self.metrics.text(&self.ingest, &self.names().all_tables(), self.processes().all().len())
    }

    pub(crate) fn request_metrics(&self) -> &RequestMetrics {
        &self.metrics.requests
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
        self.facts.started.elapsed()
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

    /// Room for bodies that are read from their end.
    pub(crate) fn spool_room(&self) -> SpoolRoom {
        self.facts.files.room.clone()
    }

    pub(crate) fn names(&self) -> &Names {
        &self.facts.names
    }

    /// Grows with every change of a name or a definition; a plan made at this generation is good while it stays.
    pub(crate) fn generation(&self) -> u64 {
        self.names().generation()
    }

    pub(crate) fn table_count(&self) -> usize {
        self.names().all_tables().len()
    }

    pub(crate) fn processes(&self) -> &Processes {
        &self.facts.processes
    }

    /// Checks that a session may select the database.
    ///
    /// # Errors
    /// No privilege, or an unknown database.
    pub(crate) fn check_use(&self, principal: &Principal, name: &str) -> Result<(), SqlError> {
        self.check(principal, Privilege::Connect, Object::Database(name))?;
        if !self.names().has_database(name) {
            return Err(SqlError::new(ErrorCode::UnknownDatabase, format!("Unknown database '{name}'")));
        }
        Ok(())
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
        self.names().database_id(name)
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
        self.table_called(db, name)
    }

    /// The table of that name, without asking who wants it.
    ///
    /// # Errors
    /// Unknown database or table, or it is a view.
    pub(crate) fn table_called(&self, db: &str, name: &str) -> Result<Arc<Table>, SqlError> {
        self.names().table(db, name).map_err(|error| match self.catalog.view(db, name) {
            Some(view) => SqlError::wrong_object(&view.table_ref(), "BASE TABLE", ""),
            None => error,
        })
    }

    /// The table with that id, whatever its name. Callers must have been checked.
    pub(crate) fn table_by_id(&self, id: TableId) -> Option<Arc<Table>> {
        self.names().all_tables().into_iter().find(|table| table.id() == id)
    }

    pub(crate) fn global_variables(&self) -> Variables {
        self.facts.globals.read().clone()
    }

    /// Shows a setting of the server as a variable of sessions that begin later.
    pub fn announce(&self, variable: &'static str, value: u64) {
        self.set_global(variable, Some(&value.to_string())).expect("a setting is legal as its variable");
    }

    pub(crate) fn set_global(&self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let mut globals = self.facts.globals.write();
        match value {
            Some(value) => globals.set_global(name, value),
            None => globals.reset(name),
        }
    }

    /// The server's time zone.
    pub(crate) fn time_zone(&self) -> String {
        self.facts.globals.read().values().time_zone.name.clone()
    }

    pub(crate) fn kill_connection(&self, principal: &Principal, id: u32) -> Result<(), SqlError> {
        self.check(principal, Privilege::Admin, Object::Connection(id))?;
        self.process(id).map(|process| process.kill())
    }

    pub(crate) fn kill_statement(&self, principal: &Principal, id: u32) -> Result<(), SqlError> {
        self.check(principal, Privilege::Admin, Object::Connection(id))?;
        self.process(id).map(|process| process.stop.set())
    }

    fn process(&self, id: u32) -> Result<Arc<Process>, SqlError> {
        self.processes()
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
        Principal::new(user, host, self.generation())
    }

    pub(crate) fn has_password(&self, name: &str) -> bool {
        self.catalog.users().iter().any(|user| user.name == name && !user.password_hash.is_empty())
    }

    /// Authenticates the user with a password in the clear (HTTP Basic).
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

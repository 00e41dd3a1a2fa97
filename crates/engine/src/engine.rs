//! The parts of a server.
//!
//! Invariant: the struct of a folder has the fields that only this folder uses; here these structs are made and connected.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `drain` | a server that is to stop takes no loads, and empties its log |
//! | `records` | the kinds of records of jobs that this program knows |
//! | `replayed` | rows that a start has read from the log |
//! | `start` | the parts are made, started and stopped in the right order |
//!
//! Not here: the work of a part.

mod drain;
mod records;
mod replayed;
mod start;

use crate::access::accounts::Accounts;
use crate::access::finished::Requests;
use crate::access::gate::Gate;
use crate::access::limits::Limits;
use crate::access::logins::Logins;
use crate::access::names::Names;
use crate::access::processes::Processes;
use crate::access::user_locks::UserLocks;
use crate::audit_table::AuditTable;
use crate::ddl::Ddl;
use crate::files::outfile::LineFormat;
use crate::follow::{Complaint, Follower};
use crate::jobs::ServerJobs;
use crate::load::Loads;
use crate::node::health::{self, LastReadiness};
use crate::node::metrics::{Metrics, Others};
use crate::node::options::{EngineOptions, Ports, ServerSettings, SettingChange};
use crate::node::session_memory::SessionsMemory;
use crate::queries::Queries;
use crate::queries::namespace::{Facts, ShownJobs};
use crate::queries::nodes::other_writer;
use crate::variables::{self, Variables};
use crate::verify::Verifier;
use replayed::Replayed;
use start::Running;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tributary_catalog::Catalog;
use tributary_http::Health;
use tributary_ingest::{Ingest, Ownership};
use tributary_query::{Cell, JobKind, NodeFacts, SchemaChangeRow};
use tributary_tls::Tls;
use tributary_types::host::unix_ms;
use tributary_types::{ErrorCode, Principal, SqlError};

/// A server's parts.
pub struct Engine {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) ingest: Arc<Ingest>,
    pub(crate) options: Arc<EngineOptions>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) logins: Arc<Logins>,
    pub(crate) accounts: Accounts,
    pub(crate) queries: Arc<Queries>,
    pub(crate) ddl: Arc<Ddl>,
    pub(crate) loads: Arc<Loads>,
    pub(crate) jobs: Arc<ServerJobs>,
    /// How files of text have rows.
    pub(crate) lines: LineFormat,
    /// Names, connections, variables: what users see parts of.
    facts: Arc<Facts>,
    metrics: Metrics,
    /// The ends of requests.
    pub(crate) requests: Arc<Requests>,
    audit_table: AuditTable,
    tls: OnceLock<Arc<Tls>>,
    last_readiness: LastReadiness,
    pub(crate) sessions_memory: Arc<SessionsMemory>,
    pub(crate) user_locks: Arc<UserLocks>,
    /// The global variables that are stored.
    stored_globals: tokio::sync::Mutex<BTreeMap<String, String>>,
    /// Held by the backup that runs.
    pub(crate) backing_up: tokio::sync::Mutex<()>,
    pub(crate) verifier: Arc<Verifier>,
    /// Whether this process owns catalog and tables still.
    ownership: Ownership,
    replayed: Replayed,
    /// `None`: the tables are this server's.
    follower: Option<Arc<Follower>>,
    running: Running,
}

/// The jobs as queries see them.
struct JobsShown {
    ddl: Arc<Ddl>,
    jobs: Arc<ServerJobs>,
}

impl ShownJobs for JobsShown {
    fn schema_changes(&self, db: &str) -> Vec<SchemaChangeRow> {
        self.ddl.schema_change_rows(db)
    }

    fn rows(&self, kind: JobKind, who: &Principal, db: &str) -> Vec<Vec<Cell>> {
        match kind {
            JobKind::Load => self.jobs.load_job_rows(who, db),
            JobKind::Routine => self.jobs.routine_job_rows(who, db),
            JobKind::Every => self.jobs.all_job_rows(who, db),
            JobKind::Scheduled | JobKind::ScheduledRuns => Vec::new(),
        }
    }

    fn scheduled(&self, who: &Principal, runs: bool) -> Vec<Vec<Cell>> {
        if runs { self.jobs.scheduled_run_rows(who) } else { self.jobs.scheduled_rows(who) }
    }
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

    pub(crate) const fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The node that takes loads, if it is another one.
    pub(crate) fn other_writer(&self) -> Option<NodeFacts> {
        other_writer(&self.facts)
    }

    /// All metrics in Prometheus' text format.
    pub(crate) fn metrics_text(&self) -> String {
        let others = Others {
            connections: self.processes().all().len(),
            session_bytes: self.sessions_memory.used(),
            is_ready: self.health().alive > 0,
            followed_age_seconds: self.follower.as_ref().map_or(0.0, |follower| follower.age_seconds()),
            cache: self.facts.store.read_cache(),
            traffic: self.facts.store.traffic(),
            page_cache: self.queries.page_cache(),
            distributed: self.queries.nodes().counts(),
            distributed_parts: self.queries.nodes().running_parts(),
        };
        self.metrics.text(&self.ingest, &self.names().all_tables(), others)
    }

    /// Whether the server does its work.
    pub(crate) fn health(&self) -> Health {
        let mut health = health::of(&self.ingest, &self.catalog, self.options.tables.directory());
        if let Some(Complaint { is_old, text, cause }) = self.complaint() {
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            let told = if is_old { &mut health.obstacles } else { &mut health.warnings };
            told.push(text + &cause);
            if is_old {
                health.alive = 0;
            }
        }
        self.say_draining(health)
    }

    /// Takes what another server writes; `None` in a server that writes itself.
    pub(crate) const fn follower(&self) -> Option<&Arc<Follower>> {
        self.follower.as_ref()
    }

    /// Waits until it is certain that this process still owns what it writes.
    ///
    /// # Errors
    /// It does not, or nobody knows.
    pub(crate) async fn confirm_ownership(&self) -> Result<(), SqlError> {
        let confirmed = self.ownership.confirmed().await;
        confirmed.map_err(|error| SqlError::detail(ErrorCode::ServerShutdown, error.to_string()))
    }

    /// The complaint about the rows of a node that only reads.
    fn complaint(&self) -> Option<Complaint> {
        self.follower.as_ref()?.complaint(self.options.store.max_staleness.as_ref()?.get())
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.facts.started.elapsed()
    }

    pub(crate) fn unix_ms(&self) -> i64 {
        unix_ms()
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

    pub(crate) fn limits(&self) -> &Limits {
        &self.facts.limits
    }

    pub(crate) fn processes(&self) -> &Processes {
        &self.facts.processes
    }

    pub(crate) fn global_variables(&self) -> Variables {
        self.facts.globals.read().clone()
    }

    /// Sets what shows and changes the server's settings. Once.
    pub fn set_settings(&self, settings: Arc<dyn ServerSettings>) {
        if self.facts.settings.set(settings).is_err() {
            tracing::warn!("the settings were given twice; the first ones stay");
        }
    }

    /// Changes settings of the running server, which the next starts have if `persist` is one of the properties.
    pub(crate) async fn change_settings(&self, properties: Vec<(String, String)>) -> Result<(), SqlError> {
        let refused = |text: String| SqlError::detail(ErrorCode::Unknown, text);
        let mut change = SettingChange { settings: Vec::new(), persists: false, resets_kept: false };
        for (name, value) in properties {
            let flag = match name.to_ascii_lowercase().as_str() {
                "persist" => &mut change.persists,
                "reset_persist" => &mut change.resets_kept,
                _ => {
                    change.settings.push((name, value));
                    continue;
                }
            };
            *flag = value
                .to_ascii_lowercase()
                .parse()
                .map_err(|_| refused(format!("property `{name}`: `{value}` is not true or false")))?;
        }
        if change.resets_kept && !change.persists {
            return Err(refused(
                "`reset_persist` forgets what was persisted, and needs \"persist\" = \"true\"".to_owned(),
            ));
        }
        if change.settings.is_empty() && !change.resets_kept {
            return Err(refused("no setting is named: (\"name\" = \"value\")".to_owned()));
        }
        let Some(settings) = self.facts.settings.get().cloned() else {
            return Err(refused("the settings of this server can't be changed".to_owned()));
        };
        let changed = tokio::task::spawn_blocking(move || settings.change(&change)).await;
        changed.unwrap_or_else(|panic| Err(refused(format!("the settings could not be changed: {panic}"))))
    }

    /// Shows a setting of the server as a variable of sessions that begin later.
    pub fn announce(&self, variable: &'static str, value: impl Display) {
        let value = value.to_string();
        self.facts.globals.write().announce(variable, &value).expect("a setting is legal as its variable");
    }

    /// Sets a global variable, also for the server's next runs; `None`: to its default.
    pub(crate) async fn set_global(&self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        // One after the other: each stores all.
        let mut stored = self.stored_globals.lock().await;
        let mut globals = self.global_variables();
        match value {
            Some(value) => globals.set_global(name, value),
            None => globals.reset(name),
        }?;
        let name = variables::find(name)?.name.to_owned();
        let mut next = stored.clone();
        match value {
            Some(value) => next.insert(name, value.to_owned()),
            None => next.remove(&name),
        };
        self.catalog.put_global_variables(&next).await?;
        *stored = next;
        *self.facts.globals.write() = globals;
        self.obey_globals();
        Ok(())
    }

    /// Sets the global variables that earlier runs have stored, and the ones that settings set.
    async fn restore_globals(&self) -> Result<(), SqlError> {
        let mut stored = self.stored_globals.lock().await;
        *stored = self.catalog.global_variables().await?;
        for (name, value) in &*stored {
            if let Err(error) = self.facts.globals.write().set_global(name, value) {
                tracing::warn!(
                    "the global variable {name} keeps its default, what was stored can't be set: {error}"
                );
            }
        }
        drop(stored);
        if self.options.audit.has_table {
            self.facts.globals.write().set_global("enable_audit_plugin", "true")?;
        }
        self.obey_globals();
        Ok(())
    }

    fn obey_globals(&self) {
        let globals = self.global_variables();
        let values = globals.values();
        let text_bytes = usize::try_from(values.audit_plugin_max_sql_length).unwrap_or(usize::MAX);
        self.requests.audit.set(
            // Who only reads has no table to write to.
            values.enable_audit_plugin && self.follower.is_none(),
            text_bytes,
            values.enable_prepared_stmt_audit_log,
        );
    }

    /// From now on no user can be without a password: the server listens beyond loopback.
    pub fn require_passwords(&self) {
        self.accounts.require_passwords();
    }

    /// Sets the certificate that statements show and reload.
    pub fn set_tls(&self, tls: Arc<Tls>) {
        if self.tls.set(tls).is_err() {
            tracing::warn!("the certificate was set twice; the first one stays");
        }
    }

    /// The digest of the server's certificate, if it has one.
    pub(crate) fn certificate(&self) -> Option<String> {
        self.tls.get().map(|tls| tls.digest())
    }

    /// Reads certificate and key again.
    pub(crate) fn reload_tls(&self) -> Result<(), SqlError> {
        let Some(tls) = self.tls.get() else {
            let text =
                "this server has no certificate to reload (settings tls_certificate and tls_private_key)";
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        };
        let failed =
            |error| SqlError::detail(ErrorCode::Unknown, format!("the certificate before stays: {error}"));
        tls.reload().map(drop).map_err(failed)
    }

    /// The users that have no password.
    #[must_use]
    pub fn users_without_password(&self) -> Vec<String> {
        self.gate.users_without_password()
    }
}

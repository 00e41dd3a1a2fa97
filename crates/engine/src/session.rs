//! A client's session: its variables, its transaction, its prepared statements, and the dispatch of statements.
//!
//! Not here: protocols; a statement's answer is an [`Answer`], which the client's front writes.

mod autocommit;
mod compat;
mod definitions;
mod ends;
mod jobs;
mod named_statements;
mod names;
mod outfile;
mod prepared;
mod receipts;
mod rows;
mod select;
mod set;
mod temporary;
mod verify;
mod waiting_calls;

use crate::access::finished::Door;
use crate::access::processes::Process;
use crate::access::{self, Object, Privilege};
use crate::answer::Answer;
use crate::ddl::unfinished::Unfinished;
use crate::engine::Engine;
use crate::load::builders::OwnBuilder;
use crate::node::session_memory::{SessionCharge, SessionMemory};
use crate::variables::{Variables, WAIT_TIMEOUT_DEFAULT_SECONDS};
use compat::{Warning, commits_first};
use ends::Running;
pub(crate) use ends::{Login, Volume, logged_in};
use prepared::KeptStatement;
pub(crate) use prepared::Parameters;
use receipts::{may_read, reads_tables};
use rows::explicit::ExplicitTransaction;
use rows::insert::PlannedInsert;
pub(crate) use rows::load_data::ClientUpload;
use rows::load_data::PendingLoad;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tributary_decode::{InsertOptions, LoadClock};
use tributary_ingest::TransactionStatus;
use tributary_query::{QueryEngine, SessionView};
use tributary_sql::{Name, Reading, Statement};
use tributary_table::{Freshness, Table};
use tributary_types::pattern::like;
use tributary_types::{
    ColumnDef, ErrorCode, Label, Principal, SqlError, TableDef, TlsSession, TraceParent, TxnId, UserProperty,
};

/// The contents of SHOW LAST INSERT.
#[derive(Clone, Debug)]
pub(crate) struct LastInsert {
    pub txn: TxnId,
    pub label: Label,
    pub table: Arc<TableDef>,
    pub status: TransactionStatus,
    pub loaded: u64,
    pub filtered: u64,
}

/// A client whose password was right.
pub(crate) struct NewSession {
    /// The entry point of its statements.
    pub door: Door,
    /// The connection's number.
    pub id: u32,
    /// Who it is; with a token, limited to its rights.
    pub principal: Principal,
    pub peer: SocketAddr,
    /// The database to begin with.
    pub database: Option<String>,
    /// The connection's encryption.
    pub tls: Option<TlsSession>,
    /// The client counts rows that an UPDATE finds, not rows that it changes.
    pub counts_found_rows: bool,
    /// Ends the connection.
    pub kill: CancellationToken,
}

/// The user that a session goes on as.
pub(crate) struct NewUser {
    pub user: String,
    pub database: Option<String>,
}

/// The settings of a client in a session.
#[derive(Clone)]
pub(crate) struct SessionSettings {
    database: Option<String>,
    variables: Variables,
    user_variables: Arc<BTreeMap<String, String>>,
}

impl SessionSettings {
    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }
}

/// A client's session.
pub(crate) struct EngineSession {
    pub(crate) engine: Arc<Engine>,
    pub(crate) principal: Principal,
    /// Queries over the objects that the principal may see.
    pub(crate) queries: QueryEngine,
    pub(crate) id: u32,
    door: Door,
    tls: Option<TlsSession>,
    /// See [`NewSession::counts_found_rows`].
    counts_found_rows: bool,
    pub(crate) database: Option<String>,
    pub(crate) variables: Variables,
    /// Shared with the statements that read them, until the next is set.
    pub(crate) user_variables: Arc<BTreeMap<String, String>>,
    memory: SessionMemory,
    variables_charge: SessionCharge,
    transaction: Option<ExplicitTransaction>,
    /// Tables that only this session knows.
    temporary: Vec<Unfinished>,
    /// Statements have changed rows outside of transactions since the last COMMIT or ROLLBACK, although `autocommit` is 0.
    has_changed_at_once: bool,
    statements: HashMap<u32, KeptStatement>,
    /// Ids of prepared statements by their names in SQL.
    named_statements: HashMap<String, u32>,
    /// How many statements got a name so far.
    named_before: u32,
    /// The plan of the last INSERT … VALUES: a driver sends the same head again and again.
    last_plan: Option<PlannedInsert>,
    builder: OwnBuilder,
    /// The LOAD DATA for which the client's file was requested.
    pending_load: Option<Box<PendingLoad>>,
    pub(crate) last_insert: Option<LastInsert>,
    /// The client's span that has caused the next statement.
    pub(crate) trace_parent: Option<TraceParent>,
    /// The first value that AUTO_INCREMENT gave to the last INSERT that had such values.
    last_insert_id: u64,
    /// Own transactions that its reads wait for.
    own_writes: BTreeSet<TxnId>,
    pub(crate) warnings: Vec<Warning>,
    /// At a server that only reads, everything that was visible at the writer then is read.
    reads_since: Option<Instant>,
    pub(crate) process: Arc<Process>,
    /// Facts about the statement that runs.
    running: Running,
}

impl EngineSession {
    /// Opens a session for a client whose password was right.
    ///
    /// # Errors
    /// The database named at connecting does not exist.
    pub fn open(engine: Arc<Engine>, info: NewSession) -> Result<Self, SqlError> {
        let principal = info.principal;
        engine.logins.check_expiry(principal.user(), principal.host())?;
        engine.gate.check(&principal, Privilege::Connect, Object::Server)?;
        let (who, peer, now) = (principal.clone(), info.peer.to_string().into(), engine.unix_ms());
        let most = engine.limits().value(&principal, UserProperty::MaxUserConnections);
        let Some(process) = engine.processes().enter(info.id, who, peer, now, info.kill, most) else {
            return Err(engine.limits().refuse_connection(&principal, most.unwrap_or_default()));
        };
        let memory = engine.sessions_memory.of_session();
        let mut session = Self {
            variables_charge: memory.charge(),
            memory,
            variables: engine.global_variables(),
            queries: engine.queries.of(&principal),
            engine,
            principal,
            id: info.id,
            door: info.door,
            tls: info.tls,
            counts_found_rows: info.counts_found_rows,
            database: None,
            user_variables: Arc::default(),
            transaction: None,
            temporary: Vec::new(),
            has_changed_at_once: false,
            statements: HashMap::new(),
            named_statements: HashMap::new(),
            named_before: 0,
            last_plan: None,
            builder: OwnBuilder::default(),
            pending_load: None,
            trace_parent: None,
            last_insert: None,
            last_insert_id: 0,
            own_writes: BTreeSet::new(),
            warnings: Vec::new(),
            reads_since: None,
            process,
            running: Running::default(),
        };
        if let Some(database) = info.database.filter(|database| !database.is_empty())
            && let Err(error) = session.use_database(&database)
        {
            session.engine.processes().leave(session.id);
            return Err(error);
        }
        Ok(session)
    }

    pub(crate) fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        let name = name.strip_prefix("internal.").unwrap_or(name);
        self.engine.gate.check_use(&self.principal, name)?;
        self.database = Some(name.to_owned());
        self.last_plan = None;
        Ok(())
    }

    /// The table that a statement names.
    pub(super) fn table(
        &self,
        privilege: Privilege,
        db: Option<&str>,
        name: &str,
    ) -> Result<Arc<Table>, SqlError> {
        if let Some(own) = self.temporary_table(db, name) {
            return Ok(Arc::clone(own));
        }
        self.engine.gate.table(&self.principal, privilege, self.database.as_deref(), db, name)
    }

    /// The session as the query engine sees it.
    pub(crate) fn view(&self) -> SessionView {
        SessionView {
            database: self.database.clone(),
            user: self.principal.to_string(),
            connection_id: self.id,
            variables: self.variables.shown(),
            user_variables: Arc::clone(&self.user_variables),
            time_zone: self.variables.values().time_zone.name.clone(),
            last_insert_id: self.last_insert_id,
            now_unix_micros: self.unix_micros(),
            tls: self.tls.clone(),
            stop: Some(self.planning_stop(self.query_timeout())),
            written: self.transaction.as_ref().map(ExplicitTransaction::written).unwrap_or_default(),
            temporary: self.temporary_tables(),
            fresh: self.freshness(),
            notes: Arc::default(),
        }
    }

    /// How old the rows of a query may be at a server that only reads.
    fn freshness(&self) -> Freshness {
        let tolerance = u64::try_from(self.variables.values().query_freshness_tolerance_ms).unwrap_or(0);
        Freshness { since: self.reads_since, tolerance: Duration::from_millis(tolerance) }
    }

    /// The time that the session's clock functions show.
    fn unix_micros(&self) -> i64 {
        let set = self.variables.values().timestamp.value;
        if set > 0.0 { (set * 1_000_000.0) as i64 } else { self.engine.unix_ms() * 1000 }
    }

    pub(crate) fn insert_options(&self) -> InsertOptions {
        let unix_micros = self.unix_micros();
        let values = self.variables.values();
        let ignores = self.running.ignores;
        let strict = values.enable_insert_strict && !ignores;
        let utc_offset_seconds = values.time_zone.zone.offset_seconds(unix_micros);
        InsertOptions {
            strict,
            max_filter_ratio: match (ignores, strict) {
                (true, _) => 1.0,
                (false, true) => 0.0,
                (false, false) => values.insert_max_filter_ratio.value,
            },
            clock: LoadClock {
                now_micros: unix_micros + i64::from(utc_offset_seconds) * 1_000_000,
                utc_offset_seconds,
            },
        }
    }

    /// Runs the text of one statement.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) async fn run_text(&mut self, text: &str) -> Result<Answer, SqlError> {
        match self.try_values_insert(text.as_bytes()).await? {
            Some(answer) => Ok(answer),
            None => self.run_parsed(text).await,
        }
    }

    /// Runs the text of one statement that [`EngineSession::try_values_insert`] did not take.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) async fn run_parsed(&mut self, text: &str) -> Result<Answer, SqlError> {
        self.running.kind = None;
        let (statement, notes) = self.parse(text)?;
        self.parsed(statement.kind(), statement.change());
        // Boxed: its states are many, and the hot INSERT should not carry space for them.
        let answer = Box::pin(self.run(statement, &[])).await?;
        Ok(self.with_notes(answer, notes))
    }

    /// Parses a statement as the session's `mysql_ddl` and `sql_mode` say. Returns a note for each part that is mapped.
    fn parse(&self, text: &str) -> Result<(Statement, Vec<String>), SqlError> {
        let mode = &self.variables.values().sql_mode;
        let reading = Reading {
            is_compatible: self.is_compatible(),
            pipes_concatenate: mode.pipes_as_concat,
            real_is_float: mode.real_as_float,
        };
        tributary_sql::parse_as(text, reading)
    }

    /// The text of a client, as it would be written in the default `sql_mode`, which is all that the rest of the server reads.
    #[inline]
    pub(crate) fn in_default_mode<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.variables.values().sql_mode.quotes.translated(text)
    }

    pub(crate) fn inserts_strictly(&self) -> bool {
        self.variables.values().enable_insert_strict
    }

    pub(crate) fn no_backslash_escapes(&self) -> bool {
        self.variables.values().sql_mode.quotes.no_backslash_escapes
    }

    /// Runs a parsed statement; `params` are the values of its `?`.
    async fn run(
        &mut self,
        statement: Statement,
        params: &[tributary_query::ScalarValue],
    ) -> Result<Answer, SqlError> {
        if !matches!(statement, Statement::Show(_)) {
            self.warnings.clear();
        }
        let (privilege, object) = access::needed(&statement, self.database.as_deref());
        self.engine.gate.check(&self.principal, privilege, object)?;
        self.check_access_mode(&statement)?;
        self.refuse_of_temporary(&statement)?;
        if self.transaction.is_some() && commits_first(&statement) {
            let _ = self.commit().await?;
        }
        self.open_transaction(&statement).await?;
        if reads_tables(&statement) {
            self.wait_for_receipts().await?;
        }
        if may_read(&statement) {
            self.see_own_rows().await;
        }
        match statement {
            Statement::Insert(insert) => self.run_insert(*insert, params).await,
            Statement::Delete(delete) => self.run_delete(&delete, params).await,
            Statement::Update(update) => self.run_update(&update, params).await,
            Statement::LoadData(load) => self.run_load_data(*load).await,
            Statement::BrokerLoad(load) => self.run_broker_load(*load).await,
            Statement::CancelLoad { db, by } => self.run_cancel_load(db.as_deref(), &by).await,
            Statement::Export(export) => self.run_export(*export).await,
            Statement::CancelExport { db, by } => self.run_cancel_export(db.as_deref(), &by).await,
            Statement::Job(statement) => Box::pin(self.run_job(&statement)).await,
            Statement::RoutineLoad(statement) => self.run_routine_load(*statement).await,
            Statement::CreateTableAs(create) => self.run_create_as(&create, params).await,
            Statement::View(view) => self.run_view(&view).await,
            Statement::Query(query) => self.run_query(&query, params).await,
            Statement::SelectInto { query, variables } => {
                self.run_select_into(&query, variables, params).await
            }
            Statement::Outfile(outfile) => self.run_outfile(&outfile, params).await,
            Statement::Explain(explain) => self.run_explain(&explain, params).await,
            Statement::Describe { table, all } => self.run_describe(&table, all).await,
            Statement::DescribeFunction(call) => self.run_describe_function(&call).await,
            Statement::Show(show) => self.run_show(&show).await,
            Statement::Set(items) => {
                self.run_set(items, params).await?;
                Ok(Answer::ok())
            }
            Statement::Use { db } => {
                self.use_database(&db)?;
                Ok(Answer::ok())
            }
            Statement::Begin { label, only_reads } => self.begin(label, only_reads).await,
            Statement::Commit => {
                self.has_changed_at_once = false;
                self.commit().await
            }
            Statement::Rollback => {
                let answer = self.rollback().await?;
                Ok(self.warn_of_changes(answer))
            }
            Statement::Sync { receipt } => self.sync(receipt.map(TxnId)).await,
            Statement::Savepoint { verb, name } => self.run_savepoint(verb, &name).await,
            Statement::WithoutEffect(what) => Ok(self.run_without_effect(what)),
            Statement::RenameTables(renamed) => self.run_rename_tables(&renamed).await,
            Statement::DropTables { tables, if_exists, force, only_temporary } => {
                self.run_drop_tables(&tables, if_exists, force, only_temporary).await
            }
            Statement::CreateTable(create) if create.is_temporary => self.create_temporary(*create).await,
            Statement::CreateTableLike { table, if_not_exists, source, rollups, is_temporary: true } => {
                self.create_temporary_like(&table, &source, if_not_exists, rollups.as_deref()).await
            }
            Statement::DropTable { table, if_exists, force } => match self.drop_if_temporary(&table).await? {
                Some(answer) => Ok(answer),
                None => self.run_admin(Statement::DropTable { table, if_exists, force }).await,
            },
            Statement::Compute(query) => self.run_compute(&query, params).await,
            Statement::Maintain { verb, tables } => self.run_maintain(verb, &tables).await,
            Statement::Prepare { name, text } => self.run_prepare(&name, text).await,
            Statement::Execute { name, variables } => self.run_execute(&name, &variables).await,
            Statement::Deallocate { name } => self.run_deallocate(&name),
            Statement::Empty => Ok(Answer::ok()),
            other => self.run_admin(other).await,
        }
    }
}

impl EngineSession {
    /// Whether a statement waits for a file of the client.
    pub(crate) const fn awaits_file(&self) -> bool {
        self.pending_load.is_some()
    }

    /// Gives up the statement that waits for a file.
    pub(crate) fn give_up_file(&mut self) {
        self.pending_load = None;
    }

    /// Forgets variables, prepared statements and an open transaction.
    pub(crate) async fn reset(&mut self) {
        self.discard_transaction("the connection was reset").await;
        self.temporary.clear();
        self.variables = self.engine.global_variables();
        self.user_variables = Arc::default();
        self.variables_charge = self.memory.charge();
        self.statements.clear();
        self.named_statements.clear();
        self.last_plan = None;
        self.last_insert = None;
        self.last_insert_id = 0;
        self.engine.user_locks.release_all(self.id);
        self.own_writes.clear();
        self.warnings.clear();
        self.has_changed_at_once = false;
    }

    /// Begins again as another user, whose password was right.
    ///
    /// # Errors
    /// The user may not connect, or there is no such database; the session stays as it is.
    pub(crate) async fn change_user(&mut self, user: NewUser) -> Result<(), SqlError> {
        let principal = self.engine.gate.principal(&user.user, self.principal.host());
        self.engine.logins.check_expiry(principal.user(), principal.host())?;
        self.engine.gate.check(&principal, Privilege::Connect, Object::Server)?;
        let most = self.engine.limits().value(&principal, UserProperty::MaxUserConnections);
        if !self.engine.processes().change_user(&self.process, &principal, most) {
            return Err(self.engine.limits().refuse_connection(&principal, most.unwrap_or_default()));
        }
        let before = std::mem::replace(&mut self.principal, principal);
        let database = self.database.take();
        if let Some(name) = user.database.as_deref().filter(|name| !name.is_empty())
            && let Err(error) = self.use_database(name)
        {
            self.database = database;
            self.principal = before;
            // It was among them before.
            self.engine.processes().change_user(&self.process, &self.principal, None);
            return Err(error);
        }
        self.queries = self.engine.queries.of(&self.principal);
        self.reset().await;
        Ok(())
    }

    /// The columns of a table or view whose names are `LIKE` the pattern (empty: all), with the name of its database.
    ///
    /// # Errors
    /// No such table, or no privilege.
    pub(crate) fn columns_like(
        &self,
        table: &str,
        pattern: &str,
    ) -> Result<(String, Vec<ColumnDef>), SqlError> {
        let found = match self.table(Privilege::Show, None, table) {
            Err(error) if error.code == ErrorCode::WrongObject => None,
            found => Some(found?.def()),
        };
        let (db, mut columns): (_, Vec<ColumnDef>) = match &found {
            Some(def) => (def.db.clone(), def.schema.visible().cloned().collect()),
            None => {
                let view = Name { db: None, table: table.to_owned() }.resolve(self.database.as_deref())?;
                let view = self.engine.ddl.view_called(&view)?;
                (view.db.clone(), view.columns.clone())
            }
        };
        let gate = &self.engine.gate;
        columns.retain(|column| gate.shows_column(&self.principal, &db, table, &column.name));
        columns.retain(|column| pattern.is_empty() || like(&column.name, pattern));
        Ok((db, columns))
    }

    /// Ends a connection.
    ///
    /// # Errors
    /// There is none of that id, or no privilege.
    pub(crate) fn kill_connection(&self, id: u32) -> Result<(), SqlError> {
        self.engine.gate.kill_connection(&self.principal, id)
    }

    pub(crate) fn autocommit(&self) -> bool {
        self.variables.values().autocommit
    }

    /// How long the client may be silent, if it has said so.
    pub(crate) fn wait_timeout(&self) -> Option<Duration> {
        let seconds = self.variables.values().wait_timeout;
        (seconds != WAIT_TIMEOUT_DEFAULT_SECONDS).then(|| Duration::from_secs(seconds.unsigned_abs()))
    }

    /// The settings of its client.
    pub(crate) fn settings(&self) -> SessionSettings {
        SessionSettings {
            database: self.database.clone(),
            variables: self.variables.clone(),
            user_variables: Arc::clone(&self.user_variables),
        }
    }

    /// Takes over the settings of another session of its client.
    ///
    /// # Errors
    /// The user variables are too large.
    pub(crate) fn set_all(&mut self, settings: SessionSettings) -> Result<(), SqlError> {
        let SessionSettings { database, variables, user_variables } = settings;
        self.charge_user_variables(&user_variables)?;
        (self.database, self.variables, self.user_variables) = (database, variables, user_variables);
        Ok(())
    }

    /// Whether it has what no other session of its client can have: a transaction, temporary tables.
    pub(crate) const fn is_irreplaceable(&self) -> bool {
        self.transaction.is_some() || !self.temporary.is_empty()
    }

    pub(crate) const fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The client has gone.
    pub(crate) async fn close(&mut self) {
        self.discard_transaction("the connection was closed").await;
        self.temporary.clear();
    }
}

impl Drop for EngineSession {
    fn drop(&mut self) {
        self.engine.user_locks.release_all(self.id);
        self.engine.processes().leave(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestEngine;

    #[tokio::test]
    async fn a_connection_whose_user_changes_is_listed_under_the_new_name() {
        let test = TestEngine::open(|_| ()).await;
        let new = NewSession {
            door: Door::Statement,
            id: 7,
            principal: test.engine.gate.principal("root", "127.0.0.1"),
            peer: "127.0.0.1:1".parse().expect("an address"),
            database: None,
            tls: None,
            counts_found_rows: true,
            kill: CancellationToken::new(),
        };
        let mut session = EngineSession::open(Arc::clone(&test.engine), new).expect("everything is allowed");
        let listed =
            || test.engine.processes().find(7).expect("it is there").state().principal.user().to_owned();
        assert_eq!(listed(), "root");
        let amy = |database: Option<&str>| NewUser {
            user: "amy".to_owned(),
            database: database.map(str::to_owned),
        };
        session.change_user(amy(Some("nowhere"))).await.expect_err("there is no such database");
        assert_eq!(listed(), "root", "nothing has changed");
        session.change_user(amy(None)).await.expect("everything is allowed");
        assert_eq!((listed().as_str(), session.principal.user()), ("amy", "amy"));
    }
}

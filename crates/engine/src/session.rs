//! One MySQL connection: its variables, its transaction, its prepared statements, and the dispatch of statements.

mod definitions;
mod jobs;
mod outfile;
mod prepared;
mod rows;
mod select;
mod set;

use crate::access::processes::Process;
use crate::access::{self, Object, Privilege};
use crate::engine::Engine;
use crate::load::builders::OwnBuilder;
use crate::variables::Variables;
use async_trait::async_trait;
use prepared::PreparedStatement;
use rows::explicit::ExplicitTransaction;
use rows::insert::PlannedInsert;
use rows::load_data::PendingLoad;
pub(crate) use select::columns_of;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tributary_decode::{InsertOptions, LoadClock};
use tributary_ingest::TransactionStatus;
use tributary_mysql::{
    ChangeUser, ClientFile, Column, ConnectionInfo, OkInfo, Params, Prepared, ResultWriter, Session,
    SessionStatus,
};
use tributary_query::{QueryEngine, SessionView};
use tributary_sql::{Name, Statement};
use tributary_table::Table;
use tributary_types::pattern::like;
use tributary_types::{ColumnDef, ErrorCode, Label, Principal, SqlError, TableDef, TxnId};

/// What SHOW LAST INSERT tells.
#[derive(Clone, Debug)]
pub(crate) struct LastInsert {
    pub txn: TxnId,
    pub label: Label,
    pub table: Arc<TableDef>,
    pub status: TransactionStatus,
    pub loaded: u64,
    pub filtered: u64,
}

/// A connection's session.
pub struct EngineSession {
    pub(crate) engine: Arc<Engine>,
    pub(crate) principal: Principal,
    /// Queries over what the principal may see.
    pub(crate) queries: QueryEngine,
    pub(crate) id: u32,
    pub(crate) database: Option<String>,
    pub(crate) variables: Variables,
    /// Shared with the statements that read them, until the next is set.
    pub(crate) user_variables: Arc<BTreeMap<String, String>>,
    transaction: Option<ExplicitTransaction>,
    statements: HashMap<u32, PreparedStatement>,
    /// The plan of the last INSERT … VALUES: a driver sends the same head again and again.
    last_plan: Option<PlannedInsert>,
    builder: OwnBuilder,
    /// The LOAD DATA whose file the client is asked for.
    pending_load: Option<Box<PendingLoad>>,
    /// Statements of the same text follow the one that runs.
    has_more_statements: bool,
    pub(crate) last_insert: Option<LastInsert>,
    pub(crate) warnings: Vec<String>,
    pub(crate) process: Arc<Process>,
}

impl EngineSession {
    /// Opens a session for a client whose password was right.
    ///
    /// # Errors
    /// The database named at connecting does not exist.
    pub fn open(engine: Arc<Engine>, info: ConnectionInfo) -> Result<Self, SqlError> {
        let principal = engine.principal(&info.user, &info.peer.ip().to_string());
        engine.check(&principal, Privilege::Connect, Object::Server)?;
        let process =
            engine.processes().enter(info.id, info.user, info.peer.to_string(), engine.unix_ms(), info.kill);
        let mut session = Self {
            variables: engine.global_variables(),
            queries: engine.queries(&principal),
            engine,
            principal,
            id: info.id,
            database: None,
            user_variables: Arc::default(),
            transaction: None,
            statements: HashMap::new(),
            last_plan: None,
            builder: OwnBuilder::default(),
            pending_load: None,
            has_more_statements: false,
            last_insert: None,
            warnings: Vec::new(),
            process,
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
        self.engine.check_use(&self.principal, name)?;
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
        self.engine.table(&self.principal, privilege, self.database.as_deref(), db, name)
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
            last_insert_id: 0,
            now_unix_micros: self.unix_micros(),
        }
    }

    /// The time that the session's clock functions show.
    fn unix_micros(&self) -> i64 {
        let set = self.variables.values().timestamp.value;
        if set > 0.0 { (set * 1_000_000.0) as i64 } else { self.engine.unix_ms() * 1000 }
    }

    pub(crate) fn insert_options(&self) -> InsertOptions {
        let unix_micros = self.unix_micros();
        let values = self.variables.values();
        let strict = values.enable_insert_strict;
        let utc_offset_seconds = values.time_zone.zone.offset_seconds(unix_micros);
        InsertOptions {
            strict,
            max_filter_ratio: if strict { 0.0 } else { values.insert_max_filter_ratio.value },
            clock: LoadClock {
                now_micros: unix_micros + i64::from(utc_offset_seconds) * 1_000_000,
                utc_offset_seconds,
            },
        }
    }

    /// Runs the text of one statement.
    async fn run_text(&mut self, text: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        if self.try_values_insert(text.as_bytes(), out).await? {
            return Ok(());
        }
        let statement = tributary_sql::parse(text)?;
        // Boxed: its states are many, and the hot INSERT should not carry space for them.
        Box::pin(self.run(statement, &[], out)).await
    }

    /// Runs a parsed statement; `params` are the values of its `?`.
    async fn run(
        &mut self,
        statement: Statement,
        params: &[tributary_query::ScalarValue],
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        if !matches!(statement, Statement::Show(_)) {
            self.warnings.clear();
        }
        let (privilege, object) = access::needed(&statement, self.database.as_deref());
        self.engine.check(&self.principal, privilege, object)?;
        match statement {
            Statement::Insert(insert) => self.run_insert(*insert, params, out).await,
            Statement::Delete(delete) => self.run_delete(&delete, params, out).await,
            Statement::Update(update) => self.run_update(&update, params, out).await,
            Statement::LoadData(load) => self.run_load_data(*load, out).await,
            Statement::BrokerLoad(load) => self.run_broker_load(*load, out).await,
            Statement::CancelLoad { db, by } => self.run_cancel_load(db.as_deref(), &by, out).await,
            Statement::Export(export) => self.run_export(*export, out).await,
            Statement::CancelExport { db, by } => self.run_cancel_export(db.as_deref(), &by, out).await,
            Statement::RoutineLoad(statement) => self.run_routine_load(*statement, out).await,
            Statement::CreateTableAs(create) => self.run_create_as(&create, params, out).await,
            Statement::View(view) => self.run_view(&view, out).await,
            Statement::Query(query) => self.run_query(&query, params, out).await,
            Statement::Outfile(outfile) => self.run_outfile(&outfile, params, out).await,
            Statement::Explain(explain) => self.run_explain(&explain, params, out).await,
            Statement::Describe { table, all } => self.run_describe(&table, all, out).await,
            Statement::DescribeFunction(call) => self.run_describe_function(&call, out).await,
            Statement::Show(show) => self.run_show(&show, out).await,
            Statement::Set(items) => {
                self.run_set(items, params).await?;
                out.ok(OkInfo::default()).await
            }
            Statement::Use { db } => {
                self.use_database(&db)?;
                out.ok(OkInfo::default()).await
            }
            Statement::Begin { label } => self.begin(label, out).await,
            Statement::Commit => self.commit(out).await,
            Statement::Rollback => self.rollback(out).await,
            Statement::Sync => {
                self.interrupt().wait(self.engine.ingest.sync()).await?;
                out.ok(OkInfo::default()).await
            }
            Statement::Empty | Statement::UnlockTables => out.ok(OkInfo::default()).await,
            other => self.run_admin(other, out).await,
        }
    }
}

#[async_trait]
impl Session for EngineSession {
    async fn query(&mut self, sql: &[u8], out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        let text = utf8(sql)?;
        self.process.begin(self.database.as_deref(), text);
        self.pending_load = None;
        let outcome = self.query_text(text, out).await;
        if self.pending_load.is_none() {
            self.process.end();
        }
        outcome
    }

    async fn take_file(
        &mut self,
        file: &mut ClientFile<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let outcome = self.load_client_file(file, out).await;
        self.process.end();
        outcome
    }

    async fn prepare(&mut self, id: u32, sql: &[u8]) -> Result<Prepared, SqlError> {
        self.prepare_statement(id, utf8(sql)?).await
    }

    async fn execute(
        &mut self,
        id: u32,
        params: Params<'_>,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        let outcome = self.execute_statement(id, params, out).await;
        self.process.end();
        outcome
    }

    async fn close_statement(&mut self, id: u32) {
        self.statements.remove(&id);
    }

    async fn init_db(&mut self, db: &str) -> Result<(), SqlError> {
        self.use_database(db)
    }

    async fn reset(&mut self) -> Result<(), SqlError> {
        self.discard_transaction("the connection was reset").await;
        self.variables = self.engine.global_variables();
        self.user_variables = Arc::default();
        self.statements.clear();
        self.last_plan = None;
        self.last_insert = None;
        self.warnings.clear();
        Ok(())
    }

    async fn change_user(&mut self, user: ChangeUser) -> Result<(), SqlError> {
        let principal = self.engine.principal(&user.user, self.principal.host());
        self.engine.check(&principal, Privilege::Connect, Object::Server)?;
        let before = std::mem::replace(&mut self.principal, principal);
        let database = self.database.take();
        if let Some(name) = user.database.as_deref().filter(|name| !name.is_empty())
            && let Err(error) = self.use_database(name)
        {
            self.database = database;
            self.principal = before;
            return Err(error);
        }
        self.queries = self.engine.queries(&self.principal);
        self.reset().await
    }

    async fn field_list(&mut self, table: &str, pattern: &str) -> Result<Vec<Column>, SqlError> {
        let found = match self.table(Privilege::Show, None, table) {
            Err(error) if error.code == ErrorCode::WrongObject => None,
            found => Some(found?.def()),
        };
        let (db, columns) = match &found {
            Some(def) => (def.db.clone(), def.schema.visible().cloned().collect()),
            None => {
                let view = Name { db: None, table: table.to_owned() }.resolve(self.database.as_deref())?;
                let view = self.engine.view_called(&view)?;
                (view.db.clone(), view.columns.clone())
            }
        };
        Ok(columns
            .iter()
            .filter(|column: &&ColumnDef| pattern.is_empty() || like(&column.name, pattern))
            .map(|column| Column::new(&column.name, column.data_type).in_table(&db, table))
            .collect())
    }

    async fn kill(&mut self, connection_id: u32) -> Result<(), SqlError> {
        self.engine.kill_connection(&self.principal, connection_id)
    }

    fn status(&self) -> SessionStatus {
        SessionStatus {
            autocommit: self.variables.values().autocommit,
            in_transaction: self.transaction.is_some(),
            no_backslash_escapes: false,
        }
    }

    async fn close(&mut self) {
        self.discard_transaction("the connection was closed").await;
    }
}

impl EngineSession {
    async fn query_text(&mut self, text: &str, out: &mut ResultWriter<'_>) -> Result<(), SqlError> {
        if !out.multi_statements() {
            return self.run_text(text, out).await;
        }
        // The hot statement of a client that allows several is one statement too.
        if self.try_values_insert(text.as_bytes(), out).await? {
            return Ok(());
        }
        let statements = tributary_sql::split(text);
        if statements.is_empty() {
            return out.ok(OkInfo::default()).await;
        }
        let count = statements.len();
        for (number, statement) in statements.into_iter().enumerate() {
            self.has_more_statements = number + 1 < count;
            self.run_text(statement, out).await?;
        }
        Ok(())
    }
}

impl Drop for EngineSession {
    fn drop(&mut self) {
        self.engine.processes().leave(self.id);
    }
}

fn utf8(sql: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(sql).map_err(|error| {
        SqlError::detail(
            ErrorCode::Syntax,
            format!("the statement is not valid UTF-8 at byte {}; send it as utf8mb4", error.valid_up_to()),
        )
    })
}

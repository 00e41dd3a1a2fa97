//! Temporary tables: a session creates them, alone knows them, and takes them with it.
//!
//! In the server such a table is one that never gets its name ([`crate::ddl::unfinished`]); the session has a name for it, which
//! goes before another table's. What a crash leaves is dropped by the next start.
//!
//! Invariant: no statement that names a temporary table changes another table of that name. Jobs and views know none of them.

use super::EngineSession;
use super::compat::Warning;
use crate::access::interrupt::Interrupt;
use crate::access::{Object, Privilege};
use crate::answer::Answer;
use crate::ddl::unfinished::Unfinished;
use std::sync::Arc;
use tributary_query::TemporaryTable;
use tributary_sql::{CreateTable, JobStatement, Name, Statement};
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError, TableDef, TableRef};

/// The most temporary tables of a session.
const TEMPORARY_MAX: usize = 64;

impl EngineSession {
    /// The session's temporary table of that name.
    pub(super) fn temporary_table(&self, db: Option<&str>, name: &str) -> Option<&Arc<Table>> {
        let db = db.or(self.database.as_deref());
        let is_called = |own: &&Unfinished| own.name().table == name && db == Some(own.name().db.as_str());
        self.temporary.iter().find(is_called).map(Unfinished::table)
    }

    /// All of them, for the statement that runs.
    pub(super) fn temporary_tables(&self) -> Vec<TemporaryTable> {
        let seen =
            |own: &Unfinished| TemporaryTable { name: own.name().clone(), table: Arc::clone(own.table()) };
        self.temporary.iter().map(seen).collect()
    }

    /// The definition with the name that the session has for the table, and whether that is temporary.
    pub(super) fn under_its_name(&self, def: Arc<TableDef>) -> (Arc<TableDef>, bool) {
        match self.temporary.iter().find(|own| own.table().id() == def.id) {
            Some(own) => (Arc::new(TableDef { name: own.name().table.clone(), ..(*def).clone() }), true),
            None => (def, false),
        }
    }

    /// Checks that there can be a temporary table of that name. The answer, if it exists and may.
    pub(super) fn begin_temporary(
        &mut self,
        name: &TableRef,
        if_not_exists: bool,
    ) -> Result<Option<Answer>, SqlError> {
        if self.temporary_table(Some(&name.db), &name.table).is_some() {
            if if_not_exists {
                return Ok(Some(self.with_warnings(Answer::ok(), [Warning::table_exists(name)])));
            }
            let text = format!("Table '{}' already exists", name.table);
            return Err(SqlError::new(ErrorCode::TableExists, text));
        }
        if self.temporary.len() >= TEMPORARY_MAX {
            let text =
                format!("a session has at most {TEMPORARY_MAX} temporary tables: drop one before {name}");
            return Err(SqlError::detail(ErrorCode::NotSupported, text));
        }
        Ok(None)
    }

    /// Keeps a new table as a temporary one.
    pub(super) fn keep_temporary(&mut self, table: Unfinished) {
        self.last_plan = None;
        self.temporary.push(table);
    }

    /// CREATE TEMPORARY TABLE with columns.
    pub(super) async fn create_temporary(&mut self, mut create: CreateTable) -> Result<Answer, SqlError> {
        self.limit_partitions(&mut create);
        let name = create.table.resolve(self.database.as_deref())?;
        if let Some(answer) = self.begin_temporary(&name, create.if_not_exists)? {
            return Ok(answer);
        }
        let (engine, process) = (Arc::clone(&self.engine), Arc::clone(&self.process));
        let killed = Interrupt::by_kill(&process.stop);
        let table = engine.ddl.create_unfinished(killed, &create, name).await?;
        self.keep_temporary(table);
        Ok(Answer::ok())
    }

    /// CREATE TEMPORARY TABLE … LIKE.
    pub(super) async fn create_temporary_like(
        &mut self,
        table: &Name,
        source: &Name,
        if_not_exists: bool,
        rollups: Option<&[String]>,
    ) -> Result<Answer, SqlError> {
        let name = table.resolve(self.database.as_deref())?;
        if let Some(answer) = self.begin_temporary(&name, if_not_exists)? {
            return Ok(answer);
        }
        let source = self.table(Privilege::Select, source.db.as_deref(), &source.table)?.def();
        let (engine, process) = (Arc::clone(&self.engine), Arc::clone(&self.process));
        let killed = Interrupt::by_kill(&process.stop);
        let table = engine.ddl.create_unfinished_like(killed, &source, name, rollups).await?;
        self.keep_temporary(table);
        Ok(Answer::ok())
    }

    /// Drops the temporary table of that name. `false`: there is none.
    ///
    /// A transaction that has rows for it is committed first, as before other definitions change.
    pub(super) async fn drop_temporary(&mut self, name: &TableRef) -> Result<bool, SqlError> {
        let Some(id) = self.temporary_table(Some(&name.db), &name.table).map(|table| table.id()) else {
            return Ok(false);
        };
        if self.transaction.as_ref().is_some_and(|transaction| transaction.has_rows_of(id)) {
            let _ = self.commit().await?;
        }
        let Some(place) = self.temporary.iter().position(|own| own.table().id() == id) else {
            return Ok(false);
        };
        let own = self.temporary.remove(place);
        self.last_plan = None;
        let process = Arc::clone(&self.process);
        own.give_up(Interrupt::by_kill(&process.stop)).await?;
        Ok(true)
    }

    /// DROP TABLE of one name, if it is a temporary table's; `None`: it is not.
    pub(super) async fn drop_if_temporary(&mut self, table: &Name) -> Result<Option<Answer>, SqlError> {
        let Some(db) = table.db.as_deref().or(self.database.as_deref()) else { return Ok(None) };
        let name = TableRef { db: db.to_owned(), table: table.table.clone() };
        Ok(self.drop_temporary(&name).await?.then(Answer::ok))
    }

    /// Drops those of the tables that are temporary, and returns the others.
    ///
    /// # Errors
    /// One of them does not exist and has to, or may not be dropped; then none was.
    pub(super) async fn drop_temporary_of(
        &mut self,
        names: Vec<TableRef>,
        if_exists: bool,
        only_temporary: bool,
    ) -> Result<Vec<TableRef>, SqlError> {
        let (engine, mut absent) = (Arc::clone(&self.engine), Vec::new());
        for name in &names {
            if self.temporary_table(Some(&name.db), &name.table).is_some() {
                continue;
            }
            if only_temporary {
                absent.push(name.to_string());
                continue;
            }
            let object = Object::Table { db: &name.db, table: &name.table };
            engine.gate.check(&self.principal, Privilege::Drop, object)?;
            if engine.ddl.is_free(name, true).is_ok_and(|is_free| is_free) {
                absent.push(name.to_string());
            }
        }
        if !if_exists && !absent.is_empty() {
            let text = format!("Unknown table '{}'; none was dropped", absent.join(","));
            return Err(SqlError::new(ErrorCode::UnknownTable, text));
        }
        let mut others = Vec::new();
        for name in names {
            if !self.drop_temporary(&name).await? {
                others.push(name);
            }
        }
        Ok(others)
    }

    /// Refuses statements that would change, or read, another table of a temporary table's name.
    pub(super) fn refuse_of_temporary(&self, statement: &Statement) -> Result<(), SqlError> {
        if self.temporary.is_empty() {
            return Ok(());
        }
        let names: Vec<&Name> = match statement {
            Statement::AlterTable { table, .. } | Statement::CancelAlter { table, .. } => vec![table],
            Statement::Export(export) => vec![&export.table],
            Statement::Job(job) => match &**job {
                JobStatement::Create(create) => vec![&create.insert.table],
                _ => return Ok(()),
            },
            Statement::RenameTables(renamed) => renamed.iter().flat_map(|(from, to)| [from, to]).collect(),
            _ => return Ok(()),
        };
        let is_own = |name: &&Name| self.temporary_table(name.db.as_deref(), &name.table).is_some();
        match names.into_iter().find(is_own) {
            Some(name) => Err(SqlError::detail(
                ErrorCode::NotSupported,
                format!(
                    "{} of the temporary table '{}' is not supported: create another one with its rows, and drop this one",
                    statement.kind(),
                    name.table
                ),
            )),
            None => Ok(()),
        }
    }
}

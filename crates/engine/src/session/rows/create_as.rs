//! CREATE TABLE … AS SELECT: a table with the rows of a query, as a whole or not at all.
//!
//! The rows are loaded into a table that nobody sees ([`crate::ddl::unfinished`]), as those of an INSERT … SELECT are; with
//! the last step it gets its name.

use crate::access::Privilege;
use crate::access::interrupt::Interrupt;
use crate::answer::Answer;
use crate::session::EngineSession;
use crate::session::compat::Warning;
use crate::session::rows::insert::{QueryLoad, check_computes};
use std::sync::Arc;
use tributary_decode::Target;
use tributary_ingest::LoadTraits;
use tributary_query::{ResultColumn, ScalarValue};
use tributary_sql::{CreateTableAs, Name, QueryColumn};
use tributary_types::{ErrorCode, GroupCommitMode, SqlError};

impl EngineSession {
    pub(in crate::session) async fn run_create_as(
        &mut self,
        create: &CreateTableAs,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let engine = Arc::clone(&self.engine);
        let name = create.create.table.resolve(self.database.as_deref())?;
        let (is_temporary, if_not_exists) = (create.create.is_temporary, create.create.if_not_exists);
        if is_temporary {
            if let Some(answer) = self.begin_temporary(&name, if_not_exists)? {
                return Ok(answer);
            }
        } else {
            self.refuse_in_transaction()?;
            if !engine.ddl.is_free(&name, if_not_exists)? {
                return Ok(self.with_warnings(Answer::ok(), [Warning::table_exists(&name)]));
            }
        }
        let columns: Vec<QueryColumn> =
            self.queries.describe(&self.view(), &create.query).await?.iter().map(of_query).collect();
        let mut with_columns = create.with_columns(&columns)?;
        self.limit_partitions(&mut with_columns);
        if with_columns.partition_by.as_ref().is_some_and(|by| by.auto.is_some()) {
            return Err(SqlError::detail(
                ErrorCode::NotSupported,
                "CREATE TABLE … AS SELECT with AUTO PARTITION is not supported yet: create the table, then INSERT … SELECT",
            ));
        }
        let process = Arc::clone(&self.process);
        let killed = Interrupt::by_kill(&process.stop);
        let unfinished = engine.ddl.create_unfinished(killed, &with_columns, name).await?;
        let table = Arc::clone(unfinished.table());
        let target = Target::new(&table.def(), create.stored_columns(&columns).as_deref())?;
        check_computes(&target)?;
        // No group: others that are in one are not to wait for these rows.
        let traits = LoadTraits {
            from_query: true,
            partial_update: false,
            requested: Some(GroupCommitMode::Off),
            // A temporary table and its rows are none of the open transaction's.
            in_transaction: false,
            ..self.traits(0)
        };
        let load = QueryLoad { table, target, label: None, known_keys: None };
        let loaded = self.load_query(&create.query, params, load, traits).await?;
        match is_temporary {
            true => self.keep_temporary(unfinished),
            false => unfinished.finish(killed).await?,
        }
        Ok(self.answer_loaded(loaded, false))
    }

    /// Creates a table like another one. Returns a note if there is one of this name.
    pub(in crate::session) async fn create_like(
        &mut self,
        table: &Name,
        source: &Name,
        if_not_exists: bool,
        rollups: Option<&[String]>,
    ) -> Result<Option<Warning>, SqlError> {
        let name = table.resolve(self.database.as_deref())?;
        let source = self.table(Privilege::Select, source.db.as_deref(), &source.table)?.def();
        let killed = Interrupt::by_kill(&self.process.stop);
        let ddl = &self.engine.ddl;
        let is_new = ddl.create_table_like(killed, &source, &name, if_not_exists, rollups).await?;
        Ok((!is_new).then(|| Warning::table_exists(&name)))
    }

    /// # Errors
    /// A transaction is open.
    pub(in crate::session) fn refuse_in_transaction(&self) -> Result<(), SqlError> {
        if !self.is_in_transaction() {
            return Ok(());
        }
        Err(SqlError::detail(
            ErrorCode::Unknown,
            "This is in a transaction, only insert, update, delete, commit, rollback is acceptable",
        ))
    }
}

fn of_query(column: &ResultColumn) -> QueryColumn {
    QueryColumn {
        name: column.name.clone(),
        data_type: column.table_type(),
        // Computed columns may be NULL, whatever a plan says.
        is_never_null: column.table.is_some() && !column.nullable,
    }
}

//! Tables that get their rows before they get their names: `CREATE TABLE … AS SELECT` creates one. A temporary table is one that never
//! gets it, and that its session knows ([`crate::session`]).
//!
//! Invariant: a table is visible under its name only with all its rows. Until then it has a role that names from outside never
//! match; a failure in between, by an error or with the server, leaves a table of that role, which is dropped.

use crate::access::interrupt::Interrupt;
use crate::ddl::Ddl;
use std::sync::Arc;
use tributary_sql::CreateTable;
use tributary_table::Table;
use tributary_types::{ErrorCode, SqlError, TableDef, TableRef, TableRole};

/// A table without its name. It is dropped, in the background, unless it is [finished](Self::finish).
#[must_use]
pub(crate) struct Unfinished {
    ddl: Arc<Ddl>,
    table: Option<Arc<Table>>,
    name: TableRef,
}

impl Unfinished {
    /// The name that the table will have, or has in its session.
    pub const fn name(&self) -> &TableRef {
        &self.name
    }

    pub fn table(&self) -> &Arc<Table> {
        self.table.as_ref().expect("it is taken when it is finished or dropped")
    }

    /// Gives the table its name.
    ///
    /// # Errors
    /// The name has been taken meanwhile, or the database was dropped. The table is dropped then.
    pub async fn finish(mut self, interrupt: Interrupt<'_>) -> Result<(), SqlError> {
        let table = Arc::clone(self.table());
        let turn = interrupt.wait(self.ddl.turn_of(&table.def())).await??;
        self.ddl.is_free(&self.name, false)?;
        let named =
            TableDef { name: self.name.table.clone(), role: TableRole::Own, ..(*table.def()).clone() };
        let ddl = Arc::clone(&self.ddl);
        // Unwatched: awaited below. In a task of its own, so that it can't be cancelled half way.
        let change = tokio::spawn(async move { ddl.change_table(&turn, table, named).await });
        let changed =
            change.await.map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?;
        if changed.is_ok() {
            self.table = None;
        }
        changed
    }
}

impl Unfinished {
    /// Drops the table now.
    ///
    /// # Errors
    /// The statement was interrupted, or the catalog can't be changed. The table is dropped in the background then.
    pub async fn give_up(mut self, interrupt: Interrupt<'_>) -> Result<(), SqlError> {
        let (ddl, table) = (Arc::clone(&self.ddl), Arc::clone(self.table()));
        let _turn = interrupt.wait(ddl.wait_for_turn(&table.def())).await?;
        let name = table.with_def(TableDef::table_ref);
        ddl.drop_open(interrupt, &name, &table).await?;
        self.table = None;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(table) = self.table.take() else { return };
        let ddl = Arc::clone(&self.ddl);
        self.ddl.ingest.watcher().spawn_once("dropping_unfinished_table", async move {
            let _turn = ddl.wait_for_turn(&table.def()).await;
            let def = table.def();
            if def.role == TableRole::Unfinished
                && let Err(error) = ddl.drop_open(Interrupt::NEVER, &def.table_ref(), &table).await
            {
                tracing::warn!(table = def.location, %error, "a table that was not finished stays until the next start");
            }
        });
    }
}

impl Ddl {
    /// Creates a table that will get this name.
    pub(crate) async fn create_unfinished(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        create: &CreateTable,
        name: TableRef,
    ) -> Result<Unfinished, SqlError> {
        let def = self.new_def(create, &name).await?;
        self.add_unfinished(interrupt, def, name).await
    }

    /// Creates a table as `source` is, without rows, that will get this name.
    pub(crate) async fn create_unfinished_like(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        source: &TableDef,
        name: TableRef,
        rollups: Option<&[String]>,
    ) -> Result<Unfinished, SqlError> {
        let def = self.def_like(source, &name, rollups).await?;
        self.add_unfinished(interrupt, def, name).await
    }

    async fn add_unfinished(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        def: TableDef,
        name: TableRef,
    ) -> Result<Unfinished, SqlError> {
        let role = TableRole::Unfinished;
        let hidden = role.name(def.id).expect("a role that nobody names has a name");
        let table = self.add_table(interrupt, TableDef { name: hidden, role, ..def }, false).await?;
        Ok(Unfinished { ddl: Arc::clone(self), table, name })
    }

    /// Drops tables that an earlier process did not finish.
    pub(crate) async fn drop_unfinished_tables(self: &Arc<Self>) -> Result<(), SqlError> {
        for table in self.names.all_tables() {
            let def = table.def();
            if def.role == TableRole::Unfinished {
                tracing::info!(
                    table = def.location,
                    "a table is dropped whose CREATE or whose session did not end"
                );
                self.drop_open(Interrupt::NEVER, &def.table_ref(), &table).await?;
            }
        }
        Ok(())
    }
}

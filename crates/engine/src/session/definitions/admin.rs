//! Statements about databases, tables, users and connections, and the SHOWs that only the server
//! itself can answer.

use crate::access::accounts::{ChangedUser, NewUser};
use crate::access::interrupt::Interrupt;
use crate::access::{Object, Privilege};
use crate::answer::Answer;
use crate::ddl::tables::table_error;
use crate::node::clock::date_time;
use crate::session::EngineSession;
use crate::session::compat::Warning;
use std::sync::Arc;
use tributary_query::Grid;
use tributary_sql::{
    AlterOp, CreateTable, Kill, Name, Recover, Recovered, Show, Statement, named_partitions,
};
use tributary_table::Table;
use tributary_types::{ErrorCode, PartitionNames, SqlError, TableRef};

impl EngineSession {
    pub(in crate::session) async fn run_admin(&mut self, statement: Statement) -> Result<Answer, SqlError> {
        self.refuse_in_transaction()?;
        let engine = &self.engine;
        let process = Arc::clone(&self.process);
        // Waiting for a turn may be interrupted; the change itself may not.
        let killed = Interrupt::by_kill(&process.stop);
        let mut note = None;
        match statement {
            Statement::CreateDatabase { name, if_not_exists } => {
                if !engine.ddl.create_database(killed, &name, if_not_exists).await? {
                    let text = format!("Can't create database '{name}'; database exists");
                    note = Some(Warning::note_of(ErrorCode::DbCreateExists, text));
                }
            }
            Statement::DropDatabase { name, if_exists, force } => {
                if !engine.ddl.drop_database(killed, &name, if_exists, force).await? {
                    let text = format!("Can't drop database '{name}'; database doesn't exist");
                    note = Some(Warning::note_of(ErrorCode::DbDropNotExists, text));
                }
                if self.database.as_deref() == Some(name.as_str()) {
                    self.database = None;
                }
            }
            Statement::CreateTable(mut create) => {
                self.limit_partitions(&mut create);
                let name = create.table.resolve(self.database.as_deref())?;
                let is_new = engine.ddl.create_table(killed, &create, &name).await?;
                note = (!is_new).then(|| Warning::table_exists(&name));
            }
            Statement::CreateTableLike { table, if_not_exists, source, rollups, .. } => {
                note = self.create_like(&table, &source, if_not_exists, rollups.as_deref()).await?;
            }
            Statement::DropTable { table, if_exists, force } => {
                let name = table.resolve(self.database.as_deref())?;
                let is_dropped = engine.ddl.drop_table_called(killed, &name, if_exists, force).await?;
                note = (!is_dropped).then(|| Warning::unknown_table(&name));
            }
            Statement::Recover(recover) => self.run_recover(recover).await?,
            Statement::DropRecycled(id) => engine.ddl.erase_recycled(killed, id).await?,
            Statement::TruncateTable { table, partitions, .. } => self.truncate(&table, &partitions).await?,
            Statement::AlterTable { table, ops } => self.alter_table(&table, &ops).await?,
            Statement::CancelAlter { table, is_rollup } => {
                let name = table.resolve(self.database.as_deref())?;
                if is_rollup {
                    return Err(engine.ddl.no_rollup_under_way(&name)?);
                }
                self.interrupt().wait(engine.ddl.cancel_alter(&name)).await??;
            }
            Statement::CreateUser { user, if_not_exists, password, role, require, policy, comment } => {
                let require = require.unwrap_or_default();
                let new = NewUser { password, role, require, policy, comment };
                engine.accounts.create_user(&self.principal, &user, new, if_not_exists).await?;
            }
            Statement::AlterUser { user, password, require, policy, unlocks, if_exists } => {
                let new = ChangedUser { password, require, policy, unlocks };
                engine.accounts.alter_user(&self.principal, &user, new, if_exists).await?;
            }
            Statement::DropUser { user, if_exists } => {
                engine.accounts.drop_user(&self.principal, &user, if_exists).await?;
            }
            Statement::SetProperty(statement) => {
                engine.accounts.set_property(&self.principal, &statement).await?;
            }
            Statement::Role(statement) => engine.accounts.change_role(&self.principal, &statement).await?,
            Statement::Token(statement) => {
                if let Some(grid) = engine.accounts.change_token(&self.principal, *statement).await? {
                    return Answer::grid(&grid);
                }
            }
            Statement::Grant(statement) => engine.accounts.grant(&self.principal, &statement).await?,
            Statement::Revoke(statement) => engine.accounts.revoke(&self.principal, &statement).await?,
            Statement::Kill(kill) => self.kill_other(&kill)?,
            Statement::ReloadTls => engine.reload_tls()?,
            Statement::Backup(backup) => {
                return Answer::grid(&killed.wait(engine.backup(*backup)).await??);
            }
            Statement::Verify(verify) => return self.run_verify(&verify).await,
            Statement::SetConfig(properties) => engine.change_settings(properties.0).await?,
            Statement::Decommission { backends, cancels } => engine.decommission(&backends, !cancels)?,
            Statement::CleanLabel { db, label } => {
                let db = self.database_or(db.as_deref())?;
                engine.loads.clean_labels(&self.principal, db, label.as_deref()).await?;
            }
            other => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    format!("this statement is not supported yet: {other:?}"),
                ));
            }
        }
        Ok(self.with_warnings(Answer::ok(), note))
    }

    async fn truncate(&mut self, table: &Name, partitions: &PartitionNames) -> Result<(), SqlError> {
        let engine = &self.engine;
        let table = self.named(Privilege::Truncate, table)?;
        let cut = match partitions {
            PartitionNames::Named(names) => named_partitions(&table.def(), names)?,
            PartitionNames::Temporary(_) => {
                return Err(SqlError::detail(ErrorCode::Unknown, "Not support truncate temp partitions"));
            }
            PartitionNames::Any => None,
        };
        match cut {
            Some(cut) => {
                self.interrupt().wait(table.divide()).await?.map_err(table_error)?;
                self.interrupt().wait(engine.ingest.cut(&table, cut)).await??;
            }
            None => {
                self.interrupt().wait(engine.ingest.truncate(&table)).await??;
                let (def, process) = (table.def(), Arc::clone(&self.process));
                let _turn = Interrupt::by_kill(&process.stop).wait(engine.ddl.wait_for_turn(&def)).await?;
                engine.ddl.drop_beside(&def).await?;
            }
        }
        Ok(())
    }

    /// The right to change the object was checked; the right to create it is checked, too.
    async fn run_recover(&mut self, recover: Recover) -> Result<(), SqlError> {
        let (engine, process) = (Arc::clone(&self.engine), Arc::clone(&self.process));
        let killed = Interrupt::by_kill(&process.stop);
        let db = self.database.as_deref();
        match recover {
            Recover::Database(recovered) => {
                engine.gate.check(&self.principal, Privilege::Create, Object::Database(&recovered.name))?;
                engine.ddl.recover_database(killed, &recovered).await
            }
            Recover::Table(Recovered { name, id, new_name }) => {
                let name = name.resolve(db)?;
                self.check_create(&name)?;
                let recovered = Recovered { name, id, new_name };
                engine.ddl.recover_table(killed, &recovered).await
            }
            Recover::Partition { partition, table } => {
                let name = table.resolve(db)?;
                self.check_create(&name)?;
                engine.ddl.recover_partition(killed, &name, &partition).await
            }
        }
    }

    async fn alter_table(&mut self, table: &Name, ops: &[AlterOp]) -> Result<(), SqlError> {
        let name = table.resolve(self.database.as_deref())?;
        if let [AlterOp::ReplaceTable { with, properties }] = ops {
            return self.replace_table(&name, with, properties).await;
        }
        let (engine, process) = (Arc::clone(&self.engine), Arc::clone(&self.process));
        let interrupt = Interrupt::by_kill(&process.stop);
        if self.variables.values().mysql_ddl != "compat" {
            return engine.ddl.alter_table(interrupt, &name, ops).await;
        }
        // As in MySQL, a change is done when it is answered. Others may have begun one that is not.
        let id = self.named(Privilege::Alter, table)?.id();
        let _ = interrupt.wait(engine.ddl.schema_changed(id)).await?;
        engine.ddl.alter_table(interrupt, &name, ops).await?;
        interrupt.wait(engine.ddl.schema_changed(id)).await?
    }

    /// `ALTER TABLE t REPLACE WITH TABLE with`: the tables swap names; without `swap`, the one that was replaced is dropped.
    async fn replace_table(
        &mut self,
        name: &TableRef,
        with: &str,
        properties: &[(String, String)],
    ) -> Result<(), SqlError> {
        let mut swap = true;
        for (key, value) in properties {
            swap = match (key.to_ascii_lowercase().as_str(), value.to_ascii_lowercase().as_str()) {
                ("swap", "true") => true,
                ("swap", "false") => false,
                ("swap", _) => {
                    let text = format!("the property \"swap\" is true or false, not '{value}'");
                    return Err(SqlError::detail(ErrorCode::Unknown, text));
                }
                _ => {
                    let text =
                        format!("Unknown properties: {{{key}={value}}}; REPLACE WITH TABLE has \"swap\"");
                    return Err(SqlError::detail(ErrorCode::Unknown, text));
                }
            };
        }
        let other = TableRef { db: name.db.clone(), table: with.to_owned() };
        let object = Object::Table { db: &other.db, table: &other.table };
        self.engine.gate.check(&self.principal, Privilege::Alter, object)?;
        if !swap {
            let object = Object::Table { db: &name.db, table: &name.table };
            self.engine.gate.check(&self.principal, Privilege::Drop, object)?;
        }
        let engine = Arc::clone(&self.engine);
        let process = Arc::clone(&self.process);
        engine.ddl.swap_tables(Interrupt::by_kill(&process.stop), name, &other).await?;
        if !swap {
            engine.ddl.drop_table_called(Interrupt::by_kill(&process.stop), &other, false, false).await?;
        }
        Ok(())
    }

    fn check_create(&self, name: &TableRef) -> Result<(), SqlError> {
        let object = Object::Table { db: &name.db, table: &name.table };
        self.engine.gate.check(&self.principal, Privilege::Create, object)
    }

    /// A new table has as many partitions as the session allows.
    pub(in crate::session) fn limit_partitions(&self, create: &mut CreateTable) {
        let most = self.variables.values().create_table_partition_max_num;
        if let Some(by) = &mut create.partition_by {
            by.count_max = Some(usize::try_from(most).unwrap_or(0));
        }
    }

    fn named(&self, privilege: Privilege, name: &Name) -> Result<Arc<Table>, SqlError> {
        self.table(privilege, name.db.as_deref(), &name.table)
    }

    fn kill_other(&self, kill: &Kill) -> Result<(), SqlError> {
        match kill {
            Kill::Connection(id) => self.engine.gate.kill_connection(&self.principal, *id),
            Kill::Query(id) => self.engine.gate.kill_statement(&self.principal, *id),
            Kill::QueryId(id) => Err(SqlError::new(
                ErrorCode::UnknownThread,
                format!("Unknown query id: {id}; use KILL QUERY with an Id of SHOW PROCESSLIST"),
            )),
        }
    }

    /// Answers the SHOWs that need more than the query engine knows; `None` is for one that does not.
    pub(in crate::session) async fn show_own(&mut self, show: &Show) -> Result<Option<Grid>, SqlError> {
        Ok(Some(match show {
            Show::CreateView { view } => self.show_create_view(view)?,
            Show::CreateTable { table } => {
                let def = match self.named(Privilege::Show, table) {
                    Err(error) if error.code == ErrorCode::WrongObject => {
                        return self.show_create_view(table).map(Some);
                    }
                    found => found?.def(),
                };
                let (def, is_temporary) = self.under_its_name(def);
                let mut statement = match self.variables.values().mysql_ddl.as_str() {
                    "compat" => tributary_sql::show_create_table_of_mysql(&def),
                    _ => tributary_sql::show_create_table(&def),
                };
                if is_temporary {
                    statement = statement.replacen("CREATE TABLE", "CREATE TEMPORARY TABLE", 1);
                }
                Grid::new(&["Table", "Create Table"])
                    .with_row(vec![def.name.as_str().into(), statement.into()])
            }
            Show::CreateDatabase { db } => {
                self.engine.gate.database(&self.principal, Privilege::Show, db)?;
                let statement = tributary_sql::show_create_database(db);
                Grid::new(&["Database", "Create Database"])
                    .with_row(vec![db.as_str().into(), statement.into()])
            }
            Show::Warnings { count: true } => {
                Grid::new(&["@@session.warning_count"]).with_row(vec![self.warnings.len().to_string().into()])
            }
            Show::Warnings { count: false } => {
                let mut grid = Grid::new(&["Level", "Code", "Message"]);
                for warning in &self.warnings {
                    let level = if warning.is_note { "Note" } else { "Warning" };
                    let code = warning.code.number().to_string();
                    grid.push(vec![level.into(), code.as_str().into(), warning.text.as_str().into()]);
                }
                grid
            }
            Show::Errors { count: true } => Grid::new(&["@@session.error_count"]).with_row(vec!["0".into()]),
            Show::Errors { count: false } => Grid::new(&["Level", "Code", "Message"]),
            Show::LastInsert => self.show_last_insert(),
            Show::Transaction { db, by } => self.show_transaction(db.as_deref(), by)?,
            Show::Grants { user, all: false } if self.is_compatible() => {
                self.engine.accounts.show_mysql_grants(&self.principal, user.as_ref())?
            }
            Show::Grants { user, all } => {
                self.engine.accounts.show_grants(&self.principal, user.as_ref(), *all)?
            }
            Show::Tokens { user, all } => {
                self.engine.accounts.show_tokens(&self.principal, user.as_ref(), *all, date_time)?
            }
            Show::Property { user, tail } => {
                let grid = self.engine.accounts.show_property(&self.principal, user.as_ref())?;
                self.queries.tailed(&self.view(), grid, tail, 0)?
            }
            Show::Roles => self.engine.accounts.show_roles(),
            Show::Load { db, tail } => {
                let grid = self.engine.jobs.show_loads(&self.principal, self.database_or(db.as_deref())?)?;
                self.queries.tailed(&self.view(), grid, tail, 1)?
            }
            Show::StreamLoad { db, tail } => {
                let grid =
                    self.engine.loads.show_stream_loads(&self.principal, self.database_or(db.as_deref())?)?;
                self.queries.tailed(&self.view(), grid, tail, 0)?
            }
            Show::LoadWarnings { of, limit } => {
                let grid = self.show_load_warnings(of).await?;
                self.queries.tailed(&self.view(), grid, limit, 1)?
            }
            Show::CreateLoad { label } => self.show_create_load(label)?,
            Show::RecycleBin { tail } => {
                self.queries.tailed(&self.view(), self.engine.ddl.show_recycle_bin(), tail, 1)?
            }
            Show::DynamicPartitionTables { db } => {
                self.engine.ddl.show_dynamic_tables(&self.principal, self.database_or(db.as_deref())?)?
            }
            Show::Export { db, tail } => {
                let db = db.as_deref().or(self.database.as_deref());
                let grid = self.engine.jobs.show_exports(&self.principal, db)?;
                self.queries.tailed(&self.view(), grid, tail, 1)?
            }
            Show::Jobs { tail } => {
                let grid = self.engine.jobs.show_scheduled(&self.principal);
                self.queries.tailed(&self.view(), grid, tail, 1)?
            }
            Show::RoutineLoad { .. } | Show::RoutineLoadTask { .. } | Show::CreateRoutineLoad { .. } => {
                self.engine.jobs.show_jobs(&self.principal, self.database.as_deref(), show)?
            }
            _ => return Ok(None),
        }))
    }

    fn show_create_view(&self, name: &Name) -> Result<Grid, SqlError> {
        let name = name.resolve(self.database.as_deref())?;
        let object = Object::Table { db: &name.db, table: &name.table };
        self.engine.gate.check(&self.principal, Privilege::ShowView, object)?;
        let view = self.engine.ddl.view_called(&name)?;
        let statement = tributary_sql::show_create_view(&view);
        Ok(Grid::new(&["View", "Create View", "character_set_client", "collation_connection"]).with_row(
            vec![view.name.as_str().into(), statement.into(), "utf8mb4".into(), "utf8mb4_0900_bin".into()],
        ))
    }

    fn show_last_insert(&self) -> Grid {
        let table = Grid::new(&[
            "TransactionId",
            "Label",
            "Database",
            "Table",
            "TransactionStatus",
            "LoadedRows",
            "FilteredRows",
        ]);
        let Some(last) = &self.last_insert else { return table };
        let status =
            self.engine.ingest.transactions().by_id(last.txn).map_or(last.status, |info| info.status);
        table.with_row(vec![
            last.txn.to_string().into(),
            last.label.to_string().into(),
            last.table.db.clone().into(),
            last.table.name.clone().into(),
            status.name().into(),
            last.loaded.to_string().into(),
            last.filtered.to_string().into(),
        ])
    }
}

#[cfg(test)]
mod tests;

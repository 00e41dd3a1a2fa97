//! Statements about databases, tables, users and connections, and the SHOWs that only the server
//! itself can answer.

use super::EngineSession;
use crate::access::Privilege;
use crate::interrupt::Interrupt;
use std::sync::Arc;
use tributary_ingest::TransactionInfo;
use tributary_mysql::{OkInfo, ResultWriter};
use tributary_query::{Cell, Grid};
use tributary_sql::{Kill, Name, Show, Statement, TransactionBy, named_partitions};
use tributary_table::Table;
use tributary_types::{ErrorCode, PartitionNames, PasswordHash, SqlError, TxnId};

impl EngineSession {
    pub(super) async fn run_admin(
        &mut self,
        statement: Statement,
        out: &mut ResultWriter<'_>,
    ) -> Result<(), SqlError> {
        self.refuse_in_transaction()?;
        let engine = &self.engine;
        let process = Arc::clone(&self.process);
        let turn = || Interrupt::by_kill(&process.stop).wait(engine.changing());
        match statement {
            Statement::CreateDatabase { name, if_not_exists } => {
                engine.create_database(&turn().await?, &name, if_not_exists).await?;
            }
            Statement::DropDatabase { name, if_exists, .. } => {
                engine.drop_database(&turn().await?, &name, if_exists).await?;
                if self.database.as_deref() == Some(name.as_str()) {
                    self.database = None;
                }
            }
            Statement::CreateTable(create) => {
                let name = create.table.resolve(self.database.as_deref())?;
                engine.create_table(&turn().await?, &create, &name).await?;
            }
            Statement::CreateTableLike { table, if_not_exists, source } => {
                self.create_like(&table, &source, if_not_exists).await?;
            }
            Statement::DropTable { table, if_exists, .. } => {
                let name = table.resolve(self.database.as_deref())?;
                engine.drop_table(&turn().await?, &name, if_exists).await?;
            }
            Statement::TruncateTable { table, partitions, .. } => {
                let table = self.named(Privilege::Load, &table)?;
                let cut = match &partitions {
                    PartitionNames::Named(names) => named_partitions(&table.def(), names)?,
                    names => names.resolve(&table.def()).map(|_| None)?,
                };
                match cut {
                    Some(cut) => self.interrupt().wait(engine.ingest.cut(&table, cut)).await??,
                    None => self.interrupt().wait(engine.ingest.truncate(&table)).await??,
                };
            }
            Statement::AlterTable { table, ops } => {
                let name = table.resolve(self.database.as_deref())?;
                engine.alter_table(&turn().await?, &name, &ops).await?;
            }
            Statement::CreateUser { user, if_not_exists, password } => {
                let hash = password.unwrap_or(PasswordHash::EMPTY);
                engine.create_user(&user.name, &user.host, hash, if_not_exists).await?;
            }
            Statement::AlterUser { user, password, .. } => {
                let hash = password.unwrap_or(PasswordHash::EMPTY);
                engine.set_password(&user.name, hash).await?;
            }
            Statement::DropUser { user, if_exists } => {
                engine.drop_user(&user.name, &user.host, if_exists).await?;
            }
            Statement::Kill(kill) => self.kill_other(&kill)?,
            other => {
                return Err(SqlError::detail(
                    ErrorCode::NotSupported,
                    format!("this statement is not supported yet: {other:?}"),
                ));
            }
        }
        out.ok(OkInfo::default()).await
    }

    fn named(&self, privilege: Privilege, name: &Name) -> Result<Arc<Table>, SqlError> {
        self.table(privilege, name.db.as_deref(), &name.table)
    }

    fn kill_other(&self, kill: &Kill) -> Result<(), SqlError> {
        match kill {
            Kill::Connection(id) => self.engine.kill_connection(&self.principal, *id),
            Kill::Query(id) => self.engine.kill_statement(&self.principal, *id),
            Kill::QueryId(id) => Err(SqlError::new(
                ErrorCode::UnknownThread,
                format!("Unknown query id: {id}; use KILL QUERY with an Id of SHOW PROCESSLIST"),
            )),
        }
    }

    /// Answers the SHOWs that need more than the query engine knows; `None` is for one that does not.
    pub(super) async fn show_own(&mut self, show: &Show) -> Result<Option<Grid>, SqlError> {
        Ok(Some(match show {
            Show::CreateView { view } => self.show_create_view(view)?,
            Show::CreateTable { table } => {
                let def = match self.named(Privilege::Show, table) {
                    Err(error) if error.code == ErrorCode::WrongObject => {
                        return self.show_create_view(table).map(Some);
                    }
                    found => found?.def(),
                };
                let statement = tributary_sql::show_create_table(&def);
                Grid::new(&["Table", "Create Table"])
                    .with_row(vec![def.name.as_str().into(), statement.into()])
            }
            Show::CreateDatabase { db } => {
                self.engine.database(&self.principal, Privilege::Show, db)?;
                let statement = tributary_sql::show_create_database(db);
                Grid::new(&["Database", "Create Database"])
                    .with_row(vec![db.as_str().into(), statement.into()])
            }
            Show::Warnings { count: true } => {
                Grid::new(&["@@session.warning_count"]).with_row(vec![self.warnings.len().to_string().into()])
            }
            Show::Warnings { count: false } => {
                let code = ErrorCode::Unknown.number().to_string();
                let mut grid = Grid::new(&["Level", "Code", "Message"]);
                for text in &self.warnings {
                    grid.push(vec!["Warning".into(), code.as_str().into(), text.as_str().into()]);
                }
                grid
            }
            Show::Errors { count: true } => Grid::new(&["@@session.error_count"]).with_row(vec!["0".into()]),
            Show::Errors { count: false } => Grid::new(&["Level", "Code", "Message"]),
            Show::LastInsert => self.show_last_insert(),
            Show::Transaction { db, by } => self.show_transaction(db.as_deref(), by)?,
            Show::Grants { .. } => self.show_grants(),
            Show::Load { db, tail } => {
                let db = db.as_deref().or(self.database.as_deref());
                let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
                let grid = self.engine.show_loads(&self.principal, db)?;
                self.queries.tailed(&self.view(), grid, tail, 1)?
            }
            Show::Export { db, tail } => {
                let db = db.as_deref().or(self.database.as_deref());
                let grid = self.engine.show_exports(&self.principal, db)?;
                self.queries.tailed(&self.view(), grid, tail, 1)?
            }
            Show::RoutineLoad { .. } | Show::RoutineLoadTask { .. } | Show::CreateRoutineLoad { .. } => {
                self.engine.show_jobs(&self.principal, self.database.as_deref(), show)?
            }
            _ => return Ok(None),
        }))
    }

    fn show_create_view(&self, name: &Name) -> Result<Grid, SqlError> {
        let view = self.engine.view_called(&name.resolve(self.database.as_deref())?)?;
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

    fn show_transaction(&self, db: Option<&str>, by: &TransactionBy) -> Result<Grid, SqlError> {
        let db = db.or(self.database.as_deref());
        let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        let db_id = self.engine.database(&self.principal, Privilege::Show, db)?;
        let transactions = self.engine.ingest.transactions();
        let found = match by {
            TransactionBy::Id(id) => transactions.by_id(TxnId(*id)).filter(|info| info.db == db_id),
            TransactionBy::Label(label) => transactions.by_label(db_id, label),
        };
        let Some(info) = found else {
            let what = match by {
                TransactionBy::Id(id) => format!("transaction with id {id} does not exist"),
                TransactionBy::Label(label) => format!("transaction with label {label} does not exist"),
            };
            return Err(SqlError::detail(ErrorCode::Unknown, what));
        };
        Ok(self.transaction_row(&info))
    }

    fn transaction_row(&self, info: &TransactionInfo) -> Grid {
        let time = |at: Option<i64>| Cell::from(at.map(crate::clock::date_time));
        Grid::new(&[
            "TransactionId",
            "Label",
            "Coordinator",
            "TransactionStatus",
            "LoadJobSourceType",
            "PrepareTime",
            "PreCommitTime",
            "CommitTime",
            "PublishTime",
            "FinishTime",
            "Reason",
            "ErrorReplicasCount",
            "ListenerId",
            "TimeoutMs",
            "ErrMsg",
        ])
        .with_row(vec![
            info.txn.to_string().into(),
            info.label.to_string().into(),
            format!("FE: {}", self.engine.options.host).into(),
            info.status.name().into(),
            info.kind.source_type().into(),
            time(Some(info.prepared_at_ms)),
            time(info.precommitted_at_ms),
            time(info.finished_at_ms),
            time(info.finished_at_ms),
            time(info.finished_at_ms),
            info.reason.clone().into(),
            "0".into(),
            "-1".into(),
            (self.variables.values().insert_timeout * 1000).to_string().into(),
            "".into(),
        ])
    }

    fn show_grants(&self) -> Grid {
        Grid::new(&["UserIdentity", "Comment", "Password", "Roles", "GlobalPrivs"]).with_row(vec![
            format!("'{}'@'%'", self.principal.user()).into(),
            "".into(),
            if self.engine.has_password(self.principal.user()) { "Yes" } else { "No" }.into(),
            "operator".into(),
            "Node_priv,Admin_priv".into(),
        ])
    }
}

#[cfg(test)]
mod tests;

//! Temporary partitions: partitions of a table beside the target table, and `REPLACE PARTITION`.
//!
//! The table beside has the columns and keys of its table, and a name that no statement can write. It exists as long as it has
//! partitions. Loads and queries that name temporary partitions use it; other users do not see it, nor do other readers of the
//! table's Delta log.
//!
//! Invariant: rows of temporary partitions become rows of the table with one entry of its Delta log
//! ([`super::super::change::records`]).
//!
//! Not its business: which partitions may replace which, and how loads are held meanwhile.

use crate::access::interrupt::Interrupt;
use crate::ddl::Ddl;
use crate::ddl::change::switching::{Rest, loads_go_on};
use crate::ddl::change::turns::TableTurn;
use crate::ddl::tables::table_error;
use std::sync::Arc;
use tributary_ddl::{Beside, Change, Effect, NewPartitions, Replaced};
use tributary_ingest::{Halt, PartitionSwitch};
use tributary_sql::{AlterOp, PartitionItem, ReplacePartitions};
use tributary_table::Table;
use tributary_types::{
    ErrorCode, PartitionId, PartitionNames, Partitioning, Partitions, SqlError, TableDef, TableId, TableRole,
};

/// The name of the table that has the temporary partitions of a table.
pub(crate) fn name_beside(table: TableId) -> String {
    TableRole::Beside(table).name(table).expect("a role that nobody names has a name")
}

/// The table that rows of this one become rows of, if it has the temporary partitions of another; else itself.
pub(crate) fn table_of_rows(def: &TableDef) -> TableId {
    match def.role {
        TableRole::Beside(of) => of,
        TableRole::Own | TableRole::Unfinished => def.id,
    }
}

/// The definition without these partitions.
fn without(def: &TableDef, ids: &[PartitionId]) -> TableDef {
    let Some(partitions) = def.partitioning.partitions() else { return def.clone() };
    let mut left = Partitions::clone(partitions);
    left.remove(ids);
    TableDef { partitioning: Partitioning::By(Arc::new(left)), ..def.clone() }
}

fn has_partitions(def: &TableDef) -> bool {
    def.partitioning.partitions().is_some_and(|partitions| !partitions.list.is_empty())
}

impl Ddl {
    /// The table that has the temporary partitions of this one, if it has any.
    pub(crate) fn beside(&self, def: &TableDef) -> Option<Arc<Table>> {
        self.names.find_of_any_role(&def.db, &name_beside(def.id))
    }

    /// The table whose partitions a load names, and their names in it.
    ///
    /// # Errors
    /// No temporary partition of such a name.
    pub(crate) fn table_of_partitions(
        &self,
        table: Arc<Table>,
        names: &PartitionNames,
    ) -> Result<(Arc<Table>, PartitionNames), SqlError> {
        let PartitionNames::Temporary(temporary) = names else { return Ok((table, names.clone())) };
        let def = table.def();
        let beside = self.beside(&def);
        names.resolve_temporary(&def, beside.as_ref().map(|beside| beside.def()).as_deref())?;
        Ok((beside.unwrap_or(table), PartitionNames::Named(temporary.clone())))
    }

    /// Refuses changes of a table that its temporary partitions can't follow.
    ///
    /// # Errors
    /// Other columns, in Doris's words, or a name of a partition that a temporary one has.
    pub(crate) fn refuse_for_temporary(&self, old: &TableDef, new: &TableDef) -> Result<(), SqlError> {
        let beside = self.beside(old).map(|beside| beside.def()).filter(|beside| has_partitions(beside));
        let Some(beside) = beside else { return Ok(()) };
        if new.schema != old.schema || new.rollups != old.rollups {
            return Err(refused("Can not alter table when there are temp partitions in table"));
        }
        let (Some(partitions), Some(temporary)) =
            (new.partitioning.partitions(), beside.partitioning.partitions())
        else {
            return Ok(());
        };
        let is_taken = |name: &str| temporary.index_of(name).is_some();
        match partitions.list.iter().find(|partition| is_taken(&partition.name)) {
            Some(both) => Err(SqlError::new(
                ErrorCode::PartitionExists,
                format!("Duplicate partition name {}", both.name),
            )),
            None => Ok(()),
        }
    }

    /// Runs a clause that is about temporary partitions; `false`: it is not.
    pub(crate) async fn alter_temporary(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Arc<Table>,
        op: &AlterOp,
    ) -> Result<bool, SqlError> {
        match op {
            AlterOp::AddTemporaryPartitions { item, if_not_exists } => {
                self.add_temporary(turn, table, item, *if_not_exists).await?;
            }
            AlterOp::DropTemporaryPartition { name, if_exists } => {
                self.drop_temporary(turn, table, name, *if_exists).await?;
            }
            AlterOp::ReplacePartitions(replace) => self.replace_partitions(turn, table, replace).await?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    async fn add_temporary(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Table,
        item: &PartitionItem,
        if_not_exists: bool,
    ) -> Result<(), SqlError> {
        let def = table.def();
        // One that could not be dropped when its last partition left may have columns of then.
        if self.beside(&def).is_some_and(|beside| !has_partitions(&beside.def())) {
            self.drop_beside(&def).await?;
        }
        if let Some(beside) = self.beside(&def) {
            let new = tributary_sql::add_temporary(&def, &beside.def(), item, if_not_exists)?;
            return self.change_table(turn, beside, new).await;
        }
        let id = self.catalog.next_table_id().await?;
        let beside = tributary_sql::beside(&def, id, name_beside(def.id))?;
        let beside = TableDef { role: TableRole::Beside(def.id), ..beside };
        let new = tributary_sql::add_temporary(&def, &beside, item, if_not_exists)?;
        if has_partitions(&new) {
            self.add_table(Interrupt::NEVER, new, false).await?;
        }
        Ok(())
    }

    async fn drop_temporary(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Table,
        name: &str,
        if_exists: bool,
    ) -> Result<(), SqlError> {
        let def = table.def();
        let beside = self.beside(&def);
        // A table without any is treated like one with others.
        let of = beside.as_ref().map_or_else(|| without_any(&def), |beside| (*beside.def()).clone());
        let new = tributary_sql::without_partition(&of, name, if_exists)?;
        let Some(beside) = beside else { return Ok(()) };
        match has_partitions(&new) {
            true => self.change_table(turn, beside, new).await,
            false => self.drop_beside(&def).await,
        }
    }

    /// Drops all temporary partitions of a table. The caller has its turn.
    pub(crate) async fn drop_beside(self: &Arc<Self>, def: &TableDef) -> Result<(), SqlError> {
        if let Some(beside) = self.beside(def) {
            self.drop_open(Interrupt::NEVER, &beside.def().table_ref(), &beside).await?;
        }
        Ok(())
    }

    /// Drops leftovers of temporary partitions after a crash: of dropped tables, and tables that have no more of them.
    pub(crate) async fn drop_left_beside(self: &Arc<Self>) -> Result<(), SqlError> {
        let tables = self.names.all_tables();
        let in_use: Vec<String> = tables.iter().map(|table| name_beside(table.id())).collect();
        for table in &tables {
            let def = table.def();
            if matches!(def.role, TableRole::Beside(_))
                && (!in_use.contains(&def.name) || !has_partitions(&def))
            {
                self.drop_open(Interrupt::NEVER, &def.table_ref(), table).await?;
            }
        }
        Ok(())
    }

    async fn replace_partitions(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: &Arc<Table>,
        replace: &ReplacePartitions,
    ) -> Result<(), SqlError> {
        let def = table.def();
        let found = self.beside(&def);
        let of_beside = found.as_ref().map(|beside| beside.def());
        let replacement = tributary_sql::replacement(&def, of_beside.as_deref(), replace)?;
        let Some(beside) = found else { return Err(refused("the table has no temporary partitions")) };
        self.same_columns(turn, table, &beside).await?;
        let id = self.schema_changes.next_id().await?;
        let moved = replacement.moved.iter().map(|(id, _)| *id).collect();
        let effect = Effect::Partitions(NewPartitions {
            beside: Some(Beside { table: beside.id(), moved }),
            ..NewPartitions::new(replacement.partitions.clone())
        });
        let change = Change { id, table: def.id, effect };
        let switch = PartitionSwitch {
            id: id.0,
            partitions: Arc::new(replacement.partitions),
            moved: replacement.moved,
        };
        // Before loads are held.
        table.divide().await.map_err(table_error)?;
        let switched = Arc::clone(table);
        let work = |ddl: Arc<Self>, halt: Arc<Halt>| async move {
            let (ingest, table) = (&*ddl.ingest, &*switched);
            let subject = Replaced { ingest, table, beside: &beside, switch: &switch };
            match ddl.make_change(table, &subject, change, &halt).await? {
                Some(_) => Ok(()),
                None => Err(loads_go_on(table)),
            }
        };
        self.run_switch(turn, table, work, Rest::DropBeside(def)).await
    }

    /// Drops the table of temporary partitions if it has none. If that fails, it stays until the next start, or until a temporary
    /// partition is added: the operation that emptied it has succeeded, and no error may say otherwise.
    pub(crate) async fn drop_beside_without_partitions(self: &Arc<Self>, def: &TableDef) {
        if self.beside(def).is_none_or(|beside| has_partitions(&beside.def())) {
            return;
        }
        if let Err(error) = self.drop_beside(def).await {
            let (table, error) = (def.table_ref(), error.detail_text());
            tracing::warn!(%table, error, "the table of temporary partitions, which has none, stays");
        }
    }

    /// Gives both the columns of the one that got another for partial updates.
    async fn same_columns(
        &self,
        turn: &TableTurn,
        table: &Arc<Table>,
        beside: &Arc<Table>,
    ) -> Result<(), SqlError> {
        let (of_table, of_beside) = (table.def(), beside.def());
        let with =
            |def: &TableDef, like: &TableDef| TableDef { schema: Arc::clone(&like.schema), ..def.clone() };
        match of_table.schema.version.cmp(&of_beside.schema.version) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => {
                self.change_table(turn, Arc::clone(table), with(&of_table, &of_beside)).await
            }
            std::cmp::Ordering::Greater => {
                self.change_table(turn, Arc::clone(beside), with(&of_beside, &of_table)).await
            }
        }
    }
}

/// The table as if it had no partition.
fn without_any(def: &TableDef) -> TableDef {
    let ids: Vec<PartitionId> = def
        .partitioning
        .partitions()
        .map(|all| all.list.iter().map(|one| one.id).collect())
        .unwrap_or_default();
    without(def, &ids)
}

fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

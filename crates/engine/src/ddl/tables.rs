//! Changes of databases, tables and users: the catalog first, then everything else, so that the next start can complete a change
//! that a crash interrupted.

use crate::access::interrupt::Interrupt;
use crate::ddl::Ddl;
use crate::ddl::change::switching::Rest;
use crate::ddl::change::turns::TableTurn;
use async_trait::async_trait;
use futures::StreamExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_catalog::{CatalogError, Garbage};
use tributary_ddl::Definitions;
use tributary_sql::{AlterOp, CreateTable};
use tributary_table::Table;
use tributary_types::system::INTERNAL_SCHEMA;
use tributary_types::{ErrorCode, Partitioning, Partitions, SqlError, TableDef, TableId, TableRef};

/// Locations whose files are deleted at a time.
const DELETED_AT_ONCE: usize = 4;

/// The right to change the names of databases, tables and views, which one change at a time has while the catalog and the names
/// change. Slow work is done before and after it, with the table's turn ([`crate::ddl::change::turns`]).
pub(crate) struct Changing<'a> {
    ddl: &'a Ddl,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl<'a> Changing<'a> {
    pub const fn new(ddl: &'a Ddl, turn: tokio::sync::MutexGuard<'a, ()>) -> Self {
        Self { ddl, _turn: turn }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        debug_assert!(
            std::thread::panicking() || self.ddl.has_names_of_catalog(),
            "the names and the catalog have the same tables when names can change"
        );
    }
}

impl Ddl {
    /// Whether the names match the catalog's tables.
    fn has_names_of_catalog(&self) -> bool {
        let of_def = |def: &TableDef| (TableRef { db: def.db.clone(), table: def.name.clone() }, def.id);
        let kept = self.catalog.all_tables();
        let kept: BTreeSet<_> = kept.iter().map(|def| of_def(def)).collect();
        self.names.ids().into_iter().collect::<BTreeSet<_>>() == kept
    }

    /// Creates a database. `false`: it exists.
    pub(crate) async fn create_database(
        &self,
        interrupt: Interrupt<'_>,
        name: &str,
        if_not_exists: bool,
    ) -> Result<bool, SqlError> {
        let _changing = interrupt.wait(self.changing()).await?;
        if if_not_exists && self.names.has_database(name) {
            return Ok(false);
        }
        let id = self.catalog.create_database(name).await?;
        self.names.add_database(name, id);
        Ok(true)
    }

    /// Creates the server's own database, unless it exists.
    pub(crate) async fn create_internal_database(&self) -> Result<(), SqlError> {
        let _changing = self.changing().await;
        let id = self.catalog.create_internal_database().await?;
        self.names.add_database(INTERNAL_SCHEMA, id);
        Ok(())
    }

    /// Drops a database. `false`: there is none.
    pub(crate) async fn drop_database(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        name: &str,
        if_exists: bool,
        force: bool,
    ) -> Result<bool, SqlError> {
        if !force && self.keeps_dropped() && self.catalog.database_id(name).is_some() {
            return self.recycle_database(interrupt, name, if_exists).await;
        }
        loop {
            let turns = interrupt.wait(self.turns_to_drop(name, true)).await??;
            let tables = {
                let _changing = interrupt.wait(self.changing()).await?;
                if !turns.are_all(self, name) {
                    continue;
                }
                match self.catalog.drop_database(name).await {
                    Ok(_) => {}
                    Err(CatalogError::NoDatabaseToDrop(_)) if if_exists => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
                self.names.remove_database(name)
            };
            for table in &tables {
                self.end_use(table).await;
            }
            self.collect_garbage_later();
            return Ok(true);
        }
    }

    /// Creates a table. `false`: there is one of this name.
    pub(crate) async fn create_table(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        create: &CreateTable,
        name: &TableRef,
    ) -> Result<bool, SqlError> {
        if !self.is_free(name, create.if_not_exists)? {
            return Ok(false);
        }
        let def = self.new_def(create, name).await?;
        Ok(self.add_table(interrupt, def, create.if_not_exists).await?.is_some())
    }

    /// Creates a table as `source` is, without rows. `false`: there is one of this name.
    pub(crate) async fn create_table_like(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        source: &TableDef,
        name: &TableRef,
        if_not_exists: bool,
        rollups: Option<&[String]>,
    ) -> Result<bool, SqlError> {
        if !self.is_free(name, if_not_exists)? {
            return Ok(false);
        }
        let def = self.def_like(source, name, rollups).await?;
        Ok(self.add_table(interrupt, def, if_not_exists).await?.is_some())
    }

    /// The definition of a new table that is as `source`.
    pub(crate) async fn def_like(
        &self,
        source: &TableDef,
        name: &TableRef,
        rollups: Option<&[String]>,
    ) -> Result<TableDef, SqlError> {
        let db_id = self.names.database_id(&name.db)?;
        let def = tributary_sql::like(source, name, db_id, self.catalog.next_table_id().await?, rollups)?;
        self.with_dynamic_partitions(def, self.unix_ms())
    }

    /// Whether a table or view can have this name. If it may exist already, `false` is not an error.
    ///
    /// # Errors
    /// No such database, or the name is taken.
    pub(crate) fn is_free(&self, name: &TableRef, if_not_exists: bool) -> Result<bool, SqlError> {
        self.names.database_id(&name.db)?;
        let is_taken = self.names.find_of_any_role(&name.db, &name.table).is_some()
            || self.catalog.view(&name.db, &name.table).is_some();
        match is_taken {
            true if if_not_exists => Ok(false),
            true => {
                Err(SqlError::new(ErrorCode::TableExists, format!("Table '{}' already exists", name.table)))
            }
            false => Ok(true),
        }
    }

    /// The definition of a new table.
    pub(crate) async fn new_def(&self, create: &CreateTable, name: &TableRef) -> Result<TableDef, SqlError> {
        let db_id = self.names.database_id(&name.db)?;
        let mut def = create.to_def(&name.db, db_id, self.catalog.next_table_id().await?)?;
        self.generated.check(&def, &self.time_zone())?;
        self.apply_defaults(&mut def, create);
        self.with_dynamic_partitions(def, self.unix_ms())
    }

    /// Removes the data of generated values of a table's rows.
    fn forget_values(&self, table: TableId) {
        self.increments.forget(table);
        self.generated.forget(table);
    }

    /// Adds a new table. `None`: its name has been taken meanwhile, and it may exist already.
    pub(crate) async fn add_table(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        def: TableDef,
        if_not_exists: bool,
    ) -> Result<Option<Arc<Table>>, SqlError> {
        // Its files are no garbage yet.
        let turn = self.turns.wait(def.id).await;
        self.catalog.announce_location(&def.location, def.id).await?;
        let table = self.store.create(&Arc::new(def.clone())).await.map_err(table_error)?;
        match self.name_table(interrupt, &table, def, if_not_exists).await {
            Ok(true) => Ok(Some(table)),
            unnamed => {
                table.close().await;
                drop(turn);
                self.collect_garbage_later();
                unnamed.map(|_| None)
            }
        }
    }

    async fn name_table(
        &self,
        interrupt: Interrupt<'_>,
        table: &Arc<Table>,
        def: TableDef,
        if_not_exists: bool,
    ) -> Result<bool, SqlError> {
        let _changing = interrupt.wait(self.changing()).await?;
        if !self.is_free(&def.table_ref(), if_not_exists)? {
            return Ok(false);
        }
        self.catalog.create_table(def).await?;
        self.ingest.attach(Arc::clone(table));
        self.names.add_table(Arc::clone(table));
        Ok(true)
    }

    /// The server's defaults for properties that the statement leaves out.
    fn apply_defaults(&self, def: &mut TableDef, create: &CreateTable) {
        let is_given = |key: &str| create.properties.iter().any(|(name, _)| name.eq_ignore_ascii_case(key));
        let properties = &mut def.properties;
        if !is_given("group_commit_interval_ms") {
            properties.group_commit_interval_ms = self.options.group_commit_interval_ms.get();
        }
        if !is_given("group_commit_data_bytes") {
            properties.group_commit_data_bytes = self.options.group_commit_data_bytes.get();
        }
    }

    /// Drops a table, which can be recovered unless that is forced, and its temporary partitions. `false`: there is none.
    pub(crate) async fn drop_table_called(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        name: &TableRef,
        if_exists: bool,
        force: bool,
    ) -> Result<bool, SqlError> {
        let is_recycled = !force && self.keeps_dropped();
        loop {
            let Some(table) = self.names.find(&name.db, &name.table) else {
                if self.refuse_absent(interrupt, name, if_exists).await? {
                    return Ok(false);
                }
                continue;
            };
            let def = table.def();
            let turn = interrupt.wait(self.turn_to_drop(&def, !is_recycled)).await??;
            let is_dropped = match is_recycled {
                true => self.recycle_table(interrupt, name, &table).await?,
                false => self.drop_open(interrupt, name, &table).await?,
            };
            if !is_dropped {
                continue;
            }
            // The change in doubt has ended.
            let _turn = match turn {
                Some(turn) => turn,
                None => self.wait_for_turn(&def).await,
            };
            if let Err(error) = self.drop_beside(&def).await {
                let error = error.detail_text();
                tracing::warn!(table = %name, error, "temporary partitions of a dropped table stay until the next start");
            }
            return Ok(true);
        }
    }

    /// The answer to dropping a table that does not exist. `false`: it does.
    async fn refuse_absent(
        &self,
        interrupt: Interrupt<'_>,
        name: &TableRef,
        if_exists: bool,
    ) -> Result<bool, SqlError> {
        let _changing = interrupt.wait(self.changing()).await?;
        if self.names.find(&name.db, &name.table).is_some() {
            return Ok(false);
        }
        if self.names.find_of_any_role(&name.db, &name.table).is_some() {
            // It is one that statements can't name.
            return match if_exists {
                true => Ok(true),
                false => self.names.table(&name.db, &name.table).map(|_| true),
            };
        }
        if self.catalog.view(&name.db, &name.table).is_some() {
            // As in MySQL, there is no table of that name.
            if if_exists {
                return Ok(true);
            }
            return Err(SqlError::wrong_object(name, "TABLE", &format!("Use 'DROP VIEW {name}'")));
        }
        match self.catalog.drop_table(name).await {
            Err(CatalogError::UnknownTable { .. } | CatalogError::UnknownDatabase(_)) if if_exists => {
                Ok(true)
            }
            Err(error) => Err(error.into()),
            Ok(_) => {
                debug_assert!(false, "the names have every table of the catalog");
                Ok(true)
            }
        }
    }

    /// Drops a table, which can't be recovered. `false`: it no longer has this name.
    pub(crate) async fn drop_open(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        name: &TableRef,
        table: &Arc<Table>,
    ) -> Result<bool, SqlError> {
        {
            let _changing = interrupt.wait(self.changing()).await?;
            if !self.names.has(name, table) {
                return Ok(false);
            }
            self.catalog.drop_table(name).await?;
            self.names.remove_table(&name.db, &name.table);
        }
        self.end_use(table).await;
        self.collect_garbage_later();
        Ok(true)
    }

    /// Ends all activities on a table that the catalog and the names do not have any more.
    pub(crate) async fn end_use(&self, table: &Table) {
        let id = table.id();
        self.end_schema_change(id).await;
        self.turns.end_switch(id).await;
        table.close().await;
        self.ingest.detach(id);
        self.forget_values(id);
    }

    /// The table of that name and its turn, for a statement that changes it.
    ///
    /// # Errors
    /// No such table; a job changes it, or a change of it is in doubt.
    pub(crate) async fn table_to_alter(
        &self,
        interrupt: Interrupt<'_>,
        name: &TableRef,
    ) -> Result<(Arc<Table>, TableTurn), SqlError> {
        loop {
            let table = self.table_called(&name.db, &name.table)?;
            self.refuse_while_changing(&table.def())?;
            let turn = interrupt.wait(self.turn_of(&table.def())).await??;
            if self.names.has(name, &table) {
                self.refuse_while_changing(&table.def())?;
                return Ok((table, turn));
            }
        }
    }

    /// Changes a table now, or starts the job that does.
    pub(crate) async fn alter_table(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        name: &TableRef,
        ops: &[AlterOp],
    ) -> Result<(), SqlError> {
        let (table, turn) = self.table_to_alter(interrupt, name).await?;
        let turn = &turn;
        let old = table.def();
        if let [op] = ops
            && self.alter_temporary(turn, &table, op).await?
        {
            return Ok(());
        }
        let mut new = tributary_sql::apply_alters(&old, ops)?;
        let now_ms = self.unix_ms();
        for rollup in
            new.rollups.iter_mut().filter(|new| old.rollups.iter().all(|old| old.number != new.number))
        {
            rollup.made_at_ms = Some(now_ms);
        }
        if ops.iter().any(|op| matches!(op, AlterOp::SetProperties(_))) {
            new = self.with_dynamic_partitions(new, self.unix_ms())?;
        }
        self.refuse_for_temporary(&old, &new)?;
        if tributary_sql::is_heavy(&old, &new) {
            return self.begin_schema_change(turn, &table, new).await;
        }
        let is_forced = |op: &AlterOp| matches!(op, AlterOp::DropPartition { force: true, .. });
        if ops.iter().any(is_forced) {
            return self.change_table(turn, table, new).await;
        }
        self.change_and_keep(turn, table, new).await
    }

    /// Gives the table another definition; partitions that are not in it can be recovered.
    pub(crate) async fn change_and_keep(
        self: &Arc<Self>,
        turn: &TableTurn,
        table: Arc<Table>,
        new: TableDef,
    ) -> Result<(), SqlError> {
        if self.keeps_dropped()
            && let (_, Some(dropped)) = changed_partitions(&table.def(), &new)
        {
            let rest = Rest::Change(Arc::clone(&table), Box::new(new));
            return self.recycle_partitions(turn, &table, dropped, rest).await;
        }
        self.change_table(turn, table, new).await
    }

    /// Cancels the job that changes a table.
    ///
    /// # Errors
    /// No table, no job, or it was too late.
    pub(crate) async fn cancel_alter(&self, name: &TableRef) -> Result<(), SqlError> {
        let table = self.table_called(&name.db, &name.table)?;
        self.cancel_schema_change(&table.def()).await
    }

    /// The answer to cancelling the creation of a rollup, which takes no time.
    ///
    /// # Errors
    /// No such table.
    pub(crate) fn no_rollup_under_way(&self, name: &TableRef) -> Result<SqlError, SqlError> {
        let def = self.table_called(&name.db, &name.table)?.def();
        Ok(SqlError::detail(ErrorCode::Unknown, format!("Table[{}] is not under ROLLUP.", def.name)))
    }

    /// The table of a job, whose principal was checked when it began.
    pub(crate) fn table_to_change(&self, id: TableId) -> Option<Arc<Table>> {
        self.names.all_tables().into_iter().find(|table| table.id() == id)
    }

    /// A job has changed a table.
    pub(crate) fn definitions_changed(&self) {
        self.names.changed();
    }

    /// Gives the table other columns.
    pub(crate) async fn change_columns(
        &self,
        turn: &TableTurn,
        table: Arc<Table>,
        new: TableDef,
    ) -> Result<(), SqlError> {
        self.refuse_while_changing(&table.def())?;
        self.change_table(turn, table, new).await
    }

    /// Reverts a change that the catalog has and the table's rows can't follow; returns the answer to the statement.
    async fn take_back(&self, old: &Arc<TableDef>, new: &Arc<TableDef>, error: SqlError) -> SqlError {
        let Err(back) = self.replace_def(new, TableDef::clone(old)).await else { return error };
        let (table, error, back) =
            (new.table_ref(), error.detail_text().to_owned(), back.detail_text().to_owned());
        tracing::error!(%table, error, back, "the catalog is ahead of a table, which follows with its next change or the next start");
        let text = format!(
            "the catalog has the change, but table {table} could not follow ({error}), and taking the change back has failed ({back}). The \
             next change of the table or the next start completes it"
        );
        SqlError::detail(ErrorCode::Unknown, text)
    }

    /// Gives a table the catalog's definition, if an earlier change could not be reverted.
    ///
    /// # Errors
    /// If that was necessary: the statement was checked against another definition.
    pub(in crate::ddl) async fn follow_catalog(&self, table: &Table) -> Result<(), SqlError> {
        let Some(kept) = self.catalog.table_by_id(table.id()) else { return Ok(()) };
        let old = table.def();
        if *kept == *old {
            return Ok(());
        }
        let name = kept.table_ref();
        table.alter(Arc::clone(&kept)).await.map_err(table_error)?;
        self.names.changed();
        if *old == (TableDef { drop_mark: old.drop_mark.clone(), ..TableDef::clone(&kept) }) {
            return Ok(());
        }
        tracing::info!(table = %name, "a table has followed the catalog");
        Err(CatalogError::TableChanged { db: name.db, table: name.table }.into())
    }

    /// Replaces a definition in the catalog, and the name if it is another.
    async fn replace_def(&self, old: &TableDef, new: TableDef) -> Result<Arc<TableDef>, SqlError> {
        if new.name == old.name {
            return Ok(self.catalog.replace_table_def(old, new).await?);
        }
        let _changing = self.changing().await;
        self.is_free(&new.table_ref(), false)?;
        let new = self.catalog.replace_table_def(old, new).await?;
        self.names.rename_table(&old.table_ref(), &new.name);
        Ok(new)
    }

    /// Gives the table another definition.
    pub(crate) async fn change_table(
        &self,
        turn: &TableTurn,
        table: Arc<Table>,
        new: TableDef,
    ) -> Result<(), SqlError> {
        debug_assert!(turn.is_of(&new), "a table is changed by the holder of its turn");
        self.follow_catalog(&table).await?;
        let (added, dropped) = changed_partitions(&table.def(), &new);
        if let (Some(_), Some(dropped)) = (&added, &dropped) {
            return Box::pin(self.drop_and_change(turn, table, dropped, new)).await;
        }
        if added.is_some() || dropped.is_some() {
            // Loads that create partitions have this future in their own.
            Box::pin(self.complete_drop(&table)).await?;
        }
        let (old, new) = (table.def(), tributary_ddl::marked(&table, new, dropped.as_ref()));
        if new == *old {
            return Ok(());
        }
        if new.name != old.name {
            self.is_free(&new.table_ref(), false)?;
        }
        let was_removed = old.partitioning.partitions().is_some_and(|it| !it.has_all_that_were());
        if let Some(added) = added.filter(|_| was_removed) {
            // Rows in the log from an earlier partition of the same values do not belong to the new one.
            self.ingest.cut(&table, added).await?;
        }
        if dropped.is_some() {
            table.divide().await.map_err(table_error)?;
        }
        let new = self.replace_def(&old, new).await?;
        let changed = match dropped {
            Some(dropped) => self.ingest.drop_partitions(&table, Arc::clone(&new), dropped).await,
            None => table.alter(Arc::clone(&new)).await,
        };
        if let Err(error) = changed {
            return Err(self.take_back(&old, &new, table_error(error)).await);
        }
        if new.drop_mark != old.drop_mark
            && let Err(error) = Box::pin(tributary_ddl::end_drop(self, &table)).await
        {
            let table = new.table_ref();
            tracing::warn!(%table, %error, "the mark of a drop of partitions stays until the next one, or the next start");
        }
        self.names.changed();
        Ok(())
    }

    /// Drops partitions before others are added, which may have their rows.
    async fn drop_and_change(
        &self,
        turn: &TableTurn,
        table: Arc<Table>,
        dropped: &Partitions,
        new: TableDef,
    ) -> Result<(), SqlError> {
        let without = without(&table.def(), dropped);
        self.change_table(turn, Arc::clone(&table), without).await?;
        self.change_table(turn, table, new).await.map_err(|error| {
            let reason = error.detail_text();
            let text =
                format!("the partitions are dropped, and the rest of the statement has failed: {reason}");
            SqlError::detail(ErrorCode::Unknown, text)
        })
    }

    /// Completes the last drop of partitions of a table, before its partitions change again.
    async fn complete_drop(&self, table: &Table) -> Result<(), SqlError> {
        if table.with_def(|def| def.drop_mark.is_none()) {
            return Ok(());
        }
        let completed = tributary_ddl::complete_drop(self, table).await;
        self.names.changed();
        completed.map_err(|error| {
            let text = format!(
                "partitions of the table were dropped, which its Delta log or the catalog does not have yet, and can't have now: {error}. \
                 Try again"
            );
            SqlError::detail(ErrorCode::Unknown, text)
        })
    }

    /// Removes the marks of drops of partitions that the start has completed. What fails is done by the next change or start.
    pub(crate) async fn end_drops(&self) {
        for table in self.names.all_tables() {
            if table.with_def(|def| def.drop_mark.is_none()) {
                continue;
            }
            let _turn = self.wait_for_turn(&table.def()).await;
            if let Err(error) = tributary_ddl::end_drop(self, &table).await {
                let table = table.def().table_ref();
                tracing::warn!(%table, %error, "the mark of a drop of partitions stays");
            }
        }
    }

    /// Deletes the files of dropped tables in the background. What fails is tried at the next drop
    /// or start.
    pub(crate) fn collect_garbage_later(self: &Arc<Self>) {
        let ddl = Arc::clone(self);
        self.ingest.watcher().spawn_once("collecting_garbage", async move {
            if let Err(error) = ddl.collect_garbage().await {
                tracing::warn!(%error, "files of dropped tables stay until the next drop or start");
            }
        });
    }

    pub(crate) async fn collect_garbage(&self) -> Result<(), SqlError> {
        let garbage = self.catalog.list_garbage().await?;
        // One that waits delays no other.
        let mut deleted =
            futures::stream::iter(garbage).map(|it| self.delete(it)).buffer_unordered(DELETED_AT_ONCE);
        let mut ended = Ok(());
        while let Some(deleted) = deleted.next().await {
            ended = ended.and(deleted);
        }
        ended
    }

    /// Deletes the files of a table, unless it is present after all.
    async fn delete(&self, garbage: Garbage) -> Result<(), SqlError> {
        let _turn = self.turns.wait(garbage.table_id).await;
        if self.catalog.table_by_id(garbage.table_id).is_some() {
            return Ok(());
        }
        self.store.remove(&garbage.location).await.map_err(table_error)?;
        Ok(self.catalog.clear_garbage(&[garbage.location]).await?)
    }
}

/// The partitions that a change adds, and the ones that it drops.
fn changed_partitions(old: &TableDef, new: &TableDef) -> (Option<Partitions>, Option<Partitions>) {
    let (Some(old), Some(new)) = (old.partitioning.partitions(), new.partitioning.partitions()) else {
        return (None, None);
    };
    let some = |partitions: Partitions| (!partitions.list.is_empty()).then_some(partitions);
    (some(new.without(old)), some(old.without(new)))
}

/// The table without these partitions.
fn without(def: &TableDef, dropped: &Partitions) -> TableDef {
    let mut def = def.clone();
    if let Some(partitions) = def.partitioning.partitions() {
        def.partitioning = Partitioning::By(Arc::new(partitions.without(dropped)));
    }
    def
}

#[async_trait]
impl Definitions for Ddl {
    fn table(&self, id: TableId) -> Option<Arc<TableDef>> {
        self.catalog.table_by_id(id)
    }

    async fn replace(&self, before: &TableDef, after: TableDef) -> Result<Arc<TableDef>, String> {
        self.catalog.replace_table_def(before, after).await.map_err(|error| error.to_string())
    }
}

pub(crate) fn table_error(error: tributary_table::TableError) -> SqlError {
    use tributary_table::TableError;
    let is_old = matches!(error, TableError::TooOld { .. } | TableError::NotShown { .. });
    SqlError::detail(if is_old { ErrorCode::Busy } else { ErrorCode::Unknown }, error.to_string())
}

//! The recycle bin: objects that DROP without FORCE retains for a time, and RECOVER restores.
//!
//! Invariant: a table is recycled when all its rows are in data files, and is closed then; nothing of it is in memory, and its files
//! stay where they are until its time is over. Partitions have a module of their own ([`crate::ddl::partitions::recycled`]).

use crate::access::interrupt::Interrupt;
use crate::ddl::Ddl;
use crate::ddl::change::switching::WAIT_MAX;
use crate::ddl::change::turns::TableTurn;
use crate::ddl::partitions::recycled::files_of;
use crate::ddl::tables::table_error;
use crate::node::clock::date_time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_catalog::{CatalogError, RecycleBin, RecycledDatabase, RecycledPartition, RecycledTable};
use tributary_ingest::AtRest;
use tributary_query::{Grid, size_text};
use tributary_sql::names::{check_database, check_table};
use tributary_sql::{Recovered, RecycledId, without_dynamic_partitions};
use tributary_table::{LiveFile, Table};
use tributary_types::{DbId, ErrorCode, PartitionId, SqlError, TableDef, TableId, TableRef};

const COLUMNS: [&str; 8] =
    ["Type", "Name", "DbId", "TableId", "PartitionId", "DropTime", "DataSize", "RemoteDataSize"];

/// Doris's text for a missing id.
const NO_ID: &str = "-1";

pub(crate) fn shown_id(id: Option<u64>) -> String {
    id.map_or_else(|| NO_ID.to_owned(), |id| id.to_string())
}

/// Doris's refusal to drop and retain an object into which a load waits to commit; `what` is a table, for example.
pub(crate) fn still_loading(what: &str, name: &str) -> SqlError {
    let statement = what.to_uppercase();
    refused(format!(
        "There are still some transactions in the COMMITTED state waiting to be completed. The {what} [{name}] cannot be dropped. \
         If you want to forcibly drop(cannot be recovered), please use \"DROP {statement} <{what}> FORCE\"."
    ))
}

impl Ddl {
    /// Whether dropped objects are retained for a time.
    pub(crate) fn keeps_dropped(&self) -> bool {
        !self.options.trash_expire.get().is_zero()
    }

    /// Brings a table to rest before it is dropped; `None` if its loads do not end.
    async fn at_rest(&self, table: &Table) -> Result<Option<AtRest>, SqlError> {
        let begun = tokio::time::Instant::now();
        loop {
            if let Some(at_rest) = self.ingest.bring_to_rest(table).await.map_err(table_error)? {
                return Ok(Some(at_rest));
            }
            if self.ingest.has_prepared(table) || begun.elapsed() >= WAIT_MAX {
                return Ok(None);
            }
            self.ingest.pause().await;
        }
    }

    /// Drops a table, which can be recovered. `false`: it no longer has this name.
    pub(crate) async fn recycle_table(
        &self,
        interrupt: Interrupt<'_>,
        name: &TableRef,
        table: &Arc<Table>,
    ) -> Result<bool, SqlError> {
        if !self.names.has(name, table) {
            return Ok(false);
        }
        let Some(_at_rest) = self.at_rest(table).await? else {
            return Err(still_loading("table", &name.table));
        };
        {
            let _changing = interrupt.wait(self.changing()).await?;
            if !self.names.has(name, table) {
                return Ok(false);
            }
            self.catalog.recycle_table(name, bytes_of(table), self.unix_ms()).await?;
            self.names.remove_table(&name.db, &name.table);
        }
        self.end_use(table).await;
        Ok(true)
    }

    /// Drops a database with its tables and views, which can be recovered. `false`: there is none.
    pub(crate) async fn recycle_database(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        name: &str,
        if_exists: bool,
    ) -> Result<bool, SqlError> {
        loop {
            let turns = interrupt.wait(self.turns_to_drop(name, false)).await??;
            // Temporary partitions and tables without their rows are dropped permanently, in the same step of the catalog.
            let mut tables = self.names.tables(name);
            tables.retain(|table| table.with_def(|def| def.role.is_own()));
            let mut at_rest = Vec::with_capacity(tables.len());
            for table in &tables {
                let Some(held) = self.at_rest(table).await? else {
                    return Err(still_loading("database", name));
                };
                at_rest.push(held);
            }
            let bytes: BTreeMap<TableId, u64> =
                tables.iter().map(|table| (table.id(), bytes_of(table))).collect();
            let dropped = {
                let _changing = interrupt.wait(self.changing()).await?;
                if !turns.are_all(self, name) {
                    continue;
                }
                match self.catalog.recycle_database(name, bytes, self.unix_ms()).await {
                    Ok(_) => {}
                    Err(CatalogError::NoDatabaseToDrop(_)) if if_exists => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
                self.names.remove_database(name)
            };
            for table in &dropped {
                self.end_use(table).await;
            }
            self.collect_garbage_later();
            return Ok(true);
        }
    }

    /// Opens a table that the catalog is about to have again.
    async fn open_recovered(&self, def: &Arc<TableDef>, bin: &RecycleBin) -> Result<Arc<Table>, SqlError> {
        let table = self.store.open(def).await.map_err(table_error)?;
        keep_files(&table, bin);
        Ok(table)
    }

    fn add_recovered(&self, table: Arc<Table>) {
        self.ingest.attach(Arc::clone(&table));
        self.names.add_table(table);
    }

    pub(crate) async fn recover_table(
        &self,
        interrupt: Interrupt<'_>,
        recovered: &Recovered<TableRef>,
    ) -> Result<(), SqlError> {
        let TableRef { db, table: name } = &recovered.name;
        let db_id = self.names.database_id(db)?;
        let new_name = recovered.new_name.as_ref().unwrap_or(name);
        check_table(new_name)?;
        let new_name = TableRef { db: db.clone(), table: new_name.clone() };
        self.is_free(&new_name, false)?;
        let find = |bin: &RecycleBin| {
            let is_meant = |table: &&Arc<RecycledTable>| {
                table.def.name == *name && recovered.id.is_none_or(|id| table.def.id.0 == id)
            };
            let found = bin.tables_of(db_id).filter(is_meant);
            let found = found.max_by_key(|table| (table.dropped_at_ms, table.def.id.0)).cloned();
            let unknown = || {
                refused(format!("Unknown table '{name}' or table id '{}' in {db}", shown_id(recovered.id)))
            };
            found.ok_or_else(unknown)
        };
        let (_turn, found, bin) = loop {
            let id = find(&self.catalog.recycle_bin())?.def.id;
            let turn = interrupt.wait(self.turns.wait(id)).await?;
            let bin = self.catalog.recycle_bin();
            let found = find(&bin)?;
            if found.def.id == id {
                break (turn, found, bin);
            }
        };
        let def = TableDef { name: new_name.table.clone(), ..TableDef::clone(&found.def) };
        let def = without_dynamic_partitions(def);
        let table = self.open_recovered(&Arc::new(def.clone()), &bin).await?;
        let added = async {
            let _changing = interrupt.wait(self.changing()).await?;
            self.is_free(&new_name, false)?;
            self.catalog.recover_table(def).await?;
            self.add_recovered(Arc::clone(&table));
            Ok(())
        };
        let added = added.await;
        if added.is_err() {
            table.close().await;
        }
        added
    }

    pub(crate) async fn recover_database(
        &self,
        interrupt: Interrupt<'_>,
        recovered: &Recovered<String>,
    ) -> Result<(), SqlError> {
        let Recovered { name, id, new_name } = recovered;
        let new_name = new_name.as_ref().unwrap_or(name);
        check_database(new_name)?;
        let refuse_taken = || match self.names.has_database(new_name) {
            true => Err(refused(format!("Database[{new_name}] already exist."))),
            false => Ok(()),
        };
        refuse_taken()?;
        let find = |bin: &RecycleBin| {
            let is_meant = |database: &&Arc<RecycledDatabase>| {
                database.name == *name && id.is_none_or(|id| database.id.0 == id)
            };
            let found = bin.databases.values().filter(is_meant).max_by_key(|it| (it.dropped_at_ms, it.id.0));
            let unknown = || {
                let text = format!("Unknown database '{name}' or database id '{}'", shown_id(*id));
                SqlError::detail(ErrorCode::UnknownDatabase, text)
            };
            let found = Arc::clone(found.ok_or_else(unknown)?);
            let tables: BTreeSet<TableId> = bin
                .tables_of(found.id)
                .filter(|table| table.with_database)
                .map(|table| table.def.id)
                .collect();
            Ok::<_, SqlError>((found, tables))
        };
        let (_turns, found, bin) = loop {
            let (_, tables) = find(&self.catalog.recycle_bin())?;
            let mut turns = Vec::with_capacity(tables.len());
            for table in &tables {
                turns.push(interrupt.wait(self.turns.wait(*table)).await?);
            }
            let bin = self.catalog.recycle_bin();
            let (found, now) = find(&bin)?;
            if now == tables {
                break (turns, found, bin);
            }
        };
        let mut tables = Vec::new();
        for table in bin.tables_of(found.id).filter(|table| table.with_database) {
            let def =
                without_dynamic_partitions(TableDef { db: new_name.clone(), ..TableDef::clone(&table.def) });
            tables.push(self.open_recovered(&Arc::new(def), &bin).await?);
        }
        let added = async {
            let _changing = interrupt.wait(self.changing()).await?;
            refuse_taken()?;
            self.catalog.recover_database(found.id, new_name, without_dynamic_partitions).await?;
            self.names.add_database(new_name, found.id);
            tables.iter().for_each(|table| self.add_recovered(Arc::clone(table)));
            Ok(())
        };
        let added = added.await;
        if added.is_err() {
            for table in tables {
                table.close().await;
            }
        }
        added
    }

    /// Keeps the files of recycled partitions from the sweep, after a start.
    pub(crate) fn keep_recycled_files(&self) {
        let bin = self.catalog.recycle_bin();
        self.names.all_tables().iter().for_each(|table| keep_files(table, &bin));
    }

    /// Deletes the object with the id, and everything that belongs to it.
    pub(crate) async fn erase_recycled(
        self: &Arc<Self>,
        interrupt: Interrupt<'_>,
        id: RecycledId,
    ) -> Result<(), SqlError> {
        let bin = self.catalog.recycle_bin();
        let erased = match id {
            RecycledId::Database(id) => {
                let id = DbId(id);
                let mut erased = Erased::default();
                erased.databases.extend(bin.databases.get(&id).map(|database| database.id));
                erased
                    .tables
                    .extend(bin.tables_of(id).filter(|table| !table.with_database).map(|it| it.def.id));
                let is_its = |table: &TableId| self.database_of(*table, &bin) == Some(id);
                erased.partitions.extend(bin.partitions.keys().filter(|(table, _)| is_its(table)));
                erased
            }
            RecycledId::Table(id) => {
                let id = TableId(id);
                Erased {
                    tables: bin.tables.get(&id).map(|table| table.def.id).into_iter().collect(),
                    partitions: bin.partitions_of(id).map(|it| (id, it.id)).collect(),
                    ..Erased::default()
                }
            }
            RecycledId::Partition { table, id } => {
                let is_meant = |(of, partition): &&(TableId, PartitionId)| {
                    partition.0 == id && table.is_none_or(|table| of.0 == table)
                };
                let partitions: Vec<_> = bin.partitions.keys().filter(is_meant).copied().collect();
                if partitions.len() > 1 {
                    let tables: Vec<String> = partitions.iter().map(|(table, _)| table.to_string()).collect();
                    return Err(refused(format!(
                        "Partition id '{id}' is one of several tables: {}. Use WHERE 'TableId' = {} AND 'PartitionId' = {id}",
                        tables.join(", "),
                        tables[0]
                    )));
                }
                Erased { partitions, ..Erased::default() }
            }
        };
        if erased.is_empty() {
            return Err(match id {
                RecycledId::Database(id) => refused(format!("Unknown database id '{id}'")),
                RecycledId::Table(id) => refused(format!("Unknown table id '{id}'")),
                RecycledId::Partition { id, .. } => refused(format!("No partition id '{id}'")),
            });
        }
        // A change may bring a partition back.
        let mut turns = BTreeMap::new();
        for (table, _) in &erased.partitions {
            if let Some(open) = self.table_by_id(*table)
                && !turns.contains_key(table)
            {
                turns.insert(*table, interrupt.wait(self.turn_of(&open.def())).await??);
            }
        }
        self.erase(&erased, &turns).await
    }

    /// Deletes objects whose retention is over.
    pub(crate) async fn expire_recycled(self: &Arc<Self>, now_ms: i64) -> Result<(), SqlError> {
        let keep_ms = i64::try_from(self.options.trash_expire.get().as_millis()).unwrap_or(i64::MAX);
        let is_over = |dropped_at_ms: i64| now_ms.saturating_sub(dropped_at_ms) >= keep_ms;
        let bin = self.catalog.recycle_bin();
        let mut turns = BTreeMap::new();
        for (table, _) in bin.partitions.keys() {
            // A change may bring a partition back: then it is looked at next time.
            if let Some(turn) = self.turns.try_take(*table) {
                turns.insert(*table, turn);
            }
        }
        let tables = bin.tables.values().filter(|it| is_over(it.dropped_at_ms) && !it.with_database);
        let erased = Erased {
            databases: bin
                .databases
                .values()
                .filter(|it| is_over(it.dropped_at_ms))
                .map(|it| it.id)
                .collect(),
            tables: tables.map(|it| it.def.id).collect(),
            partitions: bin
                .partitions
                .values()
                .filter(|it| is_over(it.dropped_at_ms) && turns.contains_key(&it.table))
                .map(|it| (it.table, it.id))
                .collect(),
        };
        if erased.is_empty() { Ok(()) } else { self.erase(&erased, &turns).await }
    }

    /// Deletes objects; with the turns of the open tables whose partitions are among them.
    async fn erase(
        self: &Arc<Self>,
        erased: &Erased,
        turns: &BTreeMap<TableId, TableTurn>,
    ) -> Result<(), SqlError> {
        let mut unreadable = None;
        let bin = self.catalog.recycle_bin();
        for (table, id) in &erased.partitions {
            debug_assert!(
                turns.contains_key(table) || self.table_by_id(*table).is_none(),
                "partitions of an open table are erased by the holder of its turn"
            );
            // It may be back.
            let Some(kept) = bin.partitions.get(&(*table, *id)) else { continue };
            let files = match files_of(kept) {
                Ok(files) => files,
                Err(reason) => {
                    // The remaining files would be unknown.
                    tracing::error!(%table, partition = %id, reason, "a dropped partition stays in the recycle bin");
                    unreadable.get_or_insert(reason);
                    continue;
                }
            };
            self.catalog.erase_partition(*table, *id).await?;
            if let Some(open) = self.table_by_id(*table) {
                // The sweep deletes them.
                open.let_files_go(&files);
            }
        }
        for id in &erased.tables {
            self.catalog.erase_table(*id).await?;
        }
        for id in &erased.databases {
            self.catalog.erase_database(*id).await?;
        }
        self.collect_garbage_later();
        match unreadable {
            None => Ok(()),
            Some(reason) => Err(refused(format!("A dropped partition stays in the recycle bin: {reason}"))),
        }
    }

    fn database_of(&self, table: TableId, bin: &RecycleBin) -> Option<DbId> {
        let recycled = bin.tables.get(&table).map(|table| table.def.db_id);
        recycled.or_else(|| self.table_by_id(table).map(|table| table.with_def(|def| def.db_id)))
    }

    /// The rows of `SHOW CATALOG RECYCLE BIN`.
    pub(crate) fn show_recycle_bin(&self) -> Grid {
        let bin = self.catalog.recycle_bin();
        let mut grid = Grid::new(&COLUMNS);
        let mut push = |kind: &str, name: &str, ids: [String; 3], dropped_at_ms: i64, size: String| {
            let [db, table, partition] = ids;
            grid.push(vec![
                kind.into(),
                name.into(),
                db.into(),
                table.into(),
                partition.into(),
                date_time(dropped_at_ms).into(),
                size.into(),
                size_text(0).into(),
            ]);
        };
        for RecycledDatabase { id, name, dropped_at_ms, .. } in bin.databases.values().map(|it| &**it) {
            let bytes = bin.tables_of(*id).filter(|table| table.with_database).map(|table| table.bytes).sum();
            push(
                "Database",
                name,
                [id.to_string(), String::new(), String::new()],
                *dropped_at_ms,
                size_text(bytes),
            );
        }
        for RecycledTable { def, dropped_at_ms, bytes, .. } in bin.tables.values().map(|it| &**it) {
            let ids = [def.db_id.to_string(), def.id.to_string(), String::new()];
            push("Table", &def.name, ids, *dropped_at_ms, size_text(*bytes));
        }
        for partition in bin.partitions.values() {
            let RecycledPartition { table, id, name, dropped_at_ms, bytes, .. } = &**partition;
            let size = match files_of(partition) {
                Ok(_) => size_text(*bytes),
                Err(reason) => reason,
            };
            let db = self.database_of(*table, &bin).map(|id| id.to_string()).unwrap_or_default();
            push("Partition", name, [db, table.to_string(), id.to_string()], *dropped_at_ms, size);
        }
        grid
    }
}

/// Objects that are no longer retained.
#[derive(Default)]
struct Erased {
    /// With their tables.
    databases: Vec<DbId>,
    /// With their partitions.
    tables: Vec<TableId>,
    partitions: Vec<(TableId, PartitionId)>,
}

impl Erased {
    fn is_empty(&self) -> bool {
        self.databases.is_empty() && self.tables.is_empty() && self.partitions.is_empty()
    }
}

/// Protects the files of recycled partitions from the sweep: all of the table's, if they are unknown.
fn keep_files(table: &Table, bin: &RecycleBin) {
    for partition in bin.partitions_of(table.id()) {
        match files_of(partition) {
            Ok(files) => table.keep_files(&files),
            Err(reason) => {
                let (name, partition) = (table.def().table_ref(), &partition.name);
                tracing::error!(table = %name, partition, reason, "no file of the table is swept: those of a dropped partition are not known");
                table.keep_all_files();
            }
        }
    }
}

fn bytes_of(table: &Table) -> u64 {
    table.snapshot().files.iter().map(LiveFile::size_bytes).sum()
}

pub(crate) fn refused(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

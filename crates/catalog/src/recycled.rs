//! Dropped objects that are retained until their time is over: databases with their tables and views, tables, partitions.
//!
//! Invariant: an object is present or recycled, never both, and changes from one to the other with one operation of the store.
//! The names of recycled objects are free; ids, schemas, locations and reserved values still belong to their tables. Not its
//! business: the time of retention, and a partition's contents: these are the caller's text.

use crate::catalog::{Catalog, Result};
use crate::changes::{Shared, present, refuse_reserved, refuse_taken, uncancelled, unknown_table};
use crate::error::CatalogError;
use crate::store::Operation;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_types::{DbId, PartitionId, TableDef, TableId, TableRef, ViewDef};

/// A database that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecycledDatabase {
    pub id: DbId,
    pub name: String,
    /// Milliseconds since 1970.
    pub dropped_at_ms: i64,
    pub views: Vec<Arc<ViewDef>>,
}

/// A table that was dropped, alone or with its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecycledTable {
    pub def: Arc<TableDef>,
    /// Milliseconds since 1970.
    pub dropped_at_ms: i64,
    /// The size of its data files.
    pub bytes: u64,
    /// It is recovered with its database only.
    pub with_database: bool,
}

/// A partition that was dropped; its table is present or recycled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecycledPartition {
    pub table: TableId,
    pub id: PartitionId,
    pub name: String,
    /// Milliseconds since 1970.
    pub dropped_at_ms: i64,
    /// The size of its data files.
    pub bytes: u64,
    /// The caller's text.
    pub definition: String,
}

/// Everything that is recycled, in the order of ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecycleBin {
    pub databases: BTreeMap<DbId, Arc<RecycledDatabase>>,
    pub tables: BTreeMap<TableId, Arc<RecycledTable>>,
    pub partitions: BTreeMap<(TableId, PartitionId), Arc<RecycledPartition>>,
}

impl RecycleBin {
    /// The recycled tables of a database, dropped with it or before it.
    pub fn tables_of(&self, db: DbId) -> impl Iterator<Item = &Arc<RecycledTable>> {
        self.tables.values().filter(move |table| table.def.db_id == db)
    }

    /// The recycled partitions of a table.
    pub fn partitions_of(&self, table: TableId) -> impl Iterator<Item = &Arc<RecycledPartition>> {
        self.partitions.values().filter(move |partition| partition.table == table)
    }

    pub(crate) fn forget_table(&mut self, table: TableId) {
        self.tables.remove(&table);
        self.partitions.retain(|(of, _), _| *of != table);
    }
}

impl Catalog {
    /// The dropped objects that are retained.
    #[must_use]
    pub fn recycle_bin(&self) -> RecycleBin {
        self.state().recycled.clone()
    }

    /// Drops the table and retains it. `bytes` is the size of its data files.
    ///
    /// # Errors
    /// The errors of [`Catalog::drop_table`].
    pub async fn recycle_table(&self, name: &TableRef, bytes: u64, now_ms: i64) -> Result<Arc<TableDef>> {
        uncancelled(self.shared().recycle_table(name.clone(), bytes, now_ms)).await
    }

    /// Drops the database and retains it with its views and the tables listed with their bytes; others are dropped permanently,
    /// and their locations become garbage. Returns all its tables.
    ///
    /// # Errors
    /// The errors of [`Catalog::drop_database`].
    pub async fn recycle_database(
        &self,
        name: &str,
        bytes: BTreeMap<TableId, u64>,
        now_ms: i64,
    ) -> Result<Vec<Arc<TableDef>>> {
        uncancelled(self.shared().recycle_database(name.to_owned(), bytes, now_ms)).await
    }

    /// Makes a recycled table present again, with the name and properties of `def`.
    ///
    /// # Errors
    /// [`CatalogError::UnknownTable`] if it is not recycled, [`CatalogError::UnknownDatabase`] if its database is not present,
    /// [`CatalogError::TableExists`], or [`CatalogError::Store`].
    pub async fn recover_table(&self, def: TableDef) -> Result<Arc<TableDef>> {
        uncancelled(self.shared().recover_table(def)).await
    }

    /// Makes a recycled database present again under this name, with its views and the tables that were dropped with it. `change`
    /// is applied to each table's definition, which already has the new name.
    ///
    /// # Errors
    /// [`CatalogError::UnknownDatabase`] if it is not recycled, [`CatalogError::DatabaseExists`], or [`CatalogError::Store`].
    pub async fn recover_database(
        &self,
        id: DbId,
        name: &str,
        change: fn(TableDef) -> TableDef,
    ) -> Result<Vec<Arc<TableDef>>> {
        uncancelled(self.shared().recover_database(id, name.to_owned(), change)).await
    }

    /// Removes a recycled database with everything in it. Locations of its tables become garbage.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn erase_database(&self, id: DbId) -> Result<()> {
        uncancelled(self.shared().erase(Erased::Database(id))).await
    }

    /// Forgets a recycled table. Its location is garbage then.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn erase_table(&self, id: TableId) -> Result<()> {
        uncancelled(self.shared().erase(Erased::Table(id))).await
    }

    /// Forgets a recycled partition.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn erase_partition(&self, table: TableId, id: PartitionId) -> Result<()> {
        uncancelled(self.shared().erase(Erased::Partition(table, id))).await
    }
}

/// The objects that are removed.
#[derive(Clone, Copy, Debug)]
enum Erased {
    Database(DbId),
    Table(TableId),
    Partition(TableId, PartitionId),
}

impl Shared {
    async fn recycle_table(
        self: Arc<Self>,
        name: TableRef,
        bytes: u64,
        now_ms: i64,
    ) -> Result<Arc<TableDef>> {
        self.change(|state| {
            let def = present(state, &name)?;
            let table =
                RecycledTable { def: Arc::clone(def), dropped_at_ms: now_ms, bytes, with_database: false };
            Ok((Operation::RecycleTable(Arc::new(table)), Arc::clone(def)))
        })
        .await
    }

    async fn recycle_database(
        self: Arc<Self>,
        name: String,
        bytes: BTreeMap<TableId, u64>,
        now_ms: i64,
    ) -> Result<Vec<Arc<TableDef>>> {
        self.change(|state| {
            refuse_reserved(&name)?;
            let database = state.databases.get(&name);
            let database = database.ok_or_else(|| CatalogError::NoDatabaseToDrop(name.clone()))?;
            let recycled = RecycledDatabase {
                id: database.id,
                name: name.clone(),
                dropped_at_ms: now_ms,
                views: database.views.values().cloned().collect(),
            };
            let tables = state.tables_of(&name);
            let table = |def: &Arc<TableDef>| {
                let (def, bytes) = (Arc::clone(def), *bytes.get(&def.id)?);
                Some(Arc::new(RecycledTable { def, dropped_at_ms: now_ms, bytes, with_database: true }))
            };
            let operation = Operation::RecycleDatabase {
                database: Arc::new(recycled),
                tables: tables.iter().filter_map(table).collect(),
                dropped: tables.iter().filter(|def| !bytes.contains_key(&def.id)).cloned().collect(),
            };
            Ok((operation, tables))
        })
        .await
    }

    async fn recover_table(self: Arc<Self>, def: TableDef) -> Result<Arc<TableDef>> {
        let def = Arc::new(def);
        self.change(|state| {
            let name = def.table_ref();
            if !state.recycled.tables.contains_key(&def.id) {
                return Err(unknown_table(&name));
            }
            match state.databases.get(&def.db) {
                Some(database) if database.id == def.db_id => refuse_taken(database, &def.name)?,
                _ => return Err(CatalogError::UnknownDatabase(def.db.clone())),
            }
            let made_at_ms = state.kept_schema(&def).and_then(|kept| kept.made_at_ms);
            Ok((Operation::RecoverTable { def: Arc::clone(&def), made_at_ms }, Arc::clone(&def)))
        })
        .await
    }

    async fn recover_database(
        self: Arc<Self>,
        id: DbId,
        name: String,
        change: fn(TableDef) -> TableDef,
    ) -> Result<Vec<Arc<TableDef>>> {
        self.change(|state| {
            let Some(database) = state.recycled.databases.get(&id) else {
                return Err(CatalogError::UnknownDatabase(name.clone()));
            };
            refuse_reserved(&name)?;
            if state.databases.contains_key(&name) {
                return Err(CatalogError::DatabaseExists(name.clone()));
            }
            let here = |def: &TableDef| TableDef { db: name.clone(), ..def.clone() };
            let (with, before): (Vec<_>, Vec<_>) =
                state.recycled.tables_of(id).partition(|table| table.with_database);
            let tables: Vec<_> = with.into_iter().map(|table| Arc::new(change(here(&table.def)))).collect();
            let left = before.into_iter().map(|table| {
                Arc::new(RecycledTable { def: Arc::new(here(&table.def)), ..RecycledTable::clone(table) })
            });
            let view = |view: &Arc<ViewDef>| Arc::new(ViewDef { db: name.clone(), ..ViewDef::clone(view) });
            let operation = Operation::RecoverDatabase {
                id,
                name: name.clone(),
                tables: tables.clone(),
                left: left.collect(),
                views: database.views.iter().map(view).collect(),
            };
            Ok((operation, tables))
        })
        .await
    }

    async fn erase(self: Arc<Self>, what: Erased) -> Result<()> {
        self.change(|state| {
            let bin = &state.recycled;
            let operation = match what {
                Erased::Database(id) => {
                    let found = bin.databases.get(&id);
                    found.map(|database| Operation::DropDatabase { id, name: database.name.clone() })
                }
                Erased::Table(id) => {
                    bin.tables.get(&id).map(|table| Operation::DropTable(Arc::clone(&table.def)))
                }
                Erased::Partition(table, id) => bin
                    .partitions
                    .contains_key(&(table, id))
                    .then_some(Operation::ErasePartition { table, id }),
            };
            let gone = || CatalogError::NotRecycled(format!("{what:?}"));
            operation.map(|operation| (operation, ())).ok_or_else(gone)
        })
        .await
        .or_else(|error| match error {
            // Somebody else was faster.
            CatalogError::NotRecycled(_) => Ok(()),
            error => Err(error),
        })
    }
}

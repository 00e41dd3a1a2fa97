//! Names → open tables. The hot path looks a table up without allocating.
//!
//! Invariant: a name from outside finds only tables that [are their own](tributary_types::TableRole::Own).

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_table::Table;
use tributary_types::system::is_system_database;
use tributary_types::{DbId, ErrorCode, SqlError, TableId, TableRef};

/// One database.
struct Database {
    id: DbId,
    tables: BTreeMap<String, Arc<Table>>,
}

impl Database {
    /// The table of that name, unless statements can't name it.
    fn own(&self, name: &str) -> Option<Arc<Table>> {
        self.tables.get(name).filter(|table| table.with_def(|def| def.role.is_own())).cloned()
    }
}

/// All databases and tables.
#[derive(Default)]
pub(crate) struct Names {
    databases: RwLock<BTreeMap<String, Database>>,
    /// Grows with every change of a name or a table's definition; plans remember it.
    generation: AtomicU64,
}

impl Names {
    /// Grows with every change; a plan made at this generation is good while it stays.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Invalidates all plans, because a name or a definition has changed.
    pub fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    pub fn has_database(&self, name: &str) -> bool {
        is_system_database(name) || self.databases.read().contains_key(name)
    }

    pub fn database_id(&self, name: &str) -> Result<DbId, SqlError> {
        self.databases.read().get(name).map(|database| database.id).ok_or_else(|| unknown_database(name))
    }

    /// Replaces all names at once.
    pub fn replace(&self, all: Vec<(String, DbId, BTreeMap<String, Arc<Table>>)>) {
        let databases = all.into_iter().map(|(name, id, tables)| (name, Database { id, tables }));
        *self.databases.write() = databases.collect();
        self.changed();
    }

    pub fn add_database(&self, name: &str, id: DbId) {
        self.databases.write().entry(name.to_owned()).or_insert(Database { id, tables: BTreeMap::new() });
        self.changed();
    }

    /// Removes a database and returns its tables.
    pub fn remove_database(&self, name: &str) -> Vec<Arc<Table>> {
        let removed = self.databases.write().remove(name);
        self.changed();
        removed.map(|database| database.tables.into_values().collect()).unwrap_or_default()
    }

    pub fn add_table(&self, table: Arc<Table>) {
        let def = table.def();
        if let Some(database) = self.databases.write().get_mut(&def.db) {
            database.tables.insert(def.name.clone(), table);
        }
        self.changed();
    }

    pub fn remove_table(&self, db: &str, name: &str) -> Option<Arc<Table>> {
        let removed = self.databases.write().get_mut(db).and_then(|database| database.tables.remove(name));
        self.changed();
        removed
    }

    /// Gives a table another name, before its definition has it.
    pub fn rename_table(&self, old: &TableRef, new: &str) {
        if let Some(database) = self.databases.write().get_mut(&old.db)
            && let Some(table) = database.tables.remove(&old.table)
        {
            database.tables.insert(new.to_owned(), table);
        }
        self.changed();
    }

    /// Gives tables other names at once, also the ones that others of them had.
    pub fn rename_tables(&self, renamed: &[(TableRef, String)]) {
        let mut databases = self.databases.write();
        let mut taken = Vec::with_capacity(renamed.len());
        for (old, new) in renamed {
            let database = databases.get_mut(&old.db);
            if let Some(table) = database.and_then(|database| database.tables.remove(&old.table)) {
                taken.push((&old.db, new, table));
            }
        }
        for (db, new, table) in taken {
            if let Some(database) = databases.get_mut(db) {
                database.tables.insert(new.clone(), table);
            }
        }
        drop(databases);
        self.changed();
    }

    /// The table of that name that statements can name.
    ///
    /// # Errors
    /// Doris's texts for an unknown database or table.
    pub fn table(&self, db: &str, name: &str) -> Result<Arc<Table>, SqlError> {
        let databases = self.databases.read();
        let database = databases.get(db).ok_or_else(|| unknown_database(db))?;
        database.own(name).ok_or_else(|| {
            SqlError::detail(
                ErrorCode::NoSuchTable,
                format!("Table [{name}] does not exist in database [{db}]."),
            )
        })
    }

    /// The table of that name that statements can name, if it exists.
    pub fn find(&self, db: &str, name: &str) -> Option<Arc<Table>> {
        self.databases.read().get(db)?.own(name)
    }

    /// The table of that name whatever its role is. For names that the server generates, never for one from outside.
    pub fn find_of_any_role(&self, db: &str, name: &str) -> Option<Arc<Table>> {
        self.databases.read().get(db)?.tables.get(name).cloned()
    }

    /// The table of that id whatever its role is.
    pub fn by_id(&self, id: TableId) -> Option<Arc<Table>> {
        let databases = self.databases.read();
        let mut tables = databases.values().flat_map(|database| database.tables.values());
        tables.find(|table| table.id() == id).cloned()
    }

    /// Whether the table has that name.
    pub fn has(&self, name: &TableRef, table: &Arc<Table>) -> bool {
        let found = self.find_of_any_role(&name.db, &name.table);
        found.is_some_and(|found| Arc::ptr_eq(&found, table))
    }

    /// The names of all tables, with their ids.
    pub fn ids(&self) -> Vec<(TableRef, TableId)> {
        let databases = self.databases.read();
        let ids = databases.iter().flat_map(|(db, database)| {
            let named = |(name, table): (&String, &Arc<Table>)| {
                (TableRef { db: db.clone(), table: name.clone() }, table.id())
            };
            database.tables.iter().map(named)
        });
        ids.collect()
    }

    pub fn databases(&self) -> Vec<String> {
        self.databases.read().keys().cloned().collect()
    }

    pub fn tables(&self, db: &str) -> Vec<Arc<Table>> {
        self.databases
            .read()
            .get(db)
            .map(|database| database.tables.values().cloned().collect())
            .unwrap_or_default()
    }

    pub fn all_tables(&self) -> Vec<Arc<Table>> {
        self.databases.read().values().flat_map(|database| database.tables.values().cloned()).collect()
    }
}

fn unknown_database(name: &str) -> SqlError {
    SqlError::detail(ErrorCode::UnknownDatabase, format!("Database [{name}] does not exist."))
}

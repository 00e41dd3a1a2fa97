//! The catalog in memory: an immutable value that is replaced as a whole.

use crate::store::Loaded;
use crate::users::User;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tributary_types::{DbId, SchemaVersion, TableDef, TableId, TableSchema};

#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub id: DbId,
    pub tables: BTreeMap<String, Arc<TableDef>>,
}

/// Cloned for every change; readers go on with the one they have.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub databases: BTreeMap<String, Arc<Database>>,
    pub tables: HashMap<TableId, Arc<TableDef>>,
    pub schemas: HashMap<(TableId, SchemaVersion), Arc<TableSchema>>,
    pub users: Vec<Arc<User>>,
}

impl State {
    pub(crate) fn new(loaded: Loaded) -> Self {
        let mut state = Self { users: loaded.users.into_iter().map(Arc::new).collect(), ..Self::default() };
        for (id, name) in loaded.databases {
            state.put_database(id, name);
        }
        for (table, schema) in loaded.schemas {
            state.schemas.insert((table, schema.version), Arc::new(schema));
        }
        for def in loaded.tables {
            state.put_table(Arc::new(def));
        }
        state
    }

    pub(crate) fn put_database(&mut self, id: DbId, name: String) {
        self.databases.insert(name, Arc::new(Database { id, tables: BTreeMap::new() }));
    }

    /// Inserts the table or replaces the one of the same id, whatever its name was.
    pub(crate) fn put_table(&mut self, def: Arc<TableDef>) {
        if let Some(old) = self.tables.get(&def.id).cloned() {
            self.remove_name(&old);
        }
        self.schemas.insert((def.id, def.schema.version), Arc::clone(&def.schema));
        self.tables.insert(def.id, Arc::clone(&def));
        if let Some(database) = self.databases.get_mut(&def.db) {
            Arc::make_mut(database).tables.insert(def.name.clone(), def);
        }
    }

    pub(crate) fn remove_table(&mut self, def: &TableDef) {
        self.remove_name(def);
        self.tables.remove(&def.id);
        self.schemas.retain(|(table, _), _| *table != def.id);
    }

    fn remove_name(&mut self, def: &TableDef) {
        if let Some(database) = self.databases.get_mut(&def.db) {
            Arc::make_mut(database).tables.remove(&def.name);
        }
    }

    pub(crate) fn remove_database(&mut self, name: &str) -> Vec<Arc<TableDef>> {
        let Some(database) = self.databases.get(name).cloned() else { return Vec::new() };
        let tables: Vec<Arc<TableDef>> = database.tables.values().cloned().collect();
        tables.iter().for_each(|def| self.remove_table(def));
        self.databases.remove(name);
        tables
    }

    pub(crate) fn user(&self, name: &str, host: &str) -> Option<usize> {
        self.users.iter().position(|user| user.name == name && user.host == host)
    }
}

//! The catalog in memory: an immutable value that is replaced as a whole.

use crate::recycled::RecycleBin;
use crate::store::{KeptSchema, Loaded, Operation, Revision};
use crate::users::{Role, User};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tributary_types::{ColumnChange, DbId, PartitionId, SchemaVersion, SourceId, TableDef, TableId, ViewDef};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Database {
    pub id: DbId,
    pub tables: BTreeMap<String, Arc<TableDef>>,
    pub views: BTreeMap<String, Arc<ViewDef>>,
}

/// Cloned for every change; readers continue with their version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub revision: Revision,
    pub next_db_id: DbId,
    pub databases: BTreeMap<String, Arc<Database>>,
    pub tables: HashMap<TableId, Arc<TableDef>>,
    /// The last recorded change of each present or recycled table that had one.
    pub last_changes: HashMap<TableId, SourceId>,
    pub schemas: HashMap<(TableId, SchemaVersion), KeptSchema>,
    /// In order of name and host.
    pub users: Vec<Arc<User>>,
    pub roles: BTreeMap<String, Arc<Role>>,
    pub recycled: RecycleBin,
}

impl State {
    pub(crate) fn new(loaded: Loaded) -> Self {
        let mut state = Self {
            revision: loaded.revision,
            next_db_id: loaded.next_db_id,
            users: loaded.users.into_iter().map(Arc::new).collect(),
            roles: loaded.roles.into_iter().map(|role| (role.name.clone(), Arc::new(role))).collect(),
            recycled: loaded.recycled,
            last_changes: loaded.last_changes.into_iter().collect(),
            ..Self::default()
        };
        for (id, name) in loaded.databases {
            state.put_database(id, name);
        }
        for (table, schema) in loaded.schemas {
            state.schemas.insert((table, schema.schema.version), schema);
        }
        for def in loaded.tables {
            let made_at_ms = state.kept_schema(&def).and_then(|kept| kept.made_at_ms);
            state.put_table(Arc::new(def), made_at_ms);
        }
        loaded.views.into_iter().for_each(|view| state.put_view(Arc::new(view)));
        state
    }

    /// Applies a change that the store has made: the state equals the one that the store would load.
    pub(crate) fn apply(&mut self, operation: Operation) {
        self.revision = self.revision.next();
        match operation {
            Operation::CreateDatabase { id, name } => {
                self.next_db_id = id.next();
                self.put_database(id, name);
            }
            Operation::DropDatabase { id, name } => self.remove_database(id, &name),
            Operation::CreateTable { def, made_at_ms } | Operation::ReplaceTable { def, made_at_ms } => {
                self.put_table(def, made_at_ms);
            }
            Operation::RenameTables { tables } => {
                for (def, _) in &tables {
                    if let Some(old) = self.tables.get(&def.id).cloned() {
                        self.hide_table(&old);
                    }
                }
                for (def, made_at_ms) in tables {
                    self.put_table(def, made_at_ms);
                }
            }
            Operation::DropTable(def) => self.remove_table(&def),
            Operation::RecycleTable(table) => {
                self.hide_table(&table.def);
                self.recycled.tables.insert(table.def.id, table);
            }
            Operation::RecycleDatabase { database, tables, dropped } => {
                dropped.iter().for_each(|def| self.remove_table(def));
                for table in tables {
                    self.hide_table(&table.def);
                    self.recycled.tables.insert(table.def.id, table);
                }
                self.databases.remove(&database.name);
                self.recycled.databases.insert(database.id, database);
            }
            Operation::FinishChange { change, tables, dropped, recovered, .. } => {
                let dropped =
                    dropped.into_iter().map(|partition| ((partition.table, partition.id), partition));
                self.recycled.partitions.extend(dropped);
                if let Some((def, _)) = tables.first() {
                    let is_back =
                        |(table, id): &(TableId, PartitionId)| *table == def.id && recovered.contains(id);
                    self.recycled.partitions.retain(|key, _| !is_back(key));
                    self.last_changes.insert(def.id, change);
                }
                tables.into_iter().for_each(|(def, made_at_ms)| self.put_table(def, made_at_ms));
            }
            Operation::RecoverTable { def, made_at_ms } => {
                self.recycled.tables.remove(&def.id);
                self.put_table(def, made_at_ms);
            }
            Operation::RecoverDatabase { id, name, tables, left, views } => {
                self.recycled.databases.remove(&id);
                self.put_database(id, name);
                for def in tables {
                    self.recycled.tables.remove(&def.id);
                    let made_at_ms = self.kept_schema(&def).and_then(|kept| kept.made_at_ms);
                    self.put_table(def, made_at_ms);
                }
                let left = left.into_iter().map(|table| (table.def.id, table));
                self.recycled.tables.extend(left);
                views.into_iter().for_each(|view| self.put_view(view));
            }
            Operation::ErasePartition { table, id } => {
                self.recycled.partitions.remove(&(table, id));
            }
            Operation::PutView(view) => self.put_view(view),
            Operation::DropView(view) => {
                if let Some(database) = self.databases.get_mut(&view.db) {
                    Arc::make_mut(database).views.remove(&view.name);
                }
            }
            Operation::CreateUser(user) => {
                self.users.push(Arc::new(user));
                self.users.sort_by(|a, b| (&a.name, &a.host).cmp(&(&b.name, &b.host)));
            }
            Operation::ChangeUser(user) => self.replace_user(user),
            Operation::DropUser { name, host } => self.users.retain(|user| !user.is(&name, &host)),
            Operation::PutRole(role) => {
                self.roles.insert(role.name.clone(), Arc::new(role));
            }
            Operation::DropRole { name, users } => {
                self.roles.remove(&name);
                users.into_iter().for_each(|user| self.replace_user(user));
            }
        }
    }

    fn replace_user(&mut self, user: User) {
        if let Some(index) = self.user(&user.name, &user.host) {
            self.users[index] = Arc::new(user);
        }
    }

    fn put_database(&mut self, id: DbId, name: String) {
        self.databases
            .insert(name, Arc::new(Database { id, tables: BTreeMap::new(), views: BTreeMap::new() }));
    }

    /// Inserts the table or replaces the one of the same id, whatever its name was.
    fn put_table(&mut self, def: Arc<TableDef>, made_at_ms: Option<i64>) {
        if let Some(old) = self.tables.get(&def.id).cloned() {
            self.remove_name(&old);
        }
        let schema = KeptSchema { schema: Arc::clone(&def.schema), made_at_ms };
        self.schemas.insert((def.id, def.schema.version), schema);
        self.tables.insert(def.id, Arc::clone(&def));
        if let Some(database) = self.databases.get_mut(&def.db) {
            Arc::make_mut(database).tables.insert(def.name.clone(), def);
        }
    }

    fn put_view(&mut self, view: Arc<ViewDef>) {
        if let Some(database) = self.databases.get_mut(&view.db) {
            let views = &mut Arc::make_mut(database).views;
            // It may have had another name.
            views.retain(|_, other| other.id != view.id);
            views.insert(view.name.clone(), view);
        }
    }

    /// The stored schema of the definition, if the table has it or had it.
    pub(crate) fn kept_schema(&self, def: &TableDef) -> Option<&KeptSchema> {
        self.schemas.get(&(def.id, def.schema.version)).filter(|kept| kept.schema == def.schema)
    }

    /// The column changes from the table's first schema on, oldest first.
    pub(crate) fn column_changes(&self, table: TableId) -> Vec<ColumnChange> {
        let Some(def) = self.tables.get(&table) else { return Vec::new() };
        let versions = (2..=def.schema.version.0).map(SchemaVersion);
        versions
            .filter_map(|version| {
                let kept = self.schemas.get(&(table, version))?;
                Some(ColumnChange { version, made_at_ms: kept.made_at_ms })
            })
            .collect()
    }

    /// Removes the table from the present ones.
    fn hide_table(&mut self, def: &TableDef) {
        if self.tables.remove(&def.id).is_some() {
            self.remove_name(def);
        }
    }

    fn remove_table(&mut self, def: &TableDef) {
        self.hide_table(def);
        self.recycled.forget_table(def.id);
        self.last_changes.remove(&def.id);
        self.schemas.retain(|(table, _), _| *table != def.id);
    }

    fn remove_name(&mut self, def: &TableDef) {
        if let Some(database) = self.databases.get_mut(&def.db) {
            Arc::make_mut(database).tables.remove(&def.name);
        }
    }

    fn remove_database(&mut self, id: DbId, name: &str) {
        let is_present = self.databases.get(name).is_some_and(|database| database.id == id);
        let present = if is_present { self.tables_of(name) } else { Vec::new() };
        let recycled: Vec<_> = self.recycled.tables_of(id).map(|table| Arc::clone(&table.def)).collect();
        for def in present.iter().chain(&recycled) {
            self.remove_table(def);
        }
        if is_present {
            self.databases.remove(name);
        }
        self.recycled.databases.remove(&id);
    }

    /// The tables of a database in order of their names; empty for an unknown database.
    pub(crate) fn tables_of(&self, database: &str) -> Vec<Arc<TableDef>> {
        let database = self.databases.get(database);
        database.map(|database| database.tables.values().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn user(&self, name: &str, host: &str) -> Option<usize> {
        self.users.iter().position(|user| user.is(name, host))
    }
}

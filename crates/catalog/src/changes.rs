//! Changes: each is checked against what is shown, made durable, then shown, one after the other.

use crate::catalog::is_reserved_database;
use crate::error::CatalogError;
use crate::state::State;
use crate::store::Store;
use crate::users::{PROTECTED_USER, PasswordHash, User};
use arc_swap::ArcSwap;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};
use tributary_types::{DbId, TableDef, TableRef};

type Result<T> = std::result::Result<T, CatalogError>;

/// The catalog's parts, shared with the changes under way.
#[derive(Debug)]
pub(crate) struct Shared {
    pub state: ArcSwap<State>,
    pub store: Box<dyn Store>,
    /// Held by a change from its check to its publication.
    changing: Mutex<()>,
}

/// Runs a change in a task of its own: a client that goes away must not leave a change that is
/// durable and not shown.
pub(crate) async fn uncancelled<T: Send + 'static>(
    change: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(change).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(CatalogError::Store { action: "finish a change", source: error.into() }),
    }
}

impl Shared {
    pub(crate) fn new(store: Box<dyn Store>, state: State) -> Self {
        Self { state: ArcSwap::from_pointee(state), store, changing: Mutex::new(()) }
    }

    pub(crate) async fn close(&self) {
        let _changing = self.changing.lock().await;
        self.store.close().await;
    }

    pub(crate) async fn create_database(self: Arc<Self>, name: String) -> Result<DbId> {
        let change = self.begin().await;
        if is_reserved_database(&name) || change.state.databases.contains_key(&name) {
            return Err(CatalogError::DatabaseExists(name));
        }
        let id = self.store.insert_database(&name).await?;
        change.publish(|state| state.put_database(id, name));
        Ok(id)
    }

    pub(crate) async fn drop_database(self: Arc<Self>, name: String) -> Result<Vec<Arc<TableDef>>> {
        let change = self.begin().await;
        if is_reserved_database(&name) {
            return Err(CatalogError::ReservedDatabase(name));
        }
        let Some(database) = change.state.databases.get(&name) else {
            return Err(CatalogError::NoDatabaseToDrop(name));
        };
        self.store.delete_database(database.id).await?;
        Ok(change.publish(|state| state.remove_database(&name)))
    }

    pub(crate) async fn create_table(self: Arc<Self>, def: TableDef) -> Result<Arc<TableDef>> {
        let change = self.begin().await;
        if is_reserved_database(&def.db) {
            return Err(CatalogError::ReservedDatabase(def.db));
        }
        match change.state.databases.get(&def.db) {
            Some(database) if database.id == def.db_id => {
                if database.tables.contains_key(&def.name) {
                    return Err(CatalogError::TableExists(def.name));
                }
            }
            _ => return Err(CatalogError::UnknownDatabase(def.db)),
        }
        self.store.insert_table(&def).await?;
        let def = Arc::new(def);
        change.publish(|state| state.put_table(Arc::clone(&def)));
        Ok(def)
    }

    pub(crate) async fn drop_table(self: Arc<Self>, name: TableRef) -> Result<Arc<TableDef>> {
        let change = self.begin().await;
        if is_reserved_database(&name.db) {
            return Err(CatalogError::ReservedDatabase(name.db));
        }
        let Some(database) = change.state.databases.get(&name.db) else {
            return Err(CatalogError::UnknownDatabase(name.db));
        };
        let Some(def) = database.tables.get(&name.table).cloned() else {
            return Err(unknown_table(name));
        };
        self.store.delete_table(def.id).await?;
        change.publish(|state| state.remove_table(&def));
        Ok(def)
    }

    pub(crate) async fn replace_table_def(
        self: Arc<Self>,
        expected: TableDef,
        new: TableDef,
    ) -> Result<Arc<TableDef>> {
        let change = self.begin().await;
        let name = expected.table_ref();
        let Some(present) = change.state.tables.get(&expected.id) else {
            return Err(unknown_table(name));
        };
        let is_same_table = (new.id, new.db_id, &new.db) == (present.id, present.db_id, &present.db);
        if **present != expected || !is_same_table {
            return Err(CatalogError::TableChanged { db: name.db, table: name.table });
        }
        let is_taken = change
            .state
            .databases
            .get(&new.db)
            .is_some_and(|database| database.tables.contains_key(&new.name));
        if new.name != present.name && is_taken {
            return Err(CatalogError::TableExists(new.name));
        }
        self.store.update_table(&new).await?;
        let new = Arc::new(new);
        change.publish(|state| state.put_table(Arc::clone(&new)));
        Ok(new)
    }

    pub(crate) async fn create_user(
        self: Arc<Self>,
        name: String,
        host: String,
        password_hash: PasswordHash,
    ) -> Result<()> {
        let change = self.begin().await;
        if change.state.user(&name, &host).is_some() {
            return Err(CatalogError::UserExists { name, host });
        }
        let user = User { name, host, password_hash };
        self.store.insert_users(std::slice::from_ref(&user)).await?;
        change.publish(|state| state.users.push(Arc::new(user)));
        Ok(())
    }

    pub(crate) async fn set_password(
        self: Arc<Self>,
        name: String,
        host: String,
        password_hash: PasswordHash,
    ) -> Result<()> {
        let change = self.begin().await;
        let index = change.user(&name, &host)?;
        self.store.update_password(&name, &host, password_hash).await?;
        change.publish(|state| Arc::make_mut(&mut state.users[index]).password_hash = password_hash);
        Ok(())
    }

    pub(crate) async fn drop_user(self: Arc<Self>, name: String, host: String) -> Result<()> {
        let change = self.begin().await;
        let index = change.user(&name, &host)?;
        if name == PROTECTED_USER {
            return Err(CatalogError::ProtectedUser(name));
        }
        self.store.delete_user(&name, &host).await?;
        change.publish(|state| state.users.remove(index));
        Ok(())
    }

    async fn begin(&self) -> Change<'_> {
        let guard = self.changing.lock().await;
        Change { state: self.state.load_full(), shown: &self.state, _guard: guard }
    }
}

/// A change that is being made: no other is until it is dropped.
struct Change<'c> {
    state: Arc<State>,
    shown: &'c ArcSwap<State>,
    _guard: MutexGuard<'c, ()>,
}

impl Change<'_> {
    /// The user's place, or the error that there is none.
    fn user(&self, name: &str, host: &str) -> Result<usize> {
        self.state
            .user(name, host)
            .ok_or_else(|| CatalogError::UnknownUser { name: name.into(), host: host.into() })
    }

    /// Shows what the store has already.
    fn publish<T>(self, apply: impl FnOnce(&mut State) -> T) -> T {
        let mut state = State::clone(&self.state);
        let result = apply(&mut state);
        self.shown.store(Arc::new(state));
        result
    }
}

fn unknown_table(name: TableRef) -> CatalogError {
    CatalogError::UnknownTable { db: name.db, table: name.table }
}

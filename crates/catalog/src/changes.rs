//! Changes: each is checked against the visible state, made durable, then made visible, one after another.
//!
//! Another node may change the store: then the store refuses a change that was checked against an earlier revision, everything is
//! loaded again, and the check is repeated. A refusal by a check is final only if the store is unchanged.

use crate::error::CatalogError;
use crate::state::{Database, State};
use crate::store::{Applied, Operation, Store};
use arc_swap::ArcSwap;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Mutex;
use tributary_types::system::{INTERNAL_SCHEMA, is_internal_schema, is_reserved_database};
use tributary_types::{DbId, TableDef, TableRef, host};

type Result<T> = std::result::Result<T, CatalogError>;

/// The catalog's parts, shared with the changes under way.
#[derive(Debug)]
pub(crate) struct Shared {
    pub state: ArcSwap<State>,
    pub store: Box<dyn Store>,
    /// Held by a change from its check to its publication.
    changing: Mutex<()>,
}

/// Runs a change in a task of its own: a client that goes away must not leave a durable change invisible.
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

    /// See [`crate::Catalog::keep_up`].
    pub(crate) async fn keep_up(&self) {
        let is_shared = self.store.is_shared();
        if is_shared || self.store.write_trouble().is_some() {
            self.store.try_writing().await;
        }
        if !is_shared {
            return;
        }
        // A change under way compares the revision itself.
        let Ok(_changing) = self.changing.try_lock() else { return };
        let shown = self.state.load_full();
        if self.store.revision().await.is_ok_and(|now| now != shown.revision) {
            // The next call tries again.
            drop(self.reload(&shown).await);
        }
    }

    /// See [`crate::Catalog::refresh`].
    pub(crate) async fn refresh(&self) -> Result<()> {
        let _changing = self.changing.lock().await;
        let shown = self.state.load_full();
        if self.store.revision().await? != shown.revision {
            self.reload(&shown).await?;
        }
        Ok(())
    }

    /// Makes the change that `check` derives from the visible state; its other result is the answer.
    pub(crate) async fn change<T>(&self, check: impl Fn(&State) -> Result<(Operation, T)>) -> Result<T> {
        let _changing = self.changing.lock().await;
        loop {
            let shown = self.state.load_full();
            let (operation, answer) = match check(&shown) {
                Ok(checked) => checked,
                Err(refusal) if self.store.revision().await? == shown.revision => return Err(refusal),
                Err(_) => {
                    self.reload(&shown).await?;
                    continue;
                }
            };
            match self.store.apply(shown.revision, &operation).await {
                Ok(Applied::Made) => {
                    let mut state = State::clone(&shown);
                    state.apply(operation);
                    self.state.store(Arc::new(state));
                    return Ok(answer);
                }
                Ok(Applied::Stale) => self.reload(&shown).await?,
                Err(_) if self.is_made(&shown, operation).await => return Ok(answer),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the store has made the operation although it answered with an error; then it becomes visible.
    async fn is_made(&self, before: &State, operation: Operation) -> bool {
        if self.store.revision().await.ok().is_none_or(|now| now == before.revision) {
            return false;
        }
        let mut after = State::clone(before);
        after.apply(operation);
        let Ok(loaded) = self.store.load().await else { return false };
        let loaded = State::new(loaded);
        // Another node may have been faster: then the next change is checked against what it has made.
        let is_made = loaded == after;
        if is_made {
            self.state.store(Arc::new(loaded));
        }
        is_made
    }

    /// Shows what the store has now.
    async fn reload(&self, stale: &State) -> Result<()> {
        let state = State::new(self.store.load().await?);
        if state.revision == stale.revision {
            // Trying again would never end.
            return Err(CatalogError::Corrupt {
                what: format!("revision {}", state.revision.0),
                reason: "the store refuses changes of it".to_owned(),
            });
        }
        self.state.store(Arc::new(state));
        Ok(())
    }

    pub(crate) async fn create_database(self: Arc<Self>, name: String) -> Result<DbId> {
        self.change(|state| {
            if is_reserved_database(&name) || state.databases.contains_key(&name) {
                return Err(CatalogError::DatabaseExists(name.clone()));
            }
            let id = state.next_db_id;
            Ok((Operation::CreateDatabase { id, name: name.clone() }, id))
        })
        .await
    }

    /// Creates the server's own database, unless it exists.
    pub(crate) async fn create_internal_database(self: Arc<Self>) -> Result<DbId> {
        if let Some(database) = self.state.load().databases.get(INTERNAL_SCHEMA) {
            return Ok(database.id);
        }
        self.change(|state| {
            let id = state.next_db_id;
            Ok((Operation::CreateDatabase { id, name: INTERNAL_SCHEMA.to_owned() }, id))
        })
        .await
    }

    pub(crate) async fn drop_database(self: Arc<Self>, name: String) -> Result<Vec<Arc<TableDef>>> {
        self.change(|state| {
            refuse_reserved(&name)?;
            let database = state.databases.get(&name);
            let id = database.ok_or_else(|| CatalogError::NoDatabaseToDrop(name.clone()))?.id;
            Ok((Operation::DropDatabase { id, name: name.clone() }, state.tables_of(&name)))
        })
        .await
    }

    pub(crate) async fn create_table(self: Arc<Self>, def: TableDef) -> Result<Arc<TableDef>> {
        let def = Arc::new(def);
        self.change(|state| {
            refuse_reserved(&def.db)?;
            match state.databases.get(&def.db) {
                Some(database) if database.id == def.db_id => refuse_taken(database, &def.name)?,
                _ => return Err(CatalogError::UnknownDatabase(def.db.clone())),
            }
            let made_at_ms = Some(host::unix_ms());
            Ok((Operation::CreateTable { def: Arc::clone(&def), made_at_ms }, Arc::clone(&def)))
        })
        .await
    }

    pub(crate) async fn drop_table(self: Arc<Self>, name: TableRef) -> Result<Arc<TableDef>> {
        self.change(|state| {
            let def = present(state, &name)?;
            Ok((Operation::DropTable(Arc::clone(def)), Arc::clone(def)))
        })
        .await
    }

    pub(crate) async fn replace_table_def(
        self: Arc<Self>,
        expected: TableDef,
        new: TableDef,
    ) -> Result<Arc<TableDef>> {
        let new = Arc::new(new);
        self.change(|state| {
            let made_at_ms = replaced(state, &expected, &new)?;
            Ok((Operation::ReplaceTable { def: Arc::clone(&new), made_at_ms }, Arc::clone(&new)))
        })
        .await
    }

    pub(crate) async fn rename_tables(
        self: Arc<Self>,
        renamed: Vec<(Arc<TableDef>, TableDef)>,
    ) -> Result<Vec<Arc<TableDef>>> {
        let renamed: Vec<(Arc<TableDef>, Arc<TableDef>)> =
            renamed.into_iter().map(|(expected, new)| (expected, Arc::new(new))).collect();
        self.change(|state| {
            let mut tables = Vec::with_capacity(renamed.len());
            for (index, (expected, new)) in renamed.iter().enumerate() {
                let database = state.databases.get(&new.db);
                let holder = database.and_then(|database| database.tables.get(&new.name));
                // A name is free if its table gets another in the same step.
                let is_held =
                    holder.is_some_and(|holder| renamed.iter().all(|(other, _)| other.id != holder.id));
                let is_view = database.is_some_and(|database| database.views.contains_key(&new.name));
                let is_twice =
                    renamed[..index].iter().any(|(_, other)| other.name == new.name && other.db == new.db);
                if is_held || is_view || is_twice {
                    return Err(CatalogError::TableExists(new.name.clone()));
                }
                tables.push((Arc::clone(new), same_table(state, expected, new)?));
            }
            let defs = tables.iter().map(|(def, _)| Arc::clone(def)).collect();
            Ok((Operation::RenameTables { tables }, defs))
        })
        .await
    }
}

/// The server's own database is not refused: users have no right to change it.
pub(crate) fn refuse_reserved(database: &str) -> Result<()> {
    if is_reserved_database(database) && !is_internal_schema(database) {
        return Err(CatalogError::ReservedDatabase(database.to_owned()));
    }
    Ok(())
}

/// Tables and views share their names.
pub(crate) fn refuse_taken(database: &Database, table: &str) -> Result<()> {
    if database.tables.contains_key(table) || database.views.contains_key(table) {
        return Err(CatalogError::TableExists(table.to_owned()));
    }
    Ok(())
}

/// The table of that name.
pub(crate) fn present<'a>(state: &'a State, name: &TableRef) -> Result<&'a Arc<TableDef>> {
    refuse_reserved(&name.db)?;
    let database = state.databases.get(&name.db);
    let database = database.ok_or_else(|| CatalogError::UnknownDatabase(name.db.clone()))?;
    database.tables.get(&name.table).ok_or_else(|| unknown_table(name))
}

/// The creation time of the schema of a definition that may replace `expected`, which must be the present one.
pub(crate) fn replaced(state: &State, expected: &TableDef, new: &Arc<TableDef>) -> Result<Option<i64>> {
    let made_at_ms = same_table(state, expected, new)?;
    if new.name != expected.name
        && let Some(database) = state.databases.get(&new.db)
    {
        refuse_taken(database, &new.name)?;
    }
    Ok(made_at_ms)
}

/// As [`replaced`], whatever the new name is.
fn same_table(state: &State, expected: &TableDef, new: &Arc<TableDef>) -> Result<Option<i64>> {
    let name = expected.table_ref();
    let present = state.tables.get(&expected.id).ok_or_else(|| unknown_table(&name))?;
    let is_same_table = (new.id, new.db_id, &new.db) == (present.id, present.db_id, &present.db);
    if **present != *expected || !is_same_table {
        return Err(CatalogError::TableChanged { db: name.db, table: name.table });
    }
    // The same columns under another name or with other properties are not a change of columns.
    Ok(match state.kept_schema(new) {
        Some(kept) => kept.made_at_ms,
        None => Some(host::unix_ms()),
    })
}

pub(crate) fn unknown_table(name: &TableRef) -> CatalogError {
    CatalogError::UnknownTable { db: name.db.clone(), table: name.table.clone() }
}

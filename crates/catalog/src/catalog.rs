//! The crate's interface: lookups from memory, changes that run to their end.

use crate::changes::{Shared, uncancelled};
use crate::error::CatalogError;
use crate::location::CatalogLocation;
use crate::postgres::{Claim, Claimed, PostgresOptions, PostgresStore};
use crate::sqlite::SqliteStore;
use crate::state::State;
use crate::store::{Applied, Garbage, Operation, Store};
use crate::transactions::TxnRecord;
use crate::trouble::CatalogTrouble;
use crate::users::{FIRST_USERS, User, first_role};
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{
    ColumnChange, DbId, Label, SchemaVersion, TableDef, TableId, TableRef, TableSchema, TxnId, Verifiers,
};

/// Set once the users of a new catalog are made.
const FIRST_USERS_MADE: &str = "first_users";
/// The key of the node's id in earlier versions.
pub(crate) const OLD_NODE_ID: &str = "node_id";

/// Databases, tables, views and users. Lookups take no lock and do not wait; a change is durable and visible to every later
/// lookup when its method returns. A change that has started completes even if the caller goes away.
#[derive(Debug)]
pub struct Catalog {
    shared: Arc<Shared>,
}

pub(crate) type Result<T> = std::result::Result<T, CatalogError>;

impl Catalog {
    /// Opens the catalog, or creates it with the users `root` and `admin` without passwords. One in PostgreSQL is opened
    /// to be read, while its owner goes on, and is never created.
    ///
    /// # Errors
    /// [`CatalogError::NewerFormat`], [`CatalogError::Damaged`], [`CatalogError::Corrupt`], or
    /// [`CatalogError::Store`] if it cannot be used.
    pub async fn open(location: &CatalogLocation) -> Result<Self> {
        match location {
            CatalogLocation::Sqlite(file) => Self::with_store(Box::new(SqliteStore::open(file).await?)).await,
            CatalogLocation::Postgres(options) => {
                Self::with_store(Box::new(PostgresStore::read(options).await?)).await
            }
        }
    }

    /// Opens a catalog in PostgreSQL as the server that owns it from now on, or creates it like [`Catalog::open`]. Also returns its
    /// id, by which the server knows it again, and the epoch.
    ///
    /// # Errors
    /// [`CatalogError::OfAnother`], [`CatalogError::InUse`], [`CatalogError::NotTheCatalog`], [`CatalogError::Missing`],
    /// [`CatalogError::Unfit`], [`CatalogError::NewerFormat`], [`CatalogError::Away`], or [`CatalogError::Store`].
    pub async fn claim(options: &PostgresOptions, claim: &Claim<'_>) -> Result<(Self, Claimed)> {
        let (store, claimed) = PostgresStore::claim(options, claim).await?;
        Ok((Self::with_store(Box::new(store)).await?, claimed))
    }

    /// Opens a catalog in `store`.
    pub(crate) async fn with_store(store: Box<dyn Store>) -> Result<Self> {
        let mut state = State::new(store.load().await?);
        if store.meta_get(FIRST_USERS_MADE).await?.is_none() {
            // Earlier versions created them before they stored a node's id.
            if store.meta_get(OLD_NODE_ID).await?.is_none() {
                state = with_first_users(&*store, state).await?;
            }
            store.meta_put(FIRST_USERS_MADE, "made", &[]).await?;
        }
        Ok(Self { shared: Arc::new(Shared::new(store, state)) })
    }

    /// Closes the store after the changes that are being made. No change may follow.
    pub async fn close(&self) {
        self.shared.close().await;
    }

    /// Grows with every change that this node sees: what was derived from the catalog at one revision is good while it stays.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.state.load().revision.0
    }

    /// The reason why the last change could not be written; `None` if it could.
    #[must_use]
    pub fn write_trouble(&self) -> Option<CatalogTrouble> {
        self.shared.store.write_trouble()
    }

    /// To be called every few seconds: finds out whether changes can be written again if they could not; in a shared store it says
    /// that its owner lives, and shows what others have changed.
    pub async fn keep_up(&self) {
        self.shared.keep_up().await;
    }

    /// Loads what others have changed in a shared store.
    ///
    /// # Errors
    /// [`CatalogError::Store`], [`CatalogError::Away`]; the state stays as it was.
    pub async fn refresh(&self) -> Result<()> {
        self.shared.refresh().await
    }

    /// Tells the nodes that read this server's tables how far the tables' files are: `oldest` says for how long the oldest row that is
    /// not in them has been visible.
    ///
    /// # Errors
    /// [`CatalogError::Store`], [`CatalogError::Away`].
    pub async fn tell_progress(&self, oldest: impl Fn() -> Option<Duration> + Send + Sync) -> Result<()> {
        self.shared.store.tell_progress(&oldest).await
    }

    /// Tells them that this server ends, and everything is in the tables' files.
    ///
    /// # Errors
    /// As [`Catalog::tell_progress`].
    pub async fn tell_end(&self) -> Result<()> {
        self.shared.store.tell_end().await
    }

    /// How long ago the owner's tables had everything in their files that was visible then. `None`: it has not told.
    ///
    /// # Errors
    /// As [`Catalog::tell_progress`].
    pub async fn lag(&self) -> Result<Option<Duration>> {
        self.shared.store.lag().await
    }

    /// The id of a catalog in PostgreSQL, and the server that owns it.
    ///
    /// # Errors
    /// As [`Catalog::tell_progress`].
    pub async fn owner(&self) -> Result<Option<(String, String)>> {
        self.shared.store.owner().await
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.shared.state.load_full()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    // ---- databases and tables: lookups ----

    /// The databases that users made, in order of their names.
    #[must_use]
    pub fn databases(&self) -> Vec<String> {
        self.shared.state.load().databases.keys().cloned().collect()
    }

    /// The id of the database, with regard to case.
    #[must_use]
    pub fn database_id(&self, name: &str) -> Option<DbId> {
        self.shared.state.load().databases.get(name).map(|database| database.id)
    }

    /// The tables of a database in order of their names; empty for an unknown database.
    #[must_use]
    pub fn tables(&self, db: &str) -> Vec<Arc<TableDef>> {
        self.shared.state.load().tables_of(db)
    }

    /// The tables of all databases, in no order.
    #[must_use]
    pub fn all_tables(&self) -> Vec<Arc<TableDef>> {
        self.shared.state.load().tables.values().cloned().collect()
    }

    #[must_use]
    pub fn table(&self, name: &TableRef) -> Option<Arc<TableDef>> {
        self.shared.state.load().databases.get(&name.db)?.tables.get(&name.table).cloned()
    }

    #[must_use]
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<TableDef>> {
        self.shared.state.load().tables.get(&id).cloned()
    }

    /// A schema that a present table has or once had.
    #[must_use]
    pub fn schema(&self, table: TableId, version: SchemaVersion) -> Option<Arc<TableSchema>> {
        let state = self.shared.state.load();
        state.schemas.get(&(table, version)).map(|kept| Arc::clone(&kept.schema))
    }

    /// The changes of a present table's columns, oldest first.
    #[must_use]
    pub fn column_changes(&self, table: TableId) -> Vec<ColumnChange> {
        self.shared.state.load().column_changes(table)
    }

    // ---- databases and tables: changes ----

    /// Creates a database.
    ///
    /// # Errors
    /// [`CatalogError::DatabaseExists`] (for reserved names too), or [`CatalogError::Store`].
    pub async fn create_database(&self, name: &str) -> Result<DbId> {
        uncancelled(Arc::clone(&self.shared).create_database(name.to_owned())).await
    }

    /// Creates the server's own database, `__internal_schema`, unless it exists.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn create_internal_database(&self) -> Result<DbId> {
        uncancelled(Arc::clone(&self.shared).create_internal_database()).await
    }

    /// Drops a database with its tables, which are returned. Their locations are garbage then.
    ///
    /// # Errors
    /// [`CatalogError::NoDatabaseToDrop`], [`CatalogError::ReservedDatabase`], or [`CatalogError::Store`].
    pub async fn drop_database(&self, name: &str) -> Result<Vec<Arc<TableDef>>> {
        uncancelled(Arc::clone(&self.shared).drop_database(name.to_owned())).await
    }

    /// Assigns an id for a new table. It is never assigned again, whether or not a table is created with it.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn next_table_id(&self) -> Result<TableId> {
        self.shared.store.next_table_id().await
    }

    /// Announces that files of a table that is about to be created may appear at the location: they
    /// are garbage until [`Catalog::create_table`] succeeds.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn announce_location(&self, location: &str, table_id: TableId) -> Result<()> {
        self.shared.store.insert_garbage(&Garbage { location: location.to_owned(), table_id }).await
    }

    /// Creates a table with an id of [`Catalog::next_table_id`].
    ///
    /// # Errors
    /// [`CatalogError::UnknownDatabase`] (even if it was dropped and created again after the definition),
    /// [`CatalogError::ReservedDatabase`], [`CatalogError::TableExists`], or [`CatalogError::Store`].
    pub async fn create_table(&self, def: TableDef) -> Result<Arc<TableDef>> {
        uncancelled(Arc::clone(&self.shared).create_table(def)).await
    }

    /// Drops the table, which is returned. Its location is garbage then.
    ///
    /// # Errors
    /// [`CatalogError::UnknownDatabase`], [`CatalogError::UnknownTable`],
    /// [`CatalogError::ReservedDatabase`], or [`CatalogError::Store`].
    pub async fn drop_table(&self, name: &TableRef) -> Result<Arc<TableDef>> {
        uncancelled(Arc::clone(&self.shared).drop_table(name.clone())).await
    }

    /// Replaces a definition by a new version of it (ALTER TABLE). Only a table's id and database are fixed; the name may change.
    ///
    /// # Errors
    /// [`CatalogError::TableChanged`] if `expected` is not the present definition,
    /// [`CatalogError::UnknownTable`], [`CatalogError::TableExists`] for a taken new name, or
    /// [`CatalogError::Store`].
    pub async fn replace_table_def(&self, expected: &TableDef, new: TableDef) -> Result<Arc<TableDef>> {
        uncancelled(Arc::clone(&self.shared).replace_table_def(expected.clone(), new)).await
    }

    /// Gives tables other names in one step, also the ones that others of them had. Each expected definition must be the
    /// present one.
    ///
    /// # Errors
    /// As [`Catalog::replace_table_def`]; then no table is renamed.
    pub async fn rename_tables(&self, renamed: Vec<(Arc<TableDef>, TableDef)>) -> Result<Vec<Arc<TableDef>>> {
        uncancelled(Arc::clone(&self.shared).rename_tables(renamed)).await
    }

    /// Locations whose files can be deleted.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn list_garbage(&self) -> Result<Vec<Garbage>> {
        self.shared.store.list_garbage().await
    }

    /// Forgets locations whose files have been deleted.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn clear_garbage(&self, locations: &[String]) -> Result<()> {
        self.shared.store.delete_garbage(locations).await
    }

    // ---- finished transactions ----

    /// Keeps transactions of a node, in one write. A record replaces an earlier one of its transaction.
    ///
    /// # Errors
    /// [`CatalogError::Store`]; then none is stored.
    pub async fn record_transactions(&self, node: &str, records: &[TxnRecord]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.shared.store.put_transactions(node, records).await
    }

    /// The transactions of a node whose labels are in use.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn kept_transactions(&self, node: &str) -> Result<Vec<TxnRecord>> {
        self.shared.store.kept_transactions(node).await
    }

    /// The transactions of a node whose labels are no longer retained.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn freed_transactions(&self, node: &str) -> Result<Vec<TxnId>> {
        self.shared.store.freed_transactions(node).await
    }

    /// A transaction of a node.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn transaction_by_id(&self, node: &str, txn: TxnId) -> Result<Option<TxnRecord>> {
        self.shared.store.transaction_by_id(node, txn).await
    }

    /// The transaction, of any node, that has the label: one that is not aborted if there is one, else the
    /// last.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn transaction_by_label(&self, db: DbId, label: &Label) -> Result<Option<TxnRecord>> {
        self.shared.store.transaction_by_label(db, label).await
    }

    /// The newest transactions of a database, of all nodes, newest first.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn recent_transactions(&self, db: DbId, limit: u32) -> Result<Vec<TxnRecord>> {
        self.shared.store.recent_transactions(db, limit).await
    }

    /// Forgets transactions of a node that finished before the time (ms since 1970), and of the others the
    /// oldest above `keep_max`. The result is how many were forgotten.
    ///
    /// # Errors
    /// [`CatalogError::Store`].
    pub async fn purge_transactions(
        &self,
        node: &str,
        finished_before_ms: i64,
        keep_max: u64,
    ) -> Result<u64> {
        self.shared.store.purge_transactions(node, finished_before_ms, keep_max).await
    }
}

/// Creates the users that exist from the first start on, unless another node of the same catalog already did.
async fn with_first_users(store: &dyn Store, mut state: State) -> Result<State> {
    for name in FIRST_USERS {
        let mut user = User::new(name, "%", Verifiers::EMPTY);
        user.account.roles.insert(first_role(name).to_owned());
        while state.user(&user.name, &user.host).is_none() {
            let operation = Operation::CreateUser(user.clone());
            match store.apply(state.revision, &operation).await? {
                Applied::Made => state.apply(operation),
                Applied::Stale => state = State::new(store.load().await?),
            }
        }
    }
    Ok(state)
}

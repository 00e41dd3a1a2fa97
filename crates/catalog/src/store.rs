//! What the catalog asks of the database that keeps it.
//!
//! Every method that changes something is one transaction: on return all of it is durable, on
//! error none of it happened. Rules (which names are free, who may change what) are not checked
//! here but in [`crate::Catalog`], which also makes sure that changes come one after the other.

use crate::error::CatalogError;
use crate::transactions::TxnRecord;
use crate::users::{PasswordHash, User};
use async_trait::async_trait;
use std::fmt::Debug;
use tributary_types::{DbId, Label, TableDef, TableId, TableSchema, TxnId};

pub(crate) type Stored<T> = Result<T, CatalogError>;

/// Files of a table that is gone or was never finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// As in [`TableDef::location`].
    pub location: String,
    pub table_id: TableId,
}

/// Who this node is, from its first start on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// 32 hexadecimal digits, random.
    pub node_id: String,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
}

/// All that is kept in memory too.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub databases: Vec<(DbId, String)>,
    pub tables: Vec<TableDef>,
    /// Every schema that a present table ever had.
    pub schemas: Vec<(TableId, TableSchema)>,
    pub users: Vec<User>,
}

#[async_trait]
pub(crate) trait Store: Send + Sync + Debug {
    async fn load(&self) -> Stored<Loaded>;
    async fn close(&self);

    /// Sets the value if the key has none; the result is the value that it has then.
    async fn meta_init(&self, key: &str, value: &str) -> Stored<String>;
    async fn meta_get(&self, key: &str) -> Stored<Option<String>>;
    async fn meta_set(&self, key: &str, value: &str) -> Stored<()>;

    async fn insert_database(&self, name: &str) -> Stored<DbId>;
    /// Removes the database and its tables, whose locations become garbage.
    async fn delete_database(&self, id: DbId) -> Stored<()>;

    /// An id that was never given and never will be again.
    async fn next_table_id(&self) -> Stored<TableId>;
    /// Inserts the table; its location is no garbage any more.
    async fn insert_table(&self, def: &TableDef) -> Stored<()>;
    /// Replaces the definition and keeps the schema among those the table ever had.
    async fn update_table(&self, def: &TableDef) -> Stored<()>;
    /// Removes the table, whose location becomes garbage.
    async fn delete_table(&self, id: TableId) -> Stored<()>;

    async fn insert_garbage(&self, garbage: &Garbage) -> Stored<()>;
    async fn list_garbage(&self) -> Stored<Vec<Garbage>>;
    async fn delete_garbage(&self, locations: &[String]) -> Stored<()>;

    /// Inserts users; those that exist stay as they are.
    async fn insert_users(&self, users: &[User]) -> Stored<()>;
    async fn update_password(&self, name: &str, host: &str, hash: PasswordHash) -> Stored<()>;
    async fn delete_user(&self, name: &str, host: &str) -> Stored<()>;

    /// Inserts records or replaces those of the same transactions.
    async fn put_transactions(&self, records: &[TxnRecord]) -> Stored<()>;
    async fn kept_transactions(&self) -> Stored<Vec<TxnRecord>>;
    async fn transaction_by_id(&self, txn: TxnId) -> Stored<Option<TxnRecord>>;
    async fn transaction_by_label(&self, db: DbId, label: &Label) -> Stored<Option<TxnRecord>>;
    async fn recent_transactions(&self, db: DbId, limit: u32) -> Stored<Vec<TxnRecord>>;
    /// Removes those that finished before the time, then the oldest above the number.
    async fn purge_transactions(&self, finished_before_ms: i64, keep_max: u64) -> Stored<u64>;
}

//! The interface of the database behind the catalog.
//!
//! Every method that changes something is one transaction: on return all of it is durable; on an error none of it happened, or it
//! did and its answer was lost. Rules (free names, permitted changes) are not checked here but in [`crate::Catalog`], against its
//! loaded state; so a change of the visible state names the [`Revision`] that it was checked against, and a store at another
//! revision makes no change. Several nodes may share a store: records that belong to one of them name it.

#[cfg(test)]
pub(crate) mod contract;

use crate::error::CatalogError;
use crate::jobs::{JobRecord, PositionRecord};
use crate::nodes::{HeardNode, NodeSign};
use crate::recycled::{RecycleBin, RecycledDatabase, RecycledPartition, RecycledTable};
use crate::transactions::TxnRecord;
use crate::trouble::CatalogTrouble;
use crate::users::{Role, User};
use async_trait::async_trait;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{DbId, Label, PartitionId, SourceId, TableDef, TableId, TableSchema, TxnId, ViewDef};

pub(crate) type Stored<T> = Result<T, CatalogError>;

/// Files of a table that was dropped or never finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// The location, like [`TableDef::location`].
    pub location: String,
    pub table_id: TableId,
}

/// Counts the changes of the visible state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revision(pub u64);

impl Revision {
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A schema that a table has or once had.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptSchema {
    pub schema: Arc<TableSchema>,
    /// Milliseconds since 1970; `None` if it was created before times were recorded.
    pub made_at_ms: Option<i64>,
}

/// Everything that is also in memory, at one revision.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub revision: Revision,
    /// Greater than the id of any database that there ever was.
    pub next_db_id: DbId,
    pub databases: Vec<(DbId, String)>,
    pub tables: Vec<TableDef>,
    /// The last recorded change of each present or recycled table that had one.
    pub last_changes: Vec<(TableId, SourceId)>,
    /// Every schema that a present or recycled table ever had.
    pub schemas: Vec<(TableId, KeptSchema)>,
    pub views: Vec<ViewDef>,
    pub users: Vec<User>,
    pub roles: Vec<Role>,
    pub recycled: RecycleBin,
}

/// One checked change of the visible state.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    CreateDatabase {
        id: DbId,
        name: String,
    },
    /// Removes the database, present or recycled, with its views and its tables, whose locations become garbage.
    DropDatabase {
        id: DbId,
        name: String,
    },
    /// Inserts the table; its location is no longer garbage.
    CreateTable {
        def: Arc<TableDef>,
        /// When its schema was made, as in [`KeptSchema`].
        made_at_ms: Option<i64>,
    },
    /// Replaces the definition and adds the schema to the table's schemas.
    ReplaceTable {
        def: Arc<TableDef>,
        /// When its schema was made, as in [`KeptSchema`].
        made_at_ms: Option<i64>,
    },
    /// Replaces the definitions, each of which may take a name that another of them had.
    RenameTables {
        /// With the times when their schemas were made, as in [`KeptSchema`].
        tables: Vec<(Arc<TableDef>, Option<i64>)>,
    },
    /// Removes the table, present or recycled, whose location becomes garbage.
    DropTable(Arc<TableDef>),
    RecycleTable(Arc<RecycledTable>),
    RecycleDatabase {
        database: Arc<RecycledDatabase>,
        /// The tables that can be recovered with it.
        tables: Vec<Arc<RecycledTable>>,
        /// All others that it has, which are removed.
        dropped: Vec<Arc<TableDef>>,
    },
    /// Like `ReplaceTable` for each of these tables, the first of which gets this last change; in the same step its record is
    /// deleted or ended.
    FinishChange {
        change: SourceId,
        node: String,
        /// The resulting record. `None`: it is deleted.
        record: Option<String>,
        /// With the times when their schemas were made, as in [`KeptSchema`].
        tables: Vec<(Arc<TableDef>, Option<i64>)>,
        /// Partitions of the first table that are recycled.
        dropped: Vec<Arc<RecycledPartition>>,
        /// Recycled partitions of the first table that are removed, because they are restored.
        recovered: Vec<PartitionId>,
    },
    RecoverTable {
        def: Arc<TableDef>,
        made_at_ms: Option<i64>,
    },
    RecoverDatabase {
        id: DbId,
        name: String,
        /// The tables that are recovered with it.
        tables: Vec<Arc<TableDef>>,
        /// The tables that remain recycled.
        left: Vec<Arc<RecycledTable>>,
        views: Vec<Arc<ViewDef>>,
    },
    ErasePartition {
        table: TableId,
        id: PartitionId,
    },
    /// Inserts the view in place of the ones of its name and its id, if there are such.
    PutView(Arc<ViewDef>),
    DropView(Arc<ViewDef>),
    CreateUser(User),
    /// Replaces the user of its name and host.
    ChangeUser(User),
    DropUser {
        name: String,
        host: String,
    },
    /// Inserts the role in place of the one of its name, if there is one.
    PutRole(Role),
    /// Removes the role, and takes it from the users that have it.
    DropRole {
        name: String,
        /// The users that had it, without it.
        users: Vec<User>,
    },
}

impl Operation {
    /// The action, for the error if it fails.
    pub(crate) const fn action(&self) -> &'static str {
        match self {
            Self::CreateDatabase { .. } => "create a database",
            Self::DropDatabase { .. } => "drop a database",
            Self::CreateTable { .. } => "create a table",
            Self::ReplaceTable { .. } => "change a table",
            Self::RenameTables { .. } => "rename tables",
            Self::DropTable(_) | Self::RecycleTable(_) => "drop a table",
            Self::RecycleDatabase { .. } => "drop a database",
            Self::FinishChange { .. } => "finish a change of a table",
            Self::RecoverTable { .. } => "recover a table",
            Self::RecoverDatabase { .. } => "recover a database",
            Self::ErasePartition { .. } => "empty the recycle bin",
            Self::PutView(_) => "make a view",
            Self::DropView(_) => "drop a view",
            Self::CreateUser(_) => "create a user",
            Self::ChangeUser(_) => "change a user",
            Self::DropUser { .. } => "drop a user",
            Self::PutRole(_) => "change a role",
            Self::DropRole { .. } => "drop a role",
        }
    }
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Applied {
    /// It is durable, and the store at the next revision.
    Made,
    /// Nothing happened: the store is at another revision than the one that was checked against.
    Stale,
}

/// A store that takes no change.
#[async_trait]
pub(crate) trait FrozenStore: Send {
    /// Writes a copy of the whole store to a file of SQLite that is not there yet.
    async fn save(&mut self, to: &Path) -> Stored<()>;
}

#[async_trait]
pub(crate) trait Store: Send + Sync + Debug {
    async fn load(&self) -> Stored<Loaded>;
    async fn close(&self);
    /// The reason why the last change could not be written; `None` if it could.
    fn write_trouble(&self) -> Option<CatalogTrouble>;
    /// Writes a change that changes nothing, whose outcome [`Store::write_trouble`] has. In a shared store it says that its owner
    /// lives.
    async fn try_writing(&self);
    /// Whether other processes may reach it, and change what this one has loaded.
    fn is_shared(&self) -> bool {
        false
    }
    /// Tells others how far the tables' files are: `oldest` says for how long the oldest row that is not in them has been visible.
    async fn tell_progress(&self, _oldest: &(dyn Fn() -> Option<Duration> + Send + Sync)) -> Stored<()> {
        Ok(())
    }
    /// Tells others that the owner has ended, and everything is in the tables' files.
    async fn tell_end(&self) -> Stored<()> {
        Ok(())
    }
    /// How long ago everything was in the tables' files that was visible then, as the owner has told. `None`: it has not.
    async fn lag(&self) -> Stored<Option<Duration>> {
        Ok(None)
    }
    /// The catalog's id and the server that owns it, if several can reach it.
    async fn owner(&self) -> Stored<Option<(String, String)>> {
        Ok(None)
    }
    /// Notes that a node lives, and returns all that were heard of.
    async fn say_node(&self, _sign: &NodeSign) -> Stored<Vec<HeardNode>> {
        Ok(Vec::new())
    }
    /// The nodes that were heard of in the last hour.
    async fn heard_nodes(&self) -> Stored<Vec<HeardNode>> {
        Ok(Vec::new())
    }
    /// Forgets a node that ends.
    async fn unsay_node(&self, _name: &str) -> Stored<()> {
        Ok(())
    }
    /// Waits for the change under way; no other begins until the value is dropped.
    async fn freeze(&self) -> Stored<Box<dyn FrozenStore>>;
    /// The revision that [`Store::load`] would give.
    async fn revision(&self) -> Stored<Revision>;
    /// Makes the change if the store is still at the revision.
    async fn apply(&self, at: Revision, operation: &Operation) -> Stored<Applied>;

    async fn meta_get(&self, key: &str) -> Stored<Option<String>>;
    /// Sets a value and removes the values of other keys.
    async fn meta_put(&self, key: &str, value: &str, instead_of: &[&str]) -> Stored<()>;

    /// An id that was never assigned before and never will be again.
    async fn next_table_id(&self) -> Stored<TableId>;

    async fn insert_garbage(&self, garbage: &Garbage) -> Stored<()>;
    async fn list_garbage(&self) -> Stored<Vec<Garbage>>;
    async fn delete_garbage(&self, locations: &[String]) -> Stored<()>;

    /// Inserts transactions of a node, or replaces its records of the same transactions.
    async fn put_transactions(&self, node: &str, records: &[TxnRecord]) -> Stored<()>;
    /// The transactions of a node whose labels are in use.
    async fn kept_transactions(&self, node: &str) -> Stored<Vec<TxnRecord>>;
    /// The transactions of a node that do not.
    async fn freed_transactions(&self, node: &str) -> Stored<Vec<TxnId>>;
    async fn transaction_by_id(&self, node: &str, txn: TxnId) -> Stored<Option<TxnRecord>>;
    /// The transaction, of any node, that has the label: one that is not aborted if there is, else the last.
    async fn transaction_by_label(&self, db: DbId, label: &Label) -> Stored<Option<TxnRecord>>;
    /// The newest transactions of a database, of all nodes, newest first.
    async fn recent_transactions(&self, db: DbId, limit: u32) -> Stored<Vec<TxnRecord>>;
    /// Inserts a job of a node, or replaces it.
    async fn put_job(&self, node: &str, job: &JobRecord) -> Stored<()>;
    /// The jobs of a node, in the order of their ids.
    async fn jobs(&self, node: &str) -> Stored<Vec<JobRecord>>;
    /// Removes a job of a node, and its position.
    async fn delete_job(&self, node: &str, id: SourceId) -> Stored<()>;
    /// Inserts positions of a node's sources, or replaces them.
    async fn put_positions(&self, node: &str, positions: &[PositionRecord]) -> Stored<()>;
    /// The positions of a node's sources, in the order of their ids.
    async fn positions(&self, node: &str) -> Stored<Vec<PositionRecord>>;

    /// Reserves `count` values of the table's AUTO_INCREMENT column: the first ones that no node ever reserved and that are not
    /// below `start`. Returns the first; `None` if the range is too small.
    async fn reserve_increments(&self, table: TableId, start: i64, count: i64) -> Stored<Option<i64>>;

    /// Removes the node's transactions that finished before the time, then its oldest above the number.
    async fn purge_transactions(&self, node: &str, finished_before_ms: i64, keep_max: u64) -> Stored<u64>;
}

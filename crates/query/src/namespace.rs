//! The interface to the server around this crate: names, and facts for `SHOW`.

use crate::model::{Cell, SessionView};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::sync::Arc;
use tributary_sql::FileCall;
use tributary_table::Table;
use tributary_types::privilege::Grants;
use tributary_types::{ColumnChange, SchemaVersion, SqlError, TableDef, TableId, TxnId, ViewDef};

/// Names → tables, as visible to one user. Answers come from memory: no call may wait, except [`Namespace::files`].
pub trait Namespace: Send + Sync + 'static {
    /// The databases that users made, without the system's, in order of name.
    fn databases(&self) -> Vec<String>;
    /// The tables of a database, in order of name; none for a database that does not exist.
    fn tables(&self, database: &str) -> Vec<Arc<Table>>;
    /// Those of [`Namespace::tables`] that have one of these names.
    fn tables_called(&self, database: &str, names: &BTreeSet<String>) -> Vec<Arc<Table>> {
        let mut all = self.tables(database);
        all.retain(|table| table.with_def(|def| names.contains(&def.name)));
        all
    }
    /// The table of that name, to read it; names are compared exactly.
    ///
    /// # Errors
    /// The user may not read it.
    fn table(&self, database: &str, name: &str) -> Result<Option<Arc<Table>>, SqlError>;
    /// The columns of a table or view that the user may read, in lower case, if they are not all of those it has.
    fn readable_columns(&self, database: &str, name: &str) -> Option<Arc<BTreeSet<String>>> {
        let _ = (database, name);
        None
    }
    /// The rights of users, those of their roles included, that the user may see: its own, or those of all; each with the user as
    /// `'name'@'host'`.
    fn grants(&self) -> Vec<(String, Grants)> {
        Vec::new()
    }
    /// The views of a database, in order of name; none for a database that does not exist.
    fn views(&self, database: &str) -> Vec<Arc<ViewDef>>;
    /// The view of that name, to read it.
    ///
    /// # Errors
    /// The user may not read it.
    fn view(&self, database: &str, name: &str) -> Result<Option<Arc<ViewDef>>, SqlError>;
    /// The table of that name, to describe it.
    ///
    /// # Errors
    /// The user may not see that it exists.
    fn described_table(&self, database: &str, name: &str) -> Result<Option<Arc<Table>>, SqlError> {
        self.table(database, name)
    }
    /// The view of that name, to describe it.
    ///
    /// # Errors
    /// The user may not see that it exists.
    fn described_view(&self, database: &str, name: &str) -> Result<Option<Arc<ViewDef>>, SqlError> {
        self.view(database, name)
    }
    /// The table of that name for a view that reads it: privileges were checked when the view was created.
    fn table_of_view(&self, database: &str, name: &str) -> Option<Arc<Table>>;
    /// The companion table with the temporary partitions of this one, whose reader was checked; `None` if it has none.
    fn beside(&self, def: &TableDef) -> Option<Arc<Table>> {
        let _ = def;
        None
    }
    /// The view of that name for another view that reads it.
    fn view_of_view(&self, database: &str, name: &str) -> Option<Arc<ViewDef>>;
    /// The changes of a table's columns, oldest first.
    fn column_changes(&self, table: TableId) -> Vec<ColumnChange>;
    /// The jobs that change or changed columns of the database's tables, oldest first.
    fn schema_changes(&self, database: &str) -> Vec<SchemaChangeRow> {
        let _ = database;
        Vec::new()
    }
    /// The files that a call names, to read them.
    ///
    /// # Errors
    /// The user may not read the files, no file matches, or their columns can't be determined.
    fn files<'a>(
        &'a self,
        call: &'a FileCall,
        session: &'a SessionView,
    ) -> BoxFuture<'a, Result<Arc<dyn FileTable>, SqlError>>;
    /// The memory that one query may take; `None`: as much as there is for all.
    fn query_memory_bytes_max(&self) -> Option<u64> {
        None
    }
    /// The connections of now.
    fn processes(&self) -> Vec<ProcessRow>;
    /// The jobs of all databases that load, as the table of `information_schema` for jobs of this kind has them.
    fn jobs(&self, kind: JobKind) -> Vec<Vec<Cell>>;
    /// The rows of a table about loads, those of tables that the user may see.
    fn live(&self, table: LiveTable) -> Vec<Vec<Cell>> {
        let _ = table;
        Vec::new()
    }
    /// Checks that the user may see the nodes of the server.
    ///
    /// # Errors
    /// The user may not.
    fn check_shows_server(&self) -> Result<(), SqlError> {
        Ok(())
    }
    fn server_facts(&self) -> ServerFacts;
    /// Variables of `SHOW GLOBAL VARIABLES` by lower-case name.
    fn global_variables(&self) -> Vec<(String, String)>;
}

/// Files that one call names, as one table.
pub trait FileTable: Send + Sync + 'static {
    /// The columns, all of them nullable.
    fn schema(&self) -> &SchemaRef;

    /// How many parts can be read side by side; at least one.
    fn partitions(&self) -> usize;

    /// The rows of a part, from its beginning. Dropping the stream ends the reading.
    fn read(&self, partition: usize) -> BoxStream<'static, Result<RecordBatch, SqlError>>;
}

/// A job that changes a table's columns, as `SHOW ALTER TABLE COLUMN` shows it.
#[derive(Clone, Debug)]
pub struct SchemaChangeRow {
    pub job: u64,
    pub table: TableId,
    /// The resulting schema.
    pub version: SchemaVersion,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    pub finished_ms: Option<i64>,
    /// Transactions before this one are waited for.
    pub txn: Option<TxnId>,
    pub state: &'static str,
    pub message: String,
    pub progress: Option<String>,
}

/// Kinds of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Loads of files: `load_jobs`.
    Load,
    /// Loads of topics: `routine_load_jobs`.
    Routine,
    /// Jobs of all kinds: `jobs`.
    Every,
    /// Jobs that run an INSERT at given times: the table function `jobs`.
    Scheduled,
    /// Their last runs: the table function `tasks`.
    ScheduledRuns,
}

/// Tables of `information_schema` about loads at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveTable {
    /// `load_channels`
    Channels,
    /// `load_keys`
    Keys,
    /// `group_commit_queues`
    GroupQueues,
    /// `group_commits`
    FinishedGroups,
    /// `wal`
    Logs,
    /// `prepared_loads`
    PreparedLoads,
    /// `transactions`
    Transactions,
    /// `rejected_rows`
    RejectedRows,
    /// `problems`
    Problems,
    /// `server_samples`
    Samples,
    /// `server_events`
    Events,
    /// `server_settings`
    Settings,
    /// `file_cache_statistics`
    FileCache,
    /// `followed_tables`
    FollowedTables,
    /// `nodes`
    Nodes,
    /// `server_memory`
    Memory,
    /// `table_work`
    TableWork,
}

/// A connection, as `SHOW PROCESSLIST` shows it.
#[derive(Clone, Debug, Default)]
pub struct ProcessRow {
    pub id: u32,
    pub user: String,
    /// Address and port of the client.
    pub host: String,
    /// `yyyy-MM-dd HH:mm:ss`.
    pub login_time: String,
    pub database: Option<String>,
    /// `Query`, `Sleep`, …
    pub command: String,
    /// Seconds in this state.
    pub seconds: u64,
    pub state: String,
    pub query_id: String,
    /// The statement that runs, if one does.
    pub statement: Option<String>,
}

/// Figures of the server and of the other nodes, for `SHOW FRONTENDS`, `SHOW BACKENDS` and `SHOW STATUS`.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    /// A name without spaces, unique among nodes.
    pub node_name: String,
    pub host: String,
    pub query_port: u16,
    pub http_port: u16,
    pub webserver_port: u16,
    /// `None`: Arrow Flight SQL is off.
    pub flight_port: Option<u16>,
    /// The server's own version, such as `tributary-0.1.0`.
    pub version: String,
    /// `yyyy-MM-dd HH:mm:ss`.
    pub start_time: String,
    pub uptime_seconds: u64,
    pub data_bytes: u64,
    /// Free and total bytes of the disk under the storage root; 0 if it is not on a disk.
    pub disk_available_bytes: u64,
    pub disk_total_bytes: u64,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    pub cpu_cores: u32,
    /// Names and values for `SHOW STATUS`.
    pub status: Vec<(String, String)>,
    /// Set while the server is being decommissioned.
    pub decommission: Option<Decommission>,
    /// It follows the tables of another.
    pub reads_only: bool,
    /// Its number among the nodes, see [`NodeFacts::number`].
    pub node_number: u64,
    /// The other nodes that share its catalog, the writer first.
    pub others: Vec<NodeFacts>,
}

/// Figures of another node that shares the catalog, as it told them of itself.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    pub name: String,
    /// Doris's `BackendId`: 10001 for the node that writes, and another for each that reads, the same after each start.
    pub number: u64,
    pub reads_only: bool,
    pub host: String,
    pub query_port: u16,
    pub http_port: u16,
    /// 0: it did not say.
    pub webserver_port: u16,
    /// `None`: Arrow Flight SQL is off.
    pub flight_port: Option<u16>,
    pub version: String,
    /// `yyyy-MM-dd HH:mm:ss`.
    pub start_time: String,
    /// When it said last that it lives, `yyyy-MM-dd HH:mm:ss`.
    pub heard_time: String,
    /// Seconds since then.
    pub heard_seconds: u64,
    /// It was heard of lately.
    pub is_alive: bool,
    /// 0: it did not say.
    pub cpu_cores: u32,
}

/// The state of a server that takes no loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decommission {
    /// Loads that run.
    pub loads: u64,
    /// Groups that are open.
    pub groups: u64,
    /// Bytes of the write-ahead logs that are not in data files.
    pub wal_bytes: u64,
}

impl Decommission {
    /// Whether nothing is left to do.
    #[must_use]
    pub const fn is_drained(&self) -> bool {
        self.loads == 0 && self.groups == 0 && self.wal_bytes == 0
    }
}

impl Display for Decommission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_drained() {
            return f.write_str("decommissioned: no loads are taken, and all rows are in data files");
        }
        let Self { loads, groups, wal_bytes } = self;
        write!(
            f,
            "being decommissioned: no loads are taken; {loads} loads run, {groups} groups are open, and {wal_bytes} bytes of the \
             write-ahead log are not in data files yet"
        )
    }
}

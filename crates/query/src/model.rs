//! The input and output of the query engine: the session as a query sees it, and results.
//!
//! Not here: the computation of results.

mod grid;

use crate::planning::Stop;
use arrow::datatypes::DataType as ArrowType;
use datafusion::execution::SendableRecordBatchStream;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tributary_table::{Freshness, Table};
use tributary_types::{SqlError, TableId, TableRef, TlsSession};

pub use grid::{Cell, Grid};

/// Limits of all queries together.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Memory that all running queries may take together, in bytes. Sorts and aggregations spill
    /// to temporary files before a query fails.
    pub memory_limit_bytes: usize,
    /// Threads that one query may use at a time.
    pub target_partitions: usize,
    /// The target of queries' spills; `None`: the system's directory for temporary files, without our own limit.
    pub spill: Option<Spill>,
    /// Bytes of data files from which on a query is divided among nodes, if there are others; 0: none is.
    pub distributed_bytes_min: u64,
    /// Memory of decompressed pages of data files, in bytes; 0: none are kept.
    pub page_cache_bytes: u64,
}

/// The disk that queries spill to.
#[derive(Clone, Debug)]
pub struct Spill {
    pub directory: PathBuf,
    /// The limit of all running queries together, in bytes.
    pub limit_bytes: u64,
}

impl Default for QueryOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            memory_limit_bytes: 1 << 30,
            target_partitions: cores,
            spill: None,
            distributed_bytes_min: 0,
            page_cache_bytes: 64 << 20,
        }
    }
}

/// The session as one statement sees it.
#[derive(Clone, Debug)]
pub struct SessionView {
    /// The database of `USE`.
    pub database: Option<String>,
    /// `user@host` without quotes, for `USER()`.
    pub user: String,
    pub connection_id: u32,
    /// The session's variables by lower-case name: all that `@@name` and `SHOW VARIABLES` show.
    pub variables: Arc<BTreeMap<String, String>>,
    /// `@name` variables by lower-case name without the `@`.
    pub user_variables: Arc<BTreeMap<String, String>>,
    /// `SYSTEM`, an offset (`+08:00`) or a name (`Asia/Shanghai`).
    pub time_zone: String,
    pub last_insert_id: u64,
    /// When the statement began, microseconds since 1970 in UTC: what `NOW()` shows.
    pub now_unix_micros: i64,
    /// The encryption of its connection.
    pub tls: Option<TlsSession>,
    /// Whether planning should go on; `None`: to its end.
    pub stop: Option<Arc<dyn Stop>>,
    /// The tables that the session's open transaction has written to.
    pub written: Vec<WrittenTable>,
    /// The session's temporary tables.
    pub temporary: Vec<TemporaryTable>,
    /// How old rows of a server that only reads may be.
    pub fresh: Freshness,
    /// Sentences about the statement's rows, for its client.
    pub notes: Arc<Mutex<Vec<String>>>,
}

/// A table that only one session knows.
#[derive(Clone)]
pub struct TemporaryTable {
    /// Its name in the session.
    pub name: TableRef,
    pub table: Arc<Table>,
}

impl fmt::Debug for TemporaryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemporaryTable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A table with rows that only one session sees.
#[derive(Clone)]
pub struct WrittenTable {
    pub id: TableId,
    /// The table with these rows, or why they can't be read.
    pub seen: Result<Arc<Table>, SqlError>,
}

impl fmt::Debug for WrittenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrittenTable").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SessionView {
    /// A session without database or variables, in UTC, at the given time.
    #[must_use]
    pub fn new(user: &str, now_unix_micros: i64) -> Self {
        Self {
            database: None,
            user: user.to_owned(),
            connection_id: 0,
            variables: Arc::default(),
            user_variables: Arc::default(),
            time_zone: "+00:00".to_owned(),
            last_insert_id: 0,
            now_unix_micros,
            tls: None,
            stop: None,
            written: Vec::new(),
            temporary: Vec::new(),
            fresh: Freshness::default(),
            notes: Arc::default(),
        }
    }

    /// The temporary table that is called so in the session, or in the server, whose statements use that name, too.
    pub(crate) fn temporary(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        let is_called = |own: &&TemporaryTable| {
            own.name.db == database && (own.name.table == name || own.table.with_def(|def| def.name == name))
        };
        self.temporary.iter().find(is_called).map(|own| Arc::clone(&own.table))
    }

    /// The table as the session sees it: with the rows of its open transaction.
    ///
    /// # Errors
    /// They can't be read.
    pub(crate) fn own(&self, table: Arc<Table>) -> Result<Arc<Table>, SqlError> {
        match self.written.iter().find(|written| written.id == table.id()) {
            Some(written) => written.seen.clone(),
            None => Ok(table),
        }
    }

    /// Whether `*` and DESC have hidden columns, too.
    #[must_use]
    pub fn shows_hidden(&self) -> bool {
        self.variables.get("show_hidden_columns").is_some_and(|value| value == "true")
    }

    /// Whether joins run in the cheapest order instead of the written one.
    #[must_use]
    pub fn reorders_joins(&self) -> bool {
        self.variables.get("disable_join_reorder").is_none_or(|value| value != "true")
    }

    /// The name of the session's time zone as the functions over time take it.
    #[must_use]
    pub fn zone(&self) -> &str {
        match self.time_zone.as_str() {
            name if name.eq_ignore_ascii_case("SYSTEM") || name.eq_ignore_ascii_case("UTC") => "+00:00",
            name if name.eq_ignore_ascii_case("CST") || name.eq_ignore_ascii_case("PRC") => "+08:00",
            name => name,
        }
    }
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The title: an alias as written, a column's declared name, or the expression's text.
    pub name: String,
    /// One of: Boolean, Int8–Int64, `UInt64`, Float32, Float64, Decimal128, Date32,
    /// Timestamp(Microsecond, None), Utf8 (also for NULL without a type), Binary; for loads also lists, maps and structs.
    pub data_type: ArrowType,
    /// The type of the table column that is shown unchanged.
    pub declared: Option<tributary_types::DataType>,
    /// The database of that column.
    pub database: Option<String>,
    /// The table of that column.
    pub table: Option<String>,
    /// The name in FROM that it is a column of: a table's, its alias, or that of a derived table.
    pub alias: Option<String>,
    /// The declared name of that column.
    pub original_name: Option<String>,
    /// It is of a unique key of that table, and never NULL.
    pub is_key: bool,
    pub nullable: bool,
    /// Its texts are TIMEs, which are no type of tables.
    pub is_clock: bool,
    /// The digits of a second that all these TIMEs have, if that is known.
    pub clock_digits: Option<u8>,
}

impl ResultColumn {
    /// The column type of a table that can store the values: the declared type if the column is a table's.
    #[must_use]
    pub fn table_type(&self) -> tributary_types::DataType {
        use tributary_types::DataType;
        let plain = || match self.data_type {
            ArrowType::UInt64 => DataType::LargeInt,
            _ => crate::types::shown::table_type(&self.data_type).unwrap_or(DataType::String),
        };
        self.declared.unwrap_or_else(plain)
    }

    /// A column that does not come from a table.
    #[must_use]
    pub fn computed(name: impl Into<String>, data_type: ArrowType) -> Self {
        Self {
            name: name.into(),
            data_type,
            declared: None,
            database: None,
            table: None,
            alias: None,
            original_name: None,
            is_key: false,
            nullable: true,
            is_clock: false,
            clock_digits: None,
        }
    }
}

/// A result: its columns, and its rows as they are computed. Dropping the stream ends the query.
pub struct QueryResult {
    pub columns: Vec<ResultColumn>,
    /// Batches whose columns have the types of `columns`, in order.
    pub stream: SendableRecordBatchStream,
}

impl std::fmt::Debug for QueryResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryResult").field("columns", &self.columns).finish_non_exhaustive()
    }
}

//! Errors of tables.

use arrow::error::ArrowError;
use deltalake_core::DeltaTableError;
use parquet::errors::ParquetError;
use std::path::PathBuf;
use std::time::Duration;
use tributary_types::{SchemaVersion, TableId, TableRef, Version, host};

/// An error of storage, of the Delta log, or of rows that do not fit their table.
///
/// Unless a variant says otherwise nothing was lost or changed: rows that were published stay
/// visible, and the operation may be tried again.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error(
        "there is no Delta table at '{location}' although the catalog has it; restore its files or drop the table"
    )]
    NotFound { location: String },
    #[error(
        "the location '{location}' holds table {found}, not table {expected}; remove the files there or use another location"
    )]
    LocationTaken { location: String, expected: TableId, found: String },
    #[error("storage failed while {doing}: {source}")]
    Storage {
        doing: String,
        #[source]
        source: object_store::Error,
    },
    /// An entry of the log does not have the contents that its writer wrote.
    #[error(
        "the Delta log is damaged: {file} at byte {offset}: {reason}. The entry says which data files belong to the \
         table from its version on; without it their rows would be missing or doubled. Nothing was changed. \
         Restore the file from a copy and start again"
    )]
    DamagedLog { file: String, offset: u64, reason: String },
    /// A data file does not have the contents that its writer wrote.
    #[error(
        "the data file {file} is damaged: {reason}. Its rows are nowhere else. Nothing was changed. Restore it from a \
         copy; other files and tables are not affected"
    )]
    DamagedFile { file: String, reason: String },
    /// A file of deletion vectors, or a vector in the log, does not have the contents that its writer wrote.
    #[error(
        "the deletion vector {file} is damaged: {reason}. It says which rows of data files are deleted; without it they \
         would come back. Nothing was changed. Restore it from a copy and start again"
    )]
    DamagedVector { file: String, reason: String },
    /// The key file of a data file is missing or damaged. It is rebuilt from the data file when it is needed next.
    #[error(
        "the keys in {file} cannot be read: {reason}. They are made again from their data file; try again"
    )]
    LostKeys { file: String, reason: String },
    #[error("the files of the dropped partition of table {table} could not be recorded: {reason}")]
    NotRecorded { table: String, reason: String },
    /// [`crate::TableStore::keep_files`].
    #[error("the files of '{location}' stay until the backup that runs has ended")]
    FilesKept { location: String },
    #[error("a deletion vector of {rows} rows is larger than Delta Lake allows; delete fewer rows at a time")]
    VectorTooLarge { rows: u64 },
    #[error(
        "the data file '{file}' was written by another program and is not divided into partitions yet; the next compaction \
         of the table divides it. Read the table without PARTITION, with a condition on its columns"
    )]
    Undivided { file: String },
    #[error("the Delta log failed while {doing}: {}", without_backtrace(source))]
    Delta {
        doing: String,
        #[source]
        source: Box<DeltaTableError>,
    },
    #[error("Parquet failed while {doing}: {source}")]
    Parquet {
        doing: String,
        #[source]
        source: ParquetError,
    },
    #[error("Arrow failed while {doing}: {source}")]
    Arrow {
        doing: String,
        #[source]
        source: ArrowError,
    },
    #[error("{doing} '{}' failed: {source}", path.display())]
    Local {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("a worker thread stopped while {doing}: {reason}")]
    Worker { doing: String, reason: String },
    #[error("'{url}' cannot be a storage root: {reason}; use an absolute path or a URL such as file:///data")]
    BadRoot { url: String, reason: String },
    /// A store that answers, and must not have the tables.
    #[error("the tables cannot be in {url}: {reason}")]
    StoreUnfit { url: String, reason: String },
    #[error("the option {name} is {value}; allowed is {allowed}")]
    BadOption { name: &'static str, value: String, allowed: &'static str },
    #[error("rows for table '{table}' do not fit its schema version {schema_version}: {detail}")]
    SchemaMismatch { table: String, schema_version: u32, detail: String },
    #[error(
        "table '{table}' is at version {current}, so version {given} cannot be published after it (expected {expected} or later)"
    )]
    OutOfOrder { table: String, current: Version, expected: Version, given: Version },
    #[error(
        "column '{column}' of table '{table}' is NOT NULL without a default, so the existing rows would have no value; add a DEFAULT or make it NULL"
    )]
    AddedColumnNeedsDefault { table: String, column: String },
    #[error("the default '{value}' of column '{column}' is not a {data_type}; use a value of that type")]
    BadDefault { column: String, value: String, data_type: String },
    #[error(
        "column '{column}' of table '{table}' cannot change from {from} to {to} in place; create a new table and copy the rows"
    )]
    TypeChange { table: String, column: String, from: String, to: String },
    #[error(
        "the data files of table '{table}' may still hold a dropped column under the name '{physical_name}'; give the new column another physical name"
    )]
    PhysicalNameReused { table: String, physical_name: String },
    #[error("the Delta log of '{location}' has {what}, which this server does not read; {remedy}")]
    UnsupportedLog { location: String, what: String, remedy: &'static str },
    #[error(
        "another writer took {attempts} Delta versions of '{location}' in a row; stop it or try again later"
    )]
    Raced { location: String, attempts: u32 },
    /// Another process has claimed the right to write since this one did.
    #[error(
        "another process of this server has taken over '{location}' (its Delta log is sealed for epoch {sealed_at}, and this process has \
         epoch {epoch}): nothing was written. Stop this process"
    )]
    TakenOver { location: String, epoch: u64, sealed_at: u64 },
    #[error("'{location}' is written by another server: this one only reads it")]
    OnlyRead { location: String },
    /// A definition that the catalog has not got yet, of which the log has rows already.
    #[error(
        "the Delta log of '{location}' has schema version {found}, and the catalog {known}: the change is under way"
    )]
    DefinitionBehind { location: String, found: SchemaVersion, known: SchemaVersion },
    #[error(
        "the rows of table '{table}' that this node has are {}, and max_staleness_second is {}: {reason}. Repeat it in a moment, or read \
         at the server that writes", age.map_or_else(|| "of unknown age".to_owned(), |age| format!("{} s old", age.as_secs())),
        limit.as_secs()
    )]
    TooOld { table: TableRef, age: Option<Duration>, limit: Duration, reason: String },
    #[error(
        "table '{table}' can't be read after the loads that this session waits for, because the server that writes can't be asked: {reason}. \
         Repeat it in a moment, or read at the server that writes"
    )]
    NotShown { table: TableRef, reason: String },
    /// The server that writes was not asked for its rows, or did not send them.
    #[error("the server that writes gives no answer: {reason}")]
    Silent { reason: String },
    /// It sent something that is not a snapshot.
    #[error("the answer of the server that writes can't be used: {reason}")]
    Answer { reason: String },
    #[error("rows of table '{table}' are deleted by their keys, because it has one row for each key")]
    UniqueDelete { table: String },
    #[error("rows of table '{table}' are updated by their keys, because it has one row for each key")]
    KeyedUpdate { table: String },
    #[error(
        "others changed the rows of table '{table}' again and again while the UPDATE ran; nothing of it was stored, run it again"
    )]
    Outrun { table: String },
    #[error("{reason} (in the data file {file})")]
    Unconvertible { reason: String, file: String },
    #[error("a schema change of table '{table}' is under way; wait until it has ended")]
    Changing { table: String },
    #[error("the schema change of table '{table}' was stopped")]
    Stopped { table: String },
    /// Rows arrived when a schema change was about to happen.
    #[error("rows of table '{table}' are on their way; the schema change is tried again")]
    Busy { table: String },
    #[error(
        "whether the Delta log has the schema change of table '{table}' is not known ({reason}); the next start finds out"
    )]
    Unsure { table: String, reason: String },
    #[error("table '{table}' is being dropped")]
    Closed { table: String },
}

impl TableError {
    /// Whether the store has failed, which concerns all tables, rather than the contents of this one.
    #[must_use]
    pub const fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Storage { .. } | Self::Delta { .. } | Self::Parquet { .. } | Self::Local { .. })
    }

    pub(crate) fn storage(doing: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let doing = doing.into();
        |source| Self::Storage { doing, source }
    }

    pub(crate) fn delta(doing: impl Into<String>) -> impl FnOnce(DeltaTableError) -> Self {
        let doing = doing.into();
        |source| Self::Delta { doing, source: Box::new(source) }
    }

    pub(crate) fn parquet(doing: impl Into<String>) -> impl FnOnce(ParquetError) -> Self {
        let doing = doing.into();
        |source| Self::Parquet { doing, source }
    }

    pub(crate) fn arrow(doing: impl Into<String>) -> impl FnOnce(ArrowError) -> Self {
        let doing = doing.into();
        |source| Self::Arrow { doing, source }
    }

    pub(crate) fn json(doing: impl Into<String>) -> impl FnOnce(serde_json::Error) -> Self {
        let doing = doing.into();
        |source| Self::Delta {
            doing,
            source: Box::new(DeltaTableError::Generic(format!("JSON of a log action: {source}"))),
        }
    }
}

/// The Delta library prints where an error was made, if `RUST_BACKTRACE` is set; that is for its authors.
fn without_backtrace(error: &DeltaTableError) -> String {
    let text = error.to_string();
    let end = text.find("\n   0: ").or_else(|| text.find("\nstack backtrace")).unwrap_or(text.len());
    text[..end].trim_end().to_owned()
}

/// Runs `work` on a thread that may block, so that encoding does not hold up network tasks.
pub(crate) async fn blocking<T: Send + 'static>(
    doing: &str,
    work: impl FnOnce() -> Result<T, TableError> + Send + 'static,
) -> Result<T, TableError> {
    if host::is_simulated() {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => Err(TableError::Worker { doing: doing.to_owned(), reason: stopped.to_string() }),
    }
}

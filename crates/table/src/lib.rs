//! Keeps a table's rows: a snapshot for readers, a memtable for fresh rows, and data files in a
//! Delta Lake table for the rest.
//!
//! A publication swaps the table's [`Snapshot`] and does no I/O. A flush moves the memtable into sorted Parquet files, makes them
//! durable and commits them to the Delta log together with the last table version they contain, so that a replay of the
//! write-ahead log after a crash repeats nothing. Invariant: at any instant the snapshot's data files and memtable together
//! contain every published row exactly once.
//!
//! Not its business: the origin of rows, the times of commits, acknowledgements to clients, and SQL. Nothing here assumes that
//! storage is a local disk.

mod ambient;
mod error;
mod file;
mod keys;
mod log;
mod options;
mod place;
mod table;
#[cfg(test)]
mod testing;
mod view;

pub use error::TableError;
pub use file::pruning::FileBounds;
pub use file::{
    Checksums, ColumnStats, DataFile, Deletes, FileFormat, FileStats, FileWriter, LiveFile, RowSet, Settled,
    UnpublishedFiles, footer_fault, panic_text, rows_from_text, rows_to_text,
};
pub use options::{ReadCacheOptions, StoreOptions, WriteClaim};
pub use place::cache::CacheFacts;
pub use place::copy::{CopiedObject, TableCopy};
pub use place::durable::DurableLocal;
pub use place::keep::KeepFiles;
pub use place::location::{RemoteOptions, StoreLocation};
pub use place::storage::TableStorage;
pub use place::store::TableStore;
pub use place::traffic::StoreTraffic;
pub use table::{
    CompactReport, CopiedFiles, Current, DeleteReport, DeltaFacts, Departure, FlushReport, FoundRows,
    Freshness, KeptFile, KeyFinder, Leaving, ObjectRoot, OldRows, OwnRows, Publication, Recast, Replaced,
    RowUpdate, SchemaChange, Staleness, Stuck, SweepReport, Table, TableCut, Watch, Writer, changed_def,
};
pub use view::memtable::MemPart;
pub use view::schema::physical_arrow;
pub use view::sent::{KnownParts, SentSnapshot};
pub use view::snapshot::{PartitionFacts, Snapshot};

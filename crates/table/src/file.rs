//! Data files: their metadata in the snapshot and the Delta log, and how they are written and read.

mod checksums;
mod damage;
mod deletes;
mod distinct;
mod divide;
mod encode;
mod encoded;
mod format;
mod live;
pub(crate) mod pruning;
mod read;
mod sort;
mod stats;
mod unpublished;
mod vector;
mod write;

pub use checksums::Checksums;
pub use damage::{footer_fault, panic_text};
pub use deletes::{Deletes, RowSet, rows_from_text, rows_to_text};
pub use format::FileFormat;
pub use live::{LiveFile, Settled};
pub use stats::{ColumnStats, FileStats};
pub use unpublished::UnpublishedFiles;
pub use write::FileWriter;

pub(crate) use damage::guarded;
pub(crate) use encode::Progress;
pub(crate) use encoded::EncodedFile;
pub(crate) use format::Tags;
pub(crate) use read::FileReader;
pub(crate) use sort::sorted;
pub(crate) use vector::{VectorReader, is_vector_file};
pub(crate) use vector::{path_of as vector_path, write as write_vectors};
pub(crate) use write::{Made, RunWriter, delete_files, new_file_name, publish_names};

use crate::view::evolve::fills_old_rows;
use deltalake_core::kernel::{Add, Remove};
use parquet::file::metadata::ParquetMetaData;
use serde::{Deserialize, Serialize};
use tributary_types::{ColumnId, PartitionId, SchemaVersion, TableSchema, Version};

/// The writer that our files name in their footers.
const CREATED_BY: &str = concat!("tributary version ", env!("CARGO_PKG_VERSION"));
/// The beginning of [`CREATED_BY`] in files of any version.
const CREATED_BY_US: &str = "tributary version ";

/// A Parquet file of a table. Written once, never changed.
///
/// It is embedded in commit records of the write-ahead log: a file of a large load is durable but
/// in no Delta log until the next flush. A new field needs `#[serde(default)]`, because records without it are on
/// disks; the others have no default, so that a record without a path is an error and not a file called "".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    #[serde(default)]
    pub format: FileFormat,
    /// Relative to the table's location, with `/` between parts.
    pub path: String,
    pub size_bytes: u64,
    pub rows: u64,
    /// The schema it was written with.
    pub schema_version: SchemaVersion,
    /// The `next_column_id` of that schema: columns with this id or a higher one are not in it.
    pub columns_below: ColumnId,
    /// Bounds by physical column name.
    pub stats: FileStats,
    /// Milliseconds since the Unix epoch.
    pub modification_time_ms: i64,
    /// The last publication that it has rows of. 0: not published yet, or written before files had versions.
    #[serde(default)]
    pub version: Version,
    /// The partition that all its rows are in; `None` in a table without partitions, and in files of other writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionId>,
}

impl DataFile {
    /// Whether readers would see wrong values for `schema` unless the file is rewritten: it lacks
    /// a column whose default is not NULL, or it was written with a schema that was taken back.
    #[must_use]
    pub(crate) fn is_stale(&self, schema: &TableSchema) -> bool {
        self.columns_below > schema.next_column_id
            || schema.columns.iter().any(|column| column.id >= self.columns_below && fills_old_rows(column))
    }

    /// Without statistics.
    fn to_add(&self, data_change: bool) -> Add {
        Add {
            path: self.path.clone(),
            size: signed(self.size_bytes),
            modification_time: self.modification_time_ms,
            data_change,
            tags: Some(format::tags(self)),
            ..Add::default()
        }
    }

    fn to_remove(&self, data_change: bool, now_ms: i64) -> Remove {
        Remove {
            path: self.path.clone(),
            data_change,
            deletion_timestamp: Some(now_ms),
            extended_file_metadata: Some(true),
            partition_values: Some(std::collections::HashMap::new()),
            size: Some(signed(self.size_bytes)),
            ..Remove::default()
        }
    }
}

fn is_ours(metadata: &ParquetMetaData) -> bool {
    metadata.file_metadata().created_by().is_some_and(|by| by.starts_with(CREATED_BY_US))
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

//! Why a server can't start, in words that say what to do.

use std::path::PathBuf;
use tributary_catalog::CatalogError;
use tributary_ingest::IngestError;
use tributary_table::TableError;
use tributary_types::SqlError;

use crate::wal_dirs::GIVEN_UP;

/// Why the engine can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "storage root {} is in use by another server (its file LOCK is locked); stop that server, or give this one \
         another storage_root_path", .0.display()
    )]
    Locked(PathBuf),
    #[error(
        "the write-ahead log {} was used by this storage root and is gone: the directory has no segment. Rows \
         that were acknowledged and are in no data file yet are in it. Mount its disk, or restore it, or, if it \
         was moved, name the new directory in group_commit_wal_path, and start again. To go on without it, and \
         lose those rows, create the empty file {}", .0.display(), .0.join(GIVEN_UP).display()
    )]
    LogGone(PathBuf),
    #[error(
        "the directory {} has segments of a write-ahead log that this storage root does not know, and {}, which it \
         knows, is not configured any more. If both are the same log, moved or copied, create the empty file {}. If \
         they are not, move the files of the former away, or name another directory in group_commit_wal_path. Then \
         start again", unknown.display(), known.display(), known.join(GIVEN_UP).display()
    )]
    LogUnknown { unknown: PathBuf, known: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Ingest(#[from] IngestError),
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("query engine: {0}")]
    Query(SqlError),
}

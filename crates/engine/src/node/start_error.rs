//! Why a server can't start, in words that say what to do.

use crate::audit::AuditError;
use crate::background::record::Unreadable;
use std::path::PathBuf;
use tributary_catalog::CatalogError;
use tributary_ingest::IngestError;
use tributary_table::TableError;
use tributary_traces::TraceError;
use tributary_types::SqlError;
use tributary_wal::LogId;

/// An empty file of this name in a log's directory says that its rows are given up, once.
pub(crate) const GIVEN_UP: &str = "GIVEN_UP";

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
    #[error(
        "the directory {} has the write-ahead log {found}, but this storage root used the log {known} there: another \
         disk is mounted, or files were exchanged. Acknowledged rows that are in no data file yet may be in {known}. \
         Mount or restore it, and start again. To go on with the log that is there, and lose those rows, create the \
         empty file {}", dir.display(), dir.join(GIVEN_UP).display()
    )]
    LogDiffers { dir: PathBuf, known: LogId, found: LogId },
    #[error(
        "the file {} is missing: it holds the identity of this server ({known}) and the list of its write-ahead logs. \
         Without it, used labels would be free again and a missing log would go unnoticed. Nothing was changed. Restore \
         the file from a copy. If there is none, write it with this line, naming each directory that has a write-ahead \
         log of this server: `{line}`", path.display()
    )]
    NodeGone { path: PathBuf, known: String, line: String },
    #[error(
        "the file {}, which holds the identity of this server and the list of its write-ahead logs, can't be read: \
         {reason}. Nothing was changed. Restore the file from a copy. If there is none, move it away and start again: \
         the server then says how to write it anew", path.display()
    )]
    NodeBroken { path: PathBuf, reason: String },
    #[error(
        "the file {} has format {found}, and this server knows up to {known}: start the newer server that wrote it",
        path.display()
    )]
    NodeNewer { path: PathBuf, found: u64, known: u64 },
    #[error(
        "the file {} is of the server {found}, and the catalog beside it is of {known}: one of them comes from another \
         storage root. Nothing was changed. Restore the one that belongs here", path.display()
    )]
    NodeDiffers { path: PathBuf, found: String, known: String },
    #[error(
        "the tables of this server are in {known} according to node.json, and the setting table_storage is {}. Nothing was \
         changed. Set table_storage = \"{known}\" and start again", wanted.as_deref().unwrap_or("not set")
    )]
    TablesElsewhere { known: String, wanted: Option<String> },
    #[error(
        "the tables of this server are in {}, and the setting table_storage is {wanted}: a server's tables stay where they \
         were made. Nothing was changed. Remove the setting, or start a new server with a storage_root_path of its own",
        directory.display()
    )]
    TablesHere { directory: PathBuf, wanted: String },
    #[error(
        "the catalog of this server is in PostgreSQL according to {}/node.json, and no catalog_url is given. Nothing was changed. \
         Name its database in catalog_url, or bring it back: tributary catalog move --from URL --to {}",
        directory.display(), directory.display()
    )]
    CatalogElsewhere { directory: PathBuf },
    #[error(
        "the catalog of this server is the file {}, and catalog_url is {wanted}. Nothing was changed. Remove the setting, or move the \
         catalog there first: tributary catalog move --from {} --to {wanted}",
        file.display(), file.parent().unwrap_or(file).display()
    )]
    CatalogHere { file: PathBuf, wanted: String },
    #[error(
        "there is no catalog of a server in {}: the directory must be the storage_root_path of a server of this version that has been \
         started once, and the server must not run", directory.display()
    )]
    NoServer { directory: PathBuf },
    #[error(
        "the directory {} is that of a server with rows or a catalog of its own, and read_only is true. Nothing was changed. Give the node \
         that reads a storage_root_path of its own, for its cache and what queries spill", directory.display()
    )]
    DirectoryOfWriter { directory: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Ingest(#[from] IngestError),
    #[error(transparent)]
    JobRecord(#[from] Unreadable),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error("{0}")]
    Traces(#[from] TraceError),
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("query engine: {0}")]
    Query(SqlError),
}

//! Errors of backups.

use tributary_ingest::IngestError;
use tributary_table::TableError;

/// The reason why a backup was not taken, or not restored. Unless a variant says otherwise, nothing was changed but that a repository
/// may have objects of a backup that does not exist; the next one uses or replaces them.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("the backup's place failed while {doing}: {source}")]
    Place {
        doing: String,
        #[source]
        source: object_store::Error,
    },
    #[error("the directory '{place}' has no backup{}", among(.others))]
    NoBackup { place: String, others: Vec<String> },
    #[error("the backup '{name}' exists; give another name, or none")]
    Exists { name: String },
    #[error(
        "'{name}' can't be a backup's name: use at most 64 letters, digits, '-', '_' and '.', and begin with a letter or digit"
    )]
    BadName { name: String },
    #[error("{file} can't be read: {reason}. A newer version may have written it, or it is damaged")]
    Unreadable { file: String, reason: String },
    /// An object does not have the contents that were written.
    #[error("the backup's object {object} is damaged: {reason}. Restore an earlier backup")]
    Damaged { object: String, reason: String },
    #[error("the catalog can't be copied: {0}")]
    Catalog(String),
    #[error("reading {file}: {source}")]
    Source {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Ingest(#[from] IngestError),
}

impl BackupError {
    /// For `map_err`.
    pub(crate) fn place(doing: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Place { doing, source }
    }
}

fn among(others: &[String]) -> String {
    if others.is_empty() { String::new() } else { format!(" of this name; there are {}", others.join(", ")) }
}

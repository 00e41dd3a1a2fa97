//! Where a catalog is kept.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a catalog is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogLocation {
    /// A file of SQLite, which nobody else writes.
    Sqlite(PathBuf),
}

impl CatalogLocation {
    /// The file `catalog.db` in a directory of the node's own.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self::Sqlite(directory.join("catalog.db"))
    }

    /// Whether there is a catalog. An empty file is none: SQLite would make a new catalog of it.
    #[must_use]
    pub fn exists(&self) -> bool {
        match self {
            Self::Sqlite(file) => std::fs::metadata(file).is_ok_and(|file| file.len() > 0),
        }
    }
}

impl fmt::Display for CatalogLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => file.display().fmt(f),
        }
    }
}

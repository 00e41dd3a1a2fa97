//! The location of a catalog.

use std::fmt;
use std::path::{Path, PathBuf};

/// The location of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogLocation {
    /// A file of SQLite, with no other writer.
    Sqlite(PathBuf),
}

impl CatalogLocation {
    /// The file `catalog.db` in a directory of the node's own.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self::Sqlite(directory.join("catalog.db"))
    }

    /// Whether a catalog exists. An empty file does not count: SQLite would create a new catalog in it.
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

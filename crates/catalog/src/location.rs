//! The location of a catalog.

use crate::postgres::PostgresOptions;
use std::fmt;
use std::path::{Path, PathBuf};

/// The location of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogLocation {
    /// A file of SQLite, with no other writer.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, which one server owns.
    Postgres(PostgresOptions),
}

impl CatalogLocation {
    /// The database, or without one the file `catalog.db` in a directory of the node's own.
    #[must_use]
    pub fn of_server(directory: &Path, database: Option<&PostgresOptions>) -> Self {
        database.map_or_else(|| Self::in_directory(directory), |options| Self::Postgres(options.clone()))
    }

    /// The file `catalog.db` in a directory of the node's own.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self::Sqlite(directory.join("catalog.db"))
    }

    /// Whether opening the catalog creates none. An empty file does not count: SQLite would create a new catalog in it.
    #[must_use]
    pub fn exists(&self) -> bool {
        match self {
            Self::Sqlite(file) => std::fs::metadata(file).is_ok_and(|file| file.len() > 0),
            Self::Postgres(_) => true,
        }
    }
}

impl fmt::Display for CatalogLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => file.display().fmt(f),
            Self::Postgres(options) => options.url.fmt(f),
        }
    }
}

//! The list of a backup's files.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The format that is written, and the newest that is read. A field that is added has a default and leaves it as it is.
pub(crate) const FORMAT: u64 = 1;

/// A backup, as its file `manifest.json` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u64,
    pub name: String,
    /// The version of the server that took it. An older one may not be able to read it.
    pub server_version: String,
    /// The id of the node.
    pub node: String,
    /// The moment at which the server was as the copy is, in milliseconds since 1970.
    pub moment_ms: i64,
    pub tables: Vec<ManifestTable>,
    /// In the order in which they are restored.
    pub files: Vec<SavedFile>,
}

/// A table in a backup. Rows that no data file has yet are in the logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestTable {
    pub name: String,
    pub location: String,
    /// The version of the Delta log.
    pub version: u64,
}

/// A file in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Relative to the restored server's directory.
    pub path: String,
    /// Relative to the repository. Data files are shared by its backups.
    pub object: String,
    pub bytes: u64,
    /// XXH3 of the contents, 128 bits in hexadecimal digits.
    pub hash: String,
}

/// A time in milliseconds since 1970.
pub(crate) fn at(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

/// A moment, for people.
pub(crate) fn shown(ms: i64) -> String {
    at(ms).format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()
}

impl Manifest {
    /// The moment of the backup, for people.
    #[must_use]
    pub fn moment(&self) -> String {
        shown(self.moment_ms)
    }

    /// The bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

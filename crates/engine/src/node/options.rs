//! Settings of the engine, as the server's configuration gives them.

use crate::audit::options::AuditOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tributary_catalog::PostgresOptions;
use tributary_ingest::IngestOptions;
use tributary_query::QueryOptions;
use tributary_table::{RemoteOptions, StoreOptions};
use tributary_traces::TraceOptions;
use tributary_types::{Egress, Live, Portion, SqlError, StoredVerifiers};
use url::Url;

/// A setting of the server with its value, as `information_schema.server_settings` shows it.
#[derive(Clone, Debug)]
pub struct SettingView {
    pub name: &'static str,
    pub value: String,
    pub default: &'static str,
    /// `default`, the file, the environment variable or the command line.
    pub origin: String,
    /// The legal values, in words.
    pub accepts: String,
    pub meaning: &'static str,
    /// `long`, `boolean` or `string`.
    pub type_name: &'static str,
    /// Whether it may change while the server runs.
    pub is_mutable: bool,
}

/// A change of settings while the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// Names and values.
    pub settings: Vec<(String, String)>,
    /// Whether the next starts have them, too.
    pub persists: bool,
    /// Whether what earlier changes have persisted is forgotten, except by the running server.
    pub resets_kept: bool,
}

/// The settings of the server: shown, and changed.
pub trait ServerSettings: Send + Sync + 'static {
    fn views(&self) -> Vec<SettingView>;

    /// Makes a change as a whole; what is persisted is durable on return. It may wait for a disk.
    ///
    /// # Errors
    /// An unknown setting, one that needs a restart, a value that is not legal, a file that can't be written. Nothing has changed.
    fn change(&self, change: &SettingChange) -> Result<(), SqlError>;
}

/// Settings of the engine. The ones that may change while the server runs are [`Live`].
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Directory of this server's own data, on a local disk: LOCK, catalog, error logs.
    pub state_dir: PathBuf,
    /// The location of the tables, unless they are in a store.
    pub tables: StorageRoot,
    /// The store of the tables.
    pub table_storage: Option<RemoteOptions>,
    /// The disk space of the cache of their data files. `None`: there is none.
    pub table_cache: Option<Portion>,
    /// The database of the catalog. `None`: it is a file in `state_dir`.
    pub catalog_database: Option<PostgresOptions>,
    /// The host that URLs in answers name.
    pub host: String,
    /// `group_commit_interval_ms` of tables created without it, in ms.
    pub group_commit_interval_ms: Live<u64>,
    /// `group_commit_data_bytes` of tables created without it.
    pub group_commit_data_bytes: Live<u64>,
    /// A load with more decoded bytes is written to data files while it arrives.
    pub large_load_bytes: Live<u64>,
    /// Bytes that the prepared statements and user variables of all sessions may take.
    pub session_memory_bytes: Live<u64>,
    pub error_log_keep: Live<Duration>,
    /// Loads at a time, of all users.
    pub max_concurrent_loads: Live<u64>,
    /// The disk space that bodies waiting to be read may use together, and the same for spilling queries; 0 means a tenth of the
    /// free space.
    pub spool_limit_bytes: u64,
    /// How often partitions are made and dropped by the clock.
    pub dynamic_partition_interval: Live<Duration>,
    /// How often tables are compared with their logs; zero: only when asked.
    pub verify_interval: Live<Duration>,
    /// How long dropped objects can be recovered; 0: not at all.
    pub trash_expire: Live<Duration>,
    /// The directory below which statements may read local files; `None`: none.
    pub secure_load_dir: Option<PathBuf>,
    /// The directory of backups; `None`: none.
    pub backup_dir: Option<PathBuf>,
    /// 0: no limit.
    pub backup_bytes_per_second: Live<u64>,
    /// The stored forms of passwords.
    pub password_verifiers: StoredVerifiers,
    /// The version of MySQL that clients see.
    pub server_version: String,
    /// The servers that statements may name.
    pub egress: Arc<Egress>,
    pub audit: AuditOptions,
    /// The collector of traces; `None`: nothing is traced. The instance is the node's id, whatever it says here.
    pub traces: Option<TraceOptions>,
    pub ingest: IngestOptions,
    pub store: StoreOptions,
    pub query: QueryOptions,
}

impl EngineOptions {
    /// Whether the tables are those of another server, and only read.
    pub(crate) const fn only_reads(&self) -> bool {
        self.store.max_staleness.is_some()
    }
}

/// The storage root: a local directory, as a path or a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageRoot {
    directory: PathBuf,
}

impl From<PathBuf> for StorageRoot {
    fn from(directory: PathBuf) -> Self {
        Self { directory }
    }
}

/// A storage root that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStorageRoot {
    #[error(
        "the storage root {root} is a URL of the kind '{scheme}'; it is a directory of this machine, for the log and the \
         catalog: a path, or file:///path. Tables can be in a store that speaks S3's or Azure's protocol: name it in table_storage, \
         as s3://bucket/prefix or az://container/prefix"
    )]
    Scheme { root: String, scheme: String },
    #[error(
        "the storage root {root} is no directory of this machine: a file URL is file:///path, with three slashes"
    )]
    NotLocal { root: String },
}

impl StorageRoot {
    /// Reads a path or a URL.
    ///
    /// # Errors
    /// [`BadStorageRoot::Scheme`] for any but `file`, [`BadStorageRoot::NotLocal`] for a file of another machine.
    pub fn parse(root: &str) -> Result<Self, BadStorageRoot> {
        let Some((scheme, _)) = root.split_once("://") else {
            return Ok(Self { directory: PathBuf::from(root) });
        };
        if !scheme.eq_ignore_ascii_case("file") {
            return Err(BadStorageRoot::Scheme { root: root.to_owned(), scheme: scheme.to_owned() });
        }
        let directory = Url::parse(root).ok().and_then(|url| url.to_file_path().ok());
        directory
            .map(|directory| Self { directory })
            .ok_or_else(|| BadStorageRoot::NotLocal { root: root.to_owned() })
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The ports that the server listens on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    pub mysql: u16,
    pub http: u16,
    pub webserver: u16,
    /// `None`: Arrow Flight SQL is off.
    pub flight: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_root_is_a_path_or_a_file_url() {
        for (text, directory) in [
            ("./data", "./data"),
            ("/a b/data", "/a b/data"),
            ("file:///a%20b/data", "/a b/data"),
            ("FILE:///data", "/data"),
        ] {
            let root = StorageRoot::parse(text).expect(text);
            assert_eq!(root.directory(), Path::new(directory), "{text}");
        }
    }

    #[test]
    fn a_store_that_is_not_supported_is_refused_by_its_name() {
        let error = StorageRoot::parse("s3://bucket/data").unwrap_err().to_string();
        assert!(
            error.contains("s3://bucket/data") && error.contains("'s3'") && error.contains("table_storage"),
            "{error}"
        );
        assert!(matches!(StorageRoot::parse("file://host/data"), Err(BadStorageRoot::NotLocal { .. })));
    }
}

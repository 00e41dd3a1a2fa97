//! Settings of the engine, as the server's configuration gives them.

use std::path::PathBuf;
use std::time::Duration;
use tributary_ingest::IngestOptions;
use tributary_query::QueryOptions;
use tributary_table::StoreOptions;

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub storage_root: PathBuf,
    /// The host that URLs in answers name.
    pub host: String,
    /// `group_commit_interval_ms` of tables created without it, in ms.
    pub group_commit_interval_ms: u64,
    /// `group_commit_data_bytes` of tables created without it.
    pub group_commit_data_bytes: u64,
    /// A load with more decoded bytes is written to data files while it arrives.
    pub large_load_bytes: u64,
    pub error_log_keep: Duration,
    pub ingest: IngestOptions,
    pub store: StoreOptions,
    pub query: QueryOptions,
}

/// The ports that the server listens on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    pub mysql: u16,
    pub http: u16,
    pub webserver: u16,
}

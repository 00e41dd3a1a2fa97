//! What the crate needs from its owner: settings, and what the catalog keeps.

use crate::maintenance::wal_space::WalLimit;
use crate::transactions::{SourcePosition, TransactionInfo};
use async_trait::async_trait;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{SchemaVersion, TableId, TableSchema, TxnId};
use tributary_wal::WalOptions;

/// Where kept labels, and how far sources were read, survive the log. Implemented by the catalog.
#[async_trait]
pub trait LabelStore: Send + Sync + Debug + 'static {
    /// Stores finished transactions in place of what it has of them, and positions in place of earlier ones of their sources. Durable on return.
    async fn record(&self, finished: &[TransactionInfo], positions: &[SourcePosition]) -> Result<(), String>;
    /// All stored transactions whose labels are still kept.
    async fn kept(&self) -> Result<Vec<TransactionInfo>, String>;
    /// Stored transactions that had labels which are not kept any more: they were freed.
    async fn freed(&self) -> Result<Vec<TxnId>, String>;
    /// The last stored position of each source.
    async fn positions(&self) -> Result<Vec<SourcePosition>, String>;
    /// Forgets those that finished before `before_ms`.
    async fn purge(&self, before_ms: i64) -> Result<(), String>;
}

/// The schemas that a table ever had, for rows that the log keeps from before a schema change.
pub trait SchemaHistory: Send + Sync {
    fn schema(&self, table: TableId, version: SchemaVersion) -> Option<Arc<TableSchema>>;
}

/// Settings of this crate.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// Directories of the write-ahead logs, at least one.
    pub wal_dirs: Vec<PathBuf>,
    /// Directories of logs that may still hold rows but take those of no other tables.
    pub retired_wal_dirs: Vec<PathBuf>,
    pub wal_limit: WalLimit,
    pub wal: WalOptions,
    /// Bytes of rows in memory (groups and memtables) at which loads wait for flushes.
    pub memory_limit_bytes: u64,
    /// How long a label stays used after its transaction's end.
    pub label_keep: Duration,
    /// A prepared two-phase load is aborted after this time.
    pub precommit_timeout: Duration,
    /// How often files that left their tables long enough ago are deleted.
    pub sweep_interval: Duration,
}

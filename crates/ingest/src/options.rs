//! The crate's needs from its owner: settings, and data that the catalog persists.

use crate::ownership::Ownership;
use crate::transactions::{SourcePosition, TransactionInfo};
use async_trait::async_trait;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tributary_types::{Live, Portion, SchemaVersion, TableId, TableSchema, TxnId};
use tributary_wal::WalOptions;

/// Persists retained labels and the positions of sources beyond the life of the log. Implemented by the catalog.
#[async_trait]
pub trait LabelStore: Send + Sync + Debug + 'static {
    /// Stores finished transactions in place of earlier versions, and positions in place of earlier ones of their sources.
    /// Durable on return.
    async fn record(&self, finished: &[TransactionInfo], positions: &[SourcePosition]) -> Result<(), String>;
    /// All stored transactions with retained labels.
    async fn kept(&self) -> Result<Vec<TransactionInfo>, String>;
    /// Stored transactions whose labels were freed.
    async fn freed(&self) -> Result<Vec<TxnId>, String>;
    /// The last stored position of each source.
    async fn positions(&self) -> Result<Vec<SourcePosition>, String>;
    /// Deletes transactions that finished before `before_ms`.
    async fn purge(&self, before_ms: i64) -> Result<(), String>;
}

/// All schemas that a table ever had, for rows in the log from before a schema change.
pub trait SchemaHistory: Send + Sync {
    fn schema(&self, table: TableId, version: SchemaVersion) -> Option<Arc<TableSchema>>;
}

/// Settings of this crate.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// Directories of the write-ahead logs, at least one.
    pub wal_dirs: Vec<PathBuf>,
    /// Directories of logs that may still contain rows but accept no new tables.
    pub retired_wal_dirs: Vec<PathBuf>,
    pub wal_limit: Live<Portion>,
    pub wal: WalOptions,
    /// Bytes of rows in memory (groups and memtables) at which loads wait for flushes.
    pub memory_limit_bytes: Live<u64>,
    /// A directory for files of idempotency keys.
    pub keys_dir: PathBuf,
    /// The most idempotency keys that are kept; beyond them, loads with keys are refused.
    pub load_keys_max: Live<u64>,
    /// A directory for files of rejected rows.
    pub rejected_dir: PathBuf,
    /// How long rejected rows are kept.
    pub rejected_keep: Live<Duration>,
    /// The most bytes of those files; beyond them, the oldest are deleted.
    pub rejected_bytes_max: Live<u64>,
    /// How long a label or an idempotency key stays used after its transaction's end.
    pub label_keep: Live<Duration>,
    /// A prepared two-phase load is aborted after this time.
    pub precommit_timeout: Live<Duration>,
    /// Whether another process can take over what this one owns.
    pub ownership: Ownership,
    /// How often files that left their tables long enough ago are deleted; at least once an hour.
    pub sweep_interval: Live<Duration>,
}

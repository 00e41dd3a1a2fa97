//! Errors of loads after their rows were decoded.

use std::time::Duration;
use tributary_types::memory::MemoryFull;
use tributary_types::{ErrorCode, Label, LoadKey, LoadName, Retry, SqlError, TableRef, TxnId};
use tributary_wal::WalError;

/// How long a load waits for memory that flushes give back, for another load, or for the end of a change.
const SOON: Duration = Duration::from_millis(500);
/// How long a load waits for somebody who makes space, or for a server that starts again.
const LATER: Duration = Duration::from_secs(5);

/// Errors of this crate.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IngestError {
    #[error("table {0} was dropped while the load was under way; nothing of the load was kept")]
    TableDropped(TableRef),
    /// A row no longer has a partition. Doris's text comes first.
    #[error(
        "no partition for this tuple: a partition of table {0} was dropped while the load was under way; nothing of the \
         load was kept, look at SHOW PARTITIONS and retry it"
    )]
    PartitionDropped(TableRef),
    #[error(
        "tables {one} and {other} have their rows in different write-ahead logs (wal_dirs), so that one transaction can't commit both: \
         use a transaction for each"
    )]
    SeveralLogs { one: TableRef, other: TableRef },
    #[error("Label [{label}] has already been used, relate to txn [{txn}], status [{status}].")]
    LabelUsed { label: Label, txn: TxnId, status: &'static str },
    #[error(
        "no space for the write-ahead log in {dir}: {needed} bytes are needed and {available} are available; \
         free some space (or wait for the next flush) and retry the load"
    )]
    NoSpace { dir: String, needed: u64, available: u64 },
    #[error(
        "the write-ahead log failed: {0}; the outcome of the load is not known until the server has restarted"
    )]
    WalFailed(String),
    #[error(
        "memory for loads is used up: {used} of {limit} bytes wait to be flushed; nothing of the load was kept, retry it"
    )]
    MemoryFull { used: u64, limit: u64 },
    #[error(
        "loads that are being read take {held} of the {limit} bytes of memory for them, and there was no space within {seconds} s; \
         nothing of the load was kept, retry it"
    )]
    BodiesFull { held: u64, limit: u64, seconds: u64 },
    #[error("{0}; nothing of the load was kept")]
    ProcessFull(MemoryFull),
    #[error(
        "two-phase loads that wait for their commit or abort hold {used} of the {limit} bytes of memory that they may hold \
         together; nothing of the load was kept: commit or abort some of them, then retry it"
    )]
    PreparedFull { used: u64, limit: u64 },
    #[error(
        "timeout of {seconds} s reached before group {label} was committed; it goes on: \
         look at SHOW TRANSACTION WHERE LABEL = '{label}' before the load is retried"
    )]
    Timeout { seconds: u64, label: Label },
    #[error("transaction [{0}] not found.")]
    TransactionNotFound(String),
    #[error("transaction [{txn}] is already {status}{reason}")]
    TransactionState { txn: TxnId, status: &'static str, reason: String },
    #[error(
        "{bytes} bytes are too many for the write-ahead log, which takes at most {limit} at once; nothing of the load \
         was kept: lower large_load_bytes, so that such loads are written to data files, or split the load"
    )]
    TooLarge { bytes: u64, limit: u64 },
    #[error("the rows of the load can't be read back: {0}")]
    BadBlock(String),
    #[error(
        "a bug in the server: {0}; see the server's log, and SHOW TRANSACTION for what became of the load, before it \
         is retried"
    )]
    Bug(String),
    #[error("table {table}: {reason}")]
    Table { table: TableRef, reason: String },
    /// A heavy schema change is being made; Doris's text.
    #[error("insert table {table} is blocked on schema change")]
    Blocked { table: String },
    /// The rows were decoded before a heavy schema change; Doris's text.
    #[error(
        "schema version not match, maybe a schema change is in process. Please retry this load manually."
    )]
    OldSchema,
    #[error(
        "the load requires group_commit_require = {required}, which it would not be: {because}; nothing of the load was kept"
    )]
    NotAsRequired { required: &'static str, because: &'static str },
    /// The user could load into the table when the load began.
    #[error("the right to load into {table} was revoked while the load ran; nothing of the load was kept")]
    RightRevoked { table: TableRef },
    #[error("labels can't be stored: {0}; they are used as before")]
    Labels(String),
    #[error(
        "{name} was used for other bytes{}; nothing of this load was kept: a retry sends the same bytes, and \
         another load has another key or offset",
        of_transaction(*.txn)
    )]
    NameOfOtherBytes { name: LoadName, txn: Option<TxnId> },
    #[error(
        "the first load with {name} is still running after {seconds} s; nothing of this load was kept, retry it"
    )]
    NameRunning { name: LoadName, seconds: u64 },
    #[error(
        "the outcome of the first load with {name} is not known until the server has restarted; nothing of this \
         load was kept, retry it then"
    )]
    NameUnknown { name: LoadName },
    #[error(
        "offset {offset} already exists in channel [{channel}], whose next offset is {next}; nothing of this load was kept: its rows \
         are stored, continue at the next offset"
    )]
    OffsetExists { channel: LoadKey, offset: u64, next: u64 },
    #[error(
        "offset {offset} is out of range in channel [{channel}], whose next offset is {next}; nothing of this load was kept: send what \
         is between them first"
    )]
    OffsetOutOfRange { channel: LoadKey, offset: u64, next: u64 },
    #[error(
        "{limit} channels are kept, which is the most; nothing of the load was kept: use fewer channels, or drop tables that are no \
         longer needed"
    )]
    TooManyChannels { limit: usize },
    #[error(
        "{limit} idempotency keys are kept, which is the limit (load_keys_max); nothing of the load was kept: raise the limit, lower \
         label_keep_max_second, or load without a key"
    )]
    TooManyKeys { limit: u64 },
    #[error(
        "idempotency keys can't be read or stored: {0}; nothing of the load was kept, retry it; if this stays, look at the disk with \
         load_keys and at the server's log"
    )]
    KeysUnreadable(String),
    #[error(
        "receipt {0} is of no transaction of this server that you may see: receipts are the transaction ids in the answers to loads"
    )]
    UnknownReceipt(TxnId),
    #[error("transaction {txn} will not become visible: {reason}")]
    NotVisible { txn: TxnId, reason: String },
    #[error("the server is shutting down; nothing of the load was kept")]
    ShuttingDown,
    /// With what is known about it, after a space or a comma.
    #[error(
        "another process of this server has taken over its catalog and tables{0}: rows of this load may be in the log of this process, \
         which nobody reads then. Look there whether they are in the table before it is sent again"
    )]
    TakenOver(String),
    #[error("{0}")]
    Recovery(String),
}

impl IngestError {
    /// Whether it is certain that nothing of the load was stored: it may be retried, and its data files may be deleted.
    #[must_use]
    pub const fn says_nothing_was_kept(&self) -> bool {
        !matches!(self, Self::Timeout { .. } | Self::WalFailed(_) | Self::Bug(_) | Self::TakenOver(_))
    }

    /// Whether the load may be sent again as it is. A load whose outcome is unknown may not, unless it has a name or a label by
    /// which the server knows it again.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        match self {
            Self::PartitionDropped(_) | Self::OldSchema => Retry::Safe,
            Self::MemoryFull { .. }
            | Self::BodiesFull { .. }
            | Self::ProcessFull(_)
            | Self::Blocked { .. }
            | Self::NameRunning { .. }
            | Self::KeysUnreadable(_) => Retry::After(SOON),
            Self::NoSpace { .. }
            | Self::PreparedFull { .. }
            | Self::NameUnknown { .. }
            | Self::Labels(_)
            | Self::ShuttingDown
            | Self::Recovery(_) => Retry::After(LATER),
            Self::TableDropped(_)
            | Self::LabelUsed { .. }
            | Self::WalFailed(_)
            | Self::Timeout { .. }
            | Self::TransactionNotFound(_)
            | Self::TransactionState { .. }
            | Self::TooLarge { .. }
            | Self::SeveralLogs { .. }
            | Self::BadBlock(_)
            | Self::Bug(_)
            | Self::Table { .. }
            | Self::NotAsRequired { .. }
            | Self::RightRevoked { .. }
            | Self::NameOfOtherBytes { .. }
            | Self::OffsetExists { .. }
            | Self::OffsetOutOfRange { .. }
            | Self::TooManyChannels { .. }
            | Self::TooManyKeys { .. }
            | Self::UnknownReceipt(_)
            | Self::TakenOver(_)
            | Self::NotVisible { .. } => Retry::Never,
        }
    }
}

impl From<IngestError> for SqlError {
    fn from(error: IngestError) -> Self {
        let code = match &error {
            IngestError::Timeout { .. } => ErrorCode::ExecuteTimeout,
            IngestError::UnknownReceipt(_) => ErrorCode::WrongArguments,
            IngestError::ShuttingDown => ErrorCode::ServerShutdown,
            IngestError::Labels(_) => ErrorCode::Busy,
            IngestError::RightRevoked { .. } => ErrorCode::TableAccessDenied,
            _ => ErrorCode::Unknown,
        };
        Self::detail(code, error.to_string()).with_retry(error.retry())
    }
}

/// The transaction, if it has begun.
fn of_transaction(txn: Option<TxnId>) -> String {
    txn.map(|txn| format!(" by transaction {txn}")).unwrap_or_default()
}

pub(crate) fn wal_error(error: WalError) -> IngestError {
    match error {
        WalError::NoSpace { dir, needed, available } => {
            IngestError::NoSpace { dir: dir.display().to_string(), needed, available }
        }
        WalError::TooLarge { bytes, limit } => IngestError::TooLarge { bytes, limit },
        WalError::Closed => IngestError::ShuttingDown,
        other => IngestError::WalFailed(other.to_string()),
    }
}

//! The shared vocabulary: tables, columns, types, labels, ids and the error a client sees.
//!
//! Every other crate uses these terms, and this one knows none of the others. Nothing here does I/O, waits or keeps state; a type
//! carries its meaning (and its unit) in its name so that no bare integer crosses from one crate to another. The exceptions are
//! [`host`], through which a simulation replaces the machine, and [`process`] and [`memory`], of which there is one.

pub mod address;
pub mod attachment;
pub mod calendar;
pub mod change;
pub mod clock;
pub mod data_type;
pub mod decimal;
pub mod egress;
pub mod error;
pub mod escapes;
pub mod given;
pub mod host;
pub mod ids;
pub mod label;
pub mod limits;
mod live;
mod load_key;
pub mod lock;
pub mod memory;
pub mod mode;
pub mod moment;
pub mod nested;
pub mod nested_text;
pub mod number;
pub mod partition;
pub mod password;
mod password_policy;
pub mod pattern;
mod portion;
pub mod principal;
pub mod privilege;
pub mod process;
mod retry;
pub mod sealed;
pub mod secret;
pub mod state;
pub mod system;
pub mod table;
pub mod text;
mod token;
mod trace;
pub mod transaction;
pub mod transport;
pub mod view;
pub mod widen;

pub use attachment::{ATTACHMENT_BYTES_MAX, Attachment, AttachmentTooLarge};
pub use data_type::DataType;
pub use egress::Egress;
pub use error::{ErrorCode, SqlError};
pub use given::GivenColumns;
pub use ids::{ColumnId, DbId, Lsn, PartitionId, SchemaVersion, SourceId, TableId, TxnId, Version};
pub use label::Label;
pub use limits::{UserLimits, UserProperty};
pub use live::{Live, LiveValue};
pub use load_key::{ChannelOffset, Fingerprinter, LOAD_KEY_MAX_BYTES, LoadKey, LoadKeyId, LoadName};
pub use mode::{GroupCommitMode, RejectPolicy, Requirement};
pub use nested::{NESTING_MAX, Nested, NestedType, StructField};
pub use partition::{DropMark, Partition, PartitionMethod, PartitionNames, Partitioning, Partitions};
pub use password::{AuthPlugin, NewPassword, PasswordHash, SaltedHash, StoredVerifiers, Verifiers};
pub use password_policy::{LockTime, PASSWORD_HISTORY_MAX, PasswordExpiry, PasswordPolicy, PolicyChange};
pub use portion::Portion;
pub use principal::{Principal, UserKey};
pub use retry::Retry;
pub use sealed::Sealed;
pub use secret::Secret;
pub use table::{
    Aggregation, ColumnChange, ColumnDef, DELETION_VECTORS, DefaultValue, Distribution, FLEXIBLE_UPDATES,
    GROUP_COMMIT_DATA_BYTES_DEFAULT, GROUP_COMMIT_INTERVAL_MS_DEFAULT, Generated, HiddenColumn, IndexDef,
    IndexKind, KeyModel, RollupDef, TableDef, TableProperties, TableRef, TableRole, TableSchema,
};
pub use token::{StoredToken, TOKEN_RANDOM_BYTES, TokenHash, token_text};
pub use trace::TraceParent;
pub use transaction::{TransactionKind, TransactionStatus};
pub use transport::{TlsRequirement, TlsSession};
pub use view::{ViewDef, ViewSource};

/// The version of MySQL that the server reports to clients; Doris's. Drivers choose their statements by it.
pub const SERVER_VERSION: &str = "5.7.99";

/// Default of `group_concat_max_len`, in bytes. Results are truncated only if it is set below this.
pub const GROUP_CONCAT_BYTES: i64 = 1 << 20;

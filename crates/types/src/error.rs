//! The error that a client sees, whichever protocol it speaks.
//!
//! Each crate has its own error enum and turns it into a [`SqlError`] where the error leaves for a
//! client. Numbers and SQLSTATEs are MySQL's; the sources are MySQL's error reference and what
//! Doris sends.

use crate::retry::Retry;
use crate::table::TableRef;
use std::fmt;
use std::time::Duration;

/// Error numbers that clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    DbCreateExists,
    DbDropNotExists,
    DbAccessDenied,
    AccessDenied,
    NoDbSelected,
    UnknownCommand,
    ColumnCannotBeNull,
    /// A row of this key exists.
    DuplicateEntry,
    UnknownDatabase,
    TableExists,
    UnknownTable,
    NonUnique,
    UnknownColumn,
    ColumnCountMismatch,
    DuplicateColumn,
    Syntax,
    MultiplePrimaryKey,
    UnknownThread,
    KeyColumnMissing,
    TooManyRows,
    DifferentColumnCount,
    WrongParameterCount,
    WrongUserLockName,
    UnknownSavepoint,
    NotRolledBack,
    OutOfRange,
    WrongValue,
    ReadOnlyTransaction,
    WrongDbName,
    WrongTableName,
    WrongColumnName,
    /// Doris's catch-all, 1105.
    Unknown,
    UnknownTableInDb,
    UnknownCharset,
    TooManyConnections,
    PacketTooLarge,
    TableAccessDenied,
    NoSuchTable,
    UnknownVariable,
    PrivilegeDenied,
    PasswordTooWeak,
    PasswordExpired,
    PasswordReused,
    AccountLocked,
    WrongArguments,
    WrongValueForVariable,
    WrongTypeForVariable,
    ReadOnlyVariable,
    NotSupported,
    /// A row, or a subquery, of another number of columns than its place takes.
    OperandColumns,
    /// A scalar subquery returned more than one row.
    SubqueryRows,
    UnknownStatementHandle,
    UnknownFunction,
    QueryInterrupted,
    DataTooLong,
    InsertFailed,
    ExecuteTimeout,
    MalformedPacket,
    ServerShutdown,
    BadHandshake,
    /// TLS is required.
    SecureTransportRequired,
    /// More columns than a statement may have.
    TooManyFields,
    /// The client is too old to log in.
    UnsupportedAuthMode,
    PacketsOutOfOrder,
    /// A malformed compressed packet.
    BadCompression,
    NoOpenCursor,
    /// Only SET GLOBAL sets the variable.
    GlobalVariable,
    SessionVariable,
    TooManyPreparedStatements,
    /// A prepared statement may not do it.
    UnsupportedPrepared,
    /// The client, or the server, does not let it be done.
    NotAllowedCommand,
    WrongPartitionName,
    /// No partition of that name exists to be dropped.
    DropPartitionMissing,
    PartitionExists,
    UnknownPartition,
    /// Partitions of a table without partitions.
    NotPartitioned,
    /// A table without partitions takes no rows.
    NoPartitions,
    /// The properties of dynamic partitions.
    DynamicTimeUnit,
    DynamicRange,
    DynamicBuckets,
    /// A view where a table is required, or a table where a view is required.
    WrongObject,
    /// A view's query has parameters or variables of the session.
    ViewVariable,
    /// A view's list of columns is not as long as its query's.
    ViewWrongList,
    /// An object that a view reads is missing or has changed.
    ViewInvalid,
    /// A view that reads itself.
    ViewRecursive,
    /// A second AUTO_INCREMENT column.
    AutoIncrementTwice,
    AutoIncrementNullable,
    AutoIncrementDefault,
    AutoIncrementType,
    /// AUTO_INCREMENT in a table with AGGREGATE KEY.
    AutoIncrementModel,
    /// MySQL's "lock wait timeout exceeded", which clients retry: the server can't take the request now.
    Busy,
    /// There is no binary log, and so there are no files of one.
    NoBinaryLog,
    /// This node reads the tables of another server, and changes nothing.
    OnlyReads,
    /// A user has reached one of its limits; clients may retry.
    UserLimit,
}

impl ErrorCode {
    /// MySQL's error number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.entry().0
    }

    /// MySQL's SQLSTATE.
    #[must_use]
    pub const fn sqlstate(self) -> &'static str {
        self.entry().1
    }

    const fn entry(self) -> (u16, &'static str) {
        match self {
            Self::TooManyConnections => (1040, "08004"),
            Self::UserLimit => (1226, "42000"),
            Self::DbCreateExists => (1007, "HY000"),
            Self::DbDropNotExists => (1008, "HY000"),
            Self::DbAccessDenied => (1044, "42000"),
            Self::AccessDenied => (1045, "28000"),
            Self::BadHandshake => (1043, "08S01"),
            Self::SecureTransportRequired => (3159, "HY000"),
            Self::TooManyFields => (1117, "HY000"),
            Self::NoDbSelected => (1046, "3D000"),
            Self::UnknownCommand => (1047, "08S01"),
            Self::ColumnCannotBeNull => (1048, "23000"),
            Self::DuplicateEntry => (1062, "23000"),
            Self::UnknownDatabase => (1049, "42000"),
            Self::TableExists => (1050, "42S01"),
            Self::UnknownTable => (1051, "42S02"),
            Self::NonUnique => (1052, "23000"),
            Self::ServerShutdown => (1053, "08S01"),
            Self::UnknownColumn => (1054, "42S22"),
            Self::ColumnCountMismatch => (1058, "21S01"),
            Self::DuplicateColumn => (1060, "42S21"),
            Self::Syntax => (1064, "42000"),
            Self::MultiplePrimaryKey => (1068, "42000"),
            Self::UnknownThread => (1094, "HY000"),
            Self::KeyColumnMissing => (1072, "42000"),
            Self::TooManyRows => (1172, "42000"),
            Self::DifferentColumnCount => (1222, "21000"),
            Self::WrongParameterCount => (1582, "42000"),
            Self::WrongUserLockName => (3057, "42000"),
            Self::UnknownSavepoint => (1305, "42000"),
            Self::NotRolledBack => (1196, "HY000"),
            Self::OutOfRange => (1264, "22003"),
            Self::WrongValue => (1366, "HY000"),
            Self::ReadOnlyTransaction => (1792, "25006"),
            Self::WrongDbName => (1102, "42000"),
            Self::WrongTableName => (1103, "42000"),
            Self::Unknown => (1105, "HY000"),
            Self::NoBinaryLog => (1381, "HY000"),
            Self::UnknownTableInDb => (1109, "42S02"),
            Self::UnknownCharset => (1115, "42000"),
            Self::TableAccessDenied => (1142, "42000"),
            Self::NoSuchTable => (1146, "42S02"),
            Self::PacketTooLarge => (1153, "08S01"),
            Self::PacketsOutOfOrder => (1156, "08S01"),
            Self::BadCompression => (1157, "08S01"),
            Self::WrongColumnName => (1166, "42000"),
            Self::WrongPartitionName => (1567, "HY000"),
            Self::DropPartitionMissing => (1507, "HY000"),
            Self::PartitionExists => (1517, "HY000"),
            Self::UnknownPartition => (1735, "HY000"),
            Self::NotPartitioned => (1747, "HY000"),
            Self::NoPartitions => (5083, "42000"),
            Self::DynamicTimeUnit => (5065, "42000"),
            Self::DynamicRange => (5066, "42000"),
            Self::DynamicBuckets => (5067, "42000"),
            Self::UnknownVariable => (1193, "HY000"),
            Self::PrivilegeDenied => (1227, "42000"),
            Self::PasswordTooWeak => (1819, "HY000"),
            Self::PasswordExpired => (1862, "HY000"),
            Self::PasswordReused => (3638, "HY000"),
            Self::AccountLocked => (3955, "HY000"),
            Self::Busy => (1205, "HY000"),
            Self::OnlyReads => (1290, "HY000"),
            Self::WrongArguments => (1210, "HY000"),
            Self::GlobalVariable => (1229, "HY000"),
            Self::SessionVariable => (1228, "HY000"),
            Self::WrongValueForVariable => (1231, "42000"),
            Self::WrongTypeForVariable => (1232, "42000"),
            Self::NotSupported => (1235, "42000"),
            Self::ReadOnlyVariable => (1238, "HY000"),
            Self::OperandColumns => (1241, "21000"),
            Self::SubqueryRows => (1242, "21000"),
            Self::UnknownStatementHandle => (1243, "HY000"),
            Self::UnsupportedAuthMode => (1251, "08004"),
            Self::UnknownFunction => (1305, "42000"),
            Self::QueryInterrupted => (1317, "70100"),
            Self::WrongObject => (1347, "HY000"),
            Self::ViewVariable => (1351, "HY000"),
            Self::ViewWrongList => (1353, "HY000"),
            Self::ViewInvalid => (1356, "HY000"),
            Self::ViewRecursive => (1462, "HY000"),
            Self::DataTooLong => (1406, "22001"),
            Self::NoOpenCursor => (1421, "HY000"),
            Self::NotAllowedCommand => (1148, "42000"),
            Self::UnsupportedPrepared => (1295, "HY000"),
            Self::TooManyPreparedStatements => (1461, "42000"),
            Self::MalformedPacket => (1835, "HY000"),
            Self::ExecuteTimeout => (5024, "HY000"),
            Self::InsertFailed => (5025, "HY000"),
            Self::AutoIncrementTwice => (5092, "42000"),
            Self::AutoIncrementNullable => (5093, "42000"),
            Self::AutoIncrementDefault => (5094, "42000"),
            Self::AutoIncrementType => (5095, "42000"),
            Self::AutoIncrementModel => (5096, "42000"),
        }
    }
}

/// How long a client waits for a server that refuses it for the moment, where nothing says it better.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl ErrorCode {
    /// The verdict on the retry of a request, as far as the code alone gives it.
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::TooManyConnections | Self::UserLimit | Self::ServerShutdown | Self::Busy => {
                Retry::After(RETRY_AFTER)
            }
            _ => Retry::Never,
        }
    }
}

/// An error for the client, in words that say what is wrong, where, with which value, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SqlError {
    pub code: ErrorCode,
    /// The text as the client gets it, including Doris's prefix where Doris has one.
    pub message: String,
    /// Whether the request may be sent again.
    pub retry: Retry,
}

impl SqlError {
    /// An error whose text is sent as it is (MySQL's own texts).
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry: code.retry() }
    }

    /// An error in Doris's form: `errCode = 2, detailMessage = <text>`. Clients parse the prefix.
    #[must_use]
    pub fn detail(code: ErrorCode, message: impl AsRef<str>) -> Self {
        Self::new(code, format!("errCode = 2, detailMessage = {}", message.as_ref()))
    }

    /// The same error with another verdict on its retry.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// A view where something else is required, or something else where a view is required; `remedy` may be empty.
    #[must_use]
    pub fn wrong_object(name: &TableRef, needed: &str, remedy: &str) -> Self {
        let remedy = if remedy.is_empty() { String::new() } else { format!(". {remedy}") };
        Self::detail(ErrorCode::WrongObject, format!("'{name}' is not {needed}{remedy}"))
    }

    /// The text without Doris's prefix.
    #[must_use]
    pub fn detail_text(&self) -> &str {
        self.message.strip_prefix("errCode = 2, detailMessage = ").unwrap_or(&self.message)
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code.number(), self.code.sqlstate(), self.message)
    }
}

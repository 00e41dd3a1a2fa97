//! The errors of the catalog, and their codes for clients.

use tributary_types::privilege::{GrantScope, Grantee, Rights};
use tributary_types::{ErrorCode, SqlError};

/// An error of the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("Can't create database '{0}'; database exists")]
    DatabaseExists(String),
    #[error("Can't drop database '{0}'; database doesn't exist")]
    NoDatabaseToDrop(String),
    #[error("Unknown database '{0}'")]
    UnknownDatabase(String),
    #[error("Access denied: database '{0}' belongs to the server and cannot be changed")]
    ReservedDatabase(String),
    #[error("Table '{0}' already exists")]
    TableExists(String),
    #[error("Unknown table '{db}.{table}'")]
    UnknownTable { db: String, table: String },
    /// The definition that a change was based on is not the present one.
    #[error("Table '{db}.{table}' was changed by another statement meanwhile: run the statement again")]
    TableChanged { db: String, table: String },
    /// Somebody has taken it out meanwhile.
    #[error("the recycle bin does not have {0}")]
    NotRecycled(String),
    #[error("User '{name}'@'{host}' already exist")]
    UserExists { name: String, host: String },
    #[error("User '{name}'@'{host}' does not exist")]
    UnknownUser { name: String, host: String },
    #[error("Can not drop user '{0}': it is needed to administer the server")]
    ProtectedUser(String),
    #[error("Role '{0}' already exists")]
    RoleExists(String),
    #[error("Role '{0}' does not exist")]
    UnknownRole(String),
    #[error("there is a token '{0}' of this user: drop it first, or choose another name")]
    TokenExists(String),
    #[error("there is no token '{0}' of this user (SHOW TOKENS)")]
    UnknownToken(String),
    #[error("a user has at most {0} tokens: drop those that nobody uses (SHOW TOKENS)")]
    TooManyTokens(usize),
    #[error("Role '{0}' belongs to the server and cannot be changed; make a role of your own")]
    BuiltInRole(String),
    #[error("Can not revoke role '{role}' from user '{user}': it is needed to administer the server")]
    ProtectedRole { role: String, user: String },
    #[error("There is no such grant defined for {grantee} on {scope}")]
    NoSuchGrant { grantee: Grantee, scope: GrantScope },
    #[error("{rights} can not be granted on {scope}; there it can be {grantable}")]
    NotGrantable { rights: Rights, scope: GrantScope, grantable: Rights },
    #[error(
        "the catalog {path} has format {found}, but this program knows formats up to {known}: \
         use the newer program that wrote it"
    )]
    NewerFormat { path: String, found: i64, known: i64 },
    /// The file exists and was not written by SQLite.
    #[error(
        "the catalog {path} is damaged: {reason}. It holds the names and schemas of all tables, the users and the \
         kept labels; without it data files and write-ahead log belong to nobody. Nothing was changed. Restore \
         {path} from a copy, or save what can be read (`sqlite3 {path} .recover`), and start again"
    )]
    Damaged { path: String, reason: String },
    /// The file is missing although the storage root is in use.
    #[error(
        "the catalog {path} is missing or empty, but {evidence} is there: it holds the names and schemas of all \
         tables, and a new one would give up every row. Nothing was changed. Restore {path} from a copy; if all \
         data of this storage root may go, remove the whole directory"
    )]
    Missing { path: String, evidence: String },
    #[error("the catalog holds {what}, which cannot be read: {reason}")]
    Corrupt { what: String, reason: String },
    #[error("the catalog failed to {action}: {source}")]
    Store {
        action: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl CatalogError {
    /// MySQL's number for it.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::DatabaseExists(_) => ErrorCode::DbCreateExists,
            Self::NoDatabaseToDrop(_) => ErrorCode::DbDropNotExists,
            Self::UnknownDatabase(_) => ErrorCode::UnknownDatabase,
            Self::ReservedDatabase(_) => ErrorCode::DbAccessDenied,
            Self::TableExists(_) => ErrorCode::TableExists,
            Self::UnknownTable { .. } => ErrorCode::UnknownTable,
            Self::TableChanged { .. }
            | Self::NotRecycled(_)
            | Self::UserExists { .. }
            | Self::UnknownUser { .. }
            | Self::ProtectedUser(_)
            | Self::RoleExists(_)
            | Self::UnknownRole(_)
            | Self::TokenExists(_)
            | Self::UnknownToken(_)
            | Self::TooManyTokens(_)
            | Self::BuiltInRole(_)
            | Self::ProtectedRole { .. }
            | Self::NoSuchGrant { .. }
            | Self::NotGrantable { .. }
            | Self::NewerFormat { .. }
            | Self::Damaged { .. }
            | Self::Missing { .. }
            | Self::Corrupt { .. }
            | Self::Store { .. } => ErrorCode::Unknown,
        }
    }
}

impl From<CatalogError> for SqlError {
    fn from(error: CatalogError) -> Self {
        Self::detail(error.code(), error.to_string())
    }
}

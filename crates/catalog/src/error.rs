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
    /// The database has none.
    #[error("there is no catalog in {0}: the first start of a server with this catalog_url makes it")]
    NoCatalog(String),
    /// The database can't have a catalog.
    #[error("the catalog can't be in {place}: {reason}")]
    Unfit { place: String, reason: String },
    /// Another server owns it.
    #[error(
        "the catalog {place} belongs to the server {owner}, which used it last on the host {host}: names and labels of one server \
         are of no use for the files of another. Nothing was changed. Give this server a database of its own (createdb), and name \
         it in catalog_url; or start the server {owner}, whose id is in the node.json of its storage root"
    )]
    OfAnother { place: String, owner: String, host: String },
    /// Another process of this server has it.
    #[error(
        "the catalog {place} is in use by another process of this server, on the host {host}: one of the two runs on a copy of \
         the other's directory. Nothing was changed. Stop one of them. If that process or its machine has ended, start again in \
         half a minute"
    )]
    InUse { place: String, host: String },
    #[error(
        "the catalog of this server has the id {known} according to node.json, and the one in {place} is {found}, an earlier copy or \
         another one. Nothing was changed. Name the database of the former in catalog_url, and start again"
    )]
    NotTheCatalog { place: String, known: String, found: String },
    /// Another process has taken it since this one opened it.
    #[error(
        "the catalog {place} was taken by {holder}: this process can't change it any more, and nothing of this change was made. \
         Stop this process, or the other one and start this one again"
    )]
    Lost { place: String, holder: String },
    /// Its database can't be reached now.
    #[error(
        "the catalog failed to {action}: PostgreSQL ({place}) can't be used now: {reason}. Nothing was changed; repeat it in a \
         moment. Tables can be loaded and read meanwhile"
    )]
    Away { action: &'static str, place: String, reason: String },
    /// Its database went away while it made a change.
    #[error(
        "the catalog had to {action}, and PostgreSQL ({place}) went away before it answered: {reason}. It may have been done or not; \
         look before repeating it"
    )]
    InDoubt { action: &'static str, place: String, reason: String },
    #[error("the catalog holds {what}, which cannot be read: {reason}")]
    Corrupt { what: String, reason: String },
    /// There is no space for it.
    #[error(
        "the catalog failed to {action}: there is no space left on its disk ({reason}). Nothing was changed; free some space and repeat it"
    )]
    NoSpace { action: &'static str, reason: String },
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
            Self::Away { .. } => ErrorCode::Busy,
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
            | Self::NoCatalog(_)
            | Self::Unfit { .. }
            | Self::OfAnother { .. }
            | Self::InUse { .. }
            | Self::NotTheCatalog { .. }
            | Self::Lost { .. }
            | Self::InDoubt { .. }
            | Self::Corrupt { .. }
            | Self::NoSpace { .. }
            | Self::Store { .. } => ErrorCode::Unknown,
        }
    }
}

impl From<CatalogError> for SqlError {
    fn from(error: CatalogError) -> Self {
        Self::detail(error.code(), error.to_string())
    }
}

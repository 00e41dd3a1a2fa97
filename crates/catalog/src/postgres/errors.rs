//! The errors of PostgreSQL, and which of them pass by themselves.

use crate::error::CatalogError;
use std::error::Error;
use std::io;
use tokio_postgres::error::{DbError, SqlState};

pub(super) type Sql<T> = Result<T, PgError>;

#[derive(Debug, thiserror::Error)]
pub(super) enum PgError {
    #[error("{}", told(.0))]
    Sql(#[from] tokio_postgres::Error),
    #[error("{0}")]
    Tls(io::Error),
    #[error("it has not answered in time")]
    Late,
    /// It can't be reached.
    #[error("{0}")]
    Away(String),
    #[error("it is opened for reading only")]
    NotClaimed,
    /// Another process has claimed the catalog.
    #[error("it was taken by {0}")]
    Fenced(String),
    /// Nobody knows whether a change was made.
    #[error("{0}")]
    InDoubt(String),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("{what}: {reason}")]
    Corrupt { what: String, reason: String },
}

/// The error with its cause; the library's own text of a database's error does not say what it was.
fn told(error: &tokio_postgres::Error) -> String {
    if let Some(of_database) = error.as_db_error() {
        let detail = of_database.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}{detail}", of_database.message());
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}").replace(&format!("{cause}: {cause}"), &cause.to_string()),
        None => error.to_string(),
    }
}

/// States of a server that is starting, stopping or full.
fn is_of_server(error: &DbError) -> bool {
    let code = error.code();
    *code == SqlState::TOO_MANY_CONNECTIONS || code.code().starts_with("57P") || code.code().starts_with("08")
}

impl PgError {
    /// Whether the connection is of no more use.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Sql(error) => match error.as_db_error() {
                Some(of_database) => {
                    is_of_server(of_database)
                        || *of_database.code() == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                }
                None => {
                    error.is_closed()
                        || error.source().is_some_and(<dyn std::error::Error + 'static>::is::<io::Error>)
                }
            },
            Self::Late | Self::Away(_) => true,
            _ => false,
        }
    }

    /// Whether a later try may succeed where one failed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Sql(error) => match error.as_db_error() {
                Some(of_database) => {
                    let code = of_database.code();
                    let waits = [
                        SqlState::QUERY_CANCELED,
                        SqlState::LOCK_NOT_AVAILABLE,
                        SqlState::T_R_SERIALIZATION_FAILURE,
                        SqlState::T_R_DEADLOCK_DETECTED,
                        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                        // A standby that is not the primary yet.
                        SqlState::READ_ONLY_SQL_TRANSACTION,
                    ];
                    is_of_server(of_database) || waits.contains(code)
                }
                None => error.is_closed() || is_of_network(error),
            },
            Self::Late | Self::Away(_) => true,
            _ => false,
        }
    }
}

/// Whether an error is that of a connection. Bad certificates and missing passwords do not get better.
fn is_of_network(error: &tokio_postgres::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause {
        Some(cause) => cause.kind() != io::ErrorKind::InvalidData,
        // It has no cause and no kind that could be asked for.
        None => error.to_string().starts_with("timeout"),
    }
}

/// For `map_err`: the action that failed, and where the database is.
pub(super) fn failed_to(action: &'static str, place: &str) -> impl Fn(PgError) -> CatalogError + use<> {
    let place = place.to_owned();
    move |error| match error {
        PgError::Fenced(holder) => CatalogError::Lost { place: place.clone(), holder },
        PgError::InDoubt(reason) => CatalogError::InDoubt { action, place: place.clone(), reason },
        PgError::Corrupt { what, reason } => CatalogError::Corrupt { what, reason },
        passing if passing.may_pass() => {
            CatalogError::Away { action, place: place.clone(), reason: passing.to_string() }
        }
        other => CatalogError::Store { action, source: other.to_string().into() },
    }
}

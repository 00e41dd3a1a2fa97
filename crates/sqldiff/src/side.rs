//! The sides that answer queries: the server under test, MariaDB, DuckDB.

mod duckdb;
mod mysql;

pub use duckdb::DuckDb;
pub use mysql::{MariaDb, Ours};

use crate::compare::Outcome;
use crate::schema::{Dialect, Schema};
use tributary_client::Value;

/// Why a side cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{side}: {what}")]
pub struct SideError {
    pub side: &'static str,
    pub what: String,
}

/// Someone who has the tables of a schema and answers queries about them.
pub trait Side {
    fn dialect(&self) -> Dialect;

    /// Recreates the schema's tables.
    ///
    /// # Errors
    /// The side refuses them, or has died.
    fn load(&mut self, schema: &Schema) -> Result<(), SideError>;

    /// Answers a query.
    fn ask(&mut self, sql: &str) -> Outcome;

    /// Prepares a query and runs it with these values for its `?`. A side without support answers that it is gone.
    fn ask_prepared(&mut self, _sql: &str, _values: &[Value]) -> Outcome {
        Outcome::Gone("this side prepares nothing".to_owned())
    }
}

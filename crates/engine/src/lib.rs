//! Turns statements and requests into work: here the protocols meet the rest of the server.
//!
//! [`Engine`] holds what a server is made of (catalog, tables, ingest, queries) and starts it in
//! the right order. [`MysqlHooks`] opens sessions for MySQL connections, [`FlightHooks`] for clients
//! of Arrow Flight SQL; [`HttpLoads`] is the HTTP service.
//! All turn a request into a load, a query or a change of the catalog and word the answer.
//!
//! Not its business: protocols' bytes, the storage of rows, the commit of groups.

// The start of an engine is one deep future. The library boxes it; tests await it directly.
#![cfg_attr(test, recursion_limit = "256")]

mod access;
mod answer;
mod audit;
mod audit_table;
mod background;
mod backup;
mod ddl;
mod engine;
mod files;
mod follow;
mod front;
mod generated;
mod jobs;
mod line_files;
mod load;
mod node;
mod queries;
mod session;
#[cfg(test)]
mod testing;
mod variables;
mod verify;
mod watch;
mod writer;

use futures::future::BoxFuture;
use std::sync::Arc;
use tributary_ingest::RecoveryReport;

pub use audit::options::{AuditOptions, WhenFull};
pub use engine::Engine;
pub use front::flight::{FlightHooks, FlightLoads};
pub use front::http::HttpLoads;
pub use front::mysql::MysqlHooks;
pub use line_files::LineFiles;
pub use node::catalog_place::{move_to_file, move_to_postgres};
pub use node::options::{
    BadStorageRoot, EngineOptions, Ports, ServerSettings, SettingChange, SettingView, StorageRoot,
};
pub use node::start_error::StartError;
pub use tributary_query::QueryOptions;
pub use tributary_sql::STACK_BYTES;
pub use tributary_table::{RemoteOptions, StoreLocation, StoreOptions};
pub use tributary_traces::TraceOptions;
pub use tributary_wal::WalOptions;
pub use variables::MAX_PREPARED_STATEMENTS;
pub use variables::similar;

/// Opens the storage root: catalog, tables, logs. Every acknowledged row is in its table, once, when this returns.
///
/// # Errors
/// See [`StartError`]; nothing was changed that the next start would not correct.
pub async fn open(options: EngineOptions) -> Result<(Arc<Engine>, RecoveryReport), StartError> {
    // Boxed as what it is: a start awaits so much that the compiler of its caller would not see the end of it.
    let opened: BoxFuture<'_, _> = Box::pin(Engine::open(options, front::mysql::text_lines));
    let (engine, report) = opened.await?;
    front::scheduled::start(&engine);
    Ok((engine, report))
}

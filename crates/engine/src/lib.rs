//! Turns statements and requests into work: here the protocols meet the rest of the server.
//!
//! [`Engine`] holds what a server is made of (catalog, tables, ingest, queries) and starts it in
//! the right order. [`MysqlHooks`] opens sessions for MySQL connections; [`HttpLoads`] is the HTTP service.
//! Both turn a request into a load, a query or a change of the catalog and word the answer.
//!
//! Not its business: protocols' bytes, the storage of rows, the commit of groups.

// The start of an engine is one deep future. The library boxes it; tests await it directly.
#![cfg_attr(test, recursion_limit = "256")]

mod access;
mod answer;
mod background;
mod ddl;
mod engine;
mod files;
mod front;
mod jobs;
mod load;
mod node;
mod queries;
mod session;
#[cfg(test)]
mod testing;
mod variables;

pub use engine::Engine;
pub use front::http::HttpLoads;
pub use front::mysql::MysqlHooks;
pub use node::options::{BadStorageRoot, EngineOptions, Ports, StorageRoot};
pub use node::start_error::StartError;
pub use tributary_query::QueryOptions;
pub use tributary_sql::STACK_BYTES;
pub use tributary_table::StoreOptions;
pub use tributary_wal::WalOptions;
pub use variables::MAX_PREPARED_STATEMENTS;
pub use variables::similar;

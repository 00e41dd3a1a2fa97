//! Turns statements and requests into work: here the protocols meet the rest of the server.
//!
//! [`Engine`] holds what a server is made of (catalog, tables, ingest, queries) and starts it in
//! the right order. [`EngineSession`] is one MySQL connection; [`HttpLoads`] is the HTTP service.
//! Both turn a request into a load, a query or a change of the catalog and word the answer.
//!
//! Not its business: protocols' bytes, how rows are kept, how a group commits.

mod access;
mod answer;
mod auto_increment;
mod auto_partitions;
mod background;
mod broker_load;
mod builders;
mod clock;
mod engine;
mod error_log;
mod export;
mod files;
mod generated;
mod hidden_columns;
mod hooks;
mod interrupt;
mod jobs;
mod labels;
mod lanes;
mod load;
mod load_records;
mod metrics;
mod names;
mod namespace;
mod node;
mod options;
mod outfile;
mod overwrites;
mod partial_update;
mod processes;
mod row_changes;
mod schema_change;
mod session;
pub mod similar;
mod sink;
mod start_error;
mod stream_load;
#[cfg(test)]
mod testing;
mod time_zone;
mod variables;
mod wal_dirs;

pub use engine::Engine;
pub use hooks::MysqlHooks;
pub use options::{BadStorageRoot, EngineOptions, Ports, StorageRoot};
pub use session::EngineSession;
pub use start_error::StartError;
pub use stream_load::HttpLoads;
pub use tributary_query::QueryOptions;
pub use tributary_sql::STACK_BYTES;
pub use tributary_table::StoreOptions;
pub use tributary_wal::WalOptions;
pub use variables::MAX_PREPARED_STATEMENTS;

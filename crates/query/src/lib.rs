//! Answers queries: SELECT, SHOW, DESC and `information_schema`, on DataFusion.
//!
//! A query's tree comes from the crate `sql`. It is rewritten into MySQL's meaning ([`mod@rewrite`]), planned against one
//! snapshot of each table, run, and its result columns are named as in MySQL. Invariant: a statement sees each table at exactly
//! one version. All use of DataFusion is in this crate; the origin of rows and the bytes of protocols are not its business.

mod arithmetic;
mod computed_once;
mod context;
mod deep;
mod distributed;
mod engine;
mod error;
mod explain;
mod facts;
mod functions;
mod join_order;
mod key_arrays;
mod meaning;
mod model;
mod namespace;
mod planning;
mod run;
mod scan;
mod types;
mod workarounds;

pub use datafusion::common::ScalarValue;
pub use distributed::channels::{NodeChannel, connect};
pub use distributed::nodes::{NodeCall, NodeReply, Nodes, OUTCOMES, Peer};
pub use engine::{Projection, QueryEngine, RowFilter, ViewShape};
pub use error::{is_of_missing_file, stream_error};
pub use facts::show::facts::size_text;
pub use facts::show::nodes::SCHEDULED_COLUMNS;
pub use meaning::coercion::decimal;
pub use model::{
    Cell, Grid, QueryOptions, QueryResult, ResultColumn, SessionView, Spill, TemporaryTable, WrittenTable,
};
pub use namespace::{
    Decommission, FileTable, JobKind, LiveTable, Namespace, NodeFacts, ProcessRow, SchemaChangeRow,
    ServerFacts,
};
pub use planning::Stop;
pub use run::begin::begins;
pub use run::output::Nested;
pub use run::places::PlacedRows;
pub use scan::page_cache::PageCacheFigures;
pub use types::metadata::declared as declared_type;
pub use types::shown::type_text;

//! Answers questions: SELECT, SHOW, DESC and `information_schema`, on DataFusion.
//!
//! A query's tree comes from the crate `sql`. It is rewritten into MySQL's meaning ([`mod@rewrite`]),
//! planned against one snapshot of each table, run, and its result is named as MySQL would.
//! Invariant: a statement sees each table at exactly one version. Everything of DataFusion is
//! here and nowhere else; how rows came in, and the bytes of a protocol, are not its business.

mod calculated_keys;
mod coercion;
mod constant_keys;
mod context;
mod decimal_types;
mod deep;
mod distinct_counts;
mod empty_branches;
mod engine;
mod error;
mod files;
mod first_groups;
mod forgotten;
mod functions;
mod giving_way;
mod grouping_sets;
mod guards;
mod held_filters;
mod in_lists;
mod info_schema;
mod key_names;
mod labels;
mod load_exprs;
mod model;
mod moved_filters;
mod namespace;
mod needed_sorts;
mod node_rule;
mod null_equality;
mod only_where;
mod operators;
mod output;
mod places;
mod provider;
mod repeated_windows;
mod rewrite;
mod rows;
mod self_equality;
mod set_operations;
mod show;
mod shown_columns;
mod sliding_windows;
mod spanning_keys;
mod stream_table;
mod table_functions;
mod top_rows;
mod types;
mod unnest;
mod views;
mod zeros;

pub use coercion::decimal;
pub use datafusion::common::ScalarValue;
pub use engine::QueryEngine;
pub use error::stream_error;
pub use files::FileTable;
pub use labels::{declared as declared_type, type_text};
pub use load_exprs::{Projection, RowFilter};
pub use model::{QueryOptions, QueryResult, ResultColumn, SessionView};
pub use namespace::{JobKind, Namespace, ProcessRow, SchemaChangeRow, ServerFacts};
pub use output::Nested;
pub use rows::{Cell, Grid};
pub use show::facts::size_text;
pub use views::ViewShape;

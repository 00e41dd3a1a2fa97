//! Sources of rows: snapshots of tables, external files, streams of loads.
//!
//! Not here: the resolution of names (`context`), and the use of the rows.

pub mod conditions;
pub mod files;
pub(crate) mod home_rule;
pub mod late_columns;
pub mod numbers;
pub mod page_cache;
pub mod provider;
pub(crate) mod sieve;
pub mod stream_table;
pub mod table_functions;
pub mod text_views;
pub mod wanted_groups;

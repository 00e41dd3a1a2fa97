//! Where rows come from: snapshots of tables, files of others, streams of loads.
//!
//! Not here: which table a name means (`context`), and what is done with the rows.

pub mod files;
pub mod provider;
pub mod stream_table;
pub mod table_functions;

//! Statements: Doris's and MySQL's grammar → our AST, and what CREATE/ALTER TABLE mean.
//!
//! [`parse`] turns the text of one statement into a [`Statement`], [`split`] cuts a text into statements. [`table`] turns a
//! CREATE TABLE into a [`tributary_types::TableDef`], applies schema changes and prints a table back. Everything is a pure
//! function of its input: this crate knows nothing of catalogs, sessions or rows.
//!
//! Invariant: no text, however long, deep or broken, makes it panic, overflow the stack or do work out of proportion to the
//! text's length.
//!
//! The hot form `INSERT INTO t VALUES (literals…)` is recognised elsewhere and does not get here.
//!
//! Errors are [`tributary_types::SqlError`] at once: every error of this crate is for a client.

pub mod ast;
mod braces;
mod chains;
mod cursor;
mod dialect;
mod errors;
mod escapes;
mod file_calls;
mod hints;
mod kind;
mod lateral_views;
mod limits;
mod modes;
pub mod names;
mod parse;
mod properties;
mod replays;
mod retries;
mod secrets;
mod special_calls;
mod split;
mod syntax;
pub mod table;
mod tablets;
mod temporary;
mod upsert;
mod view_text;
pub mod visit;

pub use ast::*;
pub use braces::call as function_call;
pub use chains::STACK_BYTES;
pub use file_calls::{FILES_FUNCTION, FileCall, FileFunction};
pub use kind::Change;
pub use limits::STATEMENT_BYTES_MAX;
pub use modes::{QuoteModes, Reading};
pub use parse::parse_type;
pub use parse::{
    Backup, BrokerLoad, DataInfile, Export, HiddenProperties, HiddenText, JobsBy, Outfile, RowsOf,
};
pub use parse::{CreateJob, JobStatement, JobUnit, Moment, Schedule};
pub use parse::{CreateTableAs, CreateView, ViewBody, ViewStatement};
pub use parse::{HttpStream, parse, parse_as, parse_compatible, parse_csv_schema, parse_expression};
pub use parse::{PartitionBy, PartitionItem, RowsSpec, ValueSpec};
pub use parse::{Recover, Recovered, RecycledId};
pub use parse::{Verify, parse_http_stream, parse_query};
pub use properties::of_call as properties_of_call;
pub use replays::ReplayQuery;
pub use secrets::{Redacted, is_secret_property, outline, redacted, without_secrets};
pub use special_calls::NESTED_TYPE;
pub use split::split;
pub use table::{
    DynamicFacts, QueryColumn, Replacement, Scheduled, add_temporary, apply_alter, apply_alters, beside,
    check_deletion_by_keys, disallowed_in_generated, dynamic_facts, dynamic_time_zone, index_properties,
    is_heavy, like, named_partitions, replacement, scheduled, show_create_database, show_create_table,
    show_create_table_of_mysql, with_recovered, without_dynamic_partitions, without_partition,
};
pub use view_text::{show_create_view, with_databases};

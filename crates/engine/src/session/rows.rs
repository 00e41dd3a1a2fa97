//! Statements that insert, change and delete rows, and statements that show their outcome.
//!
//! Not their business: the path of rows into a table ([`crate::load`]).

mod change;
pub(super) mod changed_rows;
mod computed_upsert;
mod create_as;
mod delete;
pub(super) mod explicit;
mod ignore;
pub(super) mod insert;
mod insert_parts;
mod kept_keys;
pub(super) mod load_data;
mod loads;
mod overwrite;
mod replay;
mod transaction_load;
mod update;
mod upsert;

//! Statements that bring, change and delete rows, and those that show how that went.
//!
//! Not their business: how rows get into a table ([`crate::load`]).

mod change;
mod create_as;
mod delete;
pub(super) mod explicit;
pub(super) mod insert;
mod insert_parts;
pub(super) mod load_data;
mod loads;
mod overwrite;

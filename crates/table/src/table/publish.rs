//! Incoming rows: publications, and settling their keys.
//!
//! Not here: anything that writes the Delta log, and changes of the table's definition.

pub(super) mod complete;
pub(super) mod cut;
pub(super) mod find;
pub(super) mod fold;
pub(super) mod own_rows;
pub(super) mod publication;
pub(super) mod settle;

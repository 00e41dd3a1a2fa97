//! Rows come in: publications, and settling what they bring.
//!
//! Not here: anything that writes the Delta log, and changes of what the table is.

pub(super) mod complete;
pub(super) mod cut;
pub(super) mod find;
pub(super) mod fold;
pub(super) mod publication;
pub(super) mod settle;

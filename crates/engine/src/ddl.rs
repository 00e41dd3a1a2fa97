//! Changes of what there is: databases, tables, users, views, partitions, and what is dropped and kept.
//!
//! Invariant: only this folder takes the turn of changes and writes definitions to the catalog. Not its business: rows on
//! their way in, sessions, protocols.

pub(crate) mod bin;
pub(crate) mod change;
pub(crate) mod partitions;
pub(crate) mod tables;
pub(crate) mod unfinished;
mod views;

//! Changes of definitions: databases, tables, users, views, partitions, and the recycle bin.
//!
//! Invariant: only this folder takes the lock of changes and writes definitions to the catalog. Not its business: rows on
//! their way in, sessions, protocols.

pub(crate) mod bin;
pub(crate) mod change;
pub(crate) mod partitions;
pub(crate) mod tables;
pub(crate) mod unfinished;
mod views;

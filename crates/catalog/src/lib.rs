//! The record of what exists: databases, tables with all their schemas so far, users, and finished
//! transactions with their labels.
//!
//! [`Catalog`] answers names from memory, without waiting, and changes them durably: a change is in
//! the store (SQLite's file `catalog.db`, or a database of PostgreSQL) before any lookup shows it. Changes are made one
//! after the other, each against the revision it was checked against. Not its business: rows, files, running
//! transactions, and who the node is; it knows only where a dropped table's files are, until someone has deleted them.
//!
//! All SQL is in the two stores, behind a trait: `sqlite`, with one process, and `postgres`, which several may reach and one owns.
//!
//! Users and roles have their grants here; whether somebody may do something is decided where it is done.

mod accounts;
mod catalog;
mod changes;
mod definition;
mod error;
mod finished_changes;
mod frozen;
mod globals;
mod increments;
mod jobs;
mod location;
mod moves;
mod node;
mod nodes;
mod postgres;
mod recycled;
mod rows;
mod sqlite;
mod state;
mod store;
mod stored;
mod transactions;
mod trouble;
mod users;
mod views;

#[cfg(test)]
mod tests;

pub use catalog::Catalog;
pub use error::CatalogError;
pub use finished_changes::FinishedChange;
pub use frozen::FrozenCatalog;
pub use jobs::{JobRecord, PositionRecord};
pub use location::CatalogLocation;
pub use moves::{Copied, copy_to_postgres, copy_to_sqlite};
pub use node::{NodeEntry, OldNode};
pub use nodes::{HeardNode, NodeAccess, NodeSign};
pub use postgres::{BadPostgresUrl, Claim, Claimed, PostgresOptions, PostgresUrl};
pub use recycled::{RecycleBin, RecycledDatabase, RecycledPartition, RecycledTable};
pub use store::Garbage;
pub use transactions::TxnRecord;
pub use trouble::CatalogTrouble;
pub use users::{
    ADMIN_ROLE, Account, OPERATOR_ROLE, ReplacedPassword, Role, User, UserChange, built_in_role,
};

//! Measures a server with the loads of Doris's group commit manual: `tributary bench`.
//!
//! `data` makes rows and requests, `client` sends them, `server` starts and watches the server,
//! `cell` measures one combination, `suite` runs many, `report` shows them. This crate knows the
//! server only by its ports, never by its code.

mod cell;
mod client;
mod data;
mod error;
mod options;
mod published;
mod query;
mod report;
mod server;
mod suite;

pub use error::BenchError;
pub use options::Bench;

//! Measures a server with the loads of Doris's group commit manual: `tributary bench`.
//!
//! `data` makes rows and requests, `client` sends them, `server` starts and watches the server, `cell` measures one combination,
//! `suite` runs many, `report` prints them. This crate knows the server only by its ports, never by its code. The loop is public
//! for other measurements, such as the comparison with other servers.

mod cell;
mod client;
mod data;
mod error;
mod flink_like;
mod insert_select;
mod keys;
mod logins;
mod long_run;
mod options;
mod parquet_load;
mod partitions;
mod published;
mod query;
mod report;
mod schema_change;
mod server;
mod suite;
mod suites;

pub use client::{closed_loop, http as stream_load, mysql};
pub use data::{FIRST_ID, IdForm, Order, Request};
pub use error::BenchError;
pub use options::Bench;
pub use report::table::grouped;
pub use server::{own_cpu_seconds, ticks_per_second};

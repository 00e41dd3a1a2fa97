//! Queries from SQL to rows, by the crate's interface: one binary, since each links the whole engine of queries.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;
mod distributed;
mod explain;
mod join_order;
mod result;
mod slt;
mod texts;
mod workarounds;

//! The protocol over real sockets, with a service that records its calls.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod bodies;
mod client;
mod connections;
mod curl;
mod endpoints;
mod fake;
mod loads;
mod queries;

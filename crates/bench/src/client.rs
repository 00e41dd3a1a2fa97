//! The client side, built to cost little: requests are ready before the clock starts, and one thread serves all connections, each
//! with one request in flight at a time.

pub mod closed_loop;
pub mod http;
pub mod mysql;

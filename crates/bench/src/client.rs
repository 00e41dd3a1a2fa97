//! The client side, made to cost little: requests are ready before the clock runs, one thread serves
//! all connections, each of which has one request under way at a time.

pub mod closed_loop;
pub mod http;
pub mod mysql;

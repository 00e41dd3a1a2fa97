//! The protocols' entry points of the server, and the clock's.
//!
//! The code here knows a protocol's requests and answers. Not here: tables, files, the meaning of statements.

pub(crate) mod flight;
pub(crate) mod http;
mod login;
pub(crate) mod mysql;
pub(crate) mod scheduled;

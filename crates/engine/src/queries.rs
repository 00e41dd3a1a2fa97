//! The server as queries see it.
//!
//! Not its business: statements, loads, the execution of queries (`query`).

pub(crate) mod namespace;

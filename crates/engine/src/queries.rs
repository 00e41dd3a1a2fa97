//! What queries see of the server.
//!
//! Not its business: statements, loads, how a query runs (`query`).

pub(crate) mod namespace;

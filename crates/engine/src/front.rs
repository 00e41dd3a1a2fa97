//! The protocols' ways into the server.
//!
//! What is here knows a protocol's requests and answers. Not its business: tables, files, what a statement means.

pub(crate) mod http;
pub(crate) mod mysql;

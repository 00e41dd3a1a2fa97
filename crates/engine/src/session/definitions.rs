//! Statements that change definitions, and the SHOWs that only the server can answer.
//!
//! Not their business: how it is changed ([`crate::ddl`]).

mod admin;
mod views;

//! Facts about the server: SHOW, DESC and `information_schema`, as rows built from a [`Namespace`](crate::namespace::Namespace).
//!
//! Not here: the query engine. A condition in a SHOW is evaluated by an implementation of [`Conditions`](show::Conditions).

pub mod info_schema;
pub mod show;

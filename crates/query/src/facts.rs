//! What can be asked about the server: SHOW, DESC and `information_schema`, as rows made from a
//! [`Namespace`](crate::namespace::Namespace).
//!
//! Not here: the query engine. A condition in a SHOW is evaluated by whoever implements [`Conditions`](show::Conditions).

pub mod info_schema;
pub mod show;

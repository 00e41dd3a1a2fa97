//! Values of an earlier schema as values of a later one.
//!
//! Not here: bodies of loads, and the rules for schema changes.

pub(crate) mod adapt;
pub(crate) mod recast;

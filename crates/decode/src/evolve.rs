//! Values of an earlier schema as values of a later one.
//!
//! What may not be here: bodies of loads, and which schema may follow which.

pub(crate) mod adapt;
pub(crate) mod recast;

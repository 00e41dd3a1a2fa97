//! Rows of a load: the mapping of fields to columns, the values of missing fields, and the conversion of rows and whole arrays to
//! blocks.
//!
//! Not here: formats of bodies, and the origin of their bytes.

pub(crate) mod any;
pub(crate) mod constant;
pub(crate) mod literal;
pub(crate) mod loader;
pub(crate) mod partition;
pub(crate) mod pieces;
pub(crate) mod target;
pub(crate) mod text_batches;
pub(crate) mod whole;

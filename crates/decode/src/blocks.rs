//! Blocks: their bytes, their builders, and their conversion to and from Arrow batches.
//!
//! Not here: the origin of rows, conversions of values, formats of bodies.

pub(crate) mod batch_block;
pub(crate) mod block;
pub(crate) mod builder;
pub(crate) mod columns;
pub(crate) mod error;
pub(crate) mod nested;

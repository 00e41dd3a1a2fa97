//! Blocks: their bytes, how they are built, and the Arrow batches that are made of them and into them.
//!
//! What may not be here: where rows come from, conversions of values, formats of bodies.

pub(crate) mod batch_block;
pub(crate) mod block;
pub(crate) mod builder;
pub(crate) mod columns;
pub(crate) mod error;

//! Rows of a load: which column a field is, what fills the others, and how rows and whole arrays become blocks.
//!
//! What may not be here: formats of bodies, and where their bytes come from.

pub(crate) mod any;
pub(crate) mod literal;
pub(crate) mod loader;
pub(crate) mod partition;
pub(crate) mod pieces;
pub(crate) mod target;
pub(crate) mod text_batches;
pub(crate) mod whole;

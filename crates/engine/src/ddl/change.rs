//! Changes that cross the Delta log and the catalog.
//!
//! Not its business: changes of the catalog alone, which partitions a statement names.

pub(crate) mod records;
pub(crate) mod schema;
pub(crate) mod switching;
pub(crate) mod turns;

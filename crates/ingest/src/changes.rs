//! Changes of tables beside loads: loads are held briefly, and continue with the changed table.
//!
//! Not here: the catalog, whose part the caller passes as a function, and the Delta log, which belongs to the table.

pub(crate) mod halt;
pub(crate) mod recycle;
pub(crate) mod replace_partitions;
pub(crate) mod schema_change;

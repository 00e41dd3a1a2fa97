//! Changes of tables beside loads: loads are held for a moment, and go on with what the table is then.
//!
//! Not here: the catalog, whose part the caller gives as a function, and the Delta log, which is the table's.

pub(crate) mod halt;
pub(crate) mod recycle;
pub(crate) mod replace_partitions;
pub(crate) mod schema_change;

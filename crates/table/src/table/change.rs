//! The table becomes another: its columns, its keys, its partitions.
//!
//! Not here: the catalog, and when loads are stopped for a change.

pub(super) mod drop;
pub(super) mod heavy;
pub(super) mod light;
pub(super) mod recycle;
pub(super) mod replace;

//! Partitions: creation, replacement, drop and recovery.
//!
//! Not its business: how a change crosses the log ([`super::change`]), which partitions a clause describes (`sql`).

pub(crate) mod automatic;
pub(crate) mod dynamic;
pub(crate) mod recycled;
pub(crate) mod temporary;

//! Partitions that are made, take the place of others, go and come back.
//!
//! Not its business: how a change crosses the log ([`super::change`]), which partitions a clause describes (`sql`).

mod automatic;
pub(crate) mod dynamic;
pub(crate) mod recycled;
pub(crate) mod temporary;

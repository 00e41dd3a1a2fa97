//! The execution of a plan and its results: pauses, and results in the types that clients know.
//!
//! Not here: planning, and the bytes of a protocol.

pub mod begin;
pub mod giving_way;
pub mod memory;
pub mod output;
pub mod places;
pub mod rows;

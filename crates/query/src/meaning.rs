//! The meaning of a statement in Doris and MySQL, before any plan is optimized.
//!
//! Here: the rewrite of the tree that was parsed, and the types, operators, set operations and subqueries that the
//! planner asks for. Not here: anything that works around a fault of DataFusion's optimizer (`workarounds`), tables
//! and files (`scan`), and functions over arrays (`functions`).

pub mod coercion;
pub mod operators;
pub mod rewrite;
pub mod set_operations;
pub mod unnest;
pub mod zeros;

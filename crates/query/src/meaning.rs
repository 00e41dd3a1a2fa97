//! The meaning of a statement in Doris and MySQL, before any plan is optimized.
//!
//! Here: the rewrite of the parsed tree, and the types, operators, set operations and subqueries for the planner. Not here:
//! workarounds of faults of DataFusion's optimizer (`workarounds`), tables and files (`scan`), and functions over arrays
//! (`functions`).

pub mod clocks;
pub mod coercion;
pub mod lateral_views;
pub mod operators;
pub mod rewrite;
pub mod set_operations;
pub mod unnest;
pub mod zeros;

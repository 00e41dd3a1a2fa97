//! Values of BITMAP and HLL columns, and aggregates over them.

pub mod aggregates;
mod elements;
pub mod intersect_count;
pub mod sets;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [elements::functions(), sets::functions()].into_iter().flatten().collect()
}

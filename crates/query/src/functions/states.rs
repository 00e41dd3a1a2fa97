//! Values of BITMAP and HLL columns, and aggregates over them.

pub mod aggregates;
pub mod intersect_count;
pub mod sets;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    sets::functions()
}

//! Arrays, maps and structs.

pub mod alike;
pub mod arrays;
pub mod maps;
pub mod printed;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [arrays::functions(), maps::functions()].into_iter().flatten().collect()
}

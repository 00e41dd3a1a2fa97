//! Arrays, maps and structs.

pub mod alike;
pub mod arrays;
mod compared;
mod computed;
mod ends;
mod flags;
pub mod maps;
pub mod printed;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [
        arrays::functions(),
        compared::functions(),
        computed::functions(),
        ends::functions(),
        flags::functions(),
        maps::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

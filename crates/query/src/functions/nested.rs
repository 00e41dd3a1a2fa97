//! Arrays, maps and structs.

pub mod alike;
pub mod arrays;
mod compared;
mod computed;
mod divided;
mod ends;
mod exploded;
mod flags;
pub mod made_maps;
pub mod maps;
pub mod printed;
mod vectors;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [
        arrays::functions(),
        compared::functions(),
        computed::functions(),
        divided::functions(),
        ends::functions(),
        exploded::functions(),
        flags::functions(),
        made_maps::functions(),
        maps::functions(),
        vectors::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

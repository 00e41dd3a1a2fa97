//! JSON and VARIANT.

pub mod documents;
mod elements;
pub mod made;
mod more;
mod search;
pub mod variant;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [
        documents::functions(),
        elements::functions(),
        made::functions(),
        more::functions(),
        search::functions(),
        variant::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

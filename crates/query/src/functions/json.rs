//! JSON and VARIANT.

pub mod documents;
pub mod made;
mod more;
pub mod variant;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [documents::functions(), made::functions(), more::functions(), variant::functions()]
        .into_iter()
        .flatten()
        .collect()
}

//! JSON and VARIANT.

pub mod documents;
pub mod variant;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [documents::functions(), variant::functions()].into_iter().flatten().collect()
}

//! Conversions between types, and expressions whose type is the common one of several.

pub mod cast;
pub mod choice;
mod collections;
pub mod convert;
pub mod exprs;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [choice::functions(), convert::functions()].into_iter().flatten().collect()
}

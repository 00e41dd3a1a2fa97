//! Texts.

pub mod format;
pub mod joined;
pub mod strings;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [format::functions(), joined::functions(), strings::functions()].into_iter().flatten().collect()
}

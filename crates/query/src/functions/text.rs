//! Texts.

mod encoded;
pub mod format;
pub mod joined;
mod parts;
pub mod strings;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [encoded::functions(), format::functions(), joined::functions(), parts::functions(), strings::functions()]
        .into_iter()
        .flatten()
        .collect()
}

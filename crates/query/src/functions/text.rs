//! Texts.

mod bytes;
mod encoded;
pub mod format;
mod hashes;
pub mod joined;
mod masks;
mod parts;
mod patterns;
pub mod strings;
mod urls;
mod words;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [
        bytes::functions(),
        encoded::functions(),
        format::functions(),
        hashes::functions(),
        joined::functions(),
        masks::functions(),
        parts::functions(),
        patterns::functions(),
        strings::functions(),
        urls::functions(),
        words::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

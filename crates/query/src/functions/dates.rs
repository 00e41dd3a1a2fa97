//! Dates and times.

mod clock;
pub mod date_text;
pub mod datetime;
mod days;
mod epochs;
mod periods;
pub mod spans;
pub mod time;
pub mod weeks;
pub mod zone;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    [
        clock::functions(),
        days::functions(),
        epochs::functions(),
        periods::functions(),
        spans::functions(),
        time::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

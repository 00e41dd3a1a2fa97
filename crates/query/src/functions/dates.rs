//! Dates and times.

pub mod date_text;
pub mod datetime;
pub mod time;
pub mod weeks;
pub mod zone;

use super::MySqlFunction;

pub(super) fn functions() -> Vec<MySqlFunction> {
    time::functions()
}

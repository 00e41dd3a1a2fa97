//! Bodies of loads: bytes become the rows that a load gets.
//!
//! Not its business: the table of a load and the answer; formats, which the crate `decode` knows.

pub(crate) mod computed;
pub(crate) mod parts;
pub(crate) mod reader;
mod rows;
mod segments;
#[cfg(test)]
mod testing;
pub(crate) mod time;

use tributary_types::{ErrorCode, SqlError};

/// The error of a body or statement that can't be planned.
pub(crate) fn plan_error(text: impl Into<String>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text.into())
}

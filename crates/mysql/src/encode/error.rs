//! Reasons why a value can't be sent.

use arrow::error::ArrowError;

/// Why a value cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum ValueError {
    #[error("{value} is not in {min} to {max}")]
    OutOfRange { value: i128, min: i128, max: i128 },
    #[error("year {0} is not in 0 to 9999")]
    YearOutOfRange(i64),
    #[error("the types differ")]
    Type,
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    #[error("it has no text form")]
    Format(#[from] std::fmt::Error),
}

//! The codes of refusals.

use std::fmt;

/// The word in brackets before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadCode {
    InvalidArgument,
    NotAuthorized,
    DataFileType,
    ExceededLimit,
    Network,
    Analysis,
    DataQuality,
    LabelAlreadyExists,
    OffsetAlreadyExists,
    OffsetOutOfRange,
    KeyConflict,
    NotImplemented,
    Internal,
    Cancelled,
    Timeout,
    ServiceUnavailable,
}

impl LoadCode {
    /// Doris's name of the code, if it has one.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NotAuthorized => "NOT_AUTHORIZED",
            Self::DataFileType => "DATA_FILE_TYPE_ERROR",
            Self::ExceededLimit => "EXCEEDED_LIMIT",
            Self::Network => "NETWORK_ERROR",
            Self::Analysis => "ANALYSIS_ERROR",
            Self::DataQuality => "DATA_QUALITY_ERROR",
            Self::LabelAlreadyExists => "LABEL_ALREADY_EXISTS",
            Self::OffsetAlreadyExists => "OFFSET_ALREADY_EXISTS",
            Self::OffsetOutOfRange => "OFFSET_OUT_OF_RANGE",
            Self::KeyConflict => "IDEMPOTENCY_KEY_CONFLICT",
            Self::NotImplemented => "NOT_IMPLEMENTED_ERROR",
            Self::Internal => "INTERNAL_ERROR",
            Self::Cancelled => "CANCELLED",
            Self::Timeout => "TIMEOUT",
            Self::ServiceUnavailable => "SERVICE_UNAVAILABLE",
        }
    }

    /// `[CODE]text`
    #[must_use]
    pub fn message(self, text: impl fmt::Display) -> String {
        format!("[{}]{text}", self.as_str())
    }
}

impl fmt::Display for LoadCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

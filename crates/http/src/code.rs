//! The codes of refusals.

use std::fmt;
use std::time::Duration;
use tributary_types::Retry;

/// How long a client waits for a server that refuses it for the moment, where nothing says it better.
const RETRY_AFTER: Duration = Duration::from_secs(1);

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

    /// The verdict on the retry of a load that was refused with the code, as far as the code alone gives it: refusals before the
    /// end of the body have stored nothing.
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::Network | Self::Cancelled | Self::Timeout => Retry::Safe,
            Self::ServiceUnavailable => Retry::After(RETRY_AFTER),
            Self::InvalidArgument
            | Self::NotAuthorized
            | Self::DataFileType
            | Self::ExceededLimit
            | Self::Analysis
            | Self::DataQuality
            | Self::LabelAlreadyExists
            | Self::OffsetAlreadyExists
            | Self::OffsetOutOfRange
            | Self::KeyConflict
            | Self::NotImplemented
            | Self::Internal => Retry::Never,
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

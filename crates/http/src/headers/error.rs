//! A header that cannot be obeyed, worded as Doris words it.

use crate::code::LoadCode;
use tributary_decode::FormatError;
use tributary_types::SqlError;

/// A header that cannot be obeyed, as `[CODE]text`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{code}]{text}")]
pub(crate) struct HeaderError {
    pub(crate) code: LoadCode,
    pub(crate) text: String,
}

impl HeaderError {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self { code: LoadCode::InvalidArgument, text: text.into() }
    }

    pub(super) fn new(code: LoadCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<SqlError> for HeaderError {
    fn from(error: SqlError) -> Self {
        let text = format!("TStatus: errCode = 2, detailMessage = {}", error.detail_text());
        Self::new(LoadCode::Analysis, text)
    }
}

impl From<FormatError> for HeaderError {
    fn from(error: FormatError) -> Self {
        let code = match error {
            FormatError::Unknown(_) => LoadCode::DataFileType,
            FormatError::NotSupported(_) => LoadCode::NotImplemented,
            FormatError::Invalid(_) => LoadCode::InvalidArgument,
        };
        Self::new(code, error.to_string())
    }
}

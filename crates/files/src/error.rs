//! Why files can't be found or read.

use tributary_types::egress::Forbidden;
use tributary_types::{ErrorCode, SqlError};

/// Why files can't be found or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// A property is missing, wrong or unknown.
    #[error("{0}")]
    Property(String),
    /// Doris has it and we do not.
    #[error("{0}")]
    NotSupported(String),
    /// A server is in a network that statements may not reach.
    #[error("{0}")]
    Forbidden(Forbidden),
    /// The pattern means no file.
    #[error("no file is called '{pattern}'; check the name and the pattern: * and ? stand for no '/'")]
    NoFile { pattern: String },
    /// More files than one statement may read.
    #[error("'{pattern}' means more than {limit} files; name fewer of them in one statement")]
    TooMany { pattern: String, limit: usize },
    /// A directory or a store can't be listed.
    #[error("the files '{pattern}' can't be listed: {reason}")]
    Unlistable { pattern: String, reason: String },
    #[error("the file '{file}' can't be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("the file '{file}' can't be written: {reason}")]
    Unwritable { file: String, reason: String },
}

impl From<FileError> for SqlError {
    fn from(error: FileError) -> Self {
        let code = match &error {
            FileError::NotSupported(_) => ErrorCode::NotSupported,
            _ => ErrorCode::Unknown,
        };
        Self::detail(code, error.to_string())
    }
}

/// The innermost cause of an error, which says what happened; those around it say where.
pub(crate) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

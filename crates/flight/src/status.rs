//! Errors as gRPC has them: a status, with MySQL's number and SQLSTATE in its text and in two headers.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tributary_types::{ErrorCode, SqlError};

/// The header with MySQL's error number.
const NUMBER: &str = "sql-error-number";
/// The header with MySQL's SQLSTATE.
const STATE: &str = "sql-state";
/// The longest text of a status, in bytes. It goes out as a header, in which other than ASCII takes three bytes for one, and clients
/// refuse headers of more than 8 KiB.
const TEXT_BYTES_MAX: usize = 2000;

/// The status of a failed statement.
pub(crate) fn status(error: &SqlError) -> Status {
    let (number, state) = (error.code.number(), error.code.sqlstate());
    let mut text = format!("{number} ({state}): {}", error.message);
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    let mut status = Status::new(code(error.code), text);
    status.metadata_mut().insert(NUMBER, MetadataValue::from(u64::from(number)));
    status.metadata_mut().insert(STATE, MetadataValue::from_static(state));
    status
}

/// A call that does not follow the protocol, or needs what the server does not have.
pub(crate) fn invalid(text: impl Into<String>) -> Status {
    Status::invalid_argument(text)
}

fn code(code: ErrorCode) -> Code {
    use ErrorCode::*;
    match code {
        AccessDenied | AccountLocked | PasswordExpired | SecureTransportRequired | BadHandshake => {
            Code::Unauthenticated
        }
        DbAccessDenied | TableAccessDenied | PrivilegeDenied => Code::PermissionDenied,
        UnknownDatabase
        | UnknownTable
        | UnknownTableInDb
        | NoSuchTable
        | UnknownThread
        | UnknownStatementHandle
        | DbDropNotExists => Code::NotFound,
        DbCreateExists | TableExists | PartitionExists => Code::AlreadyExists,
        QueryInterrupted => Code::Cancelled,
        ExecuteTimeout => Code::DeadlineExceeded,
        TooManyConnections | UserLimit | Busy | TooManyPreparedStatements | PacketTooLarge => {
            Code::ResourceExhausted
        }
        ServerShutdown => Code::Unavailable,
        NotSupported | UnsupportedPrepared => Code::Unimplemented,
        Unknown => Code::Unknown,
        _ => Code::InvalidArgument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_number_and_a_text_that_fits_into_a_header() {
        let error =
            SqlError::new(ErrorCode::NoSuchTable, "Table 'ü' doesn't exist".to_owned() + &"ü".repeat(5000));
        let status = status(&error);
        assert_eq!(status.code(), Code::NotFound);
        assert!(status.message().starts_with("1146 (42S02): Table 'ü' doesn't exist"), "{status}");
        assert!(status.message().len() <= TEXT_BYTES_MAX + '…'.len_utf8());
        let header = |name: &str| status.metadata().get(name).and_then(|value| value.to_str().ok());
        assert_eq!((header(NUMBER), header(STATE)), (Some("1146"), Some("42S02")));
    }
}

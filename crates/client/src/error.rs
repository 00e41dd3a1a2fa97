//! Why a statement failed.

use std::io;

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// No complete answer arrived: the outcome of the statement is unknown.
    #[error(transparent)]
    Gone(#[from] io::Error),
}

/// The answer of a statement that fails. It is shown as the command line clients print it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {number} ({state}): {message}")]
pub struct ServerError {
    /// MySQL's number of the error.
    pub number: u16,
    /// Its SQLSTATE; empty if the server sends none.
    pub state: String,
    /// Its text.
    pub message: String,
}

/// An error packet as an error; any other packet is `Ok`.
pub(crate) fn refusal(packet: &[u8]) -> Result<(), ServerError> {
    let [0xff, low, high, text @ ..] = packet else { return Ok(()) };
    let number = u16::from_le_bytes([*low, *high]);
    let text = String::from_utf8_lossy(text);
    let (state, message) =
        text.strip_prefix('#').and_then(|text| text.split_at_checked(5)).unwrap_or(("", &text));
    Err(ServerError { number, state: state.to_owned(), message: message.to_owned() })
}

/// An answer that does not follow the protocol.
pub(crate) fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_packet_has_a_number_perhaps_a_state_and_a_text() {
        let shown = |packet| refusal(packet).expect_err("an error packet").to_string();
        assert_eq!(shown(b"\xff\x51\x04#HY000no \xff"), "ERROR 1105 (HY000): no \u{fffd}");
        assert_eq!(shown(b"\xff\x10\x04Too many connections"), "ERROR 1040 (): Too many connections");
        assert_eq!(refusal(b"\0\x51\x04"), Ok(()));
    }
}

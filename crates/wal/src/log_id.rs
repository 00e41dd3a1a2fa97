//! The id of a log, as bytes and as text. [`crate::identity`] derives and locates it.

use std::fmt;
use std::str::FromStr;

/// The identity of a log. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogId(pub(crate) [u8; LOG_ID_BYTES]);

pub(crate) const LOG_ID_BYTES: usize = 16;

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogId({self})")
    }
}

/// A text that is not a log id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no id of a write-ahead log: it has 32 hexadecimal digits")]
pub struct LogIdError(String);

impl FromStr for LogId {
    type Err = LogIdError;

    fn from_str(text: &str) -> Result<Self, LogIdError> {
        let error = || LogIdError(text.to_owned());
        if text.len() != 2 * LOG_ID_BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error());
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| error())?;
        Ok(Self(number.to_be_bytes()))
    }
}

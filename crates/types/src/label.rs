//! Labels of transactions.

use crate::error::{ErrorCode, SqlError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest label, in bytes.
pub const LABEL_MAX_BYTES: usize = 128;

/// A transaction's name, unique in a database among transactions that are not aborted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Label(String);

impl Label {
    /// Checks a label that a client chose against `^[-_A-Za-z0-9:]{1,128}$` (Doris's rule).
    ///
    /// # Errors
    /// [`ErrorCode::Unknown`] with Doris's text when the label does not match.
    pub fn new(text: &str) -> Result<Self, SqlError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
        if text.is_empty() || text.len() > LABEL_MAX_BYTES || !text.bytes().all(legal) {
            return Err(SqlError::detail(
                ErrorCode::Unknown,
                format!("Label format error. regex: ^[-_A-Za-z0-9:]{{1,{LABEL_MAX_BYTES}}}$, label: {text}"),
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The label of a group: `group_commit_<16 hex>_<16 hex>` of 128 random bits.
    #[must_use]
    pub fn of_group(random: u128) -> Self {
        Self(format!("group_commit_{:016x}_{:016x}", (random >> 64) as u64, random as u64))
    }

    /// The label that a load without one gets when it is its own transaction.
    #[must_use]
    pub fn of_insert(random: u128) -> Self {
        Self(format!("label_{:016x}_{:016x}", (random >> 64) as u64, random as u64))
    }

    /// The label of `BEGIN` without one.
    #[must_use]
    pub fn of_explicit_transaction(random: u128) -> Self {
        Self(format!("txn_insert_{:016x}-{:016x}", (random >> 64) as u64, random as u64))
    }

    /// The label of a Stream Load without one: a UUID's text.
    #[must_use]
    pub fn of_stream_load(random: u128) -> Self {
        let hex = format!("{random:032x}");
        Self(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
    }

    /// A label read back from our own files, which was checked when it was written.
    #[must_use]
    pub fn from_storage(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_label_is_two_times_sixteen_hex_digits() {
        assert_eq!(Label::of_group(0x1f).as_str(), "group_commit_0000000000000000_000000000000001f");
    }

    #[test]
    fn a_stream_load_label_has_the_shape_of_a_uuid() {
        assert_eq!(Label::of_stream_load(1).as_str(), "00000000-0000-0000-0000-000000000001");
    }

    #[test]
    fn a_label_with_a_space_is_refused_with_the_rule_and_the_value() {
        let error = Label::new("my label").unwrap_err();
        assert!(error.message.contains("regex: ^[-_A-Za-z0-9:]{1,128}$, label: my label"), "{error}");
        assert!(Label::new("").is_err());
        assert!(Label::new(&"a".repeat(129)).is_err());
        assert!(Label::new(&"a".repeat(128)).is_ok());
    }
}

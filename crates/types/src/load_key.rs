//! Names of loads, by which a repeated load is told from a new one: an idempotency key, or an offset of a channel.

use crate::error::{ErrorCode, SqlError};
use crate::ids::TableId;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The longest key, in bytes.
pub const LOAD_KEY_MAX_BYTES: usize = 255;

/// A client's name for one load of a table: a load that is sent again with the same key is stored once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoadKey(Arc<str>);

impl LoadKey {
    /// Checks a key that a client chose: 1 to 255 bytes without control characters. Quotes around it, as the draft of the header
    /// `Idempotency-Key` has them, do not belong to it.
    ///
    /// # Errors
    /// [`ErrorCode::WrongArguments`] with the rule and the value.
    pub fn new(text: &str) -> Result<Self, SqlError> {
        let unquoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
        if unquoted.is_empty()
            || unquoted.len() > LOAD_KEY_MAX_BYTES
            || unquoted.chars().any(char::is_control)
        {
            return Err(SqlError::detail(
                ErrorCode::WrongArguments,
                format!(
                    "an idempotency key has 1 to {LOAD_KEY_MAX_BYTES} bytes without control characters, and this one is {text:?}"
                ),
            ));
        }
        Ok(Self(unquoted.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key's identity among those of all tables.
    #[must_use]
    pub fn id(&self, table: TableId) -> LoadKeyId {
        LoadKeyId::of(table, &[self.0.as_bytes()])
    }
}

impl fmt::Display for LoadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key of a table: 16 bytes of a SHA-256, which nobody finds two keys for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadKeyId(pub [u8; 16]);

impl fmt::Debug for LoadKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadKeyId({:032x})", u128::from_be_bytes(self.0))
    }
}

impl LoadKeyId {
    fn of(table: TableId, parts: &[&[u8]]) -> Self {
        let hash = Sha256::new().chain_update(table.0.to_le_bytes());
        let hash = parts.iter().fold(hash, Digest::chain_update).finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }
}

/// The place of a load in a channel: the loads of a channel are stored in the order of their offsets, each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChannelOffset {
    /// A client's name for a sequence of loads of a table.
    pub channel: LoadKey,
    /// Where the load begins: where the one before ended, 0 in a new channel.
    pub offset: u64,
    /// Where it ends and the next begins.
    pub next: u64,
}

impl ChannelOffset {
    /// Checks an offset, and the next one if it is given; otherwise that is one more.
    ///
    /// # Errors
    /// [`ErrorCode::WrongArguments`] with the rule and the values.
    pub fn new(channel: LoadKey, offset: u64, next: Option<u64>) -> Result<Self, SqlError> {
        let next = next.or_else(|| offset.checked_add(1)).filter(|next| *next > offset);
        next.map(|next| Self { channel, offset, next }).ok_or_else(|| {
            SqlError::detail(
                ErrorCode::WrongArguments,
                format!("a load of a channel ends above its offset, which is {offset}"),
            )
        })
    }
}

/// A client's name for a load, by which it is known when it is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LoadName {
    Key(LoadKey),
    Channel(ChannelOffset),
}

impl LoadName {
    /// The identity of the key, or of the channel, among those of all tables.
    #[must_use]
    pub fn id(&self, table: TableId) -> LoadKeyId {
        match self {
            Self::Key(key) => key.id(table),
            // No key has such a byte.
            Self::Channel(at) => LoadKeyId::of(table, &[&[0xFF], at.channel.0.as_bytes()]),
        }
    }
}

impl LoadName {
    /// The refusal of a name for a load that has a label, or what comes with one.
    #[must_use]
    pub fn beside(&self, what: &str) -> String {
        format!(
            "{what} can't be given together with {self}: a load with a label is known by its label, leave one of them out"
        )
    }
}

impl fmt::Display for LoadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "idempotency key [{key}]"),
            Self::Channel(at) => write!(f, "offset {} of channel [{}]", at.offset, at.channel),
        }
    }
}

/// Computes the fingerprint of a load's bytes, by which a repeated load is told from another one with the same key. It is stored,
/// so its function never changes.
#[derive(Clone, Default)]
pub struct Fingerprinter(Box<Xxh3>);

impl Fingerprinter {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The fingerprint of all bytes so far.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }

    /// The fingerprint of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64(bytes)
    }
}

impl fmt::Debug for Fingerprinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fingerprinter").field(&self.finish()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_what_the_quotes_enclose() {
        assert_eq!(LoadKey::new("\"a b\"").expect("legal"), LoadKey::new("a b").expect("legal"));
        for wrong in ["", "\"\"", "a\nb", &"k".repeat(256)] {
            let error = LoadKey::new(wrong).expect_err(wrong);
            assert!(error.message.contains("1 to 255 bytes without control characters"), "{error}");
        }
    }

    #[test]
    fn a_key_of_another_table_is_another_key() {
        let key = LoadKey::new("a").expect("legal");
        assert_ne!(key.id(TableId(1)), key.id(TableId(2)));
        assert_eq!(key.id(TableId(1)), LoadKey::new("a").expect("legal").id(TableId(1)));
    }

    #[test]
    fn a_channel_is_no_key_and_ends_above_its_offset() {
        let name = LoadKey::new("a").expect("legal");
        let at = ChannelOffset::new(name.clone(), 7, None).expect("legal");
        assert_eq!((at.offset, at.next), (7, 8));
        assert_ne!(LoadName::Channel(at).id(TableId(1)), name.id(TableId(1)));
        for (offset, next) in [(7, Some(7)), (7, Some(3)), (u64::MAX, None)] {
            let error = ChannelOffset::new(name.clone(), offset, next).expect_err("it does not end above");
            assert!(error.message.contains(&offset.to_string()), "{error}");
        }
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_how_bytes_arrive() {
        let mut parts = Fingerprinter::default();
        parts.update(b"one");
        parts.update(b"two");
        assert_eq!(parts.finish(), Fingerprinter::of(b"onetwo"));
    }
}

//! Tokens: passwords that the server makes, for programs that load over HTTP.
//!
//! A token is `trb_` and 72 hexadecimal digits: 32 random bytes, and a checksum of what precedes it. Scanners for secrets in
//! repositories know it by that form, and a mistyped one is refused without a look at the users. Only the hash is stored: 256 random
//! bits can't be guessed from it, so it needs no salt and no rounds.

use crate::privilege::Grants;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};

/// The beginning of every token.
pub const TOKEN_PREFIX: &str = "trb_";
/// Random bytes of a token.
pub const TOKEN_RANDOM_BYTES: usize = 32;
/// Hexadecimal digits of the checksum.
const CHECKSUM_DIGITS: usize = 8;

/// The text of a token with these random bytes.
#[must_use]
pub fn token_text(random: &[u8; TOKEN_RANDOM_BYTES]) -> Secret {
    let mut text = String::from(TOKEN_PREFIX);
    for byte in random {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    let checksum = crc32fast::hash(text.as_bytes());
    let _ = write!(text, "{checksum:0CHECKSUM_DIGITS$x}");
    Secret::new(text)
}

/// SHA-256 of a token's text, which is what is stored of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a text; `None` if it does not have the form of a token, or its checksum is wrong.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let length = TOKEN_PREFIX.len() + 2 * TOKEN_RANDOM_BYTES;
        if text.len() != length + CHECKSUM_DIGITS || !text.starts_with(TOKEN_PREFIX) {
            return None;
        }
        let (body, checksum) = text.split_at_checked(length)?;
        let checksum = u32::from_str_radix(checksum, 16).ok()?;
        (crc32fast::hash(body.as_bytes()) == checksum).then(|| Self(Sha256::digest(text).into()))
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> Self {
        hash.0.iter().fold(Self::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl TryFrom<String> for TokenHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        crate::password::from_hex(&text).map(Self).ok_or("not the hash of a token")
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(set)")
    }
}

/// The stored form of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// Unique among the tokens of a user.
    pub name: String,
    pub hash: TokenHash,
    /// The rights that it is limited to; it never has more than its user. `None`: all of these.
    #[serde(default)]
    pub limit: Option<Grants>,
    /// Milliseconds since 1970, like the other times.
    pub created_at_ms: i64,
    /// When it ends. `None`: never.
    #[serde(default)]
    pub expires_at_ms: Option<i64>,
    /// About when it was used last, by an hour at most.
    #[serde(default)]
    pub used_at_ms: Option<i64>,
    #[serde(default)]
    pub comment: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_form_and_checksum() {
        let text = token_text(&[7; TOKEN_RANDOM_BYTES]);
        let text = text.reveal();
        assert_eq!((text.len(), &text[..6]), (76, "trb_07"));
        let hash = TokenHash::of(text).expect("it is one");
        let stored: String = hash.into();
        assert_eq!(TokenHash::try_from(stored), Ok(hash));
        let mistyped = text.replacen("07", "08", 1);
        for wrong in ["", "trb_", &text[1..], &text[..75], &mistyped, &text.to_uppercase(), &"ä".repeat(38)]
        {
            assert_eq!(TokenHash::of(wrong), None, "{wrong}");
        }
    }
}

//! The stored form of a user's password.

use sha1::{Digest, Sha1};
use std::fmt;

/// A user's password as the server stores it: `None` for an empty one, else `SHA1(SHA1(password))`, as in
/// `mysql_native_password`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PasswordHash(pub Option<[u8; 20]>);

impl PasswordHash {
    /// The hash of the empty password.
    pub const EMPTY: Self = Self(None);

    /// The hash of a password in clear text.
    #[must_use]
    pub fn of(password: &str) -> Self {
        if password.is_empty() {
            return Self::EMPTY;
        }
        Self(Some(Sha1::digest(Sha1::digest(password)).into()))
    }

    /// Whether it is the hash of the empty password.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Reads MySQL's text form: empty, or `*` and 40 hexadecimal digits. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::EMPTY);
        }
        let digits = text.strip_prefix('*')?.as_bytes();
        if digits.len() != 40 {
            return None;
        }
        let mut hash = [0_u8; 20];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(Some(hash)))
    }
}

/// The text form that [`PasswordHash::parse`] reads and that Doris and MySQL show.
impl fmt::Display for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(hash) = &self.0 else { return Ok(()) };
        f.write_str("*")?;
        hash.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "PasswordHash(set)" } else { "PasswordHash(empty)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_mysqls_and_is_read_back() {
        let hash = PasswordHash::of("password");
        assert_eq!(hash.to_string(), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(PasswordHash::parse(&hash.to_string()), Some(hash));
        assert_eq!(PasswordHash::parse(&hash.to_string().to_lowercase()), Some(hash));
        assert_eq!(PasswordHash::parse(""), Some(PasswordHash::of("")));
        for wrong in ["*12", "2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19", &format!("*{}", "é".repeat(20))] {
            assert_eq!(PasswordHash::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_hash_is_not_shown_by_chance() {
        assert_eq!(
            format!("{:?} {:?}", PasswordHash::of("x"), PasswordHash::EMPTY),
            "PasswordHash(set) PasswordHash(empty)"
        );
    }
}

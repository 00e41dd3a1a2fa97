//! The stored forms of a user's password, and the forms in which a statement gives one.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use std::fmt;

/// Bytes of a [`SaltedHash`]'s salt.
pub const SALT_BYTES: usize = 16;

/// The longest password that is checked, in bytes. A check takes time that grows with it.
pub const PASSWORD_BYTES_MAX: usize = 256;

/// The password of a user as the server stores it: no verifier for an empty one, else one or both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verifiers {
    /// For `mysql_native_password`; it also checks a password in clear text.
    pub native: PasswordHash,
    /// For `caching_sha2_password` and passwords in clear text.
    pub salted: Option<SaltedHash>,
}

impl Verifiers {
    /// The empty password.
    pub const EMPTY: Self = Self { native: PasswordHash::EMPTY, salted: None };

    /// Whether it is the empty password.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.native.is_empty() && self.salted.is_none()
    }
}

impl From<PasswordHash> for Verifiers {
    fn from(native: PasswordHash) -> Self {
        Self { native, salted: None }
    }
}

/// PBKDF2-HMAC-SHA256 of a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SaltedHash {
    pub iterations: u32,
    pub salt: [u8; SALT_BYTES],
    pub hash: [u8; 32],
}

/// The first part of a [`SaltedHash`]'s text form.
const SALTED: &str = "$pbkdf2-sha256$";

impl SaltedHash {
    /// Reads the text form, in which it is stored. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(SALTED)?.split('$');
        let iterations = parts.next()?.parse().ok().filter(|iterations| *iterations > 0)?;
        let (salt, hash) = (from_hex(parts.next()?)?, from_hex(parts.next()?)?);
        parts.next().is_none().then_some(Self { iterations, salt, hash })
    }
}

/// The text form that [`SaltedHash::parse`] reads.
impl fmt::Display for SaltedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SALTED}{}$", self.iterations)?;
        self.salt.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("$")?;
        self.hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<SaltedHash> for String {
    fn from(hash: SaltedHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for SaltedHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a salted hash")
    }
}

impl fmt::Debug for SaltedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SaltedHash(set)")
    }
}

/// The password that a statement gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewPassword {
    /// In clear text. `None`: verifiers for all plugins that the server stores.
    Clear { text: Secret, plugin: Option<AuthPlugin> },
    /// `'*HASH'`: only `mysql_native_password` can check it.
    Hash(PasswordHash),
}

impl NewPassword {
    /// Whether it is the empty password.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Clear { text, .. } => text.is_empty(),
            Self::Hash(hash) => hash.is_empty(),
        }
    }
}

/// A way in which clients of the MySQL protocol prove a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthPlugin {
    Native,
    CachingSha2,
}

impl AuthPlugin {
    pub const ALL: [Self; 2] = [Self::Native, Self::CachingSha2];

    /// The name in the protocol and in statements.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The plugin of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.name().eq_ignore_ascii_case(name))
    }
}

/// The stored forms of a new password whose statement names no plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredVerifiers {
    /// For clients of both plugins.
    #[default]
    Both,
    /// Nothing from which a stolen catalog would give passwords away quickly.
    Sha2,
    Native,
}

impl StoredVerifiers {
    /// By the value of the setting.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "both" => Some(Self::Both),
            "sha2" => Some(Self::Sha2),
            "native" => Some(Self::Native),
            _ => None,
        }
    }

    /// Whether it stores what the plugin needs.
    #[must_use]
    pub fn has(self, plugin: AuthPlugin) -> bool {
        match plugin {
            AuthPlugin::Native => self != Self::Sha2,
            AuthPlugin::CachingSha2 => self != Self::Native,
        }
    }
}

/// `SHA1(SHA1(password))` as in `mysql_native_password`; `None` for an empty password.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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
        from_hex(text.strip_prefix('*')?).map(|hash| Self(Some(hash)))
    }
}

pub(crate) fn from_hex<const BYTES: usize>(digits: &str) -> Option<[u8; BYTES]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0_u8; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high * 16 + low) as u8;
    }
    Some(bytes)
}

/// The text form that [`PasswordHash::parse`] reads and that Doris and MySQL show.
impl fmt::Display for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(hash) = &self.0 else { return Ok(()) };
        f.write_str("*")?;
        hash.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl From<PasswordHash> for String {
    fn from(hash: PasswordHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for PasswordHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a hash of mysql_native_password")
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
    fn a_salted_hash_is_read_back_from_its_text() {
        let hash = SaltedHash { iterations: 20_000, salt: [0xab; SALT_BYTES], hash: [0x01; 32] };
        let text = hash.to_string();
        assert_eq!(text, format!("$pbkdf2-sha256$20000${}${}", "ab".repeat(16), "01".repeat(32)));
        assert_eq!(SaltedHash::parse(&text), Some(hash.clone()));
        assert_eq!(format!("{hash:?}"), "SaltedHash(set)");
        for wrong in ["", "*12", &text[..text.len() - 1], &format!("{text}$"), &text.replace("20000", "0")] {
            assert_eq!(SaltedHash::parse(wrong), None, "{wrong}");
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

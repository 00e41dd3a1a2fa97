//! `mysql_native_password`: a challenge of 20 bytes, answered with a hash that proves the password.
//!
//! The server keeps only `SHA1(SHA1(password))`; neither the password nor what would log in with it
//! crosses the wire or is stored.

use rand::Rng;
use sha1::{Digest, Sha1};
use std::fmt;

/// The only plugin that we speak.
pub(crate) const NATIVE_PASSWORD: &str = "mysql_native_password";
/// Bytes of a challenge.
pub(crate) const NONCE_BYTES: usize = 20;

/// What the server knows of a user's password: `None` for an empty one, else
/// `SHA1(SHA1(password))`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PasswordHash(pub Option<[u8; 20]>);

impl PasswordHash {
    /// The hash of a password in clear text.
    #[must_use]
    pub fn of(password: &str) -> Self {
        if password.is_empty() {
            return Self(None);
        }
        Self(Some(sha1(&[&sha1(&[password.as_bytes()])])))
    }

    /// Reads MySQL's text form: empty, or `*` and 40 hexadecimal digits. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(None));
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

    /// Whether `response` is the answer to `nonce` of someone who knows the password. Takes the
    /// same time wherever the bytes differ.
    pub(crate) fn verify(&self, nonce: &[u8; NONCE_BYTES], response: &[u8]) -> bool {
        let Some(stored) = &self.0 else { return response.is_empty() };
        let Ok(response) = <&[u8; 20]>::try_from(response) else { return false };
        let mut stage1 = sha1(&[nonce, stored]);
        for (byte, answer) in stage1.iter_mut().zip(response) {
            *byte ^= answer;
        }
        let difference = sha1(&[&stage1]).iter().zip(stored).fold(0, |sum, (a, b)| sum | (a ^ b));
        difference == 0
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

/// A fresh challenge: printable bytes only, since some clients treat it as a C string.
pub(crate) fn fresh_nonce() -> [u8; NONCE_BYTES] {
    let mut rng = rand::rng();
    std::array::from_fn(|_| match rng.random_range(0x21..0x7f_u8) {
        b'$' => b'#',
        byte => byte,
    })
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hasher = Sha1::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_common::auth::plugins::mysql_native_password::scramble_native;

    #[test]
    fn the_right_answer_to_a_challenge_is_accepted_and_any_other_is_not() {
        let nonce = fresh_nonce();
        let stored = PasswordHash::of("secret");
        let answer = scramble_native(&nonce, b"secret").unwrap();
        assert!(stored.verify(&nonce, &answer));
        assert!(!stored.verify(&nonce, &scramble_native(&nonce, b"Secret").unwrap()));
        assert!(!stored.verify(&fresh_nonce(), &answer));
        assert!(!stored.verify(&nonce, b""));
        assert!(!stored.verify(&nonce, &answer[..19]));
    }

    #[test]
    fn an_empty_password_is_answered_by_nothing_and_only_by_nothing() {
        assert!(PasswordHash::of("").verify(&fresh_nonce(), b""));
        assert!(!PasswordHash::of("").verify(&fresh_nonce(), &[0; 20]));
    }

    #[test]
    fn the_text_form_is_mysqls_and_is_read_back() {
        let hash = PasswordHash::of("password");
        assert_eq!(hash.to_string(), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(PasswordHash::parse(&hash.to_string()), Some(hash));
        assert_eq!(PasswordHash::parse(""), Some(PasswordHash(None)));
        assert_eq!(PasswordHash::parse("*12"), None);
        assert_eq!(PasswordHash::parse(&format!("*{}", "é".repeat(20))), None);
    }

    #[test]
    fn a_challenge_is_printable() {
        for _ in 0..200 {
            assert!(fresh_nonce().iter().all(|byte| byte.is_ascii_graphic() && *byte != b'$'));
        }
    }
}

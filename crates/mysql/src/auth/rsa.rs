//! The key with which a client hides its password on the way, where there is no TLS.
//!
//! It is made when a client first asks for it, and lives as long as the server. It protects from listeners, not from someone who
//! answers in the server's place.

use super::Nonce;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use std::sync::OnceLock;
use tributary_types::password::PASSWORD_BYTES_MAX;

/// The server's key, once it was needed.
#[derive(Debug, Default)]
pub(crate) struct PasswordKey(OnceLock<Option<Key>>);

#[derive(Debug)]
struct Key {
    private: OaepPrivateDecryptingKey,
    public: String,
}

impl PasswordKey {
    /// The public key in PEM; `None` when none can be made. Takes up to a second the first time.
    pub fn public(&self) -> Option<&str> {
        self.key().map(|key| key.public.as_str())
    }

    /// The password that a client hid with the public key and its challenge.
    pub fn reveal(&self, hidden: &[u8], nonce: &Nonce) -> Option<String> {
        let private = &self.key()?.private;
        if hidden.len() != private.key_size_bytes() {
            return None;
        }
        let mut text = vec![0; private.min_output_size()];
        let text = private.decrypt(&OAEP_SHA1_MGF1SHA1, hidden, &mut text, None).ok()?;
        for (byte, mask) in text.iter_mut().zip(nonce.iter().cycle()) {
            *byte ^= mask;
        }
        let password = text.strip_suffix(&[0])?;
        (password.len() <= PASSWORD_BYTES_MAX).then(|| String::from_utf8(password.to_vec()).ok()).flatten()
    }

    fn key(&self) -> Option<&Key> {
        self.0.get_or_init(Key::generate).as_ref()
    }
}

impl Key {
    fn generate() -> Option<Self> {
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).ok()?;
        let public = pem(key.public_key().as_der().ok()?.as_ref());
        Some(Self { private: OaepPrivateDecryptingKey::new(key).ok()?, public })
    }
}

fn pem(der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::fresh_nonce;
    use aws_lc_rs::rsa::{OaepPublicEncryptingKey, PublicEncryptingKey};
    use base64::Engine;

    /// A client's part.
    fn hide(public: &str, password: &str, nonce: &Nonce) -> Vec<u8> {
        let body: String = public.lines().filter(|line| !line.starts_with('-')).collect();
        let der = base64::engine::general_purpose::STANDARD.decode(body).unwrap();
        let key = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&der).unwrap()).unwrap();
        let mut text = [password.as_bytes(), &[0]].concat();
        text.iter_mut().zip(nonce.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        let mut hidden = vec![0; key.ciphertext_size()];
        key.encrypt(&OAEP_SHA1_MGF1SHA1, &text, &mut hidden, None).unwrap().to_vec()
    }

    #[test]
    fn a_hidden_password_is_revealed_for_its_challenge_only() {
        let (key, nonce) = (PasswordKey::default(), fresh_nonce());
        let public = key.public().unwrap();
        for password in ["secret", "", "a passphrase that is longer than the challenge"] {
            assert_eq!(key.reveal(&hide(public, password, &nonce), &nonce).as_deref(), Some(password));
        }
        let hidden = hide(public, "secret", &nonce);
        assert_ne!(key.reveal(&hidden, &fresh_nonce()).as_deref(), Some("secret"));
        assert_eq!(key.reveal(&hidden[1..], &nonce), None);
        assert_eq!(key.reveal(&[7; 256], &nonce), None);
        assert_eq!(PasswordKey::default().reveal(&hidden, &nonce), None, "another key");
    }
}

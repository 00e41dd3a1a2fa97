//! `caching_sha2_password`: a challenge, answered with a hash that proves the password to a server that has seen it before.
//!
//! Such a server has `SHA256(SHA256(password))` in memory, which does not suffice to log in. One that has not seen the password
//! asks for it in clear text, over TLS or hidden by [`super::rsa`].

use super::{Nonce, is_proof};
use sha2::Sha256;
use tributary_types::password::PASSWORD_BYTES_MAX;

/// The server's word: the proof was right.
pub(crate) const FAST_PROOF_IS_RIGHT: u8 = 3;
/// The server's word: send the password itself.
pub(crate) const SEND_PASSWORD: u8 = 4;
/// The client's word: send the public key first.
pub(crate) const SEND_PUBLIC_KEY: u8 = 2;

/// Whether `response` is the answer to `nonce` of someone who knows the password. `proven` is `SHA256(SHA256(password))`.
/// Takes the same time wherever the bytes differ.
pub(crate) fn verify(proven: &[u8; 32], nonce: &Nonce, response: &[u8]) -> bool {
    is_proof::<Sha256>([proven, nonce], response, proven)
}

/// The password in the packet of a client that sends it over TLS, without the zero byte at its end.
pub(crate) fn clear_password(payload: &[u8]) -> Option<&str> {
    let password = payload.strip_suffix(&[0]).unwrap_or(payload);
    (password.len() <= PASSWORD_BYTES_MAX).then(|| std::str::from_utf8(password).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::fresh_nonce;
    use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
    use sha2::Digest;

    #[test]
    fn the_right_answer_to_a_challenge_is_accepted_and_any_other_is_not() {
        let nonce = fresh_nonce();
        let proven = Sha256::digest(Sha256::digest("secret")).into();
        let answer = scramble_sha256(&nonce, b"secret").unwrap();
        assert!(verify(&proven, &nonce, &answer));
        assert!(!verify(&proven, &nonce, &scramble_sha256(&nonce, b"Secret").unwrap()));
        assert!(!verify(&proven, &fresh_nonce(), &answer));
        assert!(!verify(&proven, &nonce, b""));
        assert!(!verify(&proven, &nonce, &answer[..31]));
    }

    #[test]
    fn a_clear_password_ends_with_a_zero_and_is_not_too_long() {
        assert_eq!(clear_password(b"secret\0"), Some("secret"));
        assert_eq!(clear_password(b"secret"), Some("secret"));
        assert_eq!(clear_password(b"\0"), Some(""));
        assert_eq!(clear_password(&[b'x'; PASSWORD_BYTES_MAX + 1]), None);
        assert_eq!(clear_password(b"\xff\0"), None);
    }
}

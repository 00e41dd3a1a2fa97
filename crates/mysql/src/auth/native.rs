//! `mysql_native_password`: a challenge, answered with a hash that proves the password.
//!
//! The server stores only `SHA1(SHA1(password))`; neither the password nor anything that would suffice to log in is sent or
//! stored.

use super::{Nonce, is_proof};
use sha1::Sha1;
use tributary_types::PasswordHash;

/// Whether `response` is the answer to `nonce` of someone who knows the password. Takes the same time wherever the
/// bytes differ.
pub(crate) fn verify(password: &PasswordHash, nonce: &Nonce, response: &[u8]) -> bool {
    let Some(stored) = &password.0 else { return response.is_empty() };
    is_proof::<Sha1>([nonce, stored], response, stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::fresh_nonce;
    use mysql_common::auth::plugins::mysql_native_password::scramble_native;

    #[test]
    fn the_right_answer_to_a_challenge_is_accepted_and_any_other_is_not() {
        let nonce = fresh_nonce();
        let stored = PasswordHash::of("secret");
        let answer = scramble_native(&nonce, b"secret").unwrap();
        assert!(verify(&stored, &nonce, &answer));
        assert!(!verify(&stored, &nonce, &scramble_native(&nonce, b"Secret").unwrap()));
        assert!(!verify(&stored, &fresh_nonce(), &answer));
        assert!(!verify(&stored, &nonce, b""));
        assert!(!verify(&stored, &nonce, &answer[..19]));
    }

    #[test]
    fn an_empty_password_is_answered_by_nothing_and_only_by_nothing() {
        assert!(verify(&PasswordHash::EMPTY, &fresh_nonce(), b""));
        assert!(!verify(&PasswordHash::EMPTY, &fresh_nonce(), &[0; 20]));
    }
}

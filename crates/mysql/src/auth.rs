//! Proofs of passwords, in the ways that MySQL calls plugins: pure functions over bytes.
//!
//! | file | plugin |
//! | --- | --- |
//! | `native` | `mysql_native_password` |
//! | `sha2` | `caching_sha2_password` |
//! | `rsa` | the key that hides a password on its way without TLS |
//!
//! Not here: the packets of a login, and what is stored of a password.

pub(crate) mod native;
pub(crate) mod rsa;
pub(crate) mod sha2;

use ::sha2::Digest;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use rand::Rng;

/// Bytes of a challenge.
pub(crate) const NONCE_BYTES: usize = 20;

/// A challenge, to which a proof of a password is bound.
pub(crate) type Nonce = [u8; NONCE_BYTES];

/// Whether `response` hides, under the hash of `mask`, a value whose hash is `stored`: the proof that both plugins have. Takes the
/// same time wherever the bytes differ.
fn is_proof<D: Digest>(mask: [&[u8]; 2], response: &[u8], stored: &[u8]) -> bool {
    let [challenge, known] = mask;
    let mut stage1 = D::new().chain_update(challenge).chain_update(known).finalize();
    if response.len() != stage1.len() {
        return false;
    }
    for (byte, answer) in stage1.iter_mut().zip(response) {
        *byte ^= answer;
    }
    verify_slices_are_equal(&D::digest(&stage1), stored).is_ok()
}

/// A fresh challenge: printable bytes only, since some clients treat it as a C string.
pub(crate) fn fresh_nonce() -> Nonce {
    let mut rng = rand::rng();
    std::array::from_fn(|_| match rng.random_range(0x21..0x7f_u8) {
        b'$' => b'#',
        byte => byte,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_printable() {
        for _ in 0..200 {
            assert!(fresh_nonce().iter().all(|byte| byte.is_ascii_graphic() && *byte != b'$'));
        }
    }
}

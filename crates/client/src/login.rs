//! The client's identity and capabilities, and proofs of its password.

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// `LONG_PASSWORD`, `LOCAL_FILES`, `PROTOCOL_41`, `TRANSACTIONS`, `SECURE_CONNECTION`, `PLUGIN_AUTH`. The client itself sends no
/// files: for `LOAD DATA LOCAL`, take the socket.
const CAPABILITIES: u32 = 0x1 | 0x80 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const CONNECT_WITH_DB: u32 = 0x8;
const TLS: u32 = 0x800;
const PAYLOAD_BYTES_MAX: u32 = 1 << 30;
const UTF8MB4: u8 = 45;

/// Bytes of an answer to a greeting before the user's name, which are also the request for TLS.
pub(crate) const HEAD_BYTES: usize = 32;
/// Bytes of a server's challenge.
const NONCE_BYTES: usize = 20;

/// The answer to a greeting of a user with a password, which is empty if there is none.
pub(crate) fn of_user(user: &str, password: &str, database: Option<&str>, greeting: &[u8]) -> Vec<u8> {
    let with_database = if database.is_some() { CONNECT_WITH_DB } else { 0 };
    let mut payload = (CAPABILITIES | with_database).to_le_bytes().to_vec();
    payload.extend(PAYLOAD_BYTES_MAX.to_le_bytes());
    payload.push(UTF8MB4);
    payload.extend([0; 23]);
    payload.extend(user.as_bytes());
    payload.push(0);
    let proof = nonce_of_greeting(greeting).map(|nonce| native(password, &nonce)).unwrap_or_default();
    payload.push(proof.len() as u8);
    payload.extend(proof);
    if let Some(database) = database {
        payload.extend(database.as_bytes());
        payload.push(0);
    }
    payload.extend(b"mysql_native_password\0");
    payload
}

/// Says in an answer to a greeting that TLS comes first.
pub(crate) fn ask_for_tls(answer: &mut [u8]) {
    for (byte, tls) in answer.iter_mut().zip(TLS.to_le_bytes()) {
        *byte |= tls;
    }
}

/// The proof that a server asks for by the name of another plugin. `None` if the plugin is unknown.
pub(crate) fn of_switch(password: &str, payload: &[u8]) -> Option<Vec<u8>> {
    if password.is_empty() {
        return Some(Vec::new());
    }
    let rest = payload.strip_prefix(&[0xfe])?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let nonce = rest[end + 1..].first_chunk()?;
    match &rest[..end] {
        b"mysql_native_password" => Some(native(password, nonce)),
        b"caching_sha2_password" => Some(sha2(password, nonce)),
        _ => None,
    }
}

/// The bytes of a greeting that a password is proved for.
fn nonce_of_greeting(greeting: &[u8]) -> Option<[u8; NONCE_BYTES]> {
    let version = greeting.iter().skip(1).position(|byte| *byte == 0)? + 2;
    let rest = greeting.get(version + 4..)?;
    // Between them are capabilities, a collation, a state and ten bytes that are reserved.
    let (first, second) = (rest.get(..8)?, rest.get(8 + 19..8 + 19 + 12)?);
    [first, second].concat().try_into().ok()
}

/// The proof of `mysql_native_password`; an empty password is proved by nothing.
fn native(password: &str, nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let mask = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(once)).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

/// The proof of `caching_sha2_password`, for a server that has seen the password before.
fn sha2(password: &str, nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    let once = Sha256::digest(password.as_bytes());
    let mask = Sha256::new().chain_update(Sha256::digest(once)).chain_update(nonce).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &[u8; NONCE_BYTES] = b"abcdefghijklmnopqrst";

    fn masked(proof: &[u8], mask: &[u8]) -> Vec<u8> {
        proof.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
    }

    /// A server knows the hash of the password's hash, takes the mask off, and hashes once more.
    #[test]
    fn a_server_finds_its_hash_in_a_proof() {
        let known = Sha1::digest(Sha1::digest(b"secret"));
        let mask = Sha1::new().chain_update(NONCE).chain_update(known).finalize();
        assert_eq!(Sha1::digest(masked(&native("secret", NONCE), &mask)), known);
        let known = Sha256::digest(Sha256::digest(b"secret"));
        let mask = Sha256::new().chain_update(known).chain_update(NONCE).finalize();
        assert_eq!(Sha256::digest(masked(&sha2("secret", NONCE), &mask)), known);
    }

    #[test]
    fn the_nonce_is_in_two_parts_of_a_greeting() {
        let mut greeting = b"\x0a5.7.99\0\x01\0\0\0abcdefgh\0".to_vec();
        greeting.extend([0xff; 18]);
        greeting.extend(b"ijklmnopqrst\0mysql_native_password\0");
        assert_eq!(nonce_of_greeting(&greeting), Some(*NONCE));
        assert_eq!(nonce_of_greeting(b"\x0agreeting"), None);
        let login = of_user("u", "secret", None, &greeting);
        let proof = native("secret", NONCE);
        assert!(login.windows(proof.len()).any(|bytes| bytes == proof));
    }

    #[test]
    fn a_server_may_ask_for_another_proof() {
        let asked = |plugin: &str| [b"\xfe", plugin.as_bytes(), b"\0", &NONCE[..], b"\0"].concat();
        let proof = |plugin| of_switch("secret", &asked(plugin));
        assert_eq!(proof("mysql_native_password"), Some(native("secret", NONCE)));
        assert_eq!(proof("caching_sha2_password"), Some(sha2("secret", NONCE)));
        assert_eq!(proof("mysql_clear_password"), None);
        assert_eq!(of_switch("", &asked("mysql_clear_password")), Some(Vec::new()));
    }
}

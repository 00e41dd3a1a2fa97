//! Passwords that were right, as hashes in memory.
//!
//! Invariant: a hash is given only while the user's stored password is the one that it was compared with. So a change of the
//! password, or of the user, needs no word here.

use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use tributary_catalog::User;
use tributary_types::Verifiers;

/// Users that are remembered; beyond that, all are forgotten.
const USERS_MAX: usize = 10_000;

/// Hashes of passwords, by the user's name and host.
#[derive(Default)]
pub(super) struct Proven(RwLock<HashMap<(String, String), Entry>>);

struct Entry {
    compared_with: Verifiers,
    hash: [u8; 32],
}

/// `SHA256(SHA256(password))`, as in `caching_sha2_password`.
pub(super) fn hash_of(password: &str) -> [u8; 32] {
    Sha256::digest(Sha256::digest(password)).into()
}

impl Proven {
    /// The hash of the user's password, if it was seen.
    pub fn of(&self, user: &User) -> Option<[u8; 32]> {
        let entries = self.0.read();
        if entries.is_empty() {
            return None;
        }
        let entry = entries.get(&(user.name.clone(), user.host.clone()))?;
        (entry.compared_with == user.password).then_some(entry.hash)
    }

    pub fn remember(&self, user: &User, hash: [u8; 32]) {
        let mut entries = self.0.write();
        if entries.len() >= USERS_MAX {
            entries.clear();
        }
        let entry = Entry { compared_with: user.password.clone(), hash };
        entries.insert((user.name.clone(), user.host.clone()), entry);
    }
}

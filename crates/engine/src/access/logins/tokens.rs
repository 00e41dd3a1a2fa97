//! Tokens that requests bring instead of a password, and the users that they stand for.
//!
//! Invariant: what is found follows from the catalog at its present revision. So a token that was dropped, and one of a user who was
//! dropped, ends with that statement.
//!
//! When a token was used is written about once an hour: it is asked for to find the ones that nobody uses.

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_catalog::{Catalog, User};
use tributary_types::{StoredToken, TokenHash};

/// The time between two records of a token's use.
const RECORDED_EVERY_MS: i64 = 3_600_000;

/// The tokens of all users, by their hashes.
#[derive(Default)]
pub(super) struct Tokens {
    known: ArcSwap<Known>,
    /// The last use of each token since the start, in milliseconds since 1970.
    used: Mutex<HashMap<TokenHash, i64>>,
}

#[derive(Default)]
struct Known {
    revision: Option<u64>,
    by_hash: HashMap<TokenHash, Arc<(User, StoredToken)>>,
}

impl Tokens {
    /// The token, and the user that it stands for.
    pub fn find(&self, catalog: &Catalog, hash: &TokenHash) -> Option<Arc<(User, StoredToken)>> {
        // Before the users are read: a change that happens meanwhile belongs to a later revision.
        let revision = catalog.revision();
        let known = self.known.load();
        if known.revision == Some(revision) {
            return known.by_hash.get(hash).cloned();
        }
        let mut by_hash = HashMap::new();
        for user in catalog.users() {
            for token in &user.account.tokens {
                by_hash.insert(token.hash, Arc::new((User::clone(&user), token.clone())));
            }
        }
        self.used.lock().retain(|hash, _| by_hash.contains_key(hash));
        let found = by_hash.get(hash).cloned();
        self.known.store(Arc::new(Known { revision: Some(revision), by_hash }));
        found
    }

    /// Notes a use. Returns whether it should be recorded.
    pub fn used(&self, token: &StoredToken, now_ms: i64) -> bool {
        let mut used = self.used.lock();
        let before = used.insert(token.hash, now_ms);
        let recorded = token.used_at_ms.unwrap_or(i64::MIN);
        // Once for each time that is due, also while the record is being written.
        let is_due = |at: i64| at.saturating_sub(recorded) >= RECORDED_EVERY_MS;
        is_due(now_ms) && before.is_none_or(|before| !is_due(before) || now_ms - before > RECORDED_EVERY_MS)
    }

    /// When the token was used last.
    pub fn last_use(&self, token: &StoredToken) -> Option<i64> {
        self.used.lock().get(&token.hash).copied().max(token.used_at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::{TOKEN_RANDOM_BYTES, token_text};

    #[test]
    fn a_use_is_recorded_about_once_an_hour() {
        let hash = TokenHash::of(token_text(&[1; TOKEN_RANDOM_BYTES]).reveal()).expect("it is one");
        let token = |used_at_ms| StoredToken {
            name: "t".into(),
            hash,
            limit: None,
            created_at_ms: 0,
            expires_at_ms: None,
            used_at_ms,
            comment: String::new(),
        };
        let tokens = Tokens::default();
        assert_eq!(tokens.last_use(&token(None)), None);
        assert!(tokens.used(&token(None), 1_000), "never before");
        assert!(!tokens.used(&token(None), 2_000), "it is being recorded");
        assert!(!tokens.used(&token(Some(1_000)), 3_000_000));
        assert_eq!(tokens.last_use(&token(Some(1_000))), Some(3_000_000));
        assert!(tokens.used(&token(Some(1_000)), 4_000_000));
        assert!(!tokens.used(&token(Some(1_000)), 4_000_001), "it is being recorded");
    }
}

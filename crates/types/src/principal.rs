//! The user on whose behalf something is done.

use crate::privilege::Grants;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Stands for a user where users share something. Two users may have the same one, though hardly ever; then they have one share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserKey(u64);

impl UserKey {
    /// The key of the user of that name and host. [`UserKey::default`] is the server's own.
    #[must_use]
    pub fn of(user: &str, account_host: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (user, account_host).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The key as a number; 0 for the server's own.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The key with this number.
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        Self(number)
    }
}

/// An authenticated user, and the client's host. Every name look-up and every statement is performed on behalf of one.
///
/// A name has several users if they connect from different hosts, so a principal also has the host of the user that the
/// connection was found to be: `'u'@'10.%'` connects from `10.0.0.7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    user: Arc<str>,
    host: Arc<str>,
    account_host: Arc<str>,
    key: UserKey,
    generation: u64,
    limit: Option<Arc<Grants>>,
}

impl Principal {
    /// `generation` is the version of users and privileges against which the password was checked: a later one may have changed
    /// the user's rights. The user is the one of exactly this host until [`Principal::of_account`] says otherwise.
    #[must_use]
    pub fn new(user: &str, host: &str, generation: u64) -> Self {
        let host: Arc<str> = host.into();
        let key = UserKey::of(user, &host);
        Self { user: user.into(), account_host: Arc::clone(&host), host, key, generation, limit: None }
    }

    /// The same for the user whose own host, which may be a pattern, is this one.
    #[must_use]
    pub fn of_account(self, account_host: &str) -> Self {
        Self { account_host: account_host.into(), key: UserKey::of(&self.user, account_host), ..self }
    }

    /// The same with these rights at most: it came with a token that is limited to them.
    #[must_use]
    pub fn limited_to(self, grants: Arc<Grants>) -> Self {
        Self { limit: Some(grants), ..self }
    }

    /// The rights that it is limited to, beside those of the user; `None`: it is not.
    #[must_use]
    pub fn limit(&self) -> Option<&Arc<Grants>> {
        self.limit.as_ref()
    }

    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host of the user itself, a pattern perhaps.
    #[must_use]
    pub fn account_host(&self) -> &str {
        &self.account_host
    }

    /// Name and own host: what a user is known by.
    #[must_use]
    pub fn account(&self) -> (Arc<str>, Arc<str>) {
        (Arc::clone(&self.user), Arc::clone(&self.account_host))
    }

    #[must_use]
    pub const fn key(&self) -> UserKey {
        self.key
    }

    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }
}

/// `user@host`, as `USER()` shows it: the client's host.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.host)
    }
}

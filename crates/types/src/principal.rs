//! The user on whose behalf something is done.

use std::fmt;
use std::sync::Arc;

/// An authenticated user, and the client's host. Every name look-up and every statement is performed on behalf of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    user: Arc<str>,
    host: Arc<str>,
    generation: u64,
}

impl Principal {
    /// `generation` is the version of users and privileges against which the password was checked: a later one may have changed
    /// the user's rights.
    #[must_use]
    pub fn new(user: &str, host: &str, generation: u64) -> Self {
        Self { user: user.into(), host: host.into(), generation }
    }

    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }
}

/// `user@host`, as `USER()` shows it.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.host)
    }
}

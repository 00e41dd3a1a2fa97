//! The user on whose behalf something is done.

use std::fmt;
use std::sync::Arc;

/// A user who has proved their password, and the host they came from. Every look-up of a name and every statement
/// is made for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    user: Arc<str>,
    host: Arc<str>,
    generation: u64,
}

impl Principal {
    /// `generation` is the state of users and privileges in which the password was checked: a later one may have
    /// changed what the user is allowed to do.
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

//! Users, and which of them a connection means.

use std::fmt;
use tributary_types::PasswordHash;
use tributary_types::pattern::like;

/// The users that exist from the first start on.
pub(crate) const FIRST_USERS: [&str; 2] = ["root", "admin"];
/// Whether the user may have to end sessions of others. There are no privileges yet, so the first users are the ones.
#[must_use]
pub fn is_operator(user: &str) -> bool {
    FIRST_USERS.contains(&user)
}

/// The user that cannot be dropped.
pub(crate) const PROTECTED_USER: &str = "root";

/// A user. Every user may do everything.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// A host or a pattern with `%` and `_`.
    pub host: String,
    pub password_hash: PasswordHash,
}

/// Shows whether there is a password, not its hash.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User('{}'@'{}', password: {})", self.name, self.host, !self.password_hash.is_empty())
    }
}

impl User {
    /// Whether this is its name; `host` is the user's own, not a connection's.
    pub(crate) fn is(&self, name: &str, host: &str) -> bool {
        self.name == name && self.host == host
    }

    /// Whether a connection from `host` (an address without port) can be this user's.
    #[must_use]
    pub fn matches_host(&self, host: &str) -> bool {
        let is_local =
            |host: &str| host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "::1";
        self.host.eq_ignore_ascii_case(host)
            || (is_local(&self.host) && is_local(host))
            || like(host, &self.host)
    }

    /// How exactly the user names a host: the most exact user is taken.
    pub(crate) fn exactness(&self) -> (bool, usize) {
        let wildcards = self.host.bytes().filter(|byte| matches!(byte, b'%' | b'_')).count();
        (wildcards == 0, self.host.len() - wildcards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(host: &str) -> User {
        User { name: "u".into(), host: host.into(), password_hash: PasswordHash::EMPTY }
    }

    #[test]
    fn a_host_pattern_matches_like_sql() {
        for (pattern, host, matches) in [
            ("%", "10.0.0.1", true),
            ("10.%", "10.0.0.1", true),
            ("10.%.1", "10.0.0.1", true),
            ("10.%.2", "10.0.0.1", false),
            ("10.0.0._", "10.0.0.1", true),
            ("10.0.0._", "10.0.0.12", false),
            ("Example.org", "example.ORG", true),
            ("", "10.0.0.1", false),
        ] {
            assert_eq!(user(pattern).matches_host(host), matches, "{pattern} {host}");
        }
    }

    #[test]
    fn localhost_is_the_loopback_addresses() {
        for host in ["127.0.0.1", "::1", "localhost"] {
            assert!(user("localhost").matches_host(host) && user("127.0.0.1").matches_host(host), "{host}");
        }
        assert!(!user("localhost").matches_host("10.0.0.1"));
    }
}

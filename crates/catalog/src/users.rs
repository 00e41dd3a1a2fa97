//! Users and roles: the rights that each holds, and the user that a connection means.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use tributary_types::pattern::like;
use tributary_types::privilege::{GrantScope, Grants, Right, Rights};
use tributary_types::{PasswordPolicy, PolicyChange, StoredToken, TlsRequirement, UserLimits, Verifiers};

/// The users that exist from the first start on.
pub(crate) const FIRST_USERS: [&str; 2] = ["root", "admin"];
/// The role of `root`: all rights on everything. It exists without a record and cannot be changed.
pub const OPERATOR_ROLE: &str = "operator";
/// The role of `admin`: everything but nodes. It exists without a record and cannot be changed.
pub const ADMIN_ROLE: &str = "admin";

/// The grants of a role that exists without a record.
#[must_use]
pub fn built_in_role(name: &str) -> Option<Grants> {
    let rights = match name {
        OPERATOR_ROLE => Rights::of(&[Right::Node, Right::Admin]),
        ADMIN_ROLE => Rights::of(&[Right::Admin]),
        _ => return None,
    };
    let mut grants = Grants::default();
    grants.grant(GrantScope::Global, rights);
    Some(grants)
}

/// The role that one of the first users has from the first start on.
pub(crate) fn first_role(user: &str) -> &'static str {
    if user == PROTECTED_USER { OPERATOR_ROLE } else { ADMIN_ROLE }
}

/// The user that cannot be dropped.
pub(crate) const PROTECTED_USER: &str = "root";

/// A user: a name together with the hosts from which it connects.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// A host or a pattern with `%` and `_`.
    pub host: String,
    pub password: Verifiers,
    pub account: Account,
}

/// The rights of a user, and the rest that is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Names of roles that exist.
    pub roles: BTreeSet<String>,
    /// Grants to the user itself.
    pub grants: Grants,
    pub comment: String,
    /// The encryption that its connections must have.
    pub require: TlsRequirement,
    pub policy: PasswordPolicy,
    /// When its password was set, in milliseconds since 1970.
    pub password_set_at_ms: i64,
    /// Its passwords before, the latest first, as many as its history reaches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub past_passwords: Vec<Verifiers>,
    /// In order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<StoredToken>,
    #[serde(skip_serializing_if = "UserLimits::is_empty")]
    pub limits: UserLimits,
}

/// A password that replaces another one.
#[derive(Clone, Debug)]
pub struct ReplacedPassword {
    pub password: Verifiers,
    /// Milliseconds since 1970.
    pub set_at_ms: i64,
    /// The passwords before it that are remembered.
    pub history: usize,
}

/// The attributes of a user that a statement changes.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    pub password: Option<ReplacedPassword>,
    pub require: Option<TlsRequirement>,
    pub policy: PolicyChange,
}

impl UserChange {
    pub(crate) fn apply(&self, user: &mut User) {
        let account = &mut user.account;
        account.require = self.require.unwrap_or(account.require);
        account.policy.apply(self.policy);
        let Some(ReplacedPassword { password, set_at_ms, history }) = &self.password else { return };
        let before = std::mem::replace(&mut user.password, password.clone());
        if !before.is_empty() {
            account.past_passwords.insert(0, before);
        }
        account.past_passwords.truncate(*history);
        account.password_set_at_ms = *set_at_ms;
    }
}

/// A role: grants under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub name: String,
    #[serde(default)]
    pub grants: Grants,
    #[serde(default)]
    pub comment: String,
}

/// Shows whether there is a password, not its hash.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User('{}'@'{}', password: {})", self.name, self.host, !self.password.is_empty())
    }
}

impl User {
    /// A user without rights.
    #[must_use]
    pub fn new(name: &str, host: &str, password: impl Into<Verifiers>) -> Self {
        let (name, host) = (name.to_owned(), host.to_owned());
        Self { name, host, password: password.into(), account: Account::default() }
    }

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
        User::new("u", host, Verifiers::EMPTY)
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

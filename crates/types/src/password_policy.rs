//! The rules for the passwords of a user, as Doris has them. Each is off unless it was asked for.
//!
//! Not here: who checks them, and what is stored of a password.

use serde::{Deserialize, Serialize};

/// The greatest `PASSWORD_HISTORY`.
pub const PASSWORD_HISTORY_MAX: u32 = 24;

/// The rules for a user's passwords and logins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PasswordPolicy {
    /// `PASSWORD_HISTORY`: as many of the last passwords can't be set again. `None`: as the global variable `password_history` says.
    pub history: Option<u32>,
    pub expiry: PasswordExpiry,
    /// `FAILED_LOGIN_ATTEMPTS`: as many failed logins in a row lock the user. 0: they do not.
    pub failed_logins: u32,
    /// `PASSWORD_LOCK_TIME`. `None`: failed logins do not lock the user.
    pub lock: Option<LockTime>,
}

impl PasswordPolicy {
    /// Changes the rules that a statement names.
    pub fn apply(&mut self, change: PolicyChange) {
        self.history = change.history.unwrap_or(self.history);
        self.expiry = change.expiry.unwrap_or(self.expiry);
        self.failed_logins = change.failed_logins.unwrap_or(self.failed_logins);
        self.lock = change.lock.or(self.lock);
    }

    /// The failures that lock the user, and for how long; `None` if none do.
    #[must_use]
    pub fn locks(&self) -> Option<(u32, LockTime)> {
        self.lock.filter(|_| self.failed_logins > 0).map(|lock| (self.failed_logins, lock))
    }
}

/// The rules that a statement changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyChange {
    /// `Some(None)`: as the global variable says.
    pub history: Option<Option<u32>>,
    pub expiry: Option<PasswordExpiry>,
    pub failed_logins: Option<u32>,
    pub lock: Option<LockTime>,
}

impl PolicyChange {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// When a password has to be replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PasswordExpiry {
    /// As the global variable `default_password_lifetime` says, in days.
    #[default]
    Default,
    Never,
    /// As many seconds after it was set.
    Seconds(u64),
}

/// How long a user stays locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockTime {
    /// Until `ALTER USER … ACCOUNT_UNLOCK`.
    Unbounded,
    Seconds(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_what_it_does_not_name() {
        let mut policy = PasswordPolicy::default();
        policy.apply(PolicyChange { failed_logins: Some(3), ..PolicyChange::default() });
        assert_eq!(policy.locks(), None, "no time is given");
        policy.apply(PolicyChange { lock: Some(LockTime::Seconds(60)), ..PolicyChange::default() });
        policy.apply(PolicyChange { history: Some(Some(2)), ..PolicyChange::default() });
        assert_eq!((policy.locks(), policy.history), (Some((3, LockTime::Seconds(60))), Some(2)));
        policy.apply(PolicyChange { history: Some(None), failed_logins: Some(0), ..PolicyChange::default() });
        assert_eq!((policy.locks(), policy.history), (None, None));
    }
}

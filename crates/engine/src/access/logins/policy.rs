//! The rules for passwords: how strong they are, how often they change, and what failed logins lock.
//!
//! Every rule is off unless somebody asked for it. Locks are the server's, not the catalog's: a restart opens them.
//!
//! Source of the rules and texts: Doris's manual and MySQL's errors.

use super::stored;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tributary_catalog::User;
use tributary_types::{
    ErrorCode, LockTime, NewPassword, PASSWORD_HISTORY_MAX, PasswordExpiry, PasswordHash, SqlError, Verifiers,
};

/// Value of `validate_password_policy` that asks for strong passwords.
pub(super) const STRONG: i64 = 2;
/// The shortest strong password, in characters.
const STRONG_CHARACTERS_MIN: usize = 8;
/// The kinds of characters that a strong password has at least, of four.
const STRONG_KINDS_MIN: usize = 3;

/// Checks that a password is strong. One that is given as a hash was chosen elsewhere, and can't be checked.
///
/// # Errors
/// [`ErrorCode::PasswordTooWeak`].
pub(super) fn check_strength(password: &NewPassword) -> Result<(), SqlError> {
    let text = match password {
        NewPassword::Clear { text, .. } => text.reveal(),
        NewPassword::Hash(hash) if hash.is_empty() => "",
        NewPassword::Hash(_) => return Ok(()),
    };
    let weak = |rule: &str| {
        let text = format!("Violate password validation policy: STRONG. The password must {rule}");
        Err(SqlError::new(ErrorCode::PasswordTooWeak, text))
    };
    if text.chars().count() < STRONG_CHARACTERS_MIN {
        return weak("be at least 8 characters");
    }
    let kinds = [
        text.chars().any(char::is_numeric),
        text.chars().any(char::is_uppercase),
        text.chars().any(char::is_lowercase),
        text.chars().any(|character| !character.is_alphanumeric()),
    ];
    if kinds.into_iter().filter(|has| *has).count() < STRONG_KINDS_MIN {
        return weak(
            "contain at least 3 types of numbers, uppercase letters, lowercase letters and special characters.",
        );
    }
    Ok(())
}

/// Passwords before the present one that are remembered for a history of this length, as the global variable says by default.
pub(super) fn remembered(user: &User, default: i64) -> usize {
    let history = user.account.policy.history.map_or(default, i64::from);
    usize::try_from(history.clamp(0, i64::from(PASSWORD_HISTORY_MAX))).unwrap_or(0).saturating_sub(1)
}

/// Whether the password is the user's present one, or one of those before it that are remembered. Takes as long as all checks.
pub(super) fn is_known(user: &User, remembered: usize, password: &NewPassword) -> bool {
    let past = user.account.past_passwords.iter().take(remembered);
    let mut all = std::iter::once(&user.password).chain(past).filter(|verifiers| !verifiers.is_empty());
    all.any(|verifiers| matches(verifiers, password))
}

fn matches(verifiers: &Verifiers, password: &NewPassword) -> bool {
    let native = |hash: PasswordHash| !hash.is_empty() && hash == verifiers.native;
    match password {
        NewPassword::Hash(hash) => native(*hash),
        NewPassword::Clear { text, .. } => match &verifiers.salted {
            _ if !verifiers.native.is_empty() => stored::is_native(&verifiers.native, text.reveal()),
            Some(salted) => stored::is_salted(salted, text.reveal()),
            None => false,
        },
    }
}

/// Refuses a password that may not be set again yet.
pub(super) fn reused(user: &User) -> SqlError {
    let text = format!(
        "Cannot use these credentials for '{}'@'{}' because they contradict the password history policy",
        user.name, user.host
    );
    SqlError::new(ErrorCode::PasswordReused, text)
}

/// Checks that the user's password has not expired. The lifetime that the global variable gives by default, in days, does not count for
/// `root`: somebody has to be able to give new passwords to the others.
///
/// # Errors
/// [`ErrorCode::PasswordExpired`].
pub(super) fn check_expiry(user: &User, default_days: i64, now_ms: i64) -> Result<(), SqlError> {
    let lifetime_s = match user.account.policy.expiry {
        PasswordExpiry::Seconds(seconds) => seconds,
        PasswordExpiry::Default if default_days > 0 && user.name != super::super::accounts::ROOT => {
            u64::try_from(default_days).unwrap_or(0).saturating_mul(86_400)
        }
        PasswordExpiry::Default | PasswordExpiry::Never => return Ok(()),
    };
    let age_ms = u64::try_from(now_ms.saturating_sub(user.account.password_set_at_ms)).unwrap_or(0);
    if user.password.is_empty() || age_ms / 1000 < lifetime_s {
        return Ok(());
    }
    Err(SqlError::new(
        ErrorCode::PasswordExpired,
        "Your password has expired. To log in you must change it using a client that supports expired passwords: ask an administrator \
         for ALTER USER … IDENTIFIED BY",
    ))
}

/// The users that failed logins have locked, and those on their way there.
#[derive(Debug, Default)]
pub(super) struct Locks {
    /// By name and host. Only users that exist and have the rule are in it.
    failures: Mutex<HashMap<(String, String), Failures>>,
    /// Kept beside the lock: most servers have none.
    count: AtomicUsize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    count: u32,
    locked_at: Option<Instant>,
}

impl Locks {
    /// Checks that the user is not locked.
    ///
    /// # Errors
    /// [`ErrorCode::AccountLocked`].
    pub fn check(&self, user: &User, now: Instant) -> Result<(), SqlError> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let key = (user.name.clone(), user.host.clone());
        let mut failures = self.failures.lock();
        let Some(found) = failures.get(&key).copied() else { return Ok(()) };
        let (Some((limit, lock)), Some(locked_at)) = (user.account.policy.locks(), found.locked_at) else {
            return Ok(());
        };
        let left = match lock {
            LockTime::Unbounded => None,
            LockTime::Seconds(seconds) => {
                let left =
                    Duration::from_secs(seconds).saturating_sub(now.saturating_duration_since(locked_at));
                if left.is_zero() {
                    failures.remove(&key);
                    self.count.store(failures.len(), Ordering::Relaxed);
                    return Ok(());
                }
                Some((seconds, left.as_secs() + 1))
            }
        };
        let until = match left {
            Some((seconds, left)) => format!("for {seconds} second(s) ({left} second(s) remaining)"),
            None => "until ALTER USER … ACCOUNT_UNLOCK".to_owned(),
        };
        Err(SqlError::new(
            ErrorCode::AccountLocked,
            format!(
                "Access denied for user '{}'@'{}'. Account is blocked {until} due to {limit} consecutive failed logins.",
                user.name, user.host
            ),
        ))
    }

    /// Counts a login of the user that has ended.
    pub fn ended(&self, user: &User, is_right: bool, now: Instant) {
        let key = || (user.name.clone(), user.host.clone());
        if is_right {
            if self.count.load(Ordering::Relaxed) > 0 {
                self.open(&user.name, &user.host);
            }
            return;
        }
        let Some((limit, _)) = user.account.policy.locks() else { return };
        let mut failures = self.failures.lock();
        let found = failures.entry(key()).or_default();
        found.count = found.count.saturating_add(1);
        if found.count >= limit && found.locked_at.is_none() {
            found.locked_at = Some(now);
        }
        self.count.store(failures.len(), Ordering::Relaxed);
    }

    /// Forgets the failures of a user.
    pub fn open(&self, name: &str, host: &str) {
        let mut failures = self.failures.lock();
        failures.remove(&(name.to_owned(), host.to_owned()));
        self.count.store(failures.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_types::{PolicyChange, Secret};

    fn clear(text: &str) -> NewPassword {
        NewPassword::Clear { text: Secret::new(text), plugin: None }
    }

    fn user(change: PolicyChange) -> User {
        let mut user = User::new("u", "%", PasswordHash::of("now"));
        user.account.policy.apply(change);
        user
    }

    #[test]
    fn strong_passwords_are_long_and_varied() {
        for (text, rule) in [
            ("", Some("8 characters")),
            ("Ab1!xyz", Some("8 characters")),
            ("abcdefgh", Some("3 types")),
            ("abcdefG9", None),
            ("abcdef!9", None),
            ("ABCDEFGH1", Some("3 types")),
        ] {
            match (check_strength(&clear(text)), rule) {
                (Ok(()), None) => {}
                (Err(error), Some(rule)) => assert!(error.message.contains(rule), "{text}: {error}"),
                (outcome, _) => panic!("{text}: {outcome:?}"),
            }
        }
        assert!(check_strength(&NewPassword::Hash(PasswordHash::EMPTY)).is_err());
    }

    #[test]
    fn a_history_has_the_present_password_and_the_ones_before() {
        let mut user = user(PolicyChange { history: Some(Some(2)), ..PolicyChange::default() });
        user.account.past_passwords =
            vec![PasswordHash::of("before").into(), PasswordHash::of("long ago").into()];
        let is_known = |text: &str| is_known(&user, remembered(&user, 0), &clear(text));
        assert!(is_known("now") && is_known("before"));
        assert!(!is_known("long ago") && !is_known("new"));
        assert!(super::is_known(&user, 0, &NewPassword::Hash(PasswordHash::of("now"))));
        user.account.policy.history = None;
        assert_eq!((remembered(&user, 0), remembered(&user, 3)), (0, 2));
    }

    #[test]
    fn a_password_expires_by_the_users_rule_or_the_servers() {
        let mut user = user(PolicyChange::default());
        user.account.password_set_at_ms = 1_000_000;
        let day_ms = 86_400_000;
        assert_eq!(check_expiry(&user, 0, i64::MAX), Ok(()));
        assert_eq!(check_expiry(&user, 1, 1_000_000 + day_ms - 1), Ok(()));
        let error = check_expiry(&user, 1, 1_000_000 + day_ms).expect_err("a day has passed");
        assert_eq!(error.code, ErrorCode::PasswordExpired);
        user.account.policy.expiry = PasswordExpiry::Seconds(10);
        assert!(check_expiry(&user, 0, 1_010_000).is_err());
        user.account.policy.expiry = PasswordExpiry::Never;
        assert_eq!(check_expiry(&user, 1, i64::MAX), Ok(()));
    }

    #[test]
    fn failures_in_a_row_lock_a_user_until_the_time_has_passed() {
        let (locks, begin) = (Locks::default(), Instant::now());
        let user = user(PolicyChange {
            failed_logins: Some(3),
            lock: Some(LockTime::Seconds(60)),
            ..PolicyChange::default()
        });
        for _ in 0..2 {
            locks.ended(&user, false, begin);
        }
        locks.ended(&user, true, begin);
        for _ in 0..2 {
            locks.ended(&user, false, begin);
        }
        assert_eq!(locks.check(&user, begin), Ok(()), "they were not in a row");
        locks.ended(&user, false, begin);
        let error = locks.check(&user, begin + Duration::from_secs(20)).expect_err("it is locked");
        assert!(error.message.contains("for 60 second(s) (41 second(s) remaining) due to 3"), "{error}");
        assert_eq!(locks.check(&user, begin + Duration::from_secs(60)), Ok(()));
        (0..3).for_each(|_| locks.ended(&user, false, begin));
        locks.open("u", "%");
        assert_eq!(locks.check(&user, begin), Ok(()));
    }
}

//! Locks that clients name: `GET_LOCK` and `RELEASE_LOCK`, as tools of migration use them against each other.
//!
//! A lock belongs to a session, which may get it several times, and ends with it. Locks protect nothing of ours, and are not
//! durable. Their number is bounded.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::Notify;
use tributary_types::{ErrorCode, SqlError};

/// The longest name in characters, as in MySQL.
const NAME_MAX: usize = 64;
/// The most locks of a session.
const OF_SESSION_MAX: usize = 256;
/// The most locks of all sessions.
const ALL_MAX: usize = 65_536;

/// Who has a lock, and how often.
struct Held {
    session: u32,
    count: u64,
}

/// All locks that sessions have.
#[derive(Default)]
pub(crate) struct UserLocks {
    held: Mutex<HashMap<String, Held>>,
    /// A lock was released.
    released: Notify,
}

/// The name as it is compared: in lower case.
///
/// # Errors
/// It is NULL, empty or too long.
pub(crate) fn name(text: Option<&str>) -> Result<String, SqlError> {
    match text {
        Some(text) if !text.is_empty() && text.chars().count() <= NAME_MAX => Ok(text.to_lowercase()),
        text => {
            let text = text.unwrap_or("NULL");
            let shown: String = text.chars().take(NAME_MAX).collect();
            Err(SqlError::new(
                ErrorCode::WrongUserLockName,
                format!("Incorrect user-level lock name '{shown}': it has 1 to {NAME_MAX} characters."),
            ))
        }
    }
}

impl UserLocks {
    /// Gets the lock for the session, now or not at all.
    ///
    /// # Errors
    /// There are too many locks.
    pub fn try_get(&self, name: &str, session: u32) -> Result<bool, SqlError> {
        let mut held = self.held.lock();
        if let Some(lock) = held.get_mut(name) {
            if lock.session == session {
                lock.count = lock.count.saturating_add(1);
            }
            return Ok(lock.session == session);
        }
        let of_session = held.values().filter(|lock| lock.session == session).count();
        if held.len() >= ALL_MAX || of_session >= OF_SESSION_MAX {
            let text = format!(
                "GET_LOCK: too many locks; a session has at most {OF_SESSION_MAX}, all together {ALL_MAX}: RELEASE_LOCK some"
            );
            return Err(SqlError::detail(ErrorCode::Unknown, text));
        }
        held.insert(name.to_owned(), Held { session, count: 1 });
        Ok(true)
    }

    /// Gets the lock for the session, and waits for it this long. `false`: it did not.
    ///
    /// # Errors
    /// There are too many locks.
    pub async fn get(&self, name: &str, session: u32, patience: Duration) -> Result<bool, SqlError> {
        let waiting = async {
            loop {
                let released = self.released.notified();
                tokio::pin!(released);
                // From here on no release is missed.
                released.as_mut().enable();
                if self.try_get(name, session)? {
                    return Ok(());
                }
                released.await;
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(got) => got.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Releases the lock once. `None`: nobody has it; `false`: another session has it.
    pub fn release(&self, name: &str, session: u32) -> Option<bool> {
        let mut held = self.held.lock();
        let lock = held.get_mut(name)?;
        if lock.session != session {
            return Some(false);
        }
        lock.count -= 1;
        if lock.count == 0 {
            held.remove(name);
            drop(held);
            self.released.notify_waiters();
        }
        Some(true)
    }

    /// Releases all locks of the session; returns how many times it had got them.
    pub fn release_all(&self, session: u32) -> i64 {
        let mut held = self.held.lock();
        let mut count = 0;
        held.retain(|_, lock| {
            if lock.session == session {
                count += lock.count;
            }
            lock.session != session
        });
        drop(held);
        if count > 0 {
            self.released.notify_waiters();
        }
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// The session that has the lock.
    pub fn holder(&self, name: &str) -> Option<u32> {
        self.held.lock().get(name).map(|lock| lock.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_lock_excludes_others_until_it_is_released_as_often_as_it_was_got() {
        let locks = Arc::new(UserLocks::default());
        for _ in 0..2 {
            assert!(locks.get("x", 1, Duration::ZERO).await.unwrap());
        }
        assert!(!locks.get("x", 2, Duration::from_millis(1)).await.unwrap());
        assert_eq!((locks.release("x", 2), locks.release("y", 2)), (Some(false), None));
        assert_eq!(locks.release("x", 1), Some(true));
        assert_eq!(locks.holder("x"), Some(1), "it was got twice");
        let waiting = tokio::spawn({
            let locks = Arc::clone(&locks);
            async move { locks.get("x", 2, Duration::MAX).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(locks.release_all(1), 1);
        assert!(waiting.await.unwrap().unwrap());
        assert_eq!(locks.holder("x"), Some(2));
    }

    #[test]
    fn locks_and_their_names_are_bounded() {
        let locks = UserLocks::default();
        for number in 0..OF_SESSION_MAX {
            assert!(locks.try_get(&number.to_string(), 1).unwrap());
        }
        assert!(locks.try_get("more", 1).unwrap_err().detail_text().contains("too many locks"));
        assert!(locks.try_get("more", 2).unwrap());
        assert_eq!(name(Some("Ab")).unwrap(), "ab");
        for wrong in [None, Some(""), Some("x".repeat(65).as_str())] {
            assert_eq!(name(wrong).unwrap_err().code, ErrorCode::WrongUserLockName);
        }
    }
}

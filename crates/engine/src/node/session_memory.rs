//! The memory that sessions hold between their statements: prepared statements and user variables.
//!
//! All sessions share a budget, of which one may have an eighth. What would exceed it is refused, because a session that lost a
//! prepared statement could not know.
//!
//! Not its business: the memory of running statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tributary_types::{ErrorCode, Live, SqlError};

/// Sessions that can hold as much as a session may.
const SESSIONS_MIN: u64 = 8;

/// The budget of all sessions.
#[derive(Debug)]
pub(crate) struct SessionsMemory {
    limit: Live<u64>,
    used: AtomicU64,
}

/// The share of one session.
#[derive(Clone, Debug)]
pub(crate) struct SessionMemory {
    all: Arc<SessionsMemory>,
    own: Arc<AtomicU64>,
}

/// Bytes that are held, until this is dropped.
#[derive(Debug)]
pub(crate) struct SessionCharge {
    memory: SessionMemory,
    bytes: u64,
}

impl SessionsMemory {
    pub fn new(limit: Live<u64>) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }

    pub fn of_session(self: &Arc<Self>) -> SessionMemory {
        SessionMemory { all: Arc::clone(self), own: Arc::default() }
    }

    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl SessionMemory {
    /// A charge of nothing.
    pub fn charge(&self) -> SessionCharge {
        SessionCharge { memory: self.clone(), bytes: 0 }
    }

    fn grow(&self, more: u64) -> Result<(), SqlError> {
        let grown = |limit: u64| move |used: u64| used.checked_add(more).filter(|used| *used <= limit);
        let whole = self.all.limit.get();
        let limit = whole / SESSIONS_MIN;
        self.own
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown(limit))
            .map_err(|used| refusal("this session", used, more, limit))?;
        let all = self.all.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown(whole));
        all.map_err(|used| {
            self.own.fetch_sub(more, Ordering::Relaxed);
            refusal("all sessions", used, more, whole)
        })?;
        Ok(())
    }
}

impl SessionCharge {
    /// Sets how many bytes are held.
    ///
    /// # Errors
    /// They are too many; nothing has changed.
    pub fn set(&mut self, bytes: u64) -> Result<(), SqlError> {
        if bytes > self.bytes {
            self.memory.grow(bytes - self.bytes)?;
        } else {
            let less = self.bytes - bytes;
            self.memory.own.fetch_sub(less, Ordering::Relaxed);
            self.memory.all.used.fetch_sub(less, Ordering::Relaxed);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for SessionCharge {
    fn drop(&mut self) {
        self.set(0).expect("less is never refused");
    }
}

fn refusal(who: &str, used: u64, more: u64, limit: u64) -> SqlError {
    let text = format!(
        "prepared statements and user variables of {who} take {used} bytes, and {more} more are above the limit of {limit}: close \
         prepared statements, SET @name = NULL, or raise session_mem_limit"
    );
    SqlError::detail(ErrorCode::Unknown, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_an_eighth_and_all_have_the_whole() {
        let all = SessionsMemory::new(Live::new(800));
        let sessions: Vec<_> = (0..9).map(|_| all.of_session()).collect();
        let mut charges: Vec<_> = sessions.iter().map(SessionMemory::charge).collect();
        let refused = charges[0].set(101).unwrap_err();
        assert!(refused.message.contains("of this session take 0 bytes, and 101 more"), "{refused}");
        charges[..8].iter_mut().for_each(|charge| charge.set(100).expect("an eighth"));
        let refused = charges[8].set(1).unwrap_err();
        assert!(refused.message.contains("of all sessions take 800 bytes"), "{refused}");
        charges[0].set(60).expect("less");
        let mut second = sessions[8].charge();
        second.set(40).expect("as much as was given back");
        assert_eq!(all.used(), 800);
        assert!(charges[0].set(61).is_err());
        drop((charges, second));
        assert_eq!(all.used(), 0);
    }
}

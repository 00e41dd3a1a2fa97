//! Places of connections: clients that are logging in, and sessions.
//!
//! Who has not logged in must not shut out who wants to. So clients that are logging in take no place of a session, and there is
//! always a place to log in: when all are taken, one of those clients makes room ([`Waiting`]). One more session than the limit is for an operator, who may have to end others.
//!
//! Not here: passwords.

use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;
use tributary_admission::{Address, Number, Waiting};
use tributary_types::Live;

/// The places of one server.
#[derive(Debug)]
pub(crate) struct Places {
    sessions_max: Live<u64>,
    sessions: AtomicUsize,
    logins_max: usize,
    logins: Mutex<Logins>,
}

/// Clients that are logging in.
#[derive(Debug, Default)]
struct Logins {
    next: Number,
    waiting: Waiting,
}

impl Places {
    pub fn new(sessions_max: Live<u64>, logins_max: usize) -> Arc<Self> {
        let sessions = AtomicUsize::new(0);
        Arc::new(Self { sessions_max, sessions, logins_max: logins_max.max(1), logins: Mutex::default() })
    }

    fn sessions_max(&self) -> usize {
        usize::try_from(self.sessions_max.get()).unwrap_or(usize::MAX)
    }

    /// Whether not even an operator would get a session.
    pub fn are_all_taken(&self) -> bool {
        self.sessions.load(Ordering::Relaxed) > self.sessions_max()
    }

    /// Takes a place to log in.
    pub fn log_in(self: &Arc<Self>, peer: IpAddr) -> LoginPlace {
        let (address, ended) = (Address::from(peer), CancellationToken::new());
        let mut logins = self.logins.lock();
        if logins.waiting.len() >= self.logins_max
            && let Some((_, _, another)) = logins.waiting.remove_one()
        {
            another.cancel();
        }
        let number = logins.next;
        logins.next += 1;
        logins.waiting.add(address, number, ended.clone());
        LoginPlace { places: Arc::clone(self), address, number, ended }
    }

    /// Takes the place of a session; `None` if there is none.
    pub fn open_session(self: &Arc<Self>, is_operator: bool) -> Option<SessionPlace> {
        let max = self.sessions_max().saturating_add(usize::from(is_operator));
        let more = |taken: usize| (taken < max).then_some(taken + 1);
        self.sessions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(SessionPlace(Arc::clone(self)))
    }
}

/// The place of a client that is logging in, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct LoginPlace {
    places: Arc<Places>,
    address: Address,
    number: Number,
    ended: CancellationToken,
}

impl LoginPlace {
    /// Waits until the place is given to another client.
    pub async fn taken_away(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for LoginPlace {
    fn drop(&mut self) {
        self.places.logins.lock().waiting.remove(self.address, self.number);
    }
}

/// The place of a session, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct SessionPlace(Arc<Places>);

impl Drop for SessionPlace {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_login_of_the_busiest_address_makes_room() {
        let places = Places::new(Live::new(1), 4);
        let from = |last: u8| places.log_in(IpAddr::from([10, 0, 0, last]));
        let is_ended = |place: &LoginPlace| place.ended.is_cancelled();
        let quiet = from(1);
        let many = [from(2), from(2), from(2)];
        let other = from(3);
        assert_eq!(many.each_ref().map(is_ended), [true, false, false]);
        let another = from(2);
        assert_eq!(many.each_ref().map(is_ended), [true, true, false]);
        assert!(!is_ended(&quiet) && !is_ended(&other) && !is_ended(&another));
        drop(many);
        let more = [from(4), from(5)];
        assert!(is_ended(&quiet), "of addresses with as many, the oldest");
        assert!(more.iter().chain([&other, &another]).all(|place| !is_ended(place)));
    }

    #[test]
    fn one_session_more_than_the_limit_is_for_an_operator() {
        let places = Places::new(Live::new(2), 4);
        let first = places.open_session(false).expect("a place");
        let _second = places.open_session(true).expect("a place");
        assert!(places.open_session(false).is_none() && !places.are_all_taken());
        let _operator = places.open_session(true).expect("the operator's place");
        assert!(places.open_session(true).is_none() && places.are_all_taken());
        drop(first);
        assert!(places.open_session(false).is_none(), "as many as the limit are there");
        let _again = places.open_session(true).expect("the operator's place is free");
    }
}

//! Places of connections, of which there are as many as a setting says, and fewer for each address.
//!
//! A client that has sent no request must not shut out others. So when all places are taken, the connection that has waited for
//! its request for longest is closed, of the address from which most do. If requests are being served on all of them, a further
//! connection gets a place *beyond*, where health and metrics are answered; other requests wait there until a place is free.
//!
//! Invariant: a connection is served a request only in a place; at most as many as [`Limits::beyond`] are beyond.
//!
//! Not its business: times, and bytes.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tributary_admission::{Address, Number, Waiting};
use tributary_types::Live;

/// Numbers of connections.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub all: Live<u64>,
    pub of_address: Live<u64>,
    pub beyond: usize,
}

/// The places of one server.
#[derive(Debug)]
pub(crate) struct Places {
    limits: Limits,
    state: Mutex<State>,
    /// Connections beyond look again whether there is a place.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: Number,
    taken: usize,
    of_address: HashMap<Address, usize>,
    /// Connections in a place on which no request is being served.
    waiting: Waiting,
    beyond: Waiting,
}

impl State {
    /// Takes a place, that of a waiting connection if there is no other.
    fn take(&mut self, address: Address, limits: &Limits) -> bool {
        if self.of_address.get(&address).is_some_and(|taken| *taken as u64 >= limits.of_address.get().max(1))
        {
            let Some(ended) = self.waiting.remove_oldest_of(address) else { return false };
            ended.cancel();
            self.give_back(address);
        } else if self.taken as u64 >= limits.all.get().max(1) {
            let Some((of, _, ended)) = self.waiting.remove_one() else { return false };
            ended.cancel();
            self.give_back(of);
        }
        self.taken += 1;
        *self.of_address.entry(address).or_default() += 1;
        true
    }

    fn give_back(&mut self, address: Address) {
        self.taken -= 1;
        if let Some(taken) = self.of_address.get_mut(&address) {
            *taken -= 1;
            if *taken == 0 {
                self.of_address.remove(&address);
            }
        }
    }

    fn next_number(&mut self) -> Number {
        self.next += 1;
        self.next
    }
}

impl Places {
    pub fn new(limits: Limits) -> Arc<Self> {
        let limits = Limits { beyond: limits.beyond.max(1), ..limits };
        Arc::new(Self { limits, state: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a place for a new connection, which waits for its first request, or one beyond.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Place {
        let (address, ended) = (Address::from(peer), CancellationToken::new());
        let mut state = self.state.lock();
        let number = state.next_number();
        let is_beyond = !state.take(address, &self.limits);
        if is_beyond {
            state.beyond.add(address, number, ended.clone());
            if state.beyond.len() > self.limits.beyond
                && let Some((_, _, another)) = state.beyond.remove_one()
            {
                another.cancel();
            }
        } else {
            state.waiting.add(address, number, ended.clone());
        }
        drop(state);
        let standing = Mutex::new(Standing { number, is_beyond });
        Place { places: Arc::clone(self), address, ended, standing, waits: AtomicBool::new(true) }
    }
}

/// The place of one connection, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Place {
    places: Arc<Places>,
    address: Address,
    ended: CancellationToken,
    /// Locked alone, or before the places' state.
    standing: Mutex<Standing>,
    /// Whether it is among the waiting ones.
    waits: AtomicBool,
}

#[derive(Debug)]
struct Standing {
    number: Number,
    is_beyond: bool,
}

impl Place {
    /// Waits until another connection has taken this place.
    pub async fn taken_away(&self) {
        self.ended.cancelled().await;
    }

    /// A request begins: until [`Place::waits`] no other connection takes this place. Returns whether it may be served here.
    pub fn begin(&self) -> bool {
        // Its owner alone changes it.
        if self.waits.load(Ordering::Relaxed) {
            let standing = self.standing.lock();
            if standing.is_beyond {
                return false;
            }
            // If it is gone, the place is another's, and the connection about to end.
            let gone = self.places.state.lock().waiting.remove(self.address, standing.number).is_none();
            self.waits.store(gone, Ordering::Relaxed);
        }
        true
    }

    /// No request is being served: another connection may take this place.
    pub fn waits(&self) {
        if self.waits.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut standing = self.standing.lock();
        let mut state = self.places.state.lock();
        standing.number = state.next_number();
        state.waiting.add(self.address, standing.number, self.ended.clone());
        let has_others = !state.beyond.is_empty();
        drop(state);
        if has_others {
            self.places.freed.notify_waiters();
        }
    }

    /// Waits for a place, in which a request begins. Never completes if this is [taken away](Place::taken_away) first.
    pub async fn get(&self) {
        loop {
            let freed = self.places.freed.notified();
            if self.try_get() {
                return;
            }
            freed.await;
        }
    }

    fn try_get(&self) -> bool {
        let mut standing = self.standing.lock();
        let mut state = self.places.state.lock();
        if self.ended.is_cancelled() || !state.take(self.address, &self.places.limits) {
            return false;
        }
        state.beyond.remove(self.address, standing.number);
        standing.is_beyond = false;
        self.waits.store(false, Ordering::Relaxed);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Standing { number, is_beyond } = *self.standing.get_mut();
        let mut state = self.places.state.lock();
        if is_beyond {
            state.beyond.remove(self.address, number);
            return;
        }
        // A waiting connection that is gone has been relieved of its place.
        let is_relieved = *self.waits.get_mut() && state.waiting.remove(self.address, number).is_none();
        if is_relieved {
            return;
        }
        state.give_back(self.address);
        let has_others = !state.beyond.is_empty();
        drop(state);
        if has_others {
            self.places.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn places(all: u64, of_address: u64, beyond: usize) -> Arc<Places> {
        Places::new(Limits { all: Live::new(all), of_address: Live::new(of_address), beyond })
    }

    fn from(places: &Arc<Places>, last: u8) -> Place {
        places.enter(IpAddr::from([10, 0, 0, last]))
    }

    fn is_ended(place: &Place) -> bool {
        place.ended.is_cancelled()
    }

    #[test]
    fn a_connection_without_a_request_makes_room_and_one_with_a_request_does_not() {
        let places = places(2, 2, 1);
        let (busy, silent) = (from(&places, 1), from(&places, 2));
        assert!(busy.begin());
        let later = from(&places, 3);
        assert!(!is_ended(&busy) && is_ended(&silent) && later.begin());
        drop(silent);
        let beyond = from(&places, 4);
        assert!(!beyond.begin(), "requests are served in all places");
        busy.waits();
        assert!(beyond.get().now_or_never().is_some() && is_ended(&busy), "its request is over");
        drop((busy, later, beyond));
        let state = places.state.lock();
        assert_eq!(
            (state.taken, state.of_address.len(), state.waiting.len(), state.beyond.len()),
            (0, 0, 0, 0)
        );
    }

    #[test]
    fn an_address_has_fewer_places_than_all_together() {
        let places = places(4, 2, 2);
        let of_one = [from(&places, 1), from(&places, 1)];
        assert!(of_one.iter().all(Place::begin));
        let third = from(&places, 1);
        assert!(!third.begin());
        assert!(from(&places, 2).begin(), "others are served");
        assert!(third.get().now_or_never().is_none());
        drop(of_one);
        assert!(third.get().now_or_never().is_some());
        let (fourth, fifth) = (from(&places, 1), from(&places, 1));
        assert!(is_ended(&fourth) && !is_ended(&fifth), "a silent one of the same address makes room");
    }

    #[tokio::test]
    async fn a_connection_beyond_gets_the_next_place_or_makes_room_for_another() {
        let places = places(1, 1, 2);
        let first = from(&places, 1);
        assert!(first.begin());
        let (second, third) = (Arc::new(from(&places, 2)), from(&places, 3));
        let waiting = tokio::spawn({
            let second = Arc::clone(&second);
            async move { second.get().await }
        });
        tokio::task::yield_now().await;
        let fourth = from(&places, 3);
        assert!(is_ended(&third) && !is_ended(&second), "two of that address would be beyond");
        drop(first);
        waiting.await.expect("it got the place");
        assert!(!fourth.begin() && third.get().now_or_never().is_none());
        drop((second, third));
        assert!(fourth.get().now_or_never().is_some());
    }
}

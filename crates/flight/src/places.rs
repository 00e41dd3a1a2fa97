//! Places of connections: those of clients that have not logged in, and those on which a session was used.
//!
//! Who has not logged in must not shut out others: such clients take no place of a session, and when there are too many of them,
//! one makes room ([`Waiting`]).
//!
//! Not here: passwords, tokens.

use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;
use tributary_admission::{Address, Number, Waiting};

/// The places of one server.
#[derive(Debug)]
pub(crate) struct Places {
    known_max: usize,
    strangers_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: Number,
    strangers: Waiting,
    known: usize,
}

impl Places {
    pub fn new(known_max: usize, strangers_max: usize) -> Arc<Self> {
        Arc::new(Self { known_max, strangers_max: strangers_max.max(1), state: Mutex::default() })
    }

    /// Takes the place of a client that has not logged in.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Place {
        let (address, ended) = (Address::from(peer), CancellationToken::new());
        let mut state = self.state.lock();
        if state.strangers.len() >= self.strangers_max
            && let Some((_, _, another)) = state.strangers.remove_one()
        {
            another.cancel();
        }
        let number = state.next;
        state.next += 1;
        state.strangers.add(address, number, ended.clone());
        drop(state);
        Place { places: Arc::clone(self), address, number, ended, is_known: AtomicBool::new(false) }
    }
}

/// The place of one connection, until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Place {
    places: Arc<Places>,
    address: Address,
    number: Number,
    ended: CancellationToken,
    is_known: AtomicBool,
}

impl Place {
    /// Waits until the place is given to another client.
    pub async fn taken_away(&self) {
        self.ended.cancelled().await;
    }

    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Acquire)
    }

    /// Moves to the place of a client that has logged in. Returns whether there is one.
    pub fn know(&self) -> bool {
        if self.is_known() {
            return true;
        }
        let mut state = self.places.state.lock();
        if self.is_known() {
            return true;
        }
        let has_place = state.known < self.places.known_max
            && state.strangers.remove(self.address, self.number).is_some();
        if has_place {
            state.known += 1;
            self.is_known.store(true, Ordering::Release);
        }
        has_place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.state.lock();
        if *self.is_known.get_mut() {
            state.known -= 1;
        } else {
            state.strangers.remove(self.address, self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_makes_room_for_another_and_never_takes_the_place_of_a_client_that_has_logged_in() {
        let places = Places::new(1, 2);
        let enter = |last: u8| places.enter(IpAddr::from([10, 0, 0, last]));
        let known = enter(1);
        assert!(known.know() && known.know() && known.is_known());
        let strangers = [enter(1), enter(2), enter(3)];
        let ended = |place: &Place| place.ended.is_cancelled();
        assert_eq!(strangers.each_ref().map(ended), [true, false, false]);
        assert!(!ended(&known));
        assert!(!strangers[1].know(), "the only place is taken");
        drop(known);
        assert!(!strangers[0].know(), "it has made room");
        assert!(strangers[1].know());
        drop(strangers);
        let state = places.state.lock();
        assert_eq!((state.known, state.strangers.len()), (0, 0));
    }
}

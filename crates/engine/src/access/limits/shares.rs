//! Shares of the users in the loads of the server: who brings how many bytes.
//!
//! A load pays two additions to one place, which is found by the user's key, without a lock. The look of each second compares the
//! counters with those of some seconds ago.
//!
//! Invariant: memory is fixed, for any number of users. Users for whom there is no counter are not counted; one that has been quiet for
//! [`QUIET_LOOKS`] looks gives its counter back.
//!
//! Not here: limits, and whether a share is too large.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tributary_types::UserKey;

/// Users that are counted at a time.
const PLACES: usize = 1024;
/// Places where a user's counter may be, from the one of its key on.
const PROBES: usize = 16;
/// Looks after which a user that sends nothing is forgotten.
const QUIET_LOOKS: u32 = 60;

/// The counters of all users with loads.
pub(super) struct Shares(Box<[Place]>);

#[derive(Default)]
struct Place {
    /// 0: it is free.
    user: AtomicU64,
    /// Loads whose rows are stored, or about to be.
    loads: AtomicU64,
    /// Their bytes.
    bytes: AtomicU64,
    /// Looks since the last load. Only the look changes it.
    quiet_looks: AtomicU32,
    /// The loads at the last look.
    seen: AtomicU64,
}

/// A user's loads since its counter began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserLoads {
    pub user: UserKey,
    pub loads: u64,
    pub bytes: u64,
}

impl Default for Shares {
    fn default() -> Self {
        Self((0..PLACES).map(|_| Place::default()).collect())
    }
}

impl Shares {
    /// Counts a load and its bytes.
    #[inline]
    pub fn bring(&self, user: UserKey, bytes: u64) {
        if let Some(place) = self.place(user) {
            place.loads.fetch_add(1, Ordering::Relaxed);
            place.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The user's counter; `None` for the server itself, and if all places are taken.
    fn place(&self, user: UserKey) -> Option<&Place> {
        let number = user.number();
        if number == 0 {
            return None;
        }
        let first = number as usize % PLACES;
        let places = (0..PROBES).map(|step| &self.0[(first + step) % PLACES]);
        let mut free = None;
        for place in places {
            match place.user.load(Ordering::Relaxed) {
                0 => free = free.or(Some(place)),
                known if known == number => return Some(place),
                _ => {}
            }
        }
        let place = free?;
        // Two users may want it: the other one is not counted this time. Two places of one user are added up.
        place.user.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).ok().map(|_| place)
    }

    /// The users with loads of late. To be called once a second, by one task.
    pub fn look(&self) -> Vec<UserLoads> {
        let mut all = Vec::new();
        for place in &self.0 {
            let user = place.user.load(Ordering::Relaxed);
            if user == 0 {
                continue;
            }
            let (loads, bytes) = (place.loads.load(Ordering::Relaxed), place.bytes.load(Ordering::Relaxed));
            let quiet = if loads == place.seen.swap(loads, Ordering::Relaxed) {
                place.quiet_looks.fetch_add(1, Ordering::Relaxed) + 1
            } else {
                place.quiet_looks.store(0, Ordering::Relaxed);
                0
            };
            if quiet < QUIET_LOOKS {
                all.push(UserLoads { user: UserKey::of_number(user), loads, bytes });
                continue;
            }
            // A load that begins at this moment is counted for the next user of the place, which only blurs a share.
            for counter in [&place.loads, &place.bytes, &place.seen] {
                counter.store(0, Ordering::Relaxed);
            }
            place.quiet_looks.store(0, Ordering::Relaxed);
            place.user.store(0, Ordering::Relaxed);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u64) -> UserKey {
        UserKey::of("u", &number.to_string())
    }

    #[test]
    fn each_user_has_its_own_counts_and_the_server_none() {
        let shares = Shares::default();
        for _ in 0..3 {
            shares.bring(user(1), 100);
        }
        shares.bring(user(2), 0);
        shares.bring(UserKey::default(), 100);
        let mut found = shares.look();
        found.sort_by_key(|found| found.loads);
        let loads = |number, loads, bytes| UserLoads { user: user(number), loads, bytes };
        assert_eq!(found, [loads(2, 1, 0), loads(1, 3, 300)]);
    }

    #[test]
    fn a_quiet_user_gives_its_place_back_and_too_many_are_left_out() {
        let shares = Shares::default();
        (0..3 * PLACES as u64).for_each(|number| shares.bring(user(number), 1));
        let found = shares.look().len();
        assert!(found <= PLACES && found > PLACES / 2, "{found}");
        for _ in 1..QUIET_LOOKS {
            shares.bring(user(0), 1);
            assert!(shares.look().len() == found);
        }
        assert_eq!(shares.look().len(), 1, "only one had loads");
    }
}

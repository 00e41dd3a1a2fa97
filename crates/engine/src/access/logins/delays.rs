//! The time that failed logins cost: each further failure of a user from an address, and of an address whatever the user, delays
//! the next attempt.
//!
//! Nobody is shut out from elsewhere: a stranger's failures delay only the stranger's own network. What is remembered is bounded.
//! Not here: the waiting.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tributary_admission::Address;

/// Failures of a user from an address that cost nothing: mistyped passwords.
const FREE_OF_USER: u32 = 5;
/// Failures of an address that cost nothing: it may be shared by many.
const FREE_OF_ADDRESS: u32 = 50;
/// The delay of the first failure that is not free; each further one doubles it …
const DELAY: Duration = Duration::from_millis(100);
/// … up to this …
const DELAY_MAX: Duration = Duration::from_secs(6);
/// … and all together never reach further ahead than this.
const AHEAD_MAX: Duration = Duration::from_secs(60);
/// The same for the failures of an address: short enough that others who share it are delayed, and not refused.
const AHEAD_OF_ADDRESS_MAX: Duration = Duration::from_secs(4);
/// Failures are forgotten when they are this old.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// Users and addresses that are remembered.
const ENTRIES_MAX: usize = 8192;

/// The costs of earlier failures.
#[derive(Debug, Default)]
pub(super) struct Delays {
    entries: Mutex<HashMap<Key, Failures>>,
    /// Kept beside the lock: most servers have no failures to look for.
    count: AtomicUsize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    address: Address,
    /// `None`: all users together.
    user: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Instant,
    /// When the next attempt is free.
    until: Instant,
}

/// The longest name of a user, in bytes.
const NAME_BYTES_MAX: usize = 64;

fn keys(user: &str, address: IpAddr) -> [Key; 2] {
    let address = Address::from(address);
    // No user has a longer one: such attempts share an entry.
    let user = if user.len() > NAME_BYTES_MAX { "" } else { user };
    [Key { address, user: Some(user.into()) }, Key { address, user: None }]
}

impl Delays {
    /// How long an attempt has to wait; `None`: not at all.
    pub fn wait(&self, user: &str, address: IpAddr, now: Instant) -> Option<Duration> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let entries = self.entries.lock();
        let until =
            keys(user, address).iter().filter_map(|key| entries.get(key)).map(|one| one.until).max()?;
        until.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Counts a failure.
    pub fn failed(&self, user: &str, address: IpAddr, now: Instant) {
        let mut entries = self.entries.lock();
        let [of_user, of_address] = keys(user, address);
        for (key, free, ahead) in
            [(of_user, FREE_OF_USER, AHEAD_MAX), (of_address, FREE_OF_ADDRESS, AHEAD_OF_ADDRESS_MAX)]
        {
            if entries.len() >= ENTRIES_MAX && !entries.contains_key(&key) {
                make_room(&mut entries, now);
            }
            let failures = entries.entry(key).or_insert(Failures { count: 0, last: now, until: now });
            failures.count = failures.count.saturating_add(1);
            failures.last = now;
            if let Some(beyond) = failures.count.checked_sub(free + 1) {
                let delay = (DELAY * 2_u32.pow(beyond.min(16))).min(DELAY_MAX);
                failures.until = (failures.until.max(now) + delay).min(now + ahead);
            }
        }
        self.count.store(entries.len(), Ordering::Relaxed);
    }

    /// Forgets the user's failures from this address.
    pub fn succeeded(&self, user: &str, address: IpAddr) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut entries = self.entries.lock();
        let [of_user, _] = keys(user, address);
        entries.remove(&of_user);
        self.count.store(entries.len(), Ordering::Relaxed);
    }
}

/// Forgets old failures, and if there are few, the older half of all.
fn make_room(entries: &mut HashMap<Key, Failures>, now: Instant) {
    entries.retain(|_, failures| now.duration_since(failures.last) < KEPT);
    if entries.len() * 4 < ENTRIES_MAX * 3 {
        return;
    }
    let mut lasts: Vec<Instant> = entries.values().map(|failures| failures.last).collect();
    let middle = lasts.len() / 2;
    let (_, median, _) = lasts.select_nth_unstable(middle);
    let median = *median;
    entries.retain(|_, failures| failures.last > median);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn failures_delay_the_same_user_from_the_same_address_only() {
        let (delays, now) = (Delays::default(), Instant::now());
        for _ in 0..FREE_OF_USER {
            delays.failed("root", HERE, now);
            assert_eq!(delays.wait("root", HERE, now), None);
        }
        delays.failed("root", HERE, now);
        assert_eq!(delays.wait("root", HERE, now), Some(DELAY));
        delays.failed("root", HERE, now);
        assert_eq!(delays.wait("root", HERE, now), Some(DELAY * 3));
        assert_eq!(delays.wait("root", HERE, now + DELAY * 3), None, "it is over");
        assert_eq!(delays.wait("root", THERE, now), None);
        assert_eq!(delays.wait("ann", HERE, now), None);
        delays.succeeded("root", HERE);
        assert_eq!(delays.wait("root", HERE, now), None);
    }

    #[test]
    fn an_address_that_tries_many_users_is_delayed_for_all() {
        let (delays, now) = (Delays::default(), Instant::now());
        (0..=FREE_OF_ADDRESS).for_each(|number| delays.failed(&format!("u{number}"), HERE, now));
        assert_eq!(delays.wait("somebody", HERE, now), Some(DELAY));
        assert_eq!(delays.wait("somebody", THERE, now), None);
    }

    #[test]
    fn a_delay_never_reaches_further_than_its_limit() {
        let (delays, now) = (Delays::default(), Instant::now());
        (0..1000).for_each(|_| delays.failed("root", HERE, now));
        assert_eq!(delays.wait("root", HERE, now), Some(AHEAD_MAX));
        assert_eq!(delays.wait("ann", HERE, now), Some(AHEAD_OF_ADDRESS_MAX));
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one() {
        let (delays, now) = (Delays::default(), Instant::now());
        for last in 0..=FREE_OF_USER {
            delays.failed("root", IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last as u16)), now);
        }
        let neighbour = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 9, 9, 9, 9));
        assert_eq!(delays.wait("root", neighbour, now), Some(DELAY));
        assert_eq!(
            delays.wait("root", IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 1)), now),
            None
        );
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let (delays, begun) = (Delays::default(), Instant::now());
        for number in 0..3 * ENTRIES_MAX as u32 {
            let now = begun + Duration::from_millis(number.into());
            delays.failed(&format!("u{number}"), IpAddr::V4(number.into()), now);
        }
        assert!(delays.entries.lock().len() <= ENTRIES_MAX);
    }
}

//! Failed requests of the last minute, by client: who is refused, and why.
//!
//! Invariant: memory is bounded for any number of clients: there are [`CLIENTS_MAX`] of them, and further ones are left out until others
//! have been quiet for a minute. Nothing that was not parsed, and no secret, is kept of a request.
//!
//! Not here: counters since the start, and the audit log.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Instant;

/// Clients that are known at a time.
const CLIENTS_MAX: usize = 1024;
/// The number of parts of a minute in which a client's failures are counted.
const SLOTS: usize = 6;
const SLOT_SECONDS: u64 = 10;
/// The beginning of an error's text that is kept.
pub(super) const TEXT_BYTES_MAX: usize = 300;
/// The beginning of a name that is kept.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// Failures that somebody should know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FailureKind {
    /// A request beyond a limit of its user, its table or the server.
    Limit,
    Login,
    Load,
}

/// Whose failures are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FailingClient {
    pub kind: FailureKind,
    /// `None` for logins: the name is the client's guess.
    pub user: Option<String>,
    /// The client's address.
    pub host: String,
    /// `db.table`, as far as it is known.
    pub table: Option<String>,
}

/// The failures of a client in the last minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientFailures {
    pub client: FailingClient,
    pub count: u64,
    /// The text of the newest error.
    pub newest: String,
}

#[derive(Debug)]
struct Counts {
    slots: [u64; SLOTS],
    /// The number of the slot of the last failure, since the start.
    last: u64,
    newest: String,
}

impl Counts {
    /// Forgets the slots that are over.
    fn turn(&mut self, slot: u64) {
        let over = slot.saturating_sub(self.last).min(SLOTS as u64);
        (0..over).for_each(|back| self.slots[((slot - back) % SLOTS as u64) as usize] = 0);
        self.last = self.last.max(slot);
    }

    fn total(&self) -> u64 {
        self.slots.iter().sum()
    }
}

/// The failures of all clients in the last minute.
#[derive(Debug)]
pub(crate) struct Failures {
    started: Instant,
    clients: Mutex<HashMap<FailingClient, Counts>>,
}

impl Default for Failures {
    fn default() -> Self {
        Self { started: Instant::now(), clients: Mutex::default() }
    }
}

impl Failures {
    fn slot(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_secs() / SLOT_SECONDS
    }

    /// Counts a failure. `text` makes the error's text, without secrets; it is asked for once in ten seconds.
    pub fn count(&self, client: FailingClient, now: Instant, text: impl FnOnce() -> String) {
        let slot = self.slot(now);
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(&client) {
            clients.retain(|_, counts| slot.saturating_sub(counts.last) < SLOTS as u64);
            if clients.len() >= CLIENTS_MAX {
                return;
            }
        }
        let fresh = || Counts { slots: [0; SLOTS], last: slot, newest: String::new() };
        let counts = clients.entry(client).or_insert_with(fresh);
        counts.turn(slot);
        let place = &mut counts.slots[(slot % SLOTS as u64) as usize];
        *place += 1;
        if *place == 1 {
            counts.newest = text();
        }
    }

    /// Clients with failures in the last minute.
    pub fn recent(&self, now: Instant) -> Vec<ClientFailures> {
        let slot = self.slot(now);
        let mut clients = self.clients.lock();
        clients.retain(|_, counts| {
            counts.turn(slot);
            counts.total() > 0
        });
        let failures = |(client, counts): (&FailingClient, &Counts)| ClientFailures {
            client: client.clone(),
            count: counts.total(),
            newest: counts.newest.clone(),
        };
        clients.iter().map(failures).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn client(host: &str) -> FailingClient {
        FailingClient { kind: FailureKind::Load, user: None, host: host.to_owned(), table: None }
    }

    #[test]
    fn failures_are_counted_for_a_minute() {
        let failures = Failures::default();
        let at = |seconds: u64| failures.started + Duration::from_secs(seconds);
        for second in [0, 1, 25, 59] {
            failures.count(client("a"), at(second), || format!("error of {second}"));
        }
        let count = |seconds: u64| {
            let found = failures.recent(at(seconds));
            found.first().map(|found| (found.count, found.newest.clone()))
        };
        assert_eq!(count(59), Some((4, "error of 59".to_owned())));
        assert_eq!(count(60), Some((2, "error of 59".to_owned())), "the first ten seconds are over");
        assert_eq!(count(80), Some((1, "error of 59".to_owned())));
        assert_eq!(count(110), None);
        failures.count(client("a"), at(500), || "again".to_owned());
        assert_eq!(count(500), Some((1, "again".to_owned())));
    }

    #[test]
    fn clients_without_number_take_no_memory_without_end() {
        let failures = Failures::default();
        for host in 0..3 * CLIENTS_MAX {
            failures.count(client(&host.to_string()), failures.started, String::new);
        }
        assert_eq!(failures.recent(failures.started).len(), CLIENTS_MAX);
        let later = failures.started + Duration::from_secs(61);
        failures.count(client("later"), later, String::new);
        assert_eq!(failures.recent(later).len(), 1, "quiet ones make room");
    }
}

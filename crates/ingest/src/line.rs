//! The line in which loads wait for what is short: memory, or the log. Users take turns in it.
//!
//! Deficit round robin: when it is a user's turn, it may bring [`QUANTUM_BYTES`] more than it could not use last time, load by load in
//! the order of their arrival; then the next user follows. So each of several users gets an equal share in bytes, however many loads
//! it has waiting and however large they are, and a user with few small loads waits for one turn of each other user at most.
//!
//! Invariant: at most one load is first, and it stays first until its [`First`] is dropped. Loads of one user become first in the order
//! of their arrival, and each load does after a bounded number of others.
//!
//! Not here: what the first load waits for.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::oneshot;
use tributary_types::{UserKey, host};

/// Bytes of a user's turn. A smaller one would make users with large loads wait for many turns of others.
const QUANTUM_BYTES: u64 = 1024 * 1024;
const QUANTUM_BYTES_SIMULATED: u64 = 512;

/// Loads that wait, one of which is first.
#[derive(Debug, Default)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// Loads in the line, the first one included.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// Some load is first.
    is_led: bool,
    /// Users that wait, in the order of their turns; the first one has the turn.
    turns: VecDeque<UserKey>,
    waiting: HashMap<UserKey, Waiting>,
}

/// The loads of one user.
#[derive(Debug, Default)]
struct Waiting {
    loads: VecDeque<(u64, oneshot::Sender<()>)>,
    /// Bytes that the user may still bring in this turn.
    deficit: u64,
    /// Its turn has begun.
    has_begun: bool,
}

/// The right of the first load, until this is dropped.
#[derive(Debug)]
#[must_use = "dropped, the next load is first"]
pub(crate) struct First<'a>(&'a Line);

impl Drop for First<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        let mut state = self.0.state.lock();
        state.is_led = false;
        state.lead();
    }
}

/// A load that waits, or was made first and does not know yet.
struct Place<'a> {
    line: &'a Line,
    turn: oneshot::Receiver<()>,
    is_over: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // A load that is given up. If it was made first meanwhile, the next one is.
        self.turn.close();
        match self.turn.try_recv() {
            Ok(()) => drop(First(self.line)),
            Err(_) => drop(self.line.count.fetch_sub(1, Ordering::SeqCst)),
        }
    }
}

impl Line {
    /// Whether no load is in the line.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many loads are in the line.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until a load of `bytes` bytes is the first. May be dropped while it waits.
    pub async fn first(&self, user: UserKey, bytes: u64) -> First<'_> {
        let (sender, turn) = oneshot::channel();
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut place = Place { line: self, turn, is_over: false };
        {
            let mut state = self.state.lock();
            state.add(user, bytes, sender);
            state.lead();
        }
        // The sender is dropped with the line only, which is borrowed.
        let _ = (&mut place.turn).await;
        place.is_over = true;
        First(self)
    }
}

impl State {
    fn add(&mut self, user: UserKey, bytes: u64, sender: oneshot::Sender<()>) {
        let waiting = self.waiting.entry(user).or_default();
        if waiting.loads.is_empty() {
            self.turns.push_back(user);
        }
        waiting.loads.push_back((bytes, sender));
    }

    /// Makes the next load the first one, unless there is one.
    fn lead(&mut self) {
        while !self.is_led {
            let Some(next) = self.next() else { return };
            // It fails for a load that was given up.
            self.is_led = next.send(()).is_ok();
        }
    }

    /// Takes out the load whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<()>> {
        let quantum = host::limit(QUANTUM_BYTES, QUANTUM_BYTES_SIMULATED);
        loop {
            let user = *self.turns.front()?;
            let Some(waiting) = self.waiting.get_mut(&user) else {
                self.turns.pop_front();
                continue;
            };
            while waiting.loads.front().is_some_and(|(_, sender)| sender.is_closed()) {
                waiting.loads.pop_front();
            }
            let Some((bytes, _)) = waiting.loads.front() else {
                self.leave(user);
                continue;
            };
            if !std::mem::replace(&mut waiting.has_begun, true) {
                waiting.deficit += quantum;
            }
            if *bytes <= waiting.deficit {
                waiting.deficit -= *bytes;
                let (_, sender) = waiting.loads.pop_front()?;
                if waiting.loads.is_empty() {
                    self.leave(user);
                }
                return Some(sender);
            }
            waiting.has_begun = false;
            self.turns.rotate_left(1);
        }
    }

    /// The user whose turn it is has no loads.
    fn leave(&mut self, user: UserKey) {
        self.turns.pop_front();
        self.waiting.remove(&user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::future::Future;
    use std::pin::Pin;

    const KIB: u64 = 1024;

    fn user(number: u64) -> UserKey {
        UserKey::of("u", &number.to_string())
    }

    type Load<'a> = (usize, Pin<Box<dyn Future<Output = First<'a>> + 'a>>);

    /// Lets all loads pass and returns their numbers in that order.
    fn passed(mut loads: Vec<Load<'_>>) -> Vec<usize> {
        let mut order = Vec::new();
        while !loads.is_empty() {
            let mut polled = loads.iter_mut().enumerate();
            let first = polled.find_map(|(at, (_, load))| Some((at, load.as_mut().now_or_never()?)));
            let (at, first) = first.expect("one of them is first");
            order.push(loads.remove(at).0);
            drop(first);
        }
        order
    }

    /// Loads of (user, KiB), in the line in this order.
    fn loads<'a>(line: &'a Line, of: &[(u64, u64)]) -> Vec<Load<'a>> {
        let entered = of.iter().enumerate().map(|(number, &(of, kib))| {
            let mut load: Pin<Box<dyn Future<Output = First<'a>> + 'a>> =
                Box::pin(line.first(user(of), kib * KIB));
            assert!(load.as_mut().now_or_never().is_none(), "another one is first");
            (number, load)
        });
        entered.collect()
    }

    #[test]
    fn one_user_s_loads_pass_in_their_order_whatever_their_size() {
        let line = Line::default();
        let first = line.first(user(1), 1).now_or_never().expect("no one else is there");
        let all = loads(&line, &[(1, 5000), (1, 1), (1, 900), (1, 70_000), (1, 1)]);
        drop(first);
        assert_eq!(passed(all), [0, 1, 2, 3, 4]);
        assert!(line.is_empty());
    }

    #[test]
    fn users_share_in_bytes_and_one_with_few_small_loads_waits_for_one_turn_of_another() {
        let line = Line::default();
        let first = line.first(user(1), 1).now_or_never().expect("no one else is there");
        let mut of: Vec<(u64, u64)> = vec![(1, 512); 12];
        of.extend([(2, 1), (2, 1), (3, 2048), (3, 1)]);
        let all = loads(&line, &of);
        drop(first);
        let order = passed(all);
        // Turns: two of the first user, both of the second, none of the third, which saves; two of the first, and so on.
        assert_eq!(order[..8], [0, 1, 12, 13, 2, 3, 14, 4], "{order:?}");
        assert_eq!(order.len(), 16);
    }

    #[test]
    fn large_loads_of_one_and_small_ones_of_another_get_the_same_bytes() {
        let line = Line::default();
        let first = line.first(user(1), 1).now_or_never().expect("no one else is there");
        let mut of = vec![(1, 8 * KIB); 8];
        of.extend(vec![(2, 256); 256]);
        let all = loads(&line, &of);
        drop(first);
        let (mut large, mut small) = (0i64, 0i64);
        for number in passed(all) {
            if number < 8 {
                large += 8 * 1024;
            } else {
                small += 256;
            }
            if large < 64 * 1024 && small < 64 * 1024 {
                assert!((large - small).abs() <= 9 * 1024, "{large} {small}");
            }
        }
    }

    #[test]
    fn a_load_that_is_given_up_holds_no_one_up_even_if_it_was_just_made_first() {
        let line = Line::default();
        let first = line.first(user(1), 1).now_or_never().expect("no one else is there");
        let mut all = loads(&line, &[(1, 1), (2, 1), (1, 1), (3, 1)]);
        drop(all.remove(2));
        drop(first);
        // The first of them is first, and does not know.
        drop(all.remove(0));
        assert_eq!(passed(all), [1, 3]);
        assert!(line.is_empty());
        assert!(line.state.lock().waiting.is_empty());
        let _again = line.first(user(4), 1).now_or_never().expect("no one else is there");
    }
}

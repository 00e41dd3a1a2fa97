//! The pace of loads while memory is short.
//!
//! The flush of a table with keys settles its rows before it frees any memory. Loads that arrive as fast as they can would take
//! the remaining capacity in a moment, and wait for the rest of the flush. So they take turns: the interval between turns is the
//! duration of a flush multiplied by the load's share of the remaining capacity. The longer the flush takes, the smaller the
//! capacity and the longer the turns, but some capacity always remains: each load waits a little, and none for the whole flush.
//!
//! Not its business: whether there is capacity. No load is refused here.

use crate::line::{First, Line};
use crate::tasks;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tributary_types::{UserKey, host};

/// How long a flush takes before one was seen.
const FLUSH_AT_FIRST: Duration = Duration::from_millis(500);
/// No flush counts as a longer one.
const FLUSH_MAX: Duration = Duration::from_secs(10);
/// The longest wait for a turn. After that a load proceeds like those of other tables.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);
/// Shorter waits are combined: timers are not that exact, and turns of small loads take microseconds.
const WAIT_MIN: Duration = Duration::from_millis(2);
/// Turns that were unused for longer than this are lost.
const UNUSED_MAX: Duration = Duration::from_millis(4);

/// Loads take turns at it.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Loads that wait for their turns.
    line: Line,
    last: Mutex<Option<Turn>>,
    /// How long flushes take, in ns.
    flush_ns: AtomicU64,
}

/// The time of a load's turn, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    at: Instant,
    bytes: u64,
}

impl Turn {
    /// The time of the next turn, with this much capacity.
    fn next(self, room: u64, flush: Duration) -> Instant {
        let part = self.bytes as f64 / room.max(1) as f64;
        self.at + flush.mul_f64(part.min(1.0))
    }
}

impl Default for Pace {
    fn default() -> Self {
        let flush_ns = AtomicU64::new(FLUSH_AT_FIRST.as_nanos() as u64);
        Self { line: Line::default(), last: Mutex::default(), flush_ns }
    }
}

impl Pace {
    /// Takes a flush into account: the last ones count most.
    pub(crate) fn flush_took(&self, took: Duration) {
        let took = took.min(FLUSH_MAX).as_nanos() as u64;
        let before = self.flush_ns.load(Ordering::Relaxed);
        self.flush_ns.store(u64::midpoint(before, took), Ordering::Relaxed);
    }

    /// Waits for the turn of a load of `bytes` bytes. Later loads wait until the result is dropped. `room` is the remaining
    /// memory, or `None` while there is enough; `freed` signals that it may have grown. `None`: it has waited long enough.
    pub(crate) async fn turn(
        &self,
        user: UserKey,
        bytes: u64,
        freed: &Notify,
        room: impl Fn() -> Option<u64>,
    ) -> Option<First<'_>> {
        tasks::timeout(TURN_WAIT_MAX, self.wait(user, bytes, freed, room)).await
    }

    async fn wait(
        &self,
        user: UserKey,
        bytes: u64,
        freed: &Notify,
        room: impl Fn() -> Option<u64>,
    ) -> First<'_> {
        let first = self.line.first(user, bytes).await;
        loop {
            let more = freed.notified();
            let now = host::now();
            let last = *self.last.lock();
            let next = match (last, room()) {
                // If the capacity is insufficient, it waits for that, and keeps its turn.
                (Some(turn), Some(room)) if room >= bytes => turn.next(room, self.flush_time()),
                _ => now,
            };
            let wait = next.saturating_duration_since(now);
            if wait <= WAIT_MIN {
                let earliest = now.checked_sub(UNUSED_MAX).unwrap_or(now);
                *self.last.lock() = Some(Turn { at: next.max(earliest), bytes });
                return first;
            }
            tokio::select! {
                biased;
                () = more => {}
                () = tasks::sleep(wait) => {}
            }
        }
    }

    fn flush_time(&self) -> Duration {
        Duration::from_nanos(self.flush_ns.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Duration = Duration::from_secs(1);

    /// Admits loads of `bytes` bytes one by one, as `room` allows: returns the longest interval between two, and the remaining
    /// capacity after `flush`.
    fn longest_turn(mut room: u64, bytes: u64, flush: Duration) -> (Duration, u64) {
        let start = Instant::now();
        let (mut turn, mut longest) = (Turn { at: start, bytes }, Duration::ZERO);
        loop {
            let next = turn.next(room, FLUSH);
            if next > start + flush || room < bytes {
                return (longest, room);
            }
            (longest, room) = (longest.max(next - turn.at), room - bytes);
            turn = Turn { at: next, bytes };
        }
    }

    #[test]
    fn turns_are_short_and_room_lasts_until_the_flush_is_over_and_for_twice_as_long() {
        let (longest, left) = longest_turn(100 << 20, 1 << 20, FLUSH);
        assert!(longest < FLUSH / 20, "{longest:?}");
        assert!(left > 30 << 20, "{left}");
        let (longest, left) = longest_turn(100 << 20, 1 << 20, FLUSH * 2);
        assert!(longest < FLUSH / 10, "{longest:?}");
        assert!(left > 10 << 20, "{left}");
    }

    #[test]
    fn no_turn_takes_longer_than_a_flush() {
        let turn = Turn { at: Instant::now(), bytes: 1 << 30 };
        assert_eq!(turn.next(0, FLUSH) - turn.at, FLUSH);
        assert_eq!(turn.next(1, FLUSH) - turn.at, FLUSH);
    }

    #[tokio::test]
    async fn many_small_loads_do_not_wait_for_timers_each() {
        let (pace, freed) = (Pace::default(), Notify::new());
        let began = Instant::now();
        // Half a microsecond each.
        for _ in 0..10_000 {
            drop(
                pace.turn(UserKey::default(), 100, &freed, || Some(100_000_000))
                    .await
                    .expect("its turn comes"),
            );
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_load_goes_on_as_soon_as_memory_is_not_short() {
        let (pace, freed) = (Pace::default(), Notify::new());
        pace.flush_ns.store(FLUSH_MAX.as_nanos() as u64, Ordering::Relaxed);
        let room = AtomicU64::new(100);
        let read = || Some(room.load(Ordering::Relaxed)).filter(|room| *room < 1000);
        drop(pace.turn(UserKey::default(), 90, &freed, read).await.expect("the first one's turn is at once"));
        let second = pace.turn(UserKey::default(), 90, &freed, read);
        let free = async {
            room.store(1000, Ordering::Relaxed);
            freed.notify_waiters();
        };
        let began = Instant::now();
        let (turn, ()) = tokio::join!(second, free);
        assert!(turn.is_some() && began.elapsed() < FLUSH_MAX / 2);
    }

    #[test]
    fn the_time_of_flushes_is_learnt() {
        let pace = Pace::default();
        (0..20).for_each(|_| pace.flush_took(Duration::from_secs(2)));
        assert!(pace.flush_time() > Duration::from_millis(1999));
        (0..40).for_each(|_| pace.flush_took(Duration::from_secs(3600)));
        assert!(pace.flush_time() <= FLUSH_MAX);
    }
}

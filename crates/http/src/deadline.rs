//! The times at which a connection without a request is closed.
//!
//! The first head has its time from the connection on, a later one from its first byte. Between requests a connection may be
//! silent for longer, or take its answer slowly. Only heads and answers are timed here; bodies have their own limits.
//!
//! A deadline that changes costs one store; a connection looks at it now and then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A request is being served.
const NONE: u64 = u64::MAX;

/// The deadline of one connection.
#[derive(Debug)]
pub(crate) struct Deadline {
    connected: Instant,
    head: Duration,
    idle: Duration,
    /// In milliseconds since the connection.
    at_ms: AtomicU64,
}

/// The state of a connection at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Its time is over.
    Late,
    /// A request is being served.
    Busy,
    /// It waits for a request, or reads one.
    Waiting,
}

impl Deadline {
    pub fn new(head: Duration, idle: Duration) -> Self {
        let at_ms = AtomicU64::new(millis(head));
        Self { connected: Instant::now(), head, idle, at_ms }
    }

    /// A head begins.
    pub fn begin_head(&self, now: Instant) {
        self.at_ms.fetch_min(self.after(now, self.head), Ordering::Relaxed);
    }

    /// A head is complete.
    pub fn end_head(&self) {
        self.at_ms.store(NONE, Ordering::Relaxed);
    }

    /// A request was answered; the client takes the answer from now on.
    pub fn answered(&self, now: Instant) {
        self.at_ms.store(self.after(now, self.idle), Ordering::Relaxed);
    }

    /// The client has taken a part of an answer.
    pub fn taken(&self, now: Instant) {
        if self.at_ms.load(Ordering::Relaxed) != NONE {
            self.answered(now);
        }
    }

    /// Looks at the deadline; and when to look next.
    pub fn look(&self, now: Instant) -> (Seen, Instant) {
        // The time of a head that begins right after this is seen in time.
        let latest = now + self.head;
        match self.at_ms.load(Ordering::Relaxed) {
            NONE => (Seen::Busy, latest),
            at_ms => {
                let at = self.connected + Duration::from_millis(at_ms);
                if at <= now { (Seen::Late, now) } else { (Seen::Waiting, at.min(latest)) }
            }
        }
    }

    fn after(&self, now: Instant, time: Duration) -> u64 {
        millis(now.saturating_duration_since(self.connected) + time)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).map_or(NONE - 1, |ms| ms.min(NONE - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(60);

    #[test]
    fn a_head_has_less_time_than_the_pause_before_it() {
        let deadline = Deadline::new(HEAD, IDLE);
        let at = |seconds| deadline.connected + Duration::from_secs(seconds);
        let seen = |seconds| {
            let (seen, next) = deadline.look(at(seconds));
            assert!(next <= at(seconds) + HEAD);
            seen
        };
        deadline.begin_head(at(9));
        assert_eq!(seen(9), Seen::Waiting);
        assert_eq!(seen(10), Seen::Late, "the first one has its time from the connection on");
        deadline.end_head();
        deadline.taken(at(11));
        assert_eq!(seen(1000), Seen::Busy, "an interim answer changes nothing");
        deadline.answered(at(1000));
        deadline.taken(at(1059));
        assert_eq!(seen(1118), Seen::Waiting, "the answer is taken slowly");
        deadline.begin_head(at(1118));
        assert_eq!(seen(1119), Seen::Late, "60 s after its last byte");
        deadline.answered(at(2000));
        deadline.begin_head(at(2001));
        assert_eq!((seen(2010), seen(2011)), (Seen::Waiting, Seen::Late));
    }
}

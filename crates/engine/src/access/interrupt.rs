//! Early ends of statements: KILL, or a time limit.
//!
//! Work is interrupted only where it waits and where giving up leaves nothing half done. It cleans up as after any other error.

use futures::task::AtomicWaker;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};
use tributary_types::{ErrorCode, SqlError};

/// Whether the statement of one connection should stop. One task waits for it at a time. Asking and
/// waiting take neither a lock nor memory: every INSERT does both.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_set: AtomicBool,
    waiting: AtomicWaker,
}

impl Stop {
    /// Ends the statement that runs.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        self.waiting.wake();
    }

    /// Resets the state for a new statement: interrupts of the previous one do not affect it.
    pub fn clear(&self) {
        self.is_set.store(false, Ordering::SeqCst);
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }
}

/// Why a statement ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    Killed,
    /// The limit that was reached.
    TimedOut(Duration),
}

impl From<Interrupted> for SqlError {
    fn from(interrupted: Interrupted) -> Self {
        match interrupted {
            Interrupted::Killed => Self::new(ErrorCode::QueryInterrupted, "Query execution was interrupted"),
            Interrupted::TimedOut(limit) => Self::detail(
                ErrorCode::ExecuteTimeout,
                format!(
                    "query timeout: {} s have passed; SET query_timeout allows more",
                    limit.as_secs_f64()
                ),
            ),
        }
    }
}

/// Ends what waits when the statement is killed or its time is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt<'a> {
    stop: Option<&'a Stop>,
    limit: Option<(Instant, Duration)>,
}

impl<'a> Interrupt<'a> {
    /// Nothing ends it.
    pub const NEVER: Self = Self { stop: None, limit: None };

    /// KILL ends it, if there is a `stop`, or the time of the limit, if there is one.
    pub const fn of(stop: Option<&'a Stop>, limit: Option<(Instant, Duration)>) -> Self {
        Self { stop, limit }
    }

    /// When the time limit is over, and how long it was.
    pub const fn limit(self) -> Option<(Instant, Duration)> {
        self.limit
    }

    /// Only KILL ends it.
    pub const fn by_kill(stop: &'a Stop) -> Self {
        Self { stop: Some(stop), limit: None }
    }

    /// Interrupts only at the end of `limit`, which starts now.
    pub fn after(limit: Duration) -> Self {
        Self { stop: None, limit: deadline(limit) }
    }

    /// Also interrupts at the end of `limit`, which starts now.
    pub fn or_after(self, limit: Duration) -> Self {
        Self { limit: deadline(limit), ..self }
    }

    /// The rest of the time limit; at least a millisecond, so that ready work is still taken.
    pub fn remaining(self) -> Option<Duration> {
        let (deadline, _) = self.limit?;
        Some(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
    }

    /// Whether the statement should have ended; for work that never waits.
    pub fn check(self) -> Result<(), Interrupted> {
        if self.stop.is_some_and(Stop::is_set) {
            return Err(Interrupted::Killed);
        }
        match self.limit {
            Some((deadline, limit)) if deadline <= Instant::now() => Err(Interrupted::TimedOut(limit)),
            _ => Ok(()),
        }
    }

    /// Runs `work` until it is done or interrupted, in which case it is dropped where it waits. What is
    /// ready is taken first.
    pub fn wait<F: Future>(self, work: F) -> Waiting<'a, F> {
        Waiting { work, stop: self.stop, limit: self.limit, sleep: None }
    }
}

pin_project! {
    /// See [`Interrupt::wait`]. Written by hand: an async function would store the work once more at each level, and every INSERT
    /// is one of them.
    #[must_use = "futures do nothing unless they are awaited"]
    pub(crate) struct Waiting<'a, F> {
        #[pin]
        work: F,
        stop: Option<&'a Stop>,
        limit: Option<(Instant, Duration)>,
        // Made when the work has to wait.
        sleep: Option<Pin<Box<Sleep>>>,
    }
}

impl<F: Future> Future for Waiting<'_, F> {
    type Output = Result<F::Output, Interrupted>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.work.poll(context) {
            return Poll::Ready(Ok(output));
        }
        if let Some(stop) = this.stop {
            stop.waiting.register(context.waker());
            if stop.is_set() {
                return Poll::Ready(Err(Interrupted::Killed));
            }
        }
        if let Some((deadline, limit)) = *this.limit {
            let sleep = this.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if sleep.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(Interrupted::TimedOut(limit)));
            }
        }
        Poll::Pending
    }
}

/// When `limit` ends; `None` when that is too far away to be a time.
fn deadline(limit: Duration) -> Option<(Instant, Duration)> {
    Instant::now().checked_add(limit).map(|deadline| (deadline, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::Arc;

    #[tokio::test]
    async fn work_that_waits_ends_when_it_is_killed() {
        let stop = Arc::new(Stop::default());
        let killer = Arc::clone(&stop);
        let waiting = tokio::spawn(async move { Interrupt::by_kill(&stop).wait(pending::<()>()).await });
        tokio::task::yield_now().await;
        killer.set();
        assert_eq!(waiting.await.expect("no panic"), Err(Interrupted::Killed));
    }

    #[tokio::test]
    async fn work_that_is_ready_is_taken_also_from_a_killed_statement() {
        let stop = Stop::default();
        stop.set();
        let interrupt = Interrupt::by_kill(&stop).or_after(Duration::ZERO);
        assert_eq!(interrupt.wait(async { 5 }).await, Ok(5));
        assert_eq!(interrupt.wait(pending::<()>()).await, Err(Interrupted::Killed));
        assert_eq!(interrupt.check(), Err(Interrupted::Killed));
        stop.clear();
        assert_eq!(interrupt.check(), Err(Interrupted::TimedOut(Duration::ZERO)));
    }

    #[tokio::test]
    async fn work_that_waits_ends_at_its_time_limit() {
        let limit = Duration::from_millis(20);
        let interrupt = Interrupt::after(limit);
        assert!(interrupt.remaining().is_some_and(|left| left <= limit));
        assert_eq!(interrupt.wait(pending::<()>()).await, Err(Interrupted::TimedOut(limit)));
        assert_eq!(interrupt.remaining(), Some(Duration::from_millis(1)));
    }
}

//! The events other than its client that wake a waiting connection: idleness and the shutdown of the server.
//!
//! Timer and cancellation are registered once for the connection, not once per command.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Why [`Watch::race`] returned.
pub(super) enum Woken<T> {
    Done(T),
    /// Nothing has arrived for the idle timeout.
    Idle,
    /// The server stops, or the connection was killed.
    Cancelled,
}

pub(super) struct Watch {
    shutdown_token: CancellationToken,
    kill_token: CancellationToken,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    kill: Pin<Box<WaitForCancellationFutureOwned>>,
    timer: Pin<Box<Sleep>>,
    idle_timeout: Duration,
    last_active: Instant,
}

impl Watch {
    pub(super) fn new(
        shutdown: &CancellationToken,
        kill: &CancellationToken,
        idle_timeout: Duration,
    ) -> Self {
        // A token of its own: connections do not meet at the lock of the server's token.
        let shutdown = shutdown.child_token();
        Self {
            shutdown: Box::pin(shutdown.clone().cancelled_owned()),
            kill: Box::pin(kill.clone().cancelled_owned()),
            shutdown_token: shutdown,
            kill_token: kill.clone(),
            timer: Box::pin(sleep(idle_timeout)),
            idle_timeout,
            last_active: Instant::now(),
        }
    }

    /// Whether the server stops, or the connection was killed.
    pub(super) fn is_cancelled(&self) -> bool {
        self.kill_token.is_cancelled() || self.shutdown_token.is_cancelled()
    }

    /// Notes that a command has ended: from then on the connection is idle.
    pub(super) fn active(&mut self) {
        self.last_active = Instant::now();
    }

    /// How long the connection may be idle.
    pub(super) const fn timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// Sets how long the connection may be idle from now on.
    pub(super) fn set_timeout(&mut self, idle_timeout: Duration) {
        if idle_timeout == self.idle_timeout {
            return;
        }
        self.idle_timeout = idle_timeout;
        self.timer.as_mut().reset(self.last_active + idle_timeout);
    }

    /// Waits for `future`, unless the connection is idle for too long or is cancelled before.
    pub(super) async fn race<F: Future>(&mut self, future: F) -> Woken<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                return Poll::Ready(Woken::Done(value));
            }
            if self.kill.as_mut().poll(context).is_ready() || self.shutdown.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Woken::Cancelled);
            }
            while self.timer.as_mut().poll(context).is_ready() {
                let deadline = self.last_active + self.idle_timeout;
                if deadline <= Instant::now() {
                    return Poll::Ready(Woken::Idle);
                }
                self.timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_connection_is_idle_only_when_nothing_came_for_the_whole_timeout() {
        let timeout = Duration::from_millis(60);
        let mut watch = Watch::new(&CancellationToken::new(), &CancellationToken::new(), timeout);
        let begin = Instant::now();
        tokio::time::sleep(timeout / 2).await;
        watch.active();
        assert!(matches!(watch.race(pending::<()>()).await, Woken::Idle));
        assert!(begin.elapsed() >= timeout + timeout / 2);
    }

    #[tokio::test]
    async fn shutdown_and_kill_wake_a_connection_but_it_takes_what_is_ready_first() {
        for shutdown_comes in [true, false] {
            let (shutdown, kill) = (CancellationToken::new(), CancellationToken::new());
            let mut watch = Watch::new(&shutdown, &kill, HOUR);
            if shutdown_comes {
                shutdown.cancel();
            } else {
                kill.cancel();
            }
            assert!(matches!(watch.race(async { 5 }).await, Woken::Done(5)));
            assert!(matches!(watch.race(pending::<()>()).await, Woken::Cancelled));
        }
    }
}

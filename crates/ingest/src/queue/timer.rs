//! One thread that closes groups at their deadlines.
//!
//! A thread of its own, because a runtime's timers round up to a millisecond, which is a tenth of
//! the shortest useful interval. A group that closed earlier leaves its entry behind; the callback
//! finds nothing to do.

use crate::tasks::{self, Tasks, guarded};
use parking_lot::{Condvar, Mutex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use tributary_types::{TableId, TxnId, host};

/// A group's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    pub at: Instant,
    pub table: TableId,
    pub txn: TxnId,
}

#[derive(Debug, Default)]
struct State {
    deadlines: BinaryHeap<Reverse<Deadline>>,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The timer thread's handle; the thread ends when this is stopped.
pub(crate) struct Timer {
    shared: Arc<Shared>,
    /// In a simulation, instead of the thread: each deadline is a task that sleeps.
    tasks: Option<(Tasks, Close)>,
}

type Close = Arc<dyn Fn(Deadline) + Send + Sync>;

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}

impl Timer {
    /// Starts the thread, which calls `close` with each expired deadline.
    pub fn start(tasks: Tasks, close: impl Fn(Deadline) + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        if host::is_simulated() {
            return Self { shared, tasks: Some((tasks, Arc::new(close))) };
        }
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("group-timer".into())
            .spawn(move || run(&of_thread, &close))
            .expect("the operating system gives one more thread at start");
        Self { shared, tasks: None }
    }

    pub fn schedule(&self, deadline: Deadline) {
        if let Some((tasks, close)) = &self.tasks {
            let close = Arc::clone(close);
            tasks.spawn(async move {
                tasks::sleep(deadline.at.saturating_duration_since(host::now())).await;
                close(deadline);
            });
            return;
        }
        let mut state = self.shared.state.lock();
        let is_first = state.deadlines.peek().is_none_or(|Reverse(first)| deadline.at < first.at);
        state.deadlines.push(Reverse(deadline));
        drop(state);
        if is_first {
            self.shared.changed.notify_one();
        }
    }

    pub fn stop(&self) {
        self.shared.state.lock().stopped = true;
        self.shared.changed.notify_one();
    }
}

fn run(shared: &Shared, close: &impl Fn(Deadline)) {
    let mut state = shared.state.lock();
    while !state.stopped {
        match state.deadlines.peek().map(|Reverse(deadline)| *deadline) {
            None => shared.changed.wait(&mut state),
            Some(first) if first.at > Instant::now() => {
                shared.changed.wait_until(&mut state, first.at);
            }
            Some(first) => {
                state.deadlines.pop();
                let closed = parking_lot::MutexGuard::unlocked(&mut state, || guarded(|| close(first)));
                if let Err(panic) = closed {
                    tracing::error!(table = %first.table, panic, "closing a group at its deadline panicked");
                }
            }
        }
    }
}

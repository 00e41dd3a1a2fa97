//! The obligation to commit a table's closed groups.
//!
//! Invariant: a turn that is given out is taken, by the caller's thread or by a task: dropped, it becomes a task. Never
//! cut off half-way, so a client that leaves harms no group.

use super::TableQueue;
use super::state::Next;
use crate::tasks;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long a group whose commit found no space waits before it tries again.
const COMMIT_RETRY: Duration = Duration::from_millis(200);

/// The right and duty to commit a table's closed groups, until there is none. May be dropped with the queue's lock held.
#[must_use = "dropped, it becomes a task"]
pub(crate) struct CommitTurn(Option<Arc<TableQueue>>);

impl CommitTurn {
    pub(super) fn new(queue: &Arc<TableQueue>) -> Self {
        Self(Some(Arc::clone(queue)))
    }

    /// Commits the oldest closed group on the caller's thread if that is little work, and leaves the rest to a task:
    /// the caller's client is not to wait for other groups. The queue's lock must be free.
    pub fn here(mut self) {
        let Some(queue) = self.0.take() else { return };
        let mut next = queue.next();
        if let Next::Commit(closed) = next {
            if closed.group.commits_quickly() {
                queue.commit_here(closed);
                next = queue.next();
            } else {
                next = Next::Commit(closed);
            }
        }
        match next {
            Next::Nothing => {}
            Next::Wait => Self::new(&queue).spawn(),
            Next::Commit(closed) => {
                queue.state.lock().put_back(closed);
                Self::new(&queue).spawn();
            }
        }
    }

    /// Has a task commit the closed groups.
    pub fn spawn(self) {
        drop(self);
    }

    /// The caller has the turn already, or has it back.
    pub(super) fn leave_to_caller(mut self) {
        self.0 = None;
    }
}

impl Drop for CommitTurn {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            // The task holds no turn: one that is cancelled with its runtime must not spawn another.
            let tasks = queue.core.tasks.clone();
            tasks.spawn(commit_closed(queue));
        }
    }
}

impl fmt::Debug for CommitTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CommitTurn").field(&self.0).finish()
    }
}

/// Commits the closed groups, oldest first, until there is none.
async fn commit_closed(queue: Arc<TableQueue>) {
    loop {
        match queue.next() {
            Next::Commit(closed) => queue.commit_group(closed).await,
            Next::Wait => {
                tasks::sleep(COMMIT_RETRY).await;
                queue.state.lock().retry(&queue);
            }
            Next::Nothing => return,
        }
    }
}

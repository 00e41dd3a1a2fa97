//! A commit between its submission and the log's answer.
//!
//! Invariant: each commit with a version is counted until it was answered, however its callback ends; its pin on the log passes
//! to the memtable when it is published. Not its business: the contents of commits.

use super::TableQueue;
use super::pins::Why;
use super::state::{Closed, State};
use super::turn::CommitTurn;
use crate::group::Group;
use std::sync::Arc;
use tributary_types::{Lsn, TxnId, Version};

/// A commit that the log has not answered. If it is dropped, it was refused, and its pin on the log stays.
#[derive(Debug)]
#[must_use]
pub(super) struct Flight {
    queue: Arc<TableQueue>,
    txn: TxnId,
    version: Version,
    has_ended: bool,
}

impl Flight {
    /// Gives the commit its version.
    pub fn begin(queue: &Arc<TableQueue>, state: &mut State, txn: TxnId) -> Self {
        let version = state.begin_commit();
        Self { queue: Arc::clone(queue), txn, version, has_ended: false }
    }

    pub fn queue(&self) -> &Arc<TableQueue> {
        &self.queue
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// The commit is durable from `first` on and visible: the memtable holds the log now.
    pub fn published(mut self, first: Option<Lsn>) {
        let txn = self.txn;
        self.end(first, |state| state.pins.unpin(txn));
    }

    /// The log has refused the commit, and its pin is not needed.
    pub fn unpin(mut self) {
        let txn = self.txn;
        self.end(None, |state| state.pins.unpin(txn));
    }

    /// The log has refused the commit of a prepared load, which waits for another.
    pub fn stays_prepared(mut self, low: Lsn) {
        let txn = self.txn;
        self.end(None, |state| {
            if !state.is_dropped() {
                state.pins.pin(txn, low, Why::Prepared);
            }
        });
    }

    /// The log has no space for the group, which tries again later. Gives it back if its table was dropped.
    pub fn found_no_space(mut self, closed: Closed) -> Option<Group> {
        self.has_ended = true;
        let mut state = self.queue.state.lock();
        state.ended(None);
        if state.is_dropped() {
            return Some(closed.group);
        }
        let turn = state.found_no_space(&self.queue, closed);
        drop(state);
        turn.into_iter().for_each(CommitTurn::spawn);
        None
    }

    fn end(&mut self, first: Option<Lsn>, change: impl FnOnce(&mut State)) {
        self.has_ended = true;
        let turn = {
            let mut state = self.queue.state.lock();
            state.ended(first);
            change(&mut state);
            // A group that waited for a free log may go.
            state.close_if_free(&self.queue)
        };
        self.queue.published.notify_waiters();
        turn.into_iter().for_each(CommitTurn::spawn);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(None, |_| {});
        }
    }
}

//! What was submitted and is not answered yet.
//!
//! Invariant: the order of submissions is the order of this queue; a closed queue takes nothing, and keeps the
//! first reason, except that a failure replaces a mere shutdown.

use super::Done;
use crate::entry::{Appended, Entry};
use crate::error::WalError;
use crate::frame::Size;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::sync::Notify;
use tributary_types::host;

/// Entries that are kept together, and who is told about them.
pub(super) struct Submission {
    entries: Vec<Entry>,
    size: Size,
    done: Option<Done>,
}

impl Submission {
    pub(super) fn new(entries: Vec<Entry>, size: Size, done: Done) -> Self {
        Self { entries, size, done: Some(done) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.size.payload_bytes
    }

    pub(super) fn answer(mut self, result: Result<Appended, WalError>) {
        if let Some(done) = self.done.take() {
            // The bodies go first: whoever is told may look at the memory in use.
            self.entries = Vec::new();
            done(result);
        }
    }
}

impl AsRef<[Entry]> for Submission {
    fn as_ref(&self) -> &[Entry] {
        &self.entries
    }
}

/// The queue between those who submit and the writer.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    /// In a simulation, where no thread waits for `filled`.
    woken: Notify,
    bytes: AtomicU64,
    submissions: AtomicU64,
}

#[derive(Default)]
struct State {
    pending: Vec<Submission>,
    closed: Option<WalError>,
}

impl Queue {
    /// Adds a submission. A closed queue gives it back, with the reason.
    pub(super) fn push(&self, submission: Submission) -> Option<(Submission, WalError)> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Some((submission, reason.clone()));
        }
        self.bytes.fetch_add(submission.bytes(), SeqCst);
        self.submissions.fetch_add(1, SeqCst);
        state.pending.push(submission);
        drop(state);
        self.filled.notify_one();
        if host::is_simulated() {
            self.woken.notify_one();
        }
        None
    }

    /// Waits for submissions and moves all of them into `into`, which must be empty. Returns whether there were
    /// any; if not, the queue is closed and stays empty.
    pub(super) fn take(&self, into: &mut Vec<Submission>) -> bool {
        let mut state = self.state.lock();
        while state.pending.is_empty() && state.closed.is_none() {
            self.filled.wait(&mut state);
        }
        std::mem::swap(&mut state.pending, into);
        !into.is_empty()
    }

    /// These are durable, or never will be.
    pub(super) fn settled(&self, submissions: &[Submission]) {
        self.bytes.fetch_sub(submissions.iter().map(Submission::bytes).sum(), SeqCst);
        self.submissions.fetch_sub(submissions.len() as u64, SeqCst);
    }

    /// Takes no more. What is pending stays for the writer.
    pub(super) fn close(&self, reason: WalError) {
        let mut state = self.state.lock();
        match &state.closed {
            Some(WalError::Failed { .. }) => {}
            Some(_) if !reason.is_fatal() => {}
            _ => state.closed = Some(reason),
        }
        drop(state);
        self.filled.notify_all();
        self.woken.notify_one();
    }

    /// Like [`Queue::take`], for a task.
    pub(super) async fn take_later(&self, into: &mut Vec<Submission>) -> bool {
        loop {
            {
                let mut state = self.state.lock();
                if !state.pending.is_empty() || state.closed.is_some() {
                    std::mem::swap(&mut state.pending, into);
                    return !into.is_empty();
                }
            }
            self.woken.notified().await;
        }
    }

    /// Why the log has failed, if it has.
    pub(super) fn failure(&self) -> Option<WalError> {
        self.state.lock().closed.clone().filter(WalError::is_fatal)
    }

    pub(super) fn closed_reason(&self) -> WalError {
        self.state.lock().closed.clone().unwrap_or(WalError::Closed)
    }

    pub(super) fn pending_bytes(&self) -> u64 {
        self.bytes.load(SeqCst)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.submissions.load(SeqCst) == 0
    }
}

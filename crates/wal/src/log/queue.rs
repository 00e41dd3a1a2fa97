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

/// How it stands with a submission.
pub(super) enum Stands {
    /// It is the so manieth that ever was pending.
    Queued(u64),
    Refused(Submission, WalError),
    HandedOver,
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
    /// How many submissions were ever taken.
    taken: u64,
    closed: Option<WalError>,
}

impl Queue {
    /// Adds a submission; the writer is not told yet. A closed queue gives it back, with the reason.
    pub(super) fn push(&self, submission: Submission) -> Stands {
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Stands::Refused(submission, reason.clone());
        }
        self.bytes.fetch_add(submission.bytes(), SeqCst);
        self.submissions.fetch_add(1, SeqCst);
        state.pending.push(submission);
        Stands::Queued(state.taken + state.pending.len() as u64)
    }

    /// Tells the writer that something is pending.
    pub(super) fn wake_writer(&self) {
        self.filled.notify_one();
        if host::is_simulated() {
            self.woken.notify_one();
        }
    }

    /// Waits until something is pending. `false`: the queue is closed and stays empty.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.pending.is_empty() && state.closed.is_none() {
            self.filled.wait(&mut state);
        }
        !state.pending.is_empty()
    }

    /// Like [`Queue::wait`], for a task.
    pub(super) async fn wait_later(&self) -> bool {
        loop {
            {
                let state = self.state.lock();
                if !state.pending.is_empty() || state.closed.is_some() {
                    return !state.pending.is_empty();
                }
            }
            self.woken.notified().await;
        }
    }

    /// Moves all that is pending into `into`, which must be empty. Only for who has the core.
    pub(super) fn take(&self, into: &mut Vec<Submission>) {
        let mut state = self.state.lock();
        std::mem::swap(&mut state.pending, into);
        state.taken += into.len() as u64;
    }

    /// Takes the submission of that number if it alone is pending and has at most so many bytes. Only for who has
    /// the core.
    pub(super) fn take_lone(&self, number: u64, bytes_max: u64) -> Option<Submission> {
        let mut state = self.state.lock();
        let is_lone = matches!(&state.pending[..], [one] if one.bytes() <= bytes_max);
        if !is_lone || state.taken + 1 != number {
            return None;
        }
        state.taken = number;
        state.pending.pop()
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

    /// Why the log has failed, if it has.
    pub(super) fn failure(&self) -> Option<WalError> {
        self.state.lock().closed.clone().filter(WalError::is_fatal)
    }

    pub(super) fn pending_bytes(&self) -> u64 {
        self.bytes.load(SeqCst)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.submissions.load(SeqCst) == 0
    }
}

//! Submissions that are not answered yet.
//!
//! Invariant: submissions leave in the order in which they arrived; after closing, none is accepted. The first reason for closing
//! stays, except that a failure replaces a mere shutdown.

use super::Done;
use crate::entry::{Appended, Entry};
use crate::error::WalError;
use crate::frame::Size;
use parking_lot::Condvar;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::sync::Notify;
use tributary_types::host;
use tributary_types::lock::{Rank, Ranked};

/// Entries that stay together, and the callback that gets their outcome.
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
            // The bodies go first: the callback may look at the memory in use.
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

/// The position of a submission.
pub(super) enum Place {
    /// It is pending; the number is its ordinal among all submissions, counted from 1.
    Pending(u64),
    /// It was not taken.
    Refused(Submission, WalError),
    /// It is the writer's, or answered.
    HandedOver,
}

/// The submissions between the threads that submit and the one that writes.
pub(super) struct Pending {
    state: Ranked<State>,
    filled: Condvar,
    /// Replaces `filled` in a simulation, where no thread waits.
    woken: Notify,
    /// Notified when fewer bytes are pending.
    drained: Notify,
    bytes: AtomicU64,
    submissions: AtomicU64,
}

#[derive(Default)]
struct State {
    pending: Vec<Submission>,
    /// How many submissions were taken so far.
    taken: u64,
    closed: Option<WalError>,
    /// Set while a refusal is being answered, so that submissions in order do not overtake the refused ones.
    refusal: Option<WalError>,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            state: Ranked::new(Rank::LogQueue, State::default()),
            filled: Condvar::new(),
            woken: Notify::new(),
            drained: Notify::new(),
            bytes: AtomicU64::new(0),
            submissions: AtomicU64::new(0),
        }
    }
}

impl Pending {
    /// Adds a submission without waking the writer. Gives it back with the reason once this is closed, or if it is
    /// `in_order` and a refusal is being answered.
    pub(super) fn push(&self, submission: Submission, in_order: bool) -> Place {
        let mut state = self.state.lock();
        let refusal = state.refusal.as_ref().filter(|_| in_order);
        if let Some(reason) = state.closed.as_ref().or(refusal) {
            return Place::Refused(submission, reason.clone());
        }
        self.bytes.fetch_add(submission.bytes(), SeqCst);
        self.submissions.fetch_add(1, SeqCst);
        state.pending.push(submission);
        Place::Pending(state.taken + state.pending.len() as u64)
    }

    /// Wakes the writer because something is pending.
    pub(super) fn wake_writer(&self) {
        self.filled.notify_one();
        if host::is_simulated() {
            self.woken.notify_one();
        }
    }

    /// Waits until something is pending. Returns `false` once this is closed and stays empty.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.pending.is_empty() && state.closed.is_none() {
            self.filled.wait(state.for_condvar());
        }
        !state.pending.is_empty()
    }

    /// Like [`Pending::wait`], for a task.
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

    /// Moves everything pending into `into`, which must be empty. Only the holder of the core may call this.
    pub(super) fn take(&self, into: &mut Vec<Submission>) {
        assert!(into.is_empty(), "submissions that were taken before are written first");
        let mut state = self.state.lock();
        std::mem::swap(&mut state.pending, into);
        state.taken += into.len() as u64;
    }

    /// Like [`Pending::take`], to refuse the taken submissions. Until [`Pending::refused`], submissions in order are refused too.
    /// Only the holder of the core may call this.
    pub(super) fn take_to_refuse(&self, into: &mut Vec<Submission>, reason: &WalError) {
        let mut state = self.state.lock();
        state.refusal = Some(reason.clone());
        state.taken += state.pending.len() as u64;
        into.append(&mut state.pending);
    }

    /// Called when all refused submissions are answered.
    pub(super) fn refused(&self) {
        self.state.lock().refusal = None;
    }

    /// Takes the submission with that ordinal if nothing else is pending and it has at most `bytes_max` bytes. Only
    /// the holder of the core may call this.
    pub(super) fn take_lone(&self, ordinal: u64, bytes_max: u64) -> Option<Submission> {
        let mut state = self.state.lock();
        let is_lone = matches!(&state.pending[..], [one] if one.bytes() <= bytes_max);
        if !is_lone || state.taken + 1 != ordinal {
            return None;
        }
        state.taken = ordinal;
        state.pending.pop()
    }

    /// Stops counting submissions that are durable, or never will be.
    pub(super) fn decided(&self, submissions: &[Submission]) {
        let bytes: u64 = submissions.iter().map(Submission::bytes).sum();
        let count = submissions.len() as u64;
        let pending_bytes = self.bytes.fetch_sub(bytes, SeqCst);
        let pending = self.submissions.fetch_sub(count, SeqCst);
        assert!(pending_bytes >= bytes && pending >= count, "only what is pending is decided, and only once");
        self.drained.notify_waiters();
    }

    /// Waits until fewer than `bytes` bytes are pending, or this is closed.
    pub(super) async fn drained_below(&self, bytes: u64) {
        loop {
            let drained = self.drained.notified();
            if self.pending_bytes() < bytes || self.state.lock().closed.is_some() {
                return;
            }
            drained.await;
        }
    }

    /// Stops taking submissions. What is pending stays for the writer.
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
        self.drained.notify_waiters();
    }

    /// The reason for which the log has failed, if it has.
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

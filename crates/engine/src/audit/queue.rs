//! Entries that wait for the thread.
//!
//! A place is reserved before a request runs if requests without a record are refused, and free again when the record is written.
//! The thread is woken when there is something to do, and again when there is much of it: not for each entry.
//!
//! Not here: what happens when there is no place.

use super::Admission;
use super::entry::Entry;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of entries that wait.
const BYTES_MAX: usize = 32 << 20;
/// How long entries gather before the thread takes them.
const GATHER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    news: Condvar,
    capacity: usize,
    /// Places of requests that were admitted and whose records are not written yet.
    reserved: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<(Entry, Option<Admission>)>,
    bytes: usize,
    is_closed: bool,
}

/// A reserved place, free when it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Queue {
    pub fn new(capacity: usize) -> Self {
        Self { state: Mutex::default(), news: Condvar::new(), capacity, reserved: Arc::default() }
    }

    /// Reserves a place; `None`: there is none.
    pub fn reserve(&self) -> Option<Place> {
        let before = self.reserved.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(&self.reserved));
        (before < self.capacity).then_some(place)
    }

    /// Adds an entry; `false` if there is no place for it. With a reserved place there is one.
    pub fn push(&self, entry: Entry, admission: Option<Admission>) -> bool {
        let bytes = entry.bytes();
        let mut state = self.state.lock();
        let is_full = state.entries.len() >= self.capacity || state.bytes + bytes > BYTES_MAX;
        if state.is_closed || is_full && admission.is_none() {
            return false;
        }
        state.bytes += bytes;
        state.entries.push((entry, admission));
        let count = state.entries.len();
        drop(state);
        if count == 1 || count == self.capacity / 2 {
            self.news.notify_one();
        }
        true
    }

    /// Waits for entries and moves them all to `taken`, which is empty, and whose memory takes the next ones; `false` when there are
    /// none and there will be none.
    pub fn take(&self, taken: &mut Vec<(Entry, Option<Admission>)>) -> bool {
        debug_assert!(taken.is_empty(), "these would be taken again");
        let mut state = self.state.lock();
        while state.entries.is_empty() {
            if state.is_closed {
                return false;
            }
            self.news.wait(&mut state);
        }
        if !state.is_closed && state.entries.len() < self.capacity / 2 {
            self.news.wait_for(&mut state, GATHER);
        }
        state.bytes = 0;
        std::mem::swap(&mut state.entries, taken);
        true
    }

    /// From now on nothing is added.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.news.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}

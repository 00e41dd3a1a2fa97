//! Records that wait for the table.
//!
//! Not here: the table.

use super::record::Record;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of records that wait.
const BYTES_MAX: usize = 32 << 20;

#[derive(Debug)]
pub(super) struct Waiting {
    is_open: AtomicBool,
    state: Mutex<State>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<Record>,
    bytes: usize,
}

impl Waiting {
    pub fn new(capacity: usize) -> Self {
        Self { is_open: AtomicBool::new(false), state: Mutex::default(), capacity }
    }

    /// Whether the table is to have records.
    pub fn open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
    }

    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    pub fn is_empty(&self) -> bool {
        self.state.lock().records.is_empty()
    }

    /// Adds a record, and returns it if there is no place for it.
    pub fn push(&self, record: Record) -> Option<Record> {
        let bytes = record.bytes();
        let mut state = self.state.lock();
        if state.records.len() >= self.capacity || state.bytes + bytes > BYTES_MAX && state.bytes > 0 {
            return Some(record);
        }
        state.bytes += bytes;
        state.records.push_back(record);
        None
    }

    /// Takes the oldest records, of about this many bytes.
    pub fn take(&self, bytes_max: usize) -> Vec<Record> {
        let mut state = self.state.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < bytes_max
            && let Some(record) = state.records.pop_front()
        {
            bytes += record.bytes();
            taken.push(record);
        }
        state.bytes = state.bytes.saturating_sub(bytes);
        taken
    }
}

//! How a change of a table is stopped, and whether it is in doubt.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

const GOES_ON: u8 = 0;
const IS_ASKED: u8 = 1;
const IS_AT_ONCE: u8 = 2;

/// Whether a change of a table is to end before it is made, and what keeps it from being known how it ended.
#[derive(Debug, Default)]
pub struct Halt {
    state: AtomicU8,
    doubt: Mutex<Option<String>>,
}

impl Halt {
    /// The change is not to be made. One that the Delta log may have already goes on until that is known, for loads of the table
    /// wait as long as it is not.
    pub fn ask(&self) {
        self.state.fetch_max(IS_ASKED, Ordering::SeqCst);
    }

    /// The change ends as soon as it can. Whether the Delta log has it, the next start of the server finds out.
    pub fn at_once(&self) {
        self.state.store(IS_AT_ONCE, Ordering::SeqCst);
    }

    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.state.load(Ordering::SeqCst) != GOES_ON
    }

    #[must_use]
    pub fn is_at_once(&self) -> bool {
        self.state.load(Ordering::SeqCst) == IS_AT_ONCE
    }

    /// The change is in doubt: loads of the table wait, and what has failed is tried again.
    pub fn doubts(&self, reason: impl ToString) {
        *self.doubt.lock() = Some(reason.to_string());
    }

    /// What failed last of a change that is, or was, in doubt.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        self.doubt.lock().clone()
    }
}

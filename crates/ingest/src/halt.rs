//! How a change of a table is stopped.

use std::sync::atomic::{AtomicU8, Ordering};

const GOES_ON: u8 = 0;
const IS_ASKED: u8 = 1;
const IS_AT_ONCE: u8 = 2;

/// Whether a change of a table is to end before it is made.
#[derive(Debug, Default)]
pub struct Halt(AtomicU8);

impl Halt {
    /// The change is not to be made. One that the Delta log may have already goes on until that is known, for loads of the table
    /// wait as long as it is not.
    pub fn ask(&self) {
        self.0.fetch_max(IS_ASKED, Ordering::SeqCst);
    }

    /// The change ends as soon as it can. Whether the Delta log has it, the next start of the server finds out.
    pub fn at_once(&self) {
        self.0.store(IS_AT_ONCE, Ordering::SeqCst);
    }

    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst) != GOES_ON
    }

    #[must_use]
    pub fn is_at_once(&self) -> bool {
        self.0.load(Ordering::SeqCst) == IS_AT_ONCE
    }
}

//! How a change of a table is stopped, and whether it is in doubt.

use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::watch;

const GOES_ON: u8 = 0;
const IS_ASKED: u8 = 1;
const IS_AT_ONCE: u8 = 2;

/// A request to end a change of a table before it happens, and the reason why its outcome is unknown.
#[derive(Debug, Default)]
pub struct Halt {
    state: AtomicU8,
    doubt: watch::Sender<Option<String>>,
}

impl Halt {
    /// Requests that the change does not happen. If the Delta log may have it already, it continues until that is known, because
    /// loads of the table wait until then.
    pub fn ask(&self) {
        self.state.fetch_max(IS_ASKED, Ordering::SeqCst);
    }

    /// Ends the change as soon as possible. The next start of the server finds out whether the Delta log has it.
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

    /// Notes that the change is in doubt: loads of the table wait, and the failed step is retried.
    pub fn doubts(&self, reason: impl ToString) {
        self.doubt.send_replace(Some(reason.to_string()));
    }

    /// The last failure of a change that is, or was, in doubt.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        self.doubt.borrow().clone()
    }

    /// Waits until the change is in doubt.
    pub async fn in_doubt(&self) {
        // The sender lives as long as this.
        drop(self.doubt.subscribe().wait_for(Option::is_some).await);
    }
}

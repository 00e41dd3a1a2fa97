//! The right of a load's user, which may be revoked while the load waits.
//!
//! Not here: users, and what they may do.

use std::fmt;

/// The right to load into a table.
pub struct LoadRight {
    // Boxed here, so that a load carries one pointer.
    ask: Box<dyn Fn() -> bool + Send + Sync>,
}

impl LoadRight {
    /// The right about which `ask` says whether the user still has it. It is called without a lock, right before a load joins its
    /// group or is given to the log, and should not block.
    #[must_use]
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { ask: Box::new(ask) }
    }

    /// Whether the user still has it.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.ask)()
    }
}

impl fmt::Debug for LoadRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoadRight").finish()
    }
}

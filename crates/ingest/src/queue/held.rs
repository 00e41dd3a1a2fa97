//! Loads of a table wait or are refused briefly, while its schema or its partitions are changed.

use super::TableQueue;
use std::mem;
use std::sync::Arc;
use tributary_types::SchemaVersion;

/// While it lives, no load of the table begins its commit.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held(Arc<TableQueue>);

/// The treatment of loads of Group Commit while others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loads {
    /// As Doris refuses them while it changes a schema.
    Refused,
    Wait,
}

impl Held {
    /// The table has a new schema; loads of earlier ones are converted or refused from now on.
    pub fn schema_is(&self, version: SchemaVersion) {
        self.0.state.lock().schema_floor = version;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.state.lock().is_held = false;
        self.0.released.notify_waiters();
    }
}

impl TableQueue {
    /// Pins all loads that have not begun.
    ///
    /// # Panics
    /// If they are held already.
    pub fn hold(self: &Arc<Self>, loads: Loads) -> Held {
        let was_held = {
            let mut state = self.state.lock();
            state.lets_wait = loads == Loads::Wait;
            mem::replace(&mut state.is_held, true)
        };
        assert!(!was_held, "one change of a table is under way at a time");
        Held(Arc::clone(self))
    }

    /// Waits until loads are not held.
    pub async fn released(&self) {
        let mut has_waited = false;
        loop {
            let released = self.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            {
                let state = self.state.lock();
                if !state.is_held || state.is_dropped() {
                    return;
                }
            }
            if !mem::replace(&mut has_waited, true) {
                self.core.metrics.held.inc();
            }
            released.await;
        }
    }

    /// Whether a two-phase load waits, or acknowledged rows wait for the next start.
    pub fn has_prepared(&self) -> bool {
        self.state.lock().pins.has_waiting()
    }

    /// Whether nothing of the table is between its load and the memtable.
    pub fn is_at_rest(&self) -> bool {
        let state = self.state.lock();
        state.groups() == 0 && state.pins.lowest().is_none()
    }
}

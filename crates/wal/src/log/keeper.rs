//! The keeper thread: prepares spare segments ahead and recycles released ones, so that neither delays an
//! acknowledgement.

use super::Shared;
use crate::error::WalError;
use parking_lot::{Condvar, Mutex};

/// What the keeper is asked to do.
#[derive(Default)]
pub(super) struct Keeper {
    orders: Mutex<Orders>,
    asked: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Orders {
    prepare: bool,
    recycle: bool,
    stop: bool,
}

impl Keeper {
    pub(super) fn prepare(&self) {
        self.ask(|orders| orders.prepare = true);
    }

    pub(super) fn recycle(&self) {
        self.ask(|orders| orders.recycle = true);
    }

    pub(super) fn stop(&self) {
        self.ask(|orders| orders.stop = true);
    }

    fn ask(&self, what: impl FnOnce(&mut Orders)) {
        what(&mut self.orders.lock());
        self.asked.notify_one();
    }

    /// Waits for orders and takes them. `None`: stop.
    fn take(&self) -> Option<Orders> {
        let mut orders = self.orders.lock();
        while !(orders.prepare || orders.recycle || orders.stop) {
            self.asked.wait(&mut orders);
        }
        if orders.stop { None } else { Some(std::mem::take(&mut *orders)) }
    }
}

/// Lives until it is stopped, or the log has failed.
pub(super) fn run(shared: &Shared) {
    while let Some(orders) = shared.keeper.take() {
        if orders.recycle
            && let Err(error) = shared.inventory.recycle(shared.counters.released())
        {
            shared.fail(&failed(shared, error));
            return;
        }
        if orders.prepare
            && !shared.inventory.has_spare()
            && let Err(error) = shared.inventory.prepare_spare()
        {
            tracing::warn!(%error, "no segment of the write-ahead log could be prepared ahead");
        }
    }
}

fn failed(shared: &Shared, error: WalError) -> WalError {
    match error {
        WalError::Io { action, path, source } => {
            WalError::Failed { action, path, durable_lsn: shared.counters.end().0, source }
        }
        other => other,
    }
}

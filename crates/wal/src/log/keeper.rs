//! The keeper thread: prepares spare segments ahead, announces closed ones and recycles released ones, so that none
//! of this delays an acknowledgement.

use super::Shared;
use crate::error::WalError;
use parking_lot::Condvar;
use tokio::sync::Notify;
use tributary_types::lock::{Rank, Ranked};

/// The keeper's orders, and how it waits for them.
pub(super) struct Keeper {
    orders: Ranked<Orders>,
    asked: Condvar,
    /// Replaces `asked` in a simulation, which has no waiting threads.
    woken: Notify,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Orders {
    prepare: bool,
    announce: bool,
    recycle: bool,
    stop: bool,
}

impl Orders {
    fn is_work(self) -> bool {
        self.prepare || self.announce || self.recycle
    }
}

impl Default for Keeper {
    fn default() -> Self {
        let orders = Ranked::new(Rank::LogKeeper, Orders::default());
        Self { orders, asked: Condvar::new(), woken: Notify::new() }
    }
}

impl Keeper {
    pub(super) fn prepare(&self) {
        self.ask(|orders| orders.prepare = true);
    }

    pub(super) fn announce(&self) {
        self.ask(|orders| orders.announce = true);
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
        self.woken.notify_one();
    }

    /// Like [`Keeper::take`], for a task.
    pub(super) async fn take_later(&self) -> Option<Orders> {
        loop {
            let orders = std::mem::take(&mut *self.orders.lock());
            if orders.stop {
                return None;
            }
            if orders.is_work() {
                return Some(orders);
            }
            self.woken.notified().await;
        }
    }

    /// Waits for orders and takes them; `None` when it is time to stop.
    fn take(&self) -> Option<Orders> {
        let mut orders = self.orders.lock();
        while !(orders.is_work() || orders.stop) {
            self.asked.wait(orders.for_condvar());
        }
        if orders.stop { None } else { Some(std::mem::take(&mut *orders)) }
    }
}

/// Runs until it is stopped or the log has failed.
pub(super) fn run(shared: &Shared) {
    while let Some(orders) = shared.keeper.take() {
        if !obey(shared, orders) {
            return;
        }
    }
}

/// Carries out orders. Returns `false` if the log has failed.
pub(super) fn obey(shared: &Shared, orders: Orders) -> bool {
    if orders.announce {
        shared.inventory.announce();
    }
    // Released segments may have been waiting for their announcement.
    if (orders.recycle || orders.announce)
        && let Err(error) = shared.inventory.recycle(shared.counters.released())
    {
        shared.fail(&failed(shared, error));
        return false;
    }
    if orders.prepare
        && !shared.inventory.has_spare()
        && let Err(error) = shared.inventory.prepare_spare()
    {
        tracing::warn!(%error, "no segment of the write-ahead log could be prepared ahead");
    }
    true
}

fn failed(shared: &Shared, error: WalError) -> WalError {
    match error {
        WalError::Io { action, path, source } => {
            WalError::Failed { action, path, durable_lsn: shared.counters.end().0, source }
        }
        other => other,
    }
}

//! The log's writer and keeper as two tasks of a simulation, instead of two threads.

use super::{Shared, keeper, writer};
use std::sync::Arc;
use tributary_types::host::Host;

/// Spawns both in the simulation. They end with it, or when the log is closed.
pub(super) fn spawn(host: &dyn Host, shared: &Arc<Shared>) {
    let of_writer = Arc::clone(shared);
    host.spawn(Box::pin(async move {
        while of_writer.pending.wait_later().await {
            writer::write_pending(&of_writer);
        }
        drop(of_writer.core.lock().take());
    }));
    let of_keeper = Arc::clone(shared);
    host.spawn(Box::pin(async move {
        while let Some(orders) = of_keeper.keeper.take_later().await {
            if !keeper::obey(&of_keeper, orders) {
                return;
            }
        }
    }));
}

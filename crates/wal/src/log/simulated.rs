//! The log's writer and keeper as two tasks of a simulation, instead of two threads.

use super::{Shared, keeper, writer};
use crate::core::LogCore;
use std::sync::Arc;
use tributary_types::host::Host;

/// Hands both over to the simulation. They end with it, or when the log is closed.
pub(super) fn spawn(host: &dyn Host, mut core: LogCore, shared: &Arc<Shared>) {
    let of_writer = Arc::clone(shared);
    host.spawn(Box::pin(async move {
        let mut taken = Vec::new();
        while of_writer.queue.take_later(&mut taken).await {
            writer::write_taken(&mut core, &of_writer, &mut taken);
        }
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

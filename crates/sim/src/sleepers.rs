//! Processes that are frozen, and wake while another one has taken over from them.
//!
//! Loads that they would acknowledge then are not of this simulation: they only flush, as they were about to. Their rows are in the log, which the
//! later process has replayed, so an entry of theirs that counts shows rows twice.

use crate::trace::note;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How long a sleeper takes to wake, at most, in µs.
const WAKES_WITHIN_US: u64 = 100_000;

/// Keeps the tables of the process that is about to end, unless it ends itself or the machine does.
pub fn fall_asleep(world: &World) {
    if !world.plan.wakes || world.is_dead.load(Ordering::Relaxed) {
        return;
    }
    if let Some(process) = &*world.process.borrow() {
        world.sleepers.borrow_mut().extend(process.tables.lock().values().cloned());
    }
}

/// Lets all sleepers wake while the next process starts and works.
pub fn wake(world: &Rc<World>) {
    for table in world.sleepers.borrow().iter() {
        let (world_of_task, table) = (Rc::clone(world), Arc::clone(table));
        world.machine.spawn_local(async move {
            let world = world_of_task;
            world.think(WAKES_WITHIN_US).await;
            let flushed = table.flush().await;
            note!(world.trace, "woken", table.id().0, flushed.is_ok(), "{}", flushed.is_ok());
            world.count(|counts| counts.woken += 1);
        });
    }
}

//! Processes that are frozen, and wake while another one has taken over from them.
//!
//! Loads that they would acknowledge then are not of this simulation: they flush and delete files, as they were about to. Their rows are in the
//! log, which the later process has replayed, so an entry of theirs that counts shows rows twice. Files that the later process has not named in
//! a log yet are unknown to them.

use crate::trace::note;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How long a sleeper takes to wake, at most, in µs: any time, or while the next process opens its tables.
const WAKES_WITHIN_US: [u64; 2] = [100_000, 3_000];
/// How long it takes from a flush to the deletion of files, at most, in µs.
const SWEEPS_WITHIN_US: u64 = 400_000;

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
            let within_us = world.throw(|dice| dice.pick(&WAKES_WITHIN_US));
            world.think(within_us).await;
            let flushed = table.flush().await;
            note!(world.trace, "woken", table.id().0, flushed.is_ok(), "{}", flushed.is_ok());
            world.count(|counts| counts.woken += 1);
            world.think(SWEEPS_WITHIN_US).await;
            // A start that has not sealed the logs yet reads them after this.
            if world.process.borrow().is_some() {
                let swept = table.sweep().await;
                note!(world.trace, "swept", table.id().0, swept.is_ok(), "by a woken process: {swept:?}");
            }
        });
    }
}

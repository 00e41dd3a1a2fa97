//! Processes that are frozen, and wake while another one has taken over from them.
//!
//! Loads that they would acknowledge then are not of this simulation: they flush, compact and delete files, as they were about to.
//! Their rows are in the log, which the later process has replayed, so an entry of theirs that counts shows rows twice. Files that the
//! later process has not named in a log yet are unknown to them.
//!
//! A bug of the seal shows only if a sleeper has something to write and wakes at the right time: a little before the next process
//! reads the logs, between its reading and its seal, or while it works. So the next process starts a little later if somebody sleeps, and
//! sleepers wake around that time.

use crate::trace::note;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tributary_table::{Table, TableError};

/// How long a sleeper takes to wake, at most, in µs: while the next process starts, or any time.
const WAKES_WITHIN_US: [u64; 4] = [1_000, 4_000, 4_000, 100_000];
/// How much later the next process starts, at most, in µs: a sleeper needs 2,000 to write an entry.
const STARTS_WITHIN_US: u64 = 4_000;
/// The time from one thing that a sleeper does to the next, at most, in µs.
const GOES_ON_WITHIN_US: [u64; 3] = [100, 1_000, 100_000];
/// The things that a sleeper does with a table, at most.
const STEPS_MAX: u64 = 4;

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
        world.machine.spawn_local(async move { goes_on(&world_of_task, &table).await });
    }
}

/// Waits with a start while sleepers wake.
pub async fn let_wake(world: &World) {
    if !world.sleepers.borrow().is_empty() {
        world.think(STARTS_WITHIN_US).await;
    }
}

async fn goes_on(world: &Rc<World>, table: &Arc<Table>) {
    let within_us = world.throw(|dice| dice.pick(&WAKES_WITHIN_US));
    world.think(within_us).await;
    let mut was_written = false;
    for _ in 0..world.throw(|dice| dice.between(1, STEPS_MAX)) {
        let compacts = world.throw(|dice| dice.one_in(3));
        let written = if compacts {
            table.compact_from(2).await.map(|report| report.is_some())
        } else {
            table.flush().await.map(|report| report.is_some())
        };
        note!(world.trace, "woken", table.id().0, written.is_ok(), "{} {written:?}", table.id());
        world.count(|counts| counts.woken += 1);
        match written {
            Err(TableError::TakenOver { .. }) => break,
            written => was_written |= written.is_ok_and(|written| written),
        }
        let within_us = world.throw(|dice| dice.pick(&GOES_ON_WITHIN_US));
        world.think(within_us).await;
    }
    if was_written {
        later_flushes(world, table).await;
    }
    sweeps(world, table).await;
}

/// The later process writes to the log that a sleeper has written to.
async fn later_flushes(world: &Rc<World>, table: &Table) {
    let process = world.process.borrow().clone();
    let Some(later) = process.and_then(|process| process.table(table.id())) else { return };
    let flushed = later.flush().await;
    note!(world.trace, "flush", table.id().0, flushed.is_ok(), "after a woken process: {flushed:?}");
}

/// Deletes what the sleeper knows no use of, more than once: some files are only looked at the first time.
async fn sweeps(world: &Rc<World>, table: &Table) {
    for _ in 0..3 {
        world.machine.sleep(Duration::from_millis(world.plan.keep_removed_ms.min(200))).await;
        // A start that has not sealed the logs yet reads them after this.
        if world.process.borrow().is_none() {
            return;
        }
        let swept = table.sweep().await;
        note!(world.trace, "swept", table.id().0, swept.is_ok(), "by a woken process: {swept:?}");
    }
}

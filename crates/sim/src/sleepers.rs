//! Processes that are frozen, and wake while another one has taken over from them.
//!
//! Loads that they would acknowledge then are not of this simulation: they flush, compact and delete files, as they were about to.
//! Their rows are in the log, which the later process has replayed, so an entry of theirs that counts shows rows twice. Files that the
//! later process has not named in a log yet are unknown to them.
//!
//! Some freeze after a change of a table's columns has been recorded and before it is made. When they wake they make it, unless the later
//! process has taken the table's log from them: it has looked there by then whether the change was made, and told the catalog so.
//!
//! A bug of the seal shows only if a sleeper has something to write and wakes at the right time: a little before the next process
//! reads the logs, between its reading and its seal, or while it works. So the next process starts a little later if somebody sleeps, and
//! sleepers wake around that time.

use crate::changes::target;
use crate::trace::note;
use crate::world::World;
use arrow::array::ArrayRef;
use futures::future::BoxFuture;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tributary_ddl::{Change, Effect};
use tributary_decode::recast;
use tributary_table::{Recast, Table, TableError, Watch};
use tributary_types::{ColumnDef, SourceId, TableDef, host};

/// How long a sleeper takes to wake, at most, in µs: while the next process starts, or any time.
const WAKES_WITHIN_US: [u64; 4] = [1_000, 4_000, 4_000, 100_000];
/// How much later the next process starts, at most, in µs: a sleeper needs 2,000 to write an entry.
const STARTS_WITHIN_US: u64 = 4_000;
/// The time from one thing that a sleeper does to the next, at most, in µs.
const GOES_ON_WITHIN_US: [u64; 3] = [100, 1_000, 100_000];
/// The things that a sleeper does with a table, at most.
const STEPS_MAX: u64 = 4;

/// The number of times that a sleeper asks whether a change of its is in the log.
const ASKS_MAX: u32 = 3;
/// How long it waits in between.
const ASKS_AGAIN: Duration = Duration::from_millis(1);

/// A change of a table's columns that is recorded.
pub struct Recorded {
    table: Arc<Table>,
    id: SourceId,
    to: Arc<TableDef>,
}

/// Keeps the tables of the process that is about to end, unless it ends itself or the machine does.
pub fn fall_asleep(world: &World) {
    if !world.plan.wakes || world.is_dead.load(Ordering::Relaxed) {
        return;
    }
    if let Some(process) = &*world.process.borrow() {
        let tables: Vec<Arc<Table>> = process.tables.lock().values().cloned().collect();
        tables.iter().for_each(|table| record_change(world, table));
        world.sleepers.borrow_mut().extend(tables);
    }
}

/// Records a change of the table now and then, unless one is under way.
fn record_change(world: &World, table: &Arc<Table>) {
    let catalog = &world.hardware.catalog;
    let Ok(_changing) = world.changing.try_lock() else { return };
    if table.is_changing() || catalog.is_changing(table.id()) || !world.throw(|dice| dice.one_in(2)) {
        return;
    }
    let Some(to) = world.throw(|dice| target(&table.def(), dice)) else { return };
    let (id, to) = (catalog.next_change(), Arc::new(to));
    let change = Change { id, table: table.id(), effect: Effect::Columns(Arc::clone(&to)) };
    if catalog.put_job(&change).is_ok() {
        note!(world.trace, "recorded", table.id().0, id.0, "change {id} of table {}", table.id());
        world.recorded.borrow_mut().push(Recorded { table: Arc::clone(table), id, to });
    }
}

/// Lets all sleepers wake while the next process starts and works.
pub fn wake(world: &Rc<World>) {
    for table in world.sleepers.borrow().iter() {
        let (world_of_task, table) = (Rc::clone(world), Arc::clone(table));
        world.machine.spawn_local(async move { goes_on(&world_of_task, &table).await });
    }
    for recorded in world.recorded.borrow_mut().drain(..) {
        let world_of_task = Rc::clone(world);
        world.machine.spawn_local(async move { makes(&world_of_task, recorded).await });
    }
}

/// Makes a recorded change.
async fn makes(world: &World, Recorded { table, id, to }: Recorded) {
    let within_us = world.throw(|dice| dice.pick(&WAKES_WITHIN_US));
    world.think(within_us).await;
    let made = match table.begin_schema_change(id.0, to, Arc::new(Casts)).await {
        Ok(mut change) => {
            let asks = Asks::default();
            match table.convert_files(&mut change, &asks).await {
                Ok(_) => table.switch_schema(&mut change, &asks).await.map(drop),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    note!(world.trace, "made", table.id().0, made.is_ok(), "change {id} by a woken process: {made:?}");
    world.count(|counts| counts.woken += 1);
}

/// Converts values as loads do.
struct Casts;

impl Recast for Casts {
    fn recast(&self, array: &ArrayRef, from: &ColumnDef, to: &ColumnDef) -> Result<ArrayRef, String> {
        recast(array, from, to).map_err(|bad| bad.to_string())
    }
}

/// Gives up a change if it is not soon known whether the log has it.
#[derive(Default)]
struct Asks(AtomicU32);

impl Watch for Asks {
    fn is_stopped(&self) -> bool {
        false
    }

    fn leaves_doubt(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ASKS_MAX
    }

    fn doubts(&self, _: &str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(host::sleep(ASKS_AGAIN, || std::future::ready(())))
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

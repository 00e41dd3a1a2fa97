//! Records of the server, which it loads itself: none is lost unless it is counted, and none is counted as stored whose load was not
//! acknowledged.

use crate::clients::{answered, any_table, load_rows};
use crate::model::Kind;
use crate::process::Process;
use crate::rights;
use crate::trace::note;
use crate::world::World;
use prometheus::IntCounter;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tributary_ingest::{Backlog, BacklogOptions, BacklogRecord, LoadRows};
use tributary_table::Table;

/// Records that wait at most, and how often their load is tried.
const RECORDS_MAX: usize = 8;
const ATTEMPTS: u32 = 3;

/// A record. Its row is made when it is loaded.
#[derive(Debug)]
pub struct Record {
    bytes: usize,
}

impl BacklogRecord for Record {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The records of one life of the server.
pub struct Records {
    backlog: Backlog<Record>,
    stored: IntCounter,
    dropped: IntCounter,
    /// Records that were added, or refused and given up.
    made: Cell<u64>,
    /// Records of loads that were acknowledged.
    acknowledged: Cell<u64>,
}

impl Default for Records {
    fn default() -> Self {
        let counter = |name: &str| IntCounter::new(name, "a counter").expect("a name");
        let (stored, dropped) = (counter("stored"), counter("dropped"));
        let backlog = Backlog::new(BacklogOptions {
            records: RECORDS_MAX,
            bytes: 400,
            batch_bytes: 150,
            attempts: ATTEMPTS,
            stored: stored.clone(),
            dropped: dropped.clone(),
        });
        Self { backlog, stored, dropped, made: Cell::default(), acknowledged: Cell::default() }
    }
}

/// Requests end and leave records, and the server writes what waits.
pub async fn some(world: &Rc<World>, table: &Arc<Table>) {
    let process = world.process();
    add(world, &process.records);
    if world.throw(|dice| dice.one_in(3)) {
        // Somebody else writes them, or a later round.
        return check(world, &process.records);
    }
    write(world, &process, table).await;
}

fn add(world: &World, records: &Records) {
    for _ in 0..world.throw(|dice| dice.between(1, 6)) {
        let bytes = world.throw(|dice| dice.between(10, 120)) as usize;
        records.made.set(records.made.get() + 1);
        if let Some(record) = records.backlog.push(Record { bytes }) {
            records.backlog.give_up(record);
        }
    }
}

/// Writes what waits, like the engine's task of the audit log: until a load fails.
async fn write(world: &Rc<World>, process: &Process, table: &Arc<Table>) {
    let records = &process.records;
    while let Some(batch) = records.backlog.next().await {
        let count = batch.records().len() as u64;
        if load(world, process, table, count).await {
            records.acknowledged.set(records.acknowledged.get() + count);
            batch.stored();
        } else {
            batch.failed();
            break;
        }
        if !world.is_alive() {
            return;
        }
    }
    check(world, records);
}

/// Loads that many records, and returns whether the load was acknowledged.
async fn load(world: &Rc<World>, process: &Process, table: &Arc<Table>, rows: u64) -> bool {
    let id = world.model.borrow_mut().begin(table.id(), Kind::Async, rows, None);
    note!(world.trace, "records", id, rows, "load {id} of {rows} records into table {}", table.id());
    let Some(load) = load_rows(world, table, id, rows, false).await else { return false };
    // Nobody's right applies.
    rights::is_not_asked(world, id);
    let load = LoadRows { right: None, ..load };
    let timeout = Duration::from_millis(world.throw(|dice| dice.pick(&[1, 1_000_000, 1_000_000])));
    let answer = process.ingest.load_into_group(table, true, load, timeout).await;
    let is_stored = answer.is_ok();
    answered(world, id, Kind::Async, rows, Some(answer));
    if is_stored {
        world.count(|counts| counts.records += rows);
    }
    is_stored
}

/// The server stops: what waits is written, or counted.
pub async fn close(world: &Rc<World>, process: &Process) {
    if let Some(table) = any_table(world) {
        write(world, process, &table).await;
    }
    process.records.backlog.close().await;
    let left = process.records.backlog.outstanding();
    if left > 0 && world.is_alive() {
        world.violated(format!("{left} records are neither stored nor counted as dropped after the end"));
    }
    check(world, &process.records);
}

fn check(world: &World, records: &Records) {
    if !world.is_alive() {
        return;
    }
    let (stored, dropped) = (records.stored.get(), records.dropped.get());
    let (made, outstanding) = (records.made.get(), records.backlog.outstanding() as u64);
    if made != stored + dropped + outstanding {
        world.violated(format!(
            "of {made} records {stored} are stored, {dropped} dropped and {outstanding} wait"
        ));
    }
    let acknowledged = records.acknowledged.get();
    if stored != acknowledged {
        world.violated(format!("{stored} records are counted as stored, {acknowledged} were acknowledged"));
    }
}

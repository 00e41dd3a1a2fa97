//! Loads that arrive faster than they can be flushed: the wait of each, in simulated time, in which only the store is slow.

use crate::clients::unique;
use crate::dice::Dice;
use crate::folds::{LOADS_MAX, aggregate};
use crate::machine::{Machine, Step};
use crate::plan::Plan;
use crate::process::{Hardware, Process, table_def};
use crate::rows::block_of;
use crate::run::libraries;
use crate::trace::Trace;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tributary_ingest::LoadRows;
use tributary_types::{TableDef, TableId, host};
use tributary_wal::MemDisk;

/// Room for some hundred loads.
const MEMORY_BYTES: u64 = 100_000;
const CLIENTS: u64 = 10;
const LOADS_OF_CLIENT: u64 = 150;
const ROWS: u64 = 4;
/// The time of a step of the store; a flush has some dozens.
const STEP_US: u64 = 100_000;

/// How long each load waited for its acknowledgement, in the order of the answers.
fn waits(seed: u64, def: &Arc<TableDef>) -> Vec<Duration> {
    // Their rows are that much larger.
    let memory_bytes = if def.keys.is_aggregate() { 5 * MEMORY_BYTES } else { MEMORY_BYTES };
    let libraries = libraries();
    let mut dice = Dice::new(seed);
    let plan = Plan {
        memory_bytes,
        flush_bytes: memory_bytes / 3,
        flush_age_ms: 60_000,
        wal_dirs: 1,
        ..Plan::new(&mut dice)
    };
    let machine = Machine::new(&mut dice, Arc::clone(&libraries), Trace::new(false));
    let is_dead = Arc::new(AtomicBool::new(false));
    let hardware = Hardware::on(MemDisk::new(), None, &mut dice, &is_dead);
    hardware.store.slow_down(STEP_US);
    let entered = host::enter(Rc::clone(&machine) as Rc<dyn host::Host>);
    let runtime = libraries.enter();
    let (waits, busy) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(1)));
    {
        let (machine, waits, busy) = (Rc::clone(&machine), Rc::clone(&waits), Rc::clone(&busy));
        let def = Arc::clone(def);
        machine.clone().spawn_local(async move {
            let process = Process::start(&hardware, &plan, 1, &is_dead).await.expect("nothing fails");
            let table = process.store.create(&def).await.expect("nothing fails");
            process.ingest.attach(Arc::clone(&table));
            process.ingest.start_maintenance();
            for client in 0..CLIENTS {
                let (ingest, table) = (Arc::clone(&process.ingest), Arc::clone(&table));
                let (machine, waits, busy) = (Rc::clone(&machine), Rc::clone(&waits), Rc::clone(&busy));
                busy.set(busy.get() + 1);
                machine.clone().spawn_local(async move {
                    for load in 0..LOADS_OF_CLIENT {
                        let id = 1 + (load * CLIENTS + client) % LOADS_MAX;
                        let schema = &table.def().schema;
                        let block = block_of(schema, !table.keeps_all_rows(), id, ROWS);
                        let rows = LoadRows::of_blocks(Arc::clone(schema), vec![block]);
                        let sent_ns = machine.now_ns();
                        ingest
                            .load_into_group(&table, true, rows, Duration::MAX)
                            .await
                            .expect("it is acknowledged");
                        waits.borrow_mut().push(Duration::from_nanos(machine.now_ns() - sent_ns));
                    }
                    busy.set(busy.get() - 1);
                });
            }
            busy.set(busy.get() - 1);
        });
    }
    while busy.get() > 0 {
        assert_ne!(machine.step(), Step::Nothing, "every load is acknowledged");
    }
    machine.kill();
    drop((runtime, entered));
    waits.take()
}

/// The longest of the waits, from when the time of flushes is known, and the percentage of loads that waited.
fn longest_and_waiting(mut waits: Vec<Duration>) -> (Duration, usize) {
    let later = waits.split_off(waits.len() / 3);
    let waiting = later.iter().filter(|wait| !wait.is_zero()).count();
    (later.iter().copied().max().unwrap_or_default(), 100 * waiting / later.len())
}

#[test]
fn loads_of_tables_with_keys_wait_a_little_each_and_none_for_a_whole_flush() {
    let all = table_def(TableId(1), 20, 1 << 20);
    for seed in 0..4 {
        let (of_all, waiting_of_all) = longest_and_waiting(waits(seed, &all));
        assert!(
            (1..10).contains(&waiting_of_all),
            "some wait for a flush, most for none: {waiting_of_all} %, {of_all:?}"
        );
        for def in [unique(&all, false), unique(&all, true), aggregate(&all)] {
            let (longest, waiting) = longest_and_waiting(waits(seed, &def));
            let what = format!("seed {seed}, {:?}: {waiting} %, {longest:?}; all rows: {of_all:?}", def.keys);
            assert!(longest < of_all / 2, "{what}");
            assert!(waiting > 3 * waiting_of_all, "{what}");
        }
    }
}

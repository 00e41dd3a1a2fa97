//! Concurrent flushes of several tables, in simulated time.

use crate::dice::Dice;
use crate::machine::{Machine, Step};
use crate::plan::Plan;
use crate::process::{Hardware, Process, table_def};
use crate::rows::block_of;
use crate::run::libraries;
use crate::trace::Trace;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tributary_ingest::LoadRows;
use tributary_types::{TableId, host};
use tributary_wal::MemDisk;

const FLUSH_AGE: Duration = Duration::from_secs(2);
const LOAD_INTERVAL: Duration = Duration::from_millis(100);
/// Three times as long as a call to a store may take.
const LOADS: u64 = 3600;

/// Loads into one table beside `stuck` ones whose store never answers, checking that no row of it stays unflushed for two flush
/// intervals. Returns how often it was flushed.
fn flushes_beside(seed: u64, stuck: u64) -> u64 {
    let libraries = libraries();
    let mut dice = Dice::new(seed);
    let plan = Plan {
        memory_bytes: 1 << 30,
        flush_bytes: 1 << 30,
        flush_age_ms: FLUSH_AGE.as_millis() as u64,
        wal_dirs: 1,
        ..Plan::new(&mut dice)
    };
    let machine = Machine::new(&mut dice, Arc::clone(&libraries), Trace::new(false));
    let is_dead = Arc::new(AtomicBool::new(false));
    let hardware = Hardware::on(MemDisk::new(), None, &mut dice, &is_dead);
    let entered = host::enter(Rc::clone(&machine) as Rc<dyn host::Host>);
    let runtime = libraries.enter();
    let flushes = Rc::new(Cell::new(None));
    {
        let (machine, flushes) = (Rc::clone(&machine), Rc::clone(&flushes));
        machine.clone().spawn_local(async move {
            let process = Process::start(&hardware, &plan, 1, &is_dead).await.expect("nothing fails");
            let mut tables = Vec::new();
            for id in 1..=stuck + 1 {
                let table =
                    process.store.create(&table_def(TableId(id), 20, 1 << 20)).await.expect("nothing fails");
                process.ingest.attach(Arc::clone(&table));
                tables.push(table);
            }
            let free = tables.pop().expect("there is one more");
            for table in &tables {
                hardware.store.get_stuck_below(&table.def().location);
            }
            process.ingest.start_maintenance();
            let load = async |table: &Arc<tributary_table::Table>, id| {
                let schema = Arc::clone(&table.def().schema);
                let rows = LoadRows::of_blocks(Arc::clone(&schema), vec![block_of(&schema, false, id, 4)]);
                let loaded = process.ingest.load_into_group(table, true, rows, Duration::MAX).await;
                loaded.expect("it is acknowledged");
            };
            for table in &tables {
                load(table, 1).await;
            }
            let mut flushed = 0;
            for id in 1..=LOADS {
                load(&free, id).await;
                machine.sleep(LOAD_INTERVAL).await;
                // Due an interval ago: twice as old as it may become.
                assert!(
                    !free.flush_due(host::now().checked_sub(FLUSH_AGE).expect("the clock is past the age")),
                    "load {id} of seed {seed} waits for a flush"
                );
                flushed = process.ingest.metrics().flushes.get();
            }
            flushes.set(Some(flushed));
        });
    }
    while flushes.get().is_none() {
        assert_ne!(machine.step(), Step::Nothing, "every load is acknowledged");
    }
    machine.kill();
    drop((runtime, entered));
    flushes.get().expect("it has ended")
}

#[test]
fn a_table_whose_store_never_answers_holds_up_no_flush_of_another() {
    for seed in 0..3 {
        let alone = flushes_beside(seed, 0);
        assert!(alone > 100, "{alone}");
        for stuck in [1, 3] {
            let beside = flushes_beside(seed, stuck);
            assert!(beside > alone * 9 / 10, "{beside} flushes beside {stuck} stuck tables, {alone} alone");
        }
    }
}

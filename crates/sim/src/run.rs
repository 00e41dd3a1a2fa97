//! One seed from the first start to the last check.
//!
//! A simulation is a few rounds: the server starts (and may lose power while it does), everything that was
//! promised is checked, clients work until they are done or the server dies, and it dies, is killed, or stops
//! in order. In the end it starts once more without faults, flushes, and the Delta logs alone must have
//! everything.

use crate::audits;
use crate::backups;
use crate::clients::client;
use crate::counts::Counts;
use crate::dice::Dice;
use crate::engines;
use crate::feeds;
use crate::machine::{Machine, Step};
use crate::model::{Model, Shown, Violation};
use crate::plan::Plan;
use crate::planted::{self, Bug};
use crate::process::{Hardware, Process, table_store};
use crate::readers;
use crate::records;
use crate::rejected;
use crate::rows::{self, FileCache};
use crate::shares;
use crate::sleepers;
use crate::temporary::is_beside;
use crate::trace::{Trace, note};
use crate::world::World;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tributary_ingest::{TransactionInfo, TransactionKind, TransactionStatus};
use tributary_table::Table;
use tributary_types::host::{self, Host};
use tributary_types::{KeyModel, SourceId};
use tributary_wal::MemDisk;
use tributary_wal::disk::Faults;

/// Simulated time without an answer to any client after which the server is said to hang. A load may wait a minute for
/// memory, and so may the next of its client.
const HANGS_AFTER: Duration = Duration::from_secs(600);

/// Steps of tasks without any time passing after which the server is said to spin.
const STEPS_MAX: u32 = 20_000;

/// How a simulation ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub seed: u64,
    pub hash: u64,
    pub counts: Counts,
    pub violation: Option<Violation>,
    /// The events as text, if requested.
    pub trace: Vec<String>,
}

impl Outcome {
    /// The failure and how to replay it.
    #[must_use]
    pub fn report(&self) -> String {
        let what = self.violation.as_ref().map_or("no violation", |violation| &violation.0);
        format!(
            "seed {} breaks a promise: {what}\n  play it again: tributary-sim --seed {} --trace",
            self.seed, self.seed
        )
    }
}

/// Why the server's tasks stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The awaited work is complete.
    Done,
    /// The power is off, or the log has failed.
    Died,
    /// A promise was broken.
    Violated,
}

/// The runtime that [`run`] needs.
///
/// # Panics
/// If the operating system gives no more threads.
#[must_use]
pub fn libraries() -> Arc<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    Arc::new(runtime.expect("the operating system gives a few threads"))
}

/// Panics in a simulation are violations with a seed; they need not be printed as well.
pub fn quiet_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !host::is_simulated() {
            print(panic);
        }
    }));
}

/// Runs one seed on this thread. `libraries` is where libraries that bring threads of their own run: a runtime
/// with several threads, which many simulations may share.
#[must_use]
pub fn run(seed: u64, libraries: &Arc<Runtime>, keeps_text: bool) -> Outcome {
    run_with(seed, libraries, keeps_text, None)
}

/// Runs one seed with a planted bug.
#[must_use]
pub fn run_with(seed: u64, libraries: &Arc<Runtime>, keeps_text: bool, bug: Option<&Bug>) -> Outcome {
    let _planted = planted::plant(bug);
    let mut dice = Dice::new(seed);
    let trace = Trace::new(keeps_text);
    let plan = Plan::new(&mut dice);
    note!(trace, "plan", seed, 0, "{plan:?}");
    let machine = Machine::new(&mut dice, Arc::clone(libraries), trace.clone());
    let disk = MemDisk::watched(dice.next(), trace.clone());
    let is_dead = Arc::new(AtomicBool::new(false));
    let hardware = Hardware::on(disk, bug.and_then(Bug::lie), &mut dice, &is_dead);
    let world = Rc::new(World {
        plan,
        machine: Rc::clone(&machine),
        hardware,
        trace: trace.clone(),
        model: RefCell::new(Model::default()),
        feeds: RefCell::default(),
        shares: RefCell::default(),
        increments: RefCell::default(),
        keys: RefCell::default(),
        channels: RefCell::default(),
        rejected: RefCell::default(),
        rights: RefCell::default(),
        dice: RefCell::new(dice),
        counts: RefCell::new(Counts { seeds: 1, ..Counts::default() }),
        cache: FileCache::default(),
        process: RefCell::new(None),
        sleepers: RefCell::default(),
        recorded: RefCell::default(),
        entries: RefCell::default(),
        is_dead,
        violation: RefCell::new(None),
        backup: RefCell::new(None),
        changing: Rc::default(),
        reader: RefCell::default(),
        busy: Cell::new(0),
        reads_may_fail: Cell::new(false),
    });
    let entered = host::enter(machine);
    let runtime = libraries.enter();
    let finished = catch_unwind(AssertUnwindSafe(|| rounds(&world)));
    if let Err(panic) = finished {
        world.violated(format!("panic: {}", panic_text(&*panic)));
    }
    let ended = catch_unwind(AssertUnwindSafe(|| end_process(&world)));
    drop((runtime, entered));
    if let Err(panic) = ended {
        world.violated(format!("panic at the end: {}", panic_text(&*panic)));
    }
    let mut counts = *world.counts.borrow();
    counts.events = trace.events();
    counts.take_disk(&world.hardware.disk.counts());
    counts.answers_lost = world.hardware.store.answers_lost();
    counts.catalog_faults = world.hardware.catalog.faults();
    let violation = world.violation.borrow().clone();
    if let Some(violation) = &violation {
        note!(trace, "VIOLATED", 0, 0, "{violation}");
    }
    Outcome { seed, hash: trace.hash(), counts, violation, trace: trace.lines() }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

fn rounds(world: &Rc<World>) {
    for round in 0..world.plan.rounds {
        note!(world.trace, "round", round, 0, "{round}");
        backups::restore_sometimes(world);
        let_engine_commit(world);
        if !start(world, true) || !work(world) {
            return;
        }
    }
    note!(world.trace, "round", world.plan.rounds, 0, "the last start");
    backups::restore_sometimes(world);
    if start(world, false) {
        last_check(world);
    }
}

/// Another engine commits while the server is away.
fn let_engine_commit(world: &Rc<World>) {
    if world.plan.engines || world.plan.rewrites {
        world.hardware.disk.set_faults(Faults::default());
        world.hardware.store.lose_answers(0);
        if run_task(world, engines::while_away(Rc::clone(world))).is_err() {
            world.violated("an engine cannot commit while the server is away".to_owned());
        }
    }
}

/// Starts the server, again and again until it runs, and checks the recovered state.
fn start(world: &Rc<World>, with_faults: bool) -> bool {
    for attempt in 0.. {
        let faults = if with_faults && attempt < 3 { recovery_faults(world) } else { Faults::default() };
        let is_faulty = faults.power_off_at.is_some() || faults.unreadable.is_some();
        note!(world.trace, "start", attempt, 0, "{faults:?}");
        world.hardware.disk.set_faults(faults);
        world.hardware.store.lose_answers(0);
        world.hardware.catalog.power_off(0);
        world.hardware.catalog.fail(0);
        sleepers::wake(world);
        let started = Rc::new(RefCell::new(None));
        let salt = world.throw(Dice::next);
        {
            let (of_task, world) = (Rc::clone(&started), Rc::clone(world));
            world.clone().machine.spawn_local(async move {
                sleepers::let_wake(&world).await;
                let process = Process::start(&world.hardware, &world.plan, salt, &world.is_dead).await;
                *of_task.borrow_mut() = Some(process);
            });
        }
        let end = run_until(world, || started.borrow().is_some());
        let outcome = started.borrow_mut().take();
        match (end, outcome) {
            (End::Done, Some(Ok(process))) => {
                world.hardware.disk.set_faults(Faults::default());
                return recovered(world, process);
            }
            (End::Violated, _) => return false,
            (_, outcome) => {
                if let Some(Err(error)) = outcome {
                    note!(world.trace, "refuses", attempt, 0, "{error}");
                    if end == End::Done && !is_faulty {
                        world.violated(format!("the server does not start: {error}"));
                        return false;
                    }
                }
                world.count(|counts| counts.failed_recoveries += 1);
                die(world);
            }
        }
    }
    false
}

fn recovery_faults(world: &World) -> Faults {
    let mut faults = Faults::default();
    let operations = world.hardware.disk.operations();
    let plan = &world.plan;
    world.throw(|dice| {
        if dice.percent(plan.power_off_in_recovery) {
            faults.power_off_at = Some(operations + dice.below(30));
        } else if dice.percent(plan.unreadable) {
            let all = world.hardware.disk.files_below(Path::new("/")).unwrap_or_default();
            if !all.is_empty() {
                faults.unreadable = Some(dice.pick(&all.iter().collect::<Vec<_>>()).0.clone());
            }
        }
    });
    faults
}

/// Polls tasks until the condition is met or the server dies.
fn run_until(world: &World, is_done: impl Fn() -> bool) -> End {
    let later = || world.machine.now_ns() + HANGS_AFTER.as_nanos() as u64;
    let (mut until, mut answers) = (later(), world.counts.borrow().answers());
    let (mut now_ns, mut steps) = (world.machine.now_ns(), 0);
    loop {
        if world.violation.borrow().is_some() {
            return End::Violated;
        }
        if !world.is_alive() {
            return End::Died;
        }
        if is_done() {
            return End::Done;
        }
        world.hardware.disk.set_time(world.machine.unix_ms().unsigned_abs());
        if world.machine.step() == Step::Nothing || world.machine.now_ns() > until {
            world.violated("the server hangs: something is waited for that does not come".to_owned());
        }
        let given = world.counts.borrow().answers();
        if given > answers {
            (until, answers) = (later(), given);
        }
        if world.machine.now_ns() > now_ns {
            (now_ns, steps) = (world.machine.now_ns(), 0);
        }
        steps += 1;
        if steps > STEPS_MAX {
            world.violated("the server spins: it works and works, and no time passes".to_owned());
        }
    }
}

/// Runs a future as a task until it is done.
fn run_task<T: 'static>(world: &Rc<World>, task: impl Future<Output = T> + 'static) -> Result<T, End> {
    let output = Rc::new(RefCell::new(None));
    let of_task = Rc::clone(&output);
    world.machine.spawn_local(async move {
        let done = task.await;
        *of_task.borrow_mut() = Some(done);
    });
    let end = run_until(world, || output.borrow().is_some());
    let done = output.borrow_mut().take();
    match (end, done) {
        (End::Done, Some(done)) => Ok(done),
        (end, _) => Err(end),
    }
}

/// Checks everything that was promised before.
fn recovered(world: &Rc<World>, process: Process) -> bool {
    let report = process.report.clone();
    note!(world.trace, "started", report.entries, report.commits_replayed, "{report:?}");
    world.count(|counts| {
        counts.recoveries += 1;
        counts.groups_finished += report.groups_finished;
        counts.commits_replayed += report.commits_replayed;
        counts.commits_skipped += report.commits_skipped;
        counts.torn_tails += u64::from(report.torn_bytes > 0);
    });
    let process = Rc::new(process);
    *world.process.borrow_mut() = Some(Rc::clone(&process));
    let known: Vec<_> = world.model.borrow().loads.values().map(|load| load.table).collect();
    for table in known {
        if process.table(table).is_none() {
            world.model.borrow_mut().dropped(table, false);
            world.feeds.borrow_mut().dropped(SourceId(table.0));
            world.shares.borrow_mut().dropped(table);
            world.keys.borrow_mut().dropped(table);
            world.channels.borrow_mut().dropped(table);
        }
    }
    engines::recovered(world);
    let of_task = Rc::clone(world);
    let checked = run_task(world, async move { check_tables(&of_task, &process).await });
    checked.is_ok()
        && check_together(world)
        && check_sources(world)
        && check_keys(world)
        && check_two_phase(world)
        && check_labels(world)
}

/// Checks that of a transaction of several tables all loads were stored, or none.
fn check_together(world: &Rc<World>) -> bool {
    let checked = world.model.borrow().check_together();
    world.check(checked);
    world.violation.borrow().is_none()
}

/// Checks that the progress of jobs ends where the loaded rows end.
fn check_sources(world: &Rc<World>) -> bool {
    let process = world.process();
    let transactions = process.ingest.transactions();
    let model = world.model.borrow();
    let checked = world.feeds.borrow_mut().recovered(
        |source| feeds::read(transactions.position(source).as_ref()),
        |load| model.loads[&load].fate,
    );
    world.check(checked);
    let found = shares::read(transactions.position(shares::SOURCE).as_ref());
    let checked = world.shares.borrow_mut().recovered(&found, |load| model.loads[&load].fate);
    drop(model);
    world.check(checked);
    world.violation.borrow().is_none()
}

/// Checks that the keys of stored loads are taken, and no others.
fn check_keys(world: &Rc<World>) -> bool {
    let process = world.process();
    let model = world.model.borrow();
    let checked = world
        .keys
        .borrow_mut()
        .recovered(|table, name| process.ingest.first_answer(table, name), |load| model.loads[&load].fate);
    world.check(checked);
    let mut channels = world.channels.borrow_mut();
    let checked =
        channels.recovered(|table| process.ingest.channels(Some(table)), |load| model.loads[&load].fate);
    drop(channels);
    drop(model);
    world.check(checked);
    rejected::check(world);
    world.violation.borrow().is_none()
}

async fn check_tables(world: &World, process: &Process) {
    let tables: Vec<_> = process.tables.lock().values().cloned().collect();
    for table in tables {
        let snapshot = match table.settled().await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                world.violated(format!("table {} after a recovery: {error}", table.id()));
                continue;
            }
        };
        world.check_order(&table, &snapshot);
        match rows::shown(&table, &snapshot, &world.hardware.store, &world.cache).await {
            Ok(shown) => {
                let checked = recovered_rows(world, &table, &shown);
                world.check(checked);
            }
            Err((error, _)) => world.violated(format!("table {} after a recovery: {error}", table.id())),
        }
    }
}

fn recovered_rows(world: &World, table: &Table, shown: &Shown) -> Result<(), Violation> {
    let mut model = world.model.borrow_mut();
    match table.with_def(|def| def.keys) {
        KeyModel::Unique => model.winners_recovered(table.id(), shown),
        KeyModel::Aggregate => model.folds_recovered(table.id(), shown),
        KeyModel::Duplicate { .. } => model.recovered(table.id(), shown),
    }
}

fn check_two_phase(world: &World) -> bool {
    let open = world.model.borrow().two_phase();
    let process = world.process();
    for (id, load) in open {
        let transactions = process.ingest.transactions();
        // Not by the label: a client that leaves early frees its own, and another's load may have the same then.
        let info = load.reserved.and_then(|txn| transactions.by_id(txn));
        let is_its_own =
            |info: &TransactionInfo| info.table == load.table && Some(&info.label) == load.label.as_ref();
        let waits = info.filter(|info| info.status == TransactionStatus::Precommitted && is_its_own(info));
        let checked = world.model.borrow_mut().settle_prepared(id, waits.map(|info| info.txn));
        world.check(checked);
    }
    world.violation.borrow().is_none()
}

/// Checks that labels of committed and prepared loads are in use, and labels of failed loads are free.
fn check_labels(world: &World) -> bool {
    let process = world.process();
    let Some(table) = process.tables.lock().values().next().cloned() else { return true };
    let labels = world.model.borrow().labels();
    for label in labels {
        let Some(in_use) = world.model.borrow().label_in_use(&label) else { continue };
        let begun = process.ingest.begin(&table.def(), label.clone(), true, TransactionKind::StreamLoad);
        match (begun, in_use) {
            (Ok(_), true) => world.violated(format!("label {label} is in use, but free after a recovery")),
            (Err(error), false) => {
                world.violated(format!("label {label} is free, but refused after a recovery: {error}"));
            }
            _ => {}
        }
    }
    world.violation.borrow().is_none()
}

/// Clients work until they are done or the server dies; then it stops in one way or another.
fn work(world: &Rc<World>) -> bool {
    let faults = work_faults(world);
    let loses_one_in = world.throw(|dice| {
        let loses = dice.percent(world.plan.lost_answers);
        if loses { dice.pick(&[2, 5, 20]) } else { 0 }
    });
    note!(world.trace, "work", loses_one_in, 0, "{faults:?}, one answer in {loses_one_in} lost");
    world.hardware.store.lose_answers(loses_one_in);
    if world.plan.power_off > 0 {
        world.hardware.catalog.power_off(if world.plan.changes_often { 4 } else { 12 });
        world.hardware.catalog.fail(if world.plan.changes_often { 3 } else { 10 });
    }
    world.reads_may_fail.set(faults.unreadable.is_some());
    world.hardware.disk.set_faults(faults);
    let ingest = Arc::clone(&world.process().ingest);
    assert!(ingest.start_maintenance().is_empty(), "tasks of a simulation end with its machine");
    world.busy.set(world.plan.clients);
    for _ in 0..world.plan.clients {
        world.machine.spawn_local(client(Rc::clone(world)));
    }
    drop(ingest);
    if world.plan.backups {
        world.machine.spawn_local(backups::operator(Rc::clone(world)));
    }
    if world.plan.readers {
        readers::start(world);
    }
    if world.plan.engines {
        world.machine.spawn_local(engines::engine(Rc::clone(world)));
    }
    if world.plan.audits {
        world.machine.spawn_local(audits::auditor(Rc::clone(world)));
    }
    let end = run_until(world, || world.busy.get() == 0);
    match end {
        End::Violated => false,
        End::Died => {
            die(world);
            true
        }
        End::Done => stop(world),
    }
}

fn work_faults(world: &World) -> Faults {
    let mut faults = Faults::default();
    let operations = world.hardware.disk.operations();
    let now_ms = world.machine.unix_ms().unsigned_abs();
    let plan = &world.plan;
    world.throw(|dice| {
        if dice.percent(plan.power_off) {
            let within = dice.pick(&[10, 40, 150, 400]);
            faults.power_off_at = Some(operations + dice.below(within));
        }
        if dice.percent(plan.disk_errors) {
            faults.io_error_one_in = dice.pick(&[20, 100, 300]);
        }
        if dice.percent(plan.sync_errors) {
            faults.sync_error_one_in = dice.pick(&[10, 40, 100]);
        }
        if dice.percent(plan.full_disk) {
            let from = now_ms + dice.below(50);
            faults.full = Some((from, from + dice.pick(&[5, 100, 2_000])));
        }
        if dice.percent(plan.unreadable) {
            let all = world.hardware.disk.files_below(Path::new("/store")).unwrap_or_default();
            if !all.is_empty() {
                faults.unreadable = Some(dice.pick(&all.iter().collect::<Vec<_>>()).0.clone());
            }
        }
    });
    faults
}

/// The clients are done: the server stops in order, is killed, or loses power.
fn stop(world: &Rc<World>) -> bool {
    let way = world.throw(|dice| dice.below(3));
    if way == 0 {
        let (of_task, process) = (Rc::clone(world), world.process());
        note!(world.trace, "stop", 0, 0, "in order");
        let stops = async move {
            records::close(&of_task, &process).await;
            process.ingest.shutdown().await;
        };
        match run_task(world, stops) {
            Ok(()) => world.count(|counts| counts.shutdowns += 1),
            Err(End::Violated) => return false,
            Err(_) => {}
        }
    }
    die(world);
    true
}

/// The process ends here and now, with or without the power of the machine.
fn die(world: &World) {
    let power_is_off = world.hardware.disk.is_off();
    sleepers::fall_asleep(world);
    end_process(world);
    let crashes_one_in = if world.plan.wakes { 5 } else { 2 };
    if power_is_off || world.throw(|dice| dice.one_in(crashes_one_in)) {
        world.hardware.disk.crash(world.throw(Dice::next));
        world.sleepers.borrow_mut().clear();
        world.recorded.borrow_mut().clear();
    } else {
        note!(world.trace, "KILL", 0, 0, "the process is killed");
        world.count(|counts| counts.kills += 1);
        world.hardware.disk.kill_process();
    }
    world.is_dead.store(false, Ordering::Relaxed);
}

fn end_process(world: &World) {
    if let Some(process) = world.process.borrow_mut().take() {
        rejected::dying(world, &process.ingest);
        let metrics = process.ingest.metrics();
        world.count(|counts| {
            counts.flushes += metrics.flushes.get();
            counts.compactions += metrics.compactions.get();
        });
    }
    world.machine.kill();
}

/// Flushes everything and reads the tables again, so that the Delta logs alone must have all rows.
fn last_check(world: &Rc<World>) {
    let of_task = Rc::clone(world);
    let outcome = run_task(world, async move {
        let process = of_task.process();
        process.ingest.flush_all().await;
        let store = table_store(&of_task.hardware, &of_task.plan)?;
        for def in of_task.hardware.catalog.tables().into_iter().filter(|def| !is_beside(def)) {
            let table = store.open(&def).await.map_err(|error| error.to_string())?;
            let snapshot = table.settled().await.map_err(|error| error.to_string())?;
            if def.properties.copies_on_write() && snapshot.files.iter().any(|live| live.deletes.is_some()) {
                return Err(format!("table {} has deletion vectors", def.id));
            }
            let shown = rows::shown(&table, &snapshot, &of_task.hardware.store, &of_task.cache).await;
            let shown = shown.map_err(|(error, _)| error)?;
            let checked = recovered_rows(&of_task, &table, &shown);
            checked.map_err(|violation| format!("in the Delta log alone, {violation}"))?;
        }
        Ok::<(), String>(())
    });
    if let Ok(Err(error)) = outcome {
        world.violated(error);
    }
}

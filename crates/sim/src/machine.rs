//! The simulated machine's scheduler and clock: one thread, tasks that run in an order that the seed decides,
//! and a time that only moves when nothing else can.

use crate::dice::Dice;
use crate::trace::Trace;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tributary_types::host::{Host, Task};

/// The simulated start time of every simulation, in ms since 1970: far in the future, so that nothing that a library compares
/// with the real time is ever old.
const EPOCH_MS: i64 = 4_102_444_800_000;

thread_local! {
    static STANDS_STILL: Cell<bool> = const { Cell::new(false) };
}

/// Whether a library has this thread, so that nothing may wait for simulated time.
pub fn stands_still() -> bool {
    STANDS_STILL.get()
}

type LocalTask = Pin<Box<dyn Future<Output = ()>>>;

/// The part that wakers and sleeping tasks reach from anywhere.
#[derive(Default)]
struct Clockwork {
    now_ns: u64,
    /// By time, then by the order in which they were set.
    timers: BTreeMap<(u64, u64), Waker>,
    next_timer: u64,
    ready: Vec<u64>,
}

/// The scheduler and the clock.
pub struct Machine {
    clockwork: Arc<Mutex<Clockwork>>,
    tasks: RefCell<BTreeMap<u64, LocalTask>>,
    next_task: Cell<u64>,
    order: RefCell<Dice>,
    chance: RefCell<Dice>,
    started: Instant,
    libraries: Arc<Runtime>,
    trace: Trace,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Ran,
    /// No task can ever run again.
    Nothing,
}

impl Machine {
    /// `libraries` is where libraries that bring threads of their own run.
    #[must_use]
    pub fn new(dice: &mut Dice, libraries: Arc<Runtime>, trace: Trace) -> Rc<Self> {
        Rc::new(Self {
            clockwork: Arc::default(),
            tasks: RefCell::default(),
            next_task: Cell::new(0),
            order: RefCell::new(dice.split()),
            chance: RefCell::new(dice.split()),
            started: Instant::now(),
            libraries,
            trace,
        })
    }

    /// Runs a task that stays on this thread.
    pub fn spawn_local(&self, task: impl Future<Output = ()> + 'static) {
        let id = self.next_task.get();
        self.next_task.set(id + 1);
        self.tasks.borrow_mut().insert(id, Box::pin(task));
        self.clockwork.lock().ready.push(id);
    }

    /// Polls one ready task, whichever the seed picks, or moves the clock to the next sleeper.
    pub fn step(&self) -> Step {
        let picked = {
            if !self.has_ready() && !self.advance() {
                return Step::Nothing;
            }
            let mut clockwork = self.clockwork.lock();
            self.trace.at(clockwork.now_ns);
            let count = clockwork.ready.len() as u64;
            (count > 0).then(|| {
                let index = self.order.borrow_mut().below(count) as usize;
                clockwork.ready.swap_remove(index)
            })
        };
        let Some(id) = picked else { return Step::Ran };
        let Some(mut task) = self.tasks.borrow_mut().remove(&id) else { return Step::Ran };
        let waker = Waker::from(Arc::new(WakeTask { id, clockwork: Arc::clone(&self.clockwork) }));
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.borrow_mut().insert(id, task);
        }
        Step::Ran
    }

    fn has_ready(&self) -> bool {
        !self.clockwork.lock().ready.is_empty()
    }

    /// Moves the clock to the next sleeper and wakes it. `false`: no task sleeps.
    fn advance(&self) -> bool {
        let waker = {
            let mut clockwork = self.clockwork.lock();
            let Some(((at, _), waker)) = clockwork.timers.pop_first() else { return false };
            clockwork.now_ns = clockwork.now_ns.max(at);
            waker
        };
        waker.wake();
        true
    }

    /// Kills the process: its tasks end where they are.
    pub fn kill(&self) {
        loop {
            let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
            {
                let mut clockwork = self.clockwork.lock();
                let timers = std::mem::take(&mut clockwork.timers);
                clockwork.ready.clear();
                drop(clockwork);
                drop(timers);
            }
            if tasks.is_empty() {
                return;
            }
            drop(tasks);
        }
    }

    /// Simulated time since the start, in ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clockwork.lock().now_ns
    }

    /// Waits that long in simulated time.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let at = self.now_ns() + duration.as_nanos() as u64;
        Sleep { at, timer: None, clockwork: Arc::clone(&self.clockwork) }
    }
}

struct WakeTask {
    id: u64,
    clockwork: Arc<Mutex<Clockwork>>,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut clockwork = self.clockwork.lock();
        if !clockwork.ready.contains(&self.id) {
            clockwork.ready.push(self.id);
        }
    }
}

/// Waits for a simulated time.
pub struct Sleep {
    at: u64,
    timer: Option<(u64, u64)>,
    clockwork: Arc<Mutex<Clockwork>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut clockwork = this.clockwork.lock();
        if let Some(timer) = this.timer.take() {
            clockwork.timers.remove(&timer);
        }
        if clockwork.now_ns >= this.at {
            return Poll::Ready(());
        }
        clockwork.next_timer += 1;
        let timer = (this.at, clockwork.next_timer);
        clockwork.timers.insert(timer, context.waker().clone());
        this.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            drop(self.clockwork.lock().timers.remove(&timer));
        }
    }
}

impl Host for Machine {
    fn now(&self) -> Instant {
        self.started + Duration::from_nanos(self.now_ns())
    }

    fn unix_ms(&self) -> i64 {
        EPOCH_MS + (self.now_ns() / 1_000_000) as i64
    }

    fn random(&self) -> u128 {
        let mut chance = self.chance.borrow_mut();
        (u128::from(chance.next()) << 64) | u128::from(chance.next())
    }

    fn spawn(&self, task: Task) {
        self.spawn_local(task);
    }

    fn sleep_until(&self, at: Instant) -> Task {
        let at = at.saturating_duration_since(self.started).as_nanos() as u64;
        Box::pin(Sleep { at, timer: None, clockwork: Arc::clone(&self.clockwork) })
    }

    fn stand_still(&self, work: Pin<&mut dyn Future<Output = ()>>) {
        STANDS_STILL.set(true);
        self.libraries.block_on(work);
        STANDS_STILL.set(false);
    }
}

//! The machine's services to the core besides its disk: time, randomness, tasks and threads.
//!
//! A server uses those of the operating system and of tokio; then everything here costs one check of a thread-local flag. The
//! simulation (`crates/sim`) gives its thread a [`Host`] of its own, and from then on the core runs on that thread alone, in an
//! order that one seed decides. See `docs/adr/0008-simulation.md`.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A task without a result.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A machine that is not the real one.
pub trait Host {
    /// Monotonic time.
    fn now(&self) -> Instant;
    /// Wall-clock time in ms since 1970.
    fn unix_ms(&self) -> i64;
    /// 128 random bits.
    fn random(&self) -> u128;
    /// Runs a task concurrently with the others.
    fn spawn(&self, task: Task);
    /// Completes at `at`.
    fn sleep_until(&self, at: Instant) -> Task;
    /// Runs a future of a library that has threads of its own to its end; nothing else happens meanwhile.
    fn stand_still(&self, work: Pin<&mut dyn Future<Output = ()>>);
}

thread_local! {
    static IS_SIMULATED: Cell<bool> = const { Cell::new(false) };
    static HOST: RefCell<Option<Rc<dyn Host>>> = const { RefCell::new(None) };
}

/// Whether this thread belongs to a simulation.
#[inline]
#[must_use]
pub fn is_simulated() -> bool {
    IS_SIMULATED.get()
}

/// The simulation's machine, if this thread has one.
#[inline]
#[must_use]
pub fn simulated() -> Option<Rc<dyn Host>> {
    if is_simulated() { HOST.with_borrow(Clone::clone) } else { None }
}

/// Takes the machine away from its thread when it is dropped.
#[derive(Debug)]
pub struct Entered(PhantomData<*const ()>);

/// Gives this thread a machine that is not the real one.
///
/// # Panics
/// If it has one already.
#[must_use]
pub fn enter(host: Rc<dyn Host>) -> Entered {
    assert!(!is_simulated(), "a thread runs one simulation at a time");
    HOST.set(Some(host));
    IS_SIMULATED.set(true);
    Entered(PhantomData)
}

impl Drop for Entered {
    fn drop(&mut self) {
        IS_SIMULATED.set(false);
        drop(HOST.take());
    }
}

/// Monotonic time.
#[inline]
#[must_use]
pub fn now() -> Instant {
    simulated().map_or_else(Instant::now, |host| host.now())
}

/// Wall-clock time in ms since 1970.
#[inline]
#[must_use]
pub fn unix_ms() -> i64 {
    let real = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    simulated().map_or_else(real, |host| host.unix_ms())
}

/// 128 bits from `real`, or the simulation's.
#[inline]
pub fn random(real: impl FnOnce() -> u128) -> u128 {
    simulated().map_or_else(real, |host| host.random())
}

/// A limit that a simulation, whose loads are tiny, lowers to `simulated`.
#[inline]
#[must_use]
pub fn limit(real: u64, simulated: u64) -> u64 {
    if is_simulated() { simulated } else { real }
}

/// Waits with `real`, or as long in simulated time.
pub async fn sleep<F: Future>(duration: Duration, real: impl FnOnce() -> F) {
    match simulated().map(|host| host.sleep_until(host.now() + duration)) {
        Some(wait) => wait.await,
        None => drop(real().await),
    }
}

/// Awaits work of a library that has threads of its own; a simulation stands still until it is done.
pub async fn foreign<F: Future>(work: F) -> F::Output {
    if !is_simulated() {
        return work.await;
    }
    let mut output = None;
    {
        let run = pin!(async { output = Some(work.await) });
        simulated().expect("a simulated thread has a host").stand_still(run);
    }
    output.expect("the simulation ran the work to its end")
}

//! The budget for rows in memory: open groups and memtables of all tables, and incoming loads.
//!
//! At the limit, loads wait for a flush (answers become slow) and, if none comes in time, are refused with an error that may be
//! retried. A refused load leaves nothing behind. Waiting loads stand in a [line](crate::line) in which users take turns, and no load
//! that arrives later overtakes them otherwise, however small it is. Loads of tables with keys observe a [pace](crate::memory::pace) before that. [Bodies](bodies)
//! are admitted before they are read.
//!
//! Invariant: memory in use never exceeds the limit by more than one load and the small loads of one instant. Prepared loads,
//! which can't be flushed, take at most half of it.

mod bodies;
pub(crate) mod pace;

pub use bodies::AdmittedBody;

use crate::error::IngestError;
use crate::line::Line;
use crate::memory::bodies::Bodies;
use crate::memory::pace::Pace;
use crate::tasks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tributary_types::{Live, UserKey, host};

/// How long a load waits for memory before it is refused.
pub const MEMORY_WAIT_MAX: Duration = Duration::from_secs(60);
/// A load of fewer bytes that need not wait reserves nothing: as many of them as arrive in one moment do no harm.
const RESERVED_BYTES_MIN: u64 = 1024 * 1024;
const RESERVED_BYTES_MIN_SIMULATED: u64 = 512;

/// Bytes of rows in memory, and who waits for them to become fewer.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: Live<u64>,
    wait_max: Duration,
    in_groups: AtomicU64,
    in_memtables: AtomicU64,
    in_flight: AtomicU64,
    /// Of large loads and of loads that have waited, from their admission until they have joined a group.
    admitted: AtomicU64,
    /// Of two-phase loads that wait for their commit or abort, which are part of the groups'.
    prepared: AtomicU64,
    /// Held briefly while memory is reserved.
    reserving: parking_lot::Mutex<()>,
    /// Loads that wait.
    line: Line,
    /// The need of the first of them; 0 if there is none.
    head: AtomicU64,
    pace: Pace,
    bodies: Bodies,
    freed: Notify,
    flush_wanted: Notify,
}

impl MemoryBudget {
    #[must_use]
    pub fn new(limit_bytes: Live<u64>) -> Self {
        Self {
            bodies: Bodies::new(limit_bytes.clone()),
            limit: limit_bytes,
            wait_max: MEMORY_WAIT_MAX,
            in_groups: AtomicU64::new(0),
            in_memtables: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            admitted: AtomicU64::new(0),
            prepared: AtomicU64::new(0),
            reserving: parking_lot::Mutex::new(()),
            line: Line::default(),
            head: AtomicU64::new(0),
            pace: Pace::default(),
            freed: Notify::new(),
            flush_wanted: Notify::new(),
        }
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.in_groups.load(Ordering::Relaxed) + self.in_memtables.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.get()
    }

    /// Bytes of rows in groups that are not published yet.
    #[must_use]
    pub fn in_groups(&self) -> u64 {
        self.in_groups.load(Ordering::Relaxed)
    }

    /// Bytes of rows of loads that have not joined a group or a transaction yet.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Whether loads on their way in hold so much that they should move to data files.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.in_flight() > self.limit() / 4
    }

    /// Whether one group takes a large part of the budget.
    pub(crate) fn is_large(&self, group_bytes: u64) -> bool {
        group_bytes > self.limit() / 4
    }

    /// Whether loads wait, or will soon, because of memory in groups, which no flush frees.
    pub(crate) fn groups_are_in_the_way(&self) -> bool {
        let (in_groups, head) = (self.in_groups(), self.head.load(Ordering::Relaxed));
        let limit = self.limit();
        let will_be = self.used() > limit - limit / 8 && in_groups > limit / 2;
        will_be || (head > 0 && in_groups.saturating_add(head) > limit)
    }

    /// Whether loads wait or are about to.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        let (used, head) = (self.used(), self.head.load(Ordering::Relaxed));
        let limit = self.limit();
        used > limit / 2 || (head > 0 && used.saturating_add(head) > limit)
    }

    /// How many loads wait.
    #[must_use]
    pub fn waiting_loads(&self) -> usize {
        self.line.len()
    }

    /// Whether loads wait.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.line.is_empty()
    }

    /// Waits until `bytes` more fit; an empty budget admits anything. The capacity is reserved for the load until the result is
    /// dropped, which is when it has joined a group.
    ///
    /// # Errors
    /// [`IngestError::MemoryFull`] after [`MEMORY_WAIT_MAX`].
    pub async fn admit(self: &Arc<Self>, user: UserKey, bytes: u64) -> Result<Admitted, IngestError> {
        if bytes == 0 {
            return Ok(Admitted(None));
        }
        if self.line.is_empty() {
            if bytes < host::limit(RESERVED_BYTES_MIN, RESERVED_BYTES_MIN_SIMULATED) {
                if self.has_room(bytes) {
                    return Ok(Admitted(None));
                }
            } else if let Some(admitted) = self.reserve(bytes) {
                return Ok(admitted);
            }
        }
        // Boxed: keeps the futures of loads that need not wait small.
        Box::pin(tasks::timeout(self.wait_max, self.wait_in_line(user, bytes)))
            .await
            .ok_or_else(|| IngestError::MemoryFull { used: self.used(), limit: self.limit() })
    }

    /// [`MemoryBudget::admit`] for a load of a table with keys: when memory runs short, it waits for its [turn](crate::memory::pace) first.
    ///
    /// # Errors
    /// See [`MemoryBudget::admit`].
    pub async fn admit_at_pace(self: &Arc<Self>, user: UserKey, bytes: u64) -> Result<Admitted, IngestError> {
        if bytes == 0 || !self.is_pressed() {
            return self.admit(user, bytes).await;
        }
        Box::pin(async {
            let room = || self.is_pressed().then(|| self.limit().saturating_sub(self.taken()));
            let _turn = self.pace.turn(user, bytes, &self.freed, room).await;
            self.admit(user, bytes).await
        })
        .await
    }

    /// A flush of a table with keys took that long while memory was short.
    pub(crate) fn flush_took(&self, took: Duration) {
        self.pace.flush_took(took);
    }

    async fn wait_in_line(self: &Arc<Self>, user: UserKey, bytes: u64) -> Admitted {
        let _first = self.line.first(user, bytes).await;
        let _head = Head::new(&self.head, bytes);
        loop {
            let freed = self.freed.notified();
            if let Some(admitted) = self.reserve(bytes) {
                return admitted;
            }
            self.want_flush();
            freed.await;
        }
    }

    /// Completes when somebody needs a flush.
    pub async fn flush_wanted(&self) {
        self.flush_wanted.notified().await;
    }

    /// A memtable is large enough for a flush.
    pub(crate) fn want_flush(&self) {
        self.flush_wanted.notify_one();
    }

    /// Notes that a flush has encoded `bytes` bytes of a memtable. Loads may use their capacity at once, at the pace of the flush
    /// rather than all at its end; until then the memory is in use twice.
    pub(crate) fn encoded(&self, bytes: u64) {
        let less = |held: u64| Some(held.saturating_sub(bytes));
        // It always changes.
        let _ = self.in_memtables.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.freed.notify_waiters();
    }

    pub(crate) fn enter_group(&self, bytes: u64) {
        self.in_groups.fetch_add(bytes, Ordering::AcqRel);
    }

    /// # Panics
    /// If more bytes leave than were counted: otherwise loads would wait forever for memory that is not in use.
    pub(crate) fn leave_group(&self, bytes: u64) {
        let before = self.in_groups.fetch_sub(bytes, Ordering::AcqRel);
        assert!(before >= bytes, "{bytes} bytes leave the groups' memory, which are {before}");
        self.freed.notify_waiters();
    }

    /// A two-phase load of `bytes` waits for its commit or abort from now on. It counts as a group does.
    ///
    /// # Errors
    /// [`IngestError::PreparedFull`]: others that wait hold too much. A single one may hold more.
    pub(crate) fn prepare(&self, bytes: u64) -> Result<(), IngestError> {
        let limit = self.limit() / 2;
        let mut held = self.prepared.load(Ordering::Relaxed);
        loop {
            if bytes > 0 && held > 0 && held.saturating_add(bytes) > limit {
                return Err(IngestError::PreparedFull { used: held, limit });
            }
            let more = held + bytes;
            match self.prepared.compare_exchange_weak(held, more, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => held = now,
            }
        }
        self.enter_group(bytes);
        Ok(())
    }

    /// [`MemoryBudget::prepare`] for a load that was prepared before a restart.
    pub(crate) fn restore_prepared(&self, bytes: u64) {
        self.prepared.fetch_add(bytes, Ordering::Relaxed);
        self.enter_group(bytes);
    }

    /// A two-phase load has ended.
    ///
    /// # Panics
    /// If more bytes leave than there are.
    pub(crate) fn leave_prepared(&self, bytes: u64) {
        let before = self.prepared.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{bytes} bytes leave those of prepared loads, which are {before}");
        self.leave_group(bytes);
    }

    /// Sets the memory of all memtables.
    pub fn set_memtables(&self, bytes: u64) {
        self.in_memtables.store(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// A group of `bytes` became part of a memtable. It leaves the groups after that.
    pub(crate) fn published(&self, bytes: u64) {
        self.in_memtables.fetch_add(bytes, Ordering::AcqRel);
        if self.is_pressed() {
            self.want_flush();
        }
    }

    /// Bytes in use or about to be.
    fn taken(&self) -> u64 {
        self.used() + self.admitted.load(Ordering::Relaxed)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.fits(self.taken(), bytes)
    }

    fn fits(&self, taken: u64, bytes: u64) -> bool {
        taken == 0 || taken.saturating_add(bytes) <= self.limit()
    }

    /// Reserves memory for a load, if there is enough: of several at the same moment, the ones that fit together succeed.
    fn reserve(self: &Arc<Self>, bytes: u64) -> Option<Admitted> {
        let _one = self.reserving.lock();
        // Bytes move from one counter to the next, and are added there before they are subtracted here: read in this order, none
        // is missed.
        let admitted = self.admitted.load(Ordering::Acquire);
        let in_groups = self.in_groups.load(Ordering::Acquire);
        let taken = admitted + in_groups + self.in_memtables.load(Ordering::Acquire);
        if !self.fits(taken, bytes) {
            return None;
        }
        self.admitted.fetch_add(bytes, Ordering::AcqRel);
        Some(Admitted(Some((Arc::clone(self), bytes))))
    }
}

/// The memory that was reserved for a load which is large or has waited, until this is dropped.
#[derive(Debug)]
#[must_use = "dropped, the memory is given to others"]
pub struct Admitted(Option<(Arc<MemoryBudget>, u64)>);

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some((budget, bytes)) = self.0.take() {
            let before = budget.admitted.fetch_sub(bytes, Ordering::AcqRel);
            debug_assert!(before >= bytes, "{bytes} bytes are given back of {before} that were reserved");
            budget.freed.notify_waiters();
        }
    }
}

/// Records the need of the first load in the queue.
struct Head<'a>(&'a AtomicU64);

impl<'a> Head<'a> {
    fn new(head: &'a AtomicU64, bytes: u64) -> Self {
        head.store(bytes, Ordering::Relaxed);
        Self(head)
    }
}

impl Drop for Head<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The share of the budget of a load on its way in; returned when this is dropped. It is counted without waiting: its owner
/// checks [`MemoryBudget::is_crowded`] and moves to data files.
#[derive(Debug)]
pub struct InFlight {
    budget: Arc<MemoryBudget>,
    bytes: u64,
    /// The charge of the load's body.
    _body: Option<AdmittedBody>,
}

impl InFlight {
    #[must_use]
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0, _body: None }
    }

    /// The share of a load whose body was admitted; returns the charge of the body with it.
    #[must_use]
    pub fn of_body(budget: &Arc<MemoryBudget>, body: AdmittedBody) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0, _body: Some(body) }
    }

    /// Sets how many bytes the load holds now.
    pub fn set(&mut self, bytes: u64) {
        if bytes >= self.bytes {
            self.budget.in_flight.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.budget.in_flight.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// Like [`InFlight::set`], unless incoming loads would exceed the whole budget: then nothing changes. Returns whether it was
    /// set.
    pub fn try_set(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let (limit, own) = (self.budget.limit(), self.bytes);
        // A single load may take what it needs.
        let grown =
            |held: u64| (more == 0 || held <= own || held.saturating_add(more) <= limit).then(|| held + more);
        if self.budget.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
            return false;
        }
        self.bytes += more;
        self.set(bytes);
        true
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    #[tokio::test]
    async fn a_load_waits_until_a_flush_made_room() {
        let budget = Arc::new(MemoryBudget::new(Live::new(100)));
        budget.enter_group(90);
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.admit(UserKey::default(), 20).await }
        });
        budget.flush_wanted().await;
        budget.leave_group(90);
        drop(waiting.await.expect("no panic").expect("admitted"));
    }

    #[test]
    fn what_loads_on_their_way_hold_is_counted_in_sum_and_given_back() {
        let budget = Arc::new(MemoryBudget::new(Live::new(100)));
        let (mut one, mut other) = (InFlight::new(&budget), InFlight::new(&budget));
        one.set(20);
        other.set(5);
        assert!(!budget.is_crowded(), "a quarter may be held");
        other.set(6);
        assert!(budget.is_crowded());
        one.set(1);
        assert_eq!(budget.in_flight(), 7);
        drop((one, other));
        assert_eq!(budget.in_flight(), 0);
    }

    #[test]
    fn what_a_body_claims_is_refused_above_the_budget_unless_it_is_alone() {
        let budget = Arc::new(MemoryBudget::new(Live::new(100)));
        let (mut one, mut other) = (InFlight::new(&budget), InFlight::new(&budget));
        assert!(one.try_set(150));
        assert!(!other.try_set(1));
        assert!(one.try_set(60) && other.try_set(40) && !other.try_set(41));
        assert_eq!(budget.in_flight(), 100);
        assert!(other.try_set(10) && one.try_set(90) && !one.try_set(91));
        drop((one, other));
        assert_eq!(budget.in_flight(), 0);
    }

    /// Polls the load once: whether it was let in.
    fn is_let_in(load: &mut (impl Future<Output = Result<Admitted, IngestError>> + Unpin)) -> bool {
        let waker = std::task::Waker::noop();
        matches!(Pin::new(load).poll(&mut Context::from_waker(waker)), Poll::Ready(Ok(_)))
    }

    #[tokio::test]
    async fn a_small_load_does_not_overtake_a_large_one_that_waits() {
        let budget = Arc::new(MemoryBudget::new(Live::new(100)));
        budget.enter_group(60);
        let mut large = Box::pin(budget.admit(UserKey::default(), 50));
        assert!(!is_let_in(&mut large));
        let mut small = Box::pin(budget.admit(UserKey::default(), 10));
        assert!(!is_let_in(&mut small), "there is room for it, but it is not its turn");
        budget.leave_group(20);
        assert!(is_let_in(&mut large));
        assert!(is_let_in(&mut small));
    }

    #[tokio::test]
    async fn room_is_given_once_although_many_wait_for_it() {
        let budget = Arc::new(MemoryBudget::new(Live::new(100)));
        budget.enter_group(100);
        let mut loads: Vec<_> = (0..10).map(|_| Box::pin(budget.admit(UserKey::default(), 30))).collect();
        assert!(!loads.iter_mut().any(is_let_in));
        budget.leave_group(40);
        let mut first = loads.remove(0);
        let waker = std::task::Waker::noop();
        let Poll::Ready(Ok(room)) = first.as_mut().poll(&mut Context::from_waker(waker)) else {
            panic!("there is room for one");
        };
        assert!(!loads.iter_mut().any(is_let_in), "its room is kept until it has joined");
        budget.enter_group(30);
        drop(room);
        assert!(!loads.iter_mut().any(is_let_in));
        budget.leave_group(30);
        assert!(is_let_in(&mut loads[0]));
    }

    #[tokio::test]
    async fn a_load_that_is_given_up_holds_nobody_up() {
        let budget = Arc::new(MemoryBudget::new(Live::new(100)));
        budget.enter_group(60);
        let mut large = Box::pin(budget.admit(UserKey::default(), 90));
        let mut small = Box::pin(budget.admit(UserKey::default(), 10));
        assert!(!is_let_in(&mut large) && !is_let_in(&mut small));
        assert!(budget.groups_are_in_the_way(), "it fits only when they are flushed");
        drop(large);
        assert!(is_let_in(&mut small));
        assert!(!budget.groups_are_in_the_way());
        assert!(is_let_in(&mut Box::pin(budget.admit(UserKey::default(), 20))), "nobody waits any more");
    }

    #[tokio::test]
    async fn a_load_is_refused_when_no_flush_comes() {
        let budget = Arc::new(MemoryBudget {
            wait_max: Duration::from_millis(1),
            ..MemoryBudget::new(Live::new(100))
        });
        budget.enter_group(100);
        let error = budget.admit(UserKey::default(), 1).await.unwrap_err();
        assert!(error.to_string().contains("100 of 100 bytes"), "{error}");
    }

    #[tokio::test]
    async fn loads_that_come_in_one_moment_take_no_more_than_there_is() {
        const MIB: u64 = 1 << 20;
        let budget = Arc::new(MemoryBudget::new(Live::new(64 * MIB)));
        let loads = 64;
        let barrier = std::sync::Barrier::new(loads);
        let most = AtomicU64::new(0);
        let runtime = tokio::runtime::Handle::current();
        std::thread::scope(|threads| {
            for _ in 0..loads {
                threads.spawn(|| {
                    let _timers = runtime.enter();
                    let mut load = Box::pin(budget.admit(UserKey::default(), 8 * MIB));
                    barrier.wait();
                    let waker = std::task::Waker::noop();
                    let let_in = load.as_mut().poll(&mut Context::from_waker(waker));
                    if let Poll::Ready(Ok(admitted)) = let_in {
                        budget.enter_group(8 * MIB);
                        drop(admitted);
                    }
                    most.fetch_max(budget.used(), Ordering::Relaxed);
                });
            }
        });
        let most = most.into_inner();
        assert!((8 * MIB..=64 * MIB).contains(&most), "{most} bytes are in use");
    }

    #[test]
    fn prepared_loads_take_half_of_the_memory_at_most_but_for_a_single_one() {
        let budget = Arc::new(MemoryBudget::new(Live::new(100)));
        budget.prepare(70).expect("the first one may be large");
        let error = budget.prepare(1).unwrap_err();
        assert!(error.to_string().contains("70 of the 50 bytes"), "{error}");
        assert!(error.says_nothing_was_kept());
        budget.prepare(0).expect("its rows are in data files");
        budget.leave_prepared(70);
        budget.prepare(30).unwrap();
        budget.prepare(20).unwrap();
        assert_eq!(budget.in_groups(), 50);
        budget.prepare(1).unwrap_err();
        budget.restore_prepared(60);
        budget.leave_prepared(60);
        assert_eq!(budget.in_groups(), 50);
    }

    #[test]
    #[should_panic(expected = "2 bytes leave the groups' memory, which are 1")]
    fn more_than_is_there_cannot_leave() {
        let budget = MemoryBudget::new(Live::new(100));
        budget.enter_group(1);
        budget.leave_group(2);
    }

    #[tokio::test]
    async fn a_load_larger_than_the_budget_passes_when_nothing_else_is_in_memory() {
        drop(
            Arc::new(MemoryBudget::new(Live::new(100)))
                .admit(UserKey::default(), 1000)
                .await
                .expect("admitted"),
        );
    }
}

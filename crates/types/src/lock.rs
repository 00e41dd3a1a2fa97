//! Locks with a fixed order of taking them, which builds with debug assertions check.
//!
//! Invariant: a thread takes a lock only if its rank is above those of all ranked locks that it holds; so no two threads ever
//! wait for each other. The order is [`Rank`], and ARCHITECTURE.md gives the reasons. A release build has neither ranks nor
//! checks. Not the business of this module: locks under which no other is taken, and those of async code.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The order in which locks are taken, the first one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The two-phase loads that wait for their commit or abort.
    Prepared,
    /// The core of a write-ahead log, held by the thread that writes, also while it runs callbacks.
    LogCore,
    /// The groups, holds and versions of a table.
    TableQueue,
    /// The pending appends of a group's commit.
    Appends,
    /// The published but unflushed rows of a table.
    Unflushed,
    /// Data files that are not published.
    Unpublished,
    /// Labels and states of transactions.
    Transactions,
    /// Idempotency keys of running and recent loads.
    LoadKeys,
    /// Rejected rows that are in no file yet.
    RejectedRows,
    /// The pending submissions to a write-ahead log.
    LogQueue,
    /// The pending orders of a write-ahead log's keeper.
    LogKeeper,
    /// The segment files of a write-ahead log.
    LogInventory,
}

/// A mutex with a place in the order.
pub struct Ranked<T> {
    #[cfg(debug_assertions)]
    rank: Rank,
    mutex: Mutex<T>,
}

impl<T> Ranked<T> {
    #[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "nothing is checked"))]
    pub const fn new(rank: Rank, value: T) -> Self {
        Self {
            #[cfg(debug_assertions)]
            rank,
            mutex: Mutex::new(value),
        }
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// In a build with debug assertions, if the thread holds a lock of the same or a later rank.
    #[inline]
    pub fn lock(&self) -> RankedGuard<'_, T> {
        #[cfg(debug_assertions)]
        let held = checked::Held::enter(self.rank);
        RankedGuard {
            guard: self.mutex.lock(),
            #[cfg(debug_assertions)]
            held,
        }
    }

    /// Waits for the lock while another one of its rank is held. Several locks of a rank are always taken in one order, that of what
    /// they guard.
    ///
    /// # Panics
    /// In a build with debug assertions, if the thread holds a lock of a later rank.
    pub fn lock_after(&self, before: &RankedGuard<'_, T>) -> RankedGuard<'_, T> {
        #[cfg(debug_assertions)]
        let held = checked::Held::enter_after(self.rank, &before.held);
        #[cfg(not(debug_assertions))]
        let _ = before;
        RankedGuard {
            guard: self.mutex.lock(),
            #[cfg(debug_assertions)]
            held,
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Panics
    /// Like [`Ranked::lock`], if the lock is free; the order applies to locks taken under it, too.
    #[inline]
    pub fn try_lock(&self) -> Option<RankedGuard<'_, T>> {
        let guard = self.mutex.try_lock()?;
        Some(RankedGuard {
            guard,
            #[cfg(debug_assertions)]
            held: checked::Held::enter(self.rank),
        })
    }
}

impl<T: fmt::Debug> fmt::Debug for Ranked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mutex.fmt(f)
    }
}

/// A ranked lock that is held.
#[must_use]
pub struct RankedGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    #[cfg(debug_assertions)]
    held: checked::Held,
}

impl<'a, T> RankedGuard<'a, T> {
    /// The guard for a condition variable, which releases the lock while it waits.
    pub fn for_condvar(&mut self) -> &mut MutexGuard<'a, T> {
        &mut self.guard
    }
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(debug_assertions)]
mod checked {
    use super::Rank;
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    /// A rank that this thread holds a lock of.
    pub(super) struct Held(Rank);

    impl Held {
        pub(super) fn enter(rank: Rank) -> Self {
            HELD.with_borrow_mut(|held| {
                let last = held.iter().max();
                assert!(
                    last.is_none_or(|last| *last < rank) || std::thread::panicking(),
                    "the lock of rank {rank:?} is taken under one of rank {last:?}: ARCHITECTURE.md has the order of locks"
                );
                held.push(rank);
            });
            Self(rank)
        }

        /// Like [`Held::enter`], of a rank that the thread holds a lock of.
        pub(super) fn enter_after(rank: Rank, before: &Self) -> Self {
            HELD.with_borrow_mut(|held| {
                let last = held.iter().max();
                assert!(
                    before.0 == rank && last == Some(&rank) || std::thread::panicking(),
                    "a lock of rank {rank:?} is taken after one of rank {:?}, under one of rank {last:?}",
                    before.0
                );
                held.push(rank);
            });
            Self(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            // A thread that ends may have no list any more.
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                if let Some(index) = held.iter().rposition(|rank| *rank == self.0) {
                    held.remove(index);
                }
            });
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_in_the_order_of_their_ranks_and_given_up_in_any() {
        let [first, second] = [Rank::TableQueue, Rank::LogQueue].map(|rank| Ranked::new(rank, 0));
        let outer = first.lock();
        let inner = second.lock();
        drop(outer);
        drop(inner);
        *second.lock() += 1;
        *first.lock() += 1;
    }

    #[test]
    #[should_panic(expected = "rank TableQueue is taken under one of rank Some(LogQueue)")]
    fn a_lock_under_a_later_one_is_a_mistake() {
        let [first, second] = [Rank::TableQueue, Rank::LogQueue].map(|rank| Ranked::new(rank, ()));
        let _inner = second.lock();
        let _outer = first.lock();
    }

    #[test]
    fn several_locks_of_one_rank_are_taken_one_after_the_other() {
        let [one, other, later] =
            [Rank::TableQueue, Rank::TableQueue, Rank::LogQueue].map(|rank| Ranked::new(rank, ()));
        let before = one.lock();
        let after = other.lock_after(&before);
        let _later = later.lock();
        drop((before, after));
    }

    #[test]
    #[should_panic(
        expected = "rank TableQueue is taken after one of rank TableQueue, under one of rank Some(LogQueue)"
    )]
    fn a_lock_beside_another_is_not_taken_under_a_later_one() {
        let [one, other, later] =
            [Rank::TableQueue, Rank::TableQueue, Rank::LogQueue].map(|rank| Ranked::new(rank, ()));
        let before = one.lock();
        let _later = later.lock();
        let _after = other.lock_after(&before);
    }

    #[test]
    #[should_panic(expected = "rank TableQueue is taken under one of rank Some(TableQueue)")]
    fn two_locks_of_one_rank_are_a_mistake() {
        let [one, other] = [Rank::TableQueue, Rank::TableQueue].map(|rank| Ranked::new(rank, ()));
        let _one = one.lock();
        let _other = other.try_lock();
    }
}

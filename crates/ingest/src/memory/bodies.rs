//! The bodies of loads that are being read, as a part of the memory budget.
//!
//! A body is charged before its first byte is read, by what it will probably take: when all of them take a quarter of the budget,
//! further bodies wait unread, and their clients with them, by TCP's own means; [users take turns](crate::line). A load that holds more than it was charged moves
//! to data files, because then [memory is crowded](MemoryBudget::is_crowded).
//!
//! A body that is being read never waits for one that is not: it is charged once, and returns its charge when its rows are
//! admitted to a group or a transaction, or given up. So no two loads wait for each other.
//!
//! Invariant: small bodies are not charged and do not wait; connections limit their number.

use super::{MEMORY_WAIT_MAX, MemoryBudget};
use crate::error::IngestError;
use crate::line::Line;
use crate::tasks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tributary_types::{Live, UserKey, memory};

/// A body of fewer bytes is not charged.
const CHARGED_BYTES_MIN: u64 = 16 * 1024;
/// A larger body is charged this much: what it takes beyond that goes to data files if memory is crowded.
const CHARGED_BYTES_MAX: u64 = 1024 * 1024;

/// The pause before a body that waits for memory of the process looks again.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// The charges of bodies, and the line of waiting ones.
#[derive(Debug)]
pub(super) struct Bodies {
    /// Of which bodies may take a part.
    budget_bytes: Live<u64>,
    wait_max: Duration,
    charged: AtomicU64,
    /// Bodies that wait.
    line: Line,
    freed: Notify,
}

/// The charge of one body; returned when this is dropped.
#[derive(Debug)]
#[must_use = "dropped, the memory is given to others"]
pub struct AdmittedBody {
    budget: Arc<MemoryBudget>,
    charge: u64,
}

impl Bodies {
    pub fn new(budget_bytes: Live<u64>) -> Self {
        Self {
            budget_bytes,
            wait_max: MEMORY_WAIT_MAX,
            charged: AtomicU64::new(0),
            line: Line::default(),
            freed: Notify::new(),
        }
    }

    fn limit(&self) -> u64 {
        self.budget_bytes.get() / 4
    }

    /// Charges the body if there is space; a single one may be larger, and may be read when the process has no more memory.
    fn try_charge(&self, charge: u64) -> bool {
        let (limit, is_full) = (self.limit(), memory::is_full());
        let grown = |charged: u64| {
            let sum = charged + charge;
            (charged == 0 || sum <= limit && !is_full).then_some(sum)
        };
        self.charged.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
    }

    async fn wait_in_line(&self, user: UserKey, charge: u64) {
        let _first = self.line.first(user, charge).await;
        while !self.try_charge(charge) {
            // Nobody tells when other work gives memory back.
            if memory::is_full() { tasks::sleep(FULL_PAUSE).await } else { self.freed.notified().await }
        }
    }

    fn refusal(&self, charge: u64) -> IngestError {
        if let Err(full) = memory::check(charge) {
            return IngestError::ProcessFull(full);
        }
        IngestError::BodiesFull {
            held: self.charged.load(Ordering::Relaxed),
            limit: self.limit(),
            seconds: self.wait_max.as_secs(),
        }
    }
}

impl MemoryBudget {
    /// Waits until a body may be read whose length is known, or not. `None`: it is so small that it may be read at once.
    ///
    /// # Errors
    /// [`IngestError::BodiesFull`] or [`IngestError::ProcessFull`] after [`MEMORY_WAIT_MAX`].
    pub async fn admit_body(
        self: &Arc<Self>,
        user: UserKey,
        bytes: Option<u64>,
    ) -> Result<Option<AdmittedBody>, IngestError> {
        let charge = bytes.unwrap_or(CHARGED_BYTES_MAX).min(CHARGED_BYTES_MAX);
        if charge < CHARGED_BYTES_MIN {
            return Ok(None);
        }
        let bodies = &self.bodies;
        if !bodies.line.is_empty() || !bodies.try_charge(charge) {
            // Boxed: keeps the futures of loads that need not wait small.
            let waited = Box::pin(tasks::timeout(bodies.wait_max, bodies.wait_in_line(user, charge)));
            waited.await.ok_or_else(|| bodies.refusal(charge))?;
        }
        Ok(Some(AdmittedBody { budget: Arc::clone(self), charge }))
    }

    /// The number of bodies that wait unread.
    #[must_use]
    pub fn waiting_bodies(&self) -> usize {
        self.bodies.line.len()
    }
}

impl Drop for AdmittedBody {
    fn drop(&mut self) {
        let bodies = &self.budget.bodies;
        bodies.charged.fetch_sub(self.charge, Ordering::Relaxed);
        // Without a waiting body, the next one that waits looks once in vain.
        bodies.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const KIB: u64 = 1024;

    /// A budget of which bodies may have 100 KiB.
    fn budget(wait_max: Duration) -> Arc<MemoryBudget> {
        let mut budget = MemoryBudget::new(Live::new(400 * KIB));
        budget.bodies.wait_max = wait_max;
        Arc::new(budget)
    }

    #[tokio::test]
    async fn bodies_wait_in_their_order_until_others_were_read() {
        let budget = budget(Duration::from_secs(60));
        let at_once = |bytes| {
            budget
                .admit_body(UserKey::default(), Some(bytes))
                .now_or_never()
                .expect("no wait")
                .expect("admitted")
        };
        let first = at_once(60 * KIB).expect("it is charged");
        let second = at_once(40 * KIB);
        let mut large = Box::pin(budget.admit_body(UserKey::default(), Some(90 * KIB)));
        assert!((&mut large).now_or_never().is_none());
        let mut next = Box::pin(budget.admit_body(UserKey::default(), Some(20 * KIB)));
        assert!((&mut next).now_or_never().is_none());
        assert_eq!(budget.waiting_bodies(), 2);
        assert!(at_once(CHARGED_BYTES_MIN - 1).is_none(), "small ones do not wait");
        drop(second);
        assert!((&mut large).now_or_never().is_none());
        assert!((&mut next).now_or_never().is_none(), "it would fit, and it is not its turn");
        drop(first);
        let large = large.await.expect("admitted");
        assert!((&mut next).now_or_never().is_none());
        drop(large);
        drop(next.await.expect("admitted"));
        assert_eq!((budget.waiting_bodies(), budget.bodies.charged.load(Ordering::Relaxed)), (0, 0));
    }

    #[tokio::test]
    async fn a_body_is_refused_when_none_ends_and_one_that_is_given_up_holds_nobody_up() {
        let budget = budget(Duration::from_millis(20));
        let first = budget
            .admit_body(UserKey::default(), None)
            .await
            .expect("a single one may be large")
            .expect("charged");
        assert_eq!(first.charge, CHARGED_BYTES_MAX);
        let error = budget.admit_body(UserKey::default(), Some(20 * KIB)).await.unwrap_err();
        assert!(error.to_string().contains("1048576 of the 102400 bytes"), "{error}");
        assert!(error.says_nothing_was_kept());
        let mut given_up = Box::pin(budget.admit_body(UserKey::default(), Some(20 * KIB)));
        assert!((&mut given_up).now_or_never().is_none());
        drop((given_up, first));
        drop(
            budget
                .admit_body(UserKey::default(), Some(20 * KIB))
                .now_or_never()
                .expect("nobody waits any more"),
        );
    }
}

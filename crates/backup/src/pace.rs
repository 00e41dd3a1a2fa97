//! How fast a backup is written, and how far it is.
//!
//! Invariant: pieces that are written at the same time share the limit. A changed limit counts from the next piece.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tributary_types::{Live, host};

/// The longest wait for one piece, after which the limit is looked at again.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The pace of a backup; its clones share it.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Bytes a second; 0: no limit.
    limit: Live<u64>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the bytes so far are paid for.
    paid_until: Mutex<Option<Instant>>,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Pace {
    #[must_use]
    pub fn new(limit: Live<u64>) -> Self {
        Self { limit, state: Arc::default() }
    }

    /// Files and bytes that were written so far.
    #[must_use]
    pub fn written(&self) -> (u64, u64) {
        (self.state.files.load(Ordering::Relaxed), self.state.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn file(&self) {
        self.state.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes that are about to be written, and waits until they may be.
    pub(crate) async fn pay(&self, bytes: usize) {
        self.state.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let limit = self.limit.get();
        if limit == 0 {
            return;
        }
        let cost = Duration::from_secs_f64(bytes as f64 / limit as f64);
        let until = {
            let mut paid_until = self.state.paid_until.lock();
            let now = host::now();
            let until = paid_until.filter(|until| *until > now).unwrap_or(now) + cost;
            *paid_until = Some(until);
            until
        };
        loop {
            let left = until.saturating_duration_since(host::now());
            if left.is_zero() {
                return;
            }
            if self.limit.get() != limit {
                // The debt was made at another price.
                *self.state.paid_until.lock() = None;
                return;
            }
            let step = left.min(WAIT_MAX);
            host::sleep(step, || tokio::time::sleep(step)).await;
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(Live::new(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_share_the_limit_and_a_changed_one_counts_at_once() {
        let limit = Live::new(1_000_000);
        let pace = Pace::new(limit.clone());
        let begun = Instant::now();
        let one = || async {
            for _ in 0..5 {
                pace.pay(20_000).await;
            }
        };
        tokio::join!(one(), one());
        assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
        assert_eq!(pace.written(), (0, 200_000));
        // It would take a week.
        limit.set(1);
        let waits = pace.pay(600_000);
        let freed = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            limit.set(0);
        };
        tokio::join!(waits, freed);
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

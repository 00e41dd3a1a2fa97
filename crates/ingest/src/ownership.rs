//! Whether this process still owns what it writes.
//!
//! Another process of the same server can take over the catalog and the tables once their owner has not been heard of for half a
//! minute: it was frozen, with its machine or by a signal. When it wakes it knows nothing of that, and its log is one that nobody
//! reads any more. So it acknowledges nothing until it was told that it is the owner still.
//!
//! Invariant: an acknowledgement was preceded by an answer about the owner that is younger than the last freeze. Not here: who the
//! owner is, which the catalog knows, and the tables' logs, which their seals protect.

use crate::error::IngestError;
use crate::tasks;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tributary_types::host::unix_ms;

/// A process that has not run for this long may have lost what it owns. The catalog keeps it for 30 s from the last answer, which was
/// asked for every 5 s.
const FROZEN_AFTER: Duration = Duration::from_secs(8);
/// How long an acknowledgement waits for an answer about the owner.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The ownership of one process. The default is that of a server whose catalog is a file, which nobody can take over.
#[derive(Clone, Debug, Default)]
pub struct Ownership(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    begun: Instant,
    /// When it ran last, in milliseconds since `begun`, and since 1970: one of the clocks may stand still while the machine does.
    ran: AtomicU64,
    ran_unix_ms: AtomicI64,
    /// Freezes so far.
    freezes: AtomicU64,
    /// There was an answer since the last freeze.
    is_sure: AtomicBool,
    /// The new owner.
    lost: Mutex<Option<Arc<str>>>,
    changed: Notify,
}

/// A question about the owner, which was asked at a certain time.
#[derive(Debug)]
pub struct Question {
    freezes: u64,
}

impl Ownership {
    /// Ownership that another process can take over.
    #[must_use]
    pub fn that_may_end() -> Self {
        Self(Some(Arc::new(Shared {
            begun: Instant::now(),
            ran: AtomicU64::new(0),
            ran_unix_ms: AtomicI64::new(unix_ms()),
            freezes: AtomicU64::new(0),
            is_sure: AtomicBool::new(true),
            lost: Mutex::new(None),
            changed: Notify::new(),
        })))
    }

    /// Whether another process can take over.
    #[must_use]
    pub const fn may_end(&self) -> bool {
        self.0.is_some()
    }

    /// Notes that the process runs; to be called every second.
    pub fn runs(&self) {
        if let Some(shared) = &self.0 {
            shared.look();
        }
    }

    /// To be called before the catalog is asked about the owner.
    #[must_use]
    pub fn ask(&self) -> Question {
        let Some(shared) = &self.0 else { return Question { freezes: 0 } };
        shared.look();
        Question { freezes: shared.freezes.load(Ordering::Acquire) }
    }

    /// Takes the answer: who the owner is if this process is not. No answer from a database that is away counts as none of that.
    pub fn answered(&self, question: &Question, lost_to: Option<&str>) {
        let Some(shared) = &self.0 else { return };
        if let Some(owner) = lost_to {
            shared.lost.lock().get_or_insert_with(|| owner.into());
            shared.is_sure.store(false, Ordering::Release);
        } else {
            shared.look();
            // An answer from before a freeze says nothing.
            if shared.lost.lock().is_none() && shared.freezes.load(Ordering::Acquire) == question.freezes {
                shared.is_sure.store(true, Ordering::Release);
            }
        }
        shared.changed.notify_waiters();
    }

    /// Who has taken over; `None`: nobody, as far as is known.
    #[must_use]
    pub fn lost_to(&self) -> Option<Arc<str>> {
        self.0.as_ref().and_then(|shared| shared.lost.lock().clone())
    }

    /// Waits until it is certain that this process was the owner at the time of the call.
    ///
    /// # Errors
    /// [`IngestError::TakenOver`]: it was not, or nobody knows.
    pub async fn confirmed(&self) -> Result<(), IngestError> {
        match self.doubt() {
            Some(certainty) => certainty.await,
            None => Ok(()),
        }
    }

    /// `None`: it is certain that this process is the owner. Else what waits until it is certain that it was so at the time of the call:
    /// boxed, so that loads carry no room for it. It fails with [`IngestError::TakenOver`] if it was not, or nobody knows.
    #[inline]
    pub(crate) fn doubt(&self) -> Option<BoxFuture<'_, Result<(), IngestError>>> {
        let shared = self.0.as_ref().filter(|shared| !shared.is_certain())?;
        Some(Box::pin(shared.wait()))
    }
}

impl Shared {
    fn since_it_ran(&self) -> Duration {
        let ran = Duration::from_millis(self.ran.load(Ordering::Acquire));
        let by_wall = unix_ms().saturating_sub(self.ran_unix_ms.load(Ordering::Acquire)).max(0);
        self.begun.elapsed().saturating_sub(ran).max(Duration::from_millis(by_wall.unsigned_abs()))
    }

    fn is_certain(&self) -> bool {
        self.is_sure.load(Ordering::Acquire) && self.since_it_ran() < FROZEN_AFTER
    }

    /// Notes the time, and a freeze that it shows.
    fn look(&self) {
        let pause = self.since_it_ran();
        if pause >= FROZEN_AFTER {
            tracing::warn!(
                seconds = pause.as_secs(),
                "this process did not run for a while: loads are acknowledged once the catalog has said who the owner is"
            );
            self.is_sure.store(false, Ordering::Release);
            self.freezes.fetch_add(1, Ordering::AcqRel);
        }
        self.ran.store(self.begun.elapsed().as_millis() as u64, Ordering::Release);
        self.ran_unix_ms.store(unix_ms(), Ordering::Release);
    }

    async fn wait(&self) -> Result<(), IngestError> {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if let Some(owner) = self.lost.lock().clone() {
                    return Err(IngestError::TakenOver(format!(" ({owner})")));
                }
                if self.is_certain() {
                    return Ok(());
                }
                changed.await;
            }
        };
        let unknown = || IngestError::TakenOver(", perhaps: it did not run for a while".to_owned());
        tasks::timeout(ANSWER_MAX, wait).await.unwrap_or_else(|| Err(unknown()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ownership {
        /// As after a freeze of ten seconds.
        fn freeze(&self) {
            let shared = self.0.as_ref().expect("it may end");
            shared.ran_unix_ms.fetch_sub(10_000, Ordering::AcqRel);
        }
    }

    async fn is_held_up(ownership: &Ownership) -> bool {
        tokio::time::timeout(Duration::from_millis(20), ownership.confirmed()).await.is_err()
    }

    #[tokio::test]
    async fn a_process_that_was_frozen_waits_for_an_answer_to_a_later_question() {
        let ownership = Ownership::that_may_end();
        ownership.confirmed().await.expect("it runs");
        let before = ownership.ask();
        ownership.freeze();
        assert!(is_held_up(&ownership).await, "nobody has noticed the freeze yet");
        ownership.runs();
        ownership.answered(&before, None);
        assert!(is_held_up(&ownership).await, "the answer is older");
        let after = ownership.ask();
        let waiting = tokio::spawn({
            let ownership = ownership.clone();
            async move { ownership.confirmed().await }
        });
        tokio::task::yield_now().await;
        ownership.answered(&after, None);
        waiting.await.expect("no panic").expect("it is the owner still");
    }

    #[tokio::test]
    async fn what_was_lost_stays_lost() {
        let ownership = Ownership::that_may_end();
        ownership.answered(&ownership.ask(), Some("server n, epoch 2"));
        ownership.answered(&ownership.ask(), None);
        let error = ownership.confirmed().await.unwrap_err();
        assert!(error.to_string().contains("server n, epoch 2"), "{error}");
        assert!(!error.says_nothing_was_kept());
        assert_eq!(ownership.lost_to().as_deref(), Some("server n, epoch 2"));
        Ownership::default().confirmed().await.expect("a file has one owner");
    }
}

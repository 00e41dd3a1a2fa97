//! A job in memory: its persisted data, its current state, and its runner.

use super::kept::{self, Definition, JobState, Position, Statistics};
use super::properties::Limits;
use crate::jobs::ServerJobs;
use crate::watch::RoutineView;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tributary_decode::Counts;
use tributary_ingest::Progress;
use tributary_kafka::Offsets;
use tributary_types::{SourceId, TxnId};

/// How many URLs of error logs SHOW ROUTINE LOAD has, as in Doris.
const ERROR_URLS_MAX: usize = 3;
/// Number of batches' rows after which the budget of bad rows is reset.
const WINDOW_BATCHES: u64 = 10;

/// A job.
#[derive(Debug)]
pub(crate) struct Job {
    /// The source of its loads.
    pub id: SourceId,
    kept: Mutex<Arc<Definition>>,
    now: Mutex<Now>,
    pub stop: Stop,
}

/// The current state of a job.
#[derive(Debug, Default)]
pub(crate) struct Now {
    pub statistics: Statistics,
    pub aborted_tasks: u64,
    /// How far the tables have the source.
    pub progress: Progress,
    /// How far its batches have the source: the one that is under way, too.
    pub fed: Offsets,
    /// Messages in batches since the job's reader began.
    pub fed_messages: u64,
    /// The end of each partition, as far as known.
    pub ends: Offsets,
    pub task: Option<Task>,
    /// The last problem, which is over or being retried.
    pub other_message: String,
    pub error_urls: VecDeque<String>,
    window: Window,
}

/// Bad rows since the budget was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    total: u64,
    errors: u64,
}

/// The batch that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub id: String,
    /// A load's for each table that has rows by now.
    pub txns: Vec<TxnId>,
    pub created_at_ms: i64,
    pub started_at_ms: Option<i64>,
    pub from: Offsets,
}

/// The runner of a job, and the signal to end it.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    token: Mutex<CancellationToken>,
    runner: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Stop {
    /// Tells the runner to end where nothing is left half done.
    pub fn stop(&self) {
        self.token.lock().cancel();
    }

    /// Waits until there is no runner.
    pub async fn ended(&self) {
        if let Some(runner) = self.runner.lock().await.take() {
            // A runner that panicked has ended, too.
            drop(runner.await);
        }
    }

    /// Puts a new runner in the place of one that has ended.
    pub async fn begin(&self, spawn: impl FnOnce(CancellationToken) -> JoinHandle<()>) {
        self.stop();
        self.ended().await;
        let token = CancellationToken::new();
        *self.token.lock() = token.clone();
        *self.runner.lock().await = Some(spawn(token));
    }
}

impl Job {
    pub fn new(id: SourceId, kept: Definition) -> Self {
        let progress = kept::progress(&kept, None);
        Self {
            id,
            kept: Mutex::new(Arc::new(kept)),
            now: Mutex::new(Now { progress, ..Now::default() }),
            stop: Stop::default(),
        }
    }

    pub fn kept(&self) -> Arc<Definition> {
        Arc::clone(&self.kept.lock())
    }

    /// The job as operators see it.
    pub fn view(&self) -> RoutineView {
        let (kept, now) = (self.kept(), self.now());
        let is_paused = kept.state == JobState::Paused;
        let by_itself = kept.reason.as_ref().filter(|reason| is_paused && !reason.is_by_user());
        let ends = &now.ends;
        let behind = |(partition, next): (&i32, &i64)| {
            let next = now.fed.get(partition).copied().unwrap_or(*next).max(*next);
            let end = ends.get(partition).copied().unwrap_or(next);
            u64::try_from(end - next).unwrap_or(0)
        };
        RoutineView {
            db: kept.db.clone(),
            name: kept.name.clone(),
            table: kept.table,
            paused: by_itself.map(|reason| reason.text.clone()),
            lag: now.progress.offsets().iter().map(behind).sum(),
            fed_messages: now.fed_messages,
        }
    }

    /// The catalog has this.
    pub fn keep(&self, kept: Definition) {
        *self.kept.lock() = Arc::new(kept);
    }

    pub fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock()
    }

    /// The data attached by the last committed load of the job. Unreadable data is foreign: it is logged, never overwritten.
    ///
    /// # Errors
    /// Why it can't be read.
    pub fn position(&self, jobs: &ServerJobs) -> Result<Option<Position>, String> {
        jobs.ingest.transactions().position(self.id).map(|kept| Position::read(&kept)).transpose()
    }

    /// How far the tables have the source.
    pub fn progress(&self, jobs: &ServerJobs) -> Progress {
        kept::progress(&self.kept(), self.position(jobs).ok().flatten().as_ref())
    }

    /// Takes the numbers attached by the last committed load.
    pub fn remember(&self, jobs: &ServerJobs) {
        let (kept, position) = (self.kept(), self.position(jobs).ok().flatten());
        let mut now = self.now();
        now.progress = kept::progress(&kept, position.as_ref());
        now.statistics = kept::statistics(&kept, position.as_ref());
    }

    /// The budget of bad rows is new.
    pub fn forgive(&self) {
        let mut now = self.now();
        now.window = Window::default();
        now.other_message.clear();
    }
}

impl Now {
    /// Records a commit. Returns whether the job may continue, or has had too many bad rows.
    pub fn committed(
        &mut self,
        progress: Progress,
        statistics: Statistics,
        counts: Counts,
        limits: &Limits,
    ) -> bool {
        self.progress = progress;
        self.statistics = statistics;
        self.window.take(counts, limits)
    }

    pub fn errors_after_resumed(&self) -> u64 {
        self.window.errors
    }

    pub fn add_error_url(&mut self, url: String) {
        self.error_urls.push_back(url);
        if self.error_urls.len() > ERROR_URLS_MAX {
            self.error_urls.pop_front();
        }
    }
}

impl Window {
    fn take(&mut self, counts: Counts, limits: &Limits) -> bool {
        self.total += counts.total;
        self.errors += counts.filtered;
        let is_too_much = self.errors > limits.errors
            || self.total > 0 && self.errors as f64 / self.total as f64 > limits.filter_ratio;
        if self.total > limits.rows.saturating_mul(WINDOW_BATCHES) {
            *self = Self::default();
        }
        !is_too_much
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bad_rows_are_counted_over_a_window_of_ten_batches() {
        let limits = Limits {
            interval: Duration::from_secs(10),
            rows: 200_000,
            bytes: 1 << 30,
            errors: 2,
            filter_ratio: 0.5,
        };
        let counts = |total, filtered| Counts { total, filtered, loaded: total - filtered, unselected: 0 };
        let mut window = Window::default();
        assert!(window.take(counts(10, 2), &limits), "as many as allowed");
        assert!(!window.take(counts(10, 1), &limits), "one more");
        let mut window = Window::default();
        assert!(window.take(counts(2_000_001, 2), &limits));
        assert_eq!(window, Window::default(), "the budget is new");
        assert!(!window.take(counts(3, 2), &limits), "more than half of the rows");
    }
}

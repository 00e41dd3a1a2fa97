//! Jobs that a statement starts, that continue without its client and end by themselves: loads of files, exports.
//!
//! Invariant: the catalog has a job before its client is answered, and its outcome before it is shown, so the next start finds
//! jobs that a crash interrupted. A job that panics ends; one that may crash the server is not restarted for ever.
//!
//! Not here: the work of a job, and the jobs of `ROUTINE LOAD`, which never end by themselves.

pub(crate) mod record;

use crate::access::finished::{Door, Failure, FinishedRequest, LoadFacts, Requests, Stated};
use crate::access::interrupt::{Interrupt, Interrupted, Stop};
use parking_lot::Mutex;
use record::Envelope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tributary_catalog::{Catalog, JobRecord};
use tributary_ingest::Watcher;
use tributary_sql::JobsBy;
use tributary_types::pattern::like;
use tributary_types::{ErrorCode, Principal, SourceId, SqlError, host};

/// Jobs of a kind that run at a time; later ones are PENDING.
const RUNNING_MAX: usize = 2;
/// Jobs of a kind that wait or run; more are refused.
pub(crate) const UNFINISHED_MAX: usize = 1000;

/// A job that was started this often without an orderly stop in between is not started again.
const STARTS_MAX: u32 = 3;

/// How often a job that waits for its turn looks whether it was stopped.
const TURN_LOOK: Duration = Duration::from_millis(50);

/// The catalog's record of a job of one kind.
pub(crate) trait Record: Clone + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// Distinguishes records of this kind from those of other jobs.
    const KIND: &'static str;

    /// The progress of a job, which is not persisted.
    type Progress: Default + Send + Sync;

    /// The newest format that is read, and the one that is written; an added field has a default and leaves the format unchanged.
    const FORMAT: u32 = 1;

    fn written(&self) -> String {
        Envelope::written(Self::KIND, Self::FORMAT, self)
    }

    fn db(&self) -> &str;
    fn label(&self) -> &str;
    /// As SHOW has it.
    fn state(&self) -> &'static str;
    /// When it ended, in milliseconds since 1970; `None` if it has not.
    fn finished_ms(&self) -> Option<i64>;
    /// The number of starts of the job since the last orderly stop of the server.
    fn starts(&mut self) -> &mut u32;
    /// Ends it as one that failed.
    fn fail(&mut self, message: &str, now_ms: i64);
    /// The owner of the job's privileges: user and host; `None` if it needs none.
    fn owner(&self) -> Option<(&str, &str)> {
        None
    }
    /// The reason of its failure, if it has failed.
    fn failure(&self) -> Option<&str>;
    /// The transaction of its rows, once it has one.
    fn txn(&self) -> Option<u64> {
        None
    }
    /// Rows that it has loaded or written.
    fn rows(&self) -> u64 {
        0
    }
    /// Whether a job whose work panicked can be ended; otherwise the next start determines its progress.
    fn ends_with_panic(&self) -> bool {
        true
    }
}

/// A job.
pub(crate) struct Job<R: Record> {
    pub id: u64,
    pub stop: Stop,
    pub progress: R::Progress,
    /// It is stopped for the next start to take up, not cancelled.
    paused: AtomicBool,
    record: Mutex<R>,
    ended: watch::Sender<bool>,
}

impl<R: Record> Job<R> {
    pub fn new(id: SourceId, record: R) -> Self {
        Self {
            id: id.0,
            stop: Stop::default(),
            progress: R::Progress::default(),
            paused: AtomicBool::new(false),
            ended: watch::Sender::new(record.finished_ms().is_some()),
            record: Mutex::new(record),
        }
    }

    pub fn record(&self) -> R {
        self.record.lock().clone()
    }

    pub fn has_ended(&self) -> bool {
        self.record.lock().finished_ms().is_some()
    }

    /// Changes the shown state; it is persisted when the job ends.
    pub fn change(&self, change: impl FnOnce(&mut R)) {
        change(&mut self.record.lock());
    }

    /// Shows the outcome of the job, which the catalog has, and notifies waiting tasks.
    pub fn end(&self, record: R) {
        self.change(|shown| *shown = record);
        self.announce();
    }

    /// Announces to waiting tasks that nothing of the job runs any more.
    pub fn announce(&self) {
        self.ended.send_replace(true);
    }

    /// Waits until nothing of the job runs any more.
    pub async fn ended(&self) {
        // The sender lives as long as the job.
        drop(self.ended.subscribe().wait_for(|ended| *ended).await);
    }

    /// Whether the server is stopping, and the job will resume at the next start.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    fn pause(&self) {
        self.paused.store(true, Ordering::SeqCst);
        self.stop.set();
    }
}

/// The server's parts that jobs of all kinds use.
#[derive(Clone)]
pub(crate) struct JobParts {
    pub catalog: Arc<Catalog>,
    /// This node's id.
    pub node: String,
    pub watcher: Watcher,
    pub requests: Arc<Requests>,
}

impl JobParts {
    /// Records the end of a job.
    fn finished<R: Record>(&self, record: &R, took: Duration) {
        let (user, host) = record.owner().unwrap_or_default();
        let error = record.failure().map(|text| Failure { code: ErrorCode::Unknown.number(), text });
        let statement = format!("{} {}.{}", R::KIND, record.db(), record.label());
        // Nothing is looked up for the user.
        let principal = &Principal::new(user, host, 0);
        let request = FinishedRequest::new(principal, Door::Job, Stated::Plain(&statement, R::KIND), took);
        let load = LoadFacts { txn: record.txn(), label: Some(record.label()), ..LoadFacts::default() };
        let affected_rows = record.rows();
        let request =
            FinishedRequest { is_known: false, db: Some(record.db()), load, affected_rows, error, ..request };
        self.requests.finished(&request, None);
    }
}

/// All jobs of a kind, by their ids.
pub(crate) struct Jobs<R: Record> {
    parts: JobParts,
    all: Mutex<BTreeMap<u64, Arc<Job<R>>>>,
    turns: Arc<Semaphore>,
}

impl<R: Record> Jobs<R> {
    pub fn new(parts: JobParts) -> Self {
        Self { parts, all: Mutex::default(), turns: Arc::new(Semaphore::new(RUNNING_MAX)) }
    }

    pub fn all(&self) -> Vec<Arc<Job<R>>> {
        self.all.lock().values().cloned().collect()
    }

    /// The jobs of a database, oldest first.
    pub fn of_db(&self, db: &str) -> Vec<Arc<Job<R>>> {
        self.all().into_iter().filter(|job| job.record().db() == db).collect()
    }

    pub fn unfinished(&self) -> usize {
        self.all.lock().values().filter(|job| !job.has_ended()).count()
    }

    /// An id for a new job.
    ///
    /// # Errors
    /// The catalog can't be written.
    pub async fn next_id(&self) -> Result<SourceId, SqlError> {
        Ok(self.parts.catalog.next_job_id().await?)
    }

    /// Adds a new job, which is persisted when this returns, unless another with its label prevents it.
    ///
    /// # Errors
    /// The error of `is_free` about the other jobs; the catalog can't be written.
    pub async fn add(
        &self,
        job: &Arc<Job<R>>,
        is_free: impl FnOnce(&[R]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        {
            let mut all = self.all.lock();
            is_free(&all.values().map(|job| job.record()).collect::<Vec<_>>())?;
            all.insert(job.id, Arc::clone(job));
        }
        let kept = self.keep(job.id, &job.record()).await;
        if kept.is_err() {
            self.all.lock().remove(&job.id);
        }
        kept
    }

    /// The jobs persisted in the catalog. The caller resumes unfinished ones.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub async fn read_kept(&self) -> Result<Vec<Arc<Job<R>>>, SqlError> {
        for record in self.parts.catalog.jobs(&self.parts.node).await? {
            let (id, envelope) = (record.id, Envelope::read(&record)?);
            if envelope.kind != R::KIND {
                continue;
            }
            let record = envelope.body_of(id)?;
            self.all.lock().insert(id.0, Arc::new(Job::new(id, record)));
        }
        Ok(self.all())
    }

    /// Waits until it is the job's turn to run.
    ///
    /// # Errors
    /// It was stopped before.
    pub async fn turn(&self, job: &Job<R>) -> Result<Option<OwnedSemaphorePermit>, Interrupted> {
        let turn = Interrupt::by_kill(&job.stop).wait(Arc::clone(&self.turns).acquire_owned()).await?;
        Ok(turn.ok())
    }

    /// [`Jobs::turn`] of a job whose stop is waited for elsewhere, which sets the flag. `None`: it was stopped before.
    pub async fn turn_unless(&self, is_stopped: impl Fn() -> bool) -> Option<OwnedSemaphorePermit> {
        loop {
            if is_stopped() {
                return None;
            }
            let turn = Arc::clone(&self.turns).acquire_owned();
            if let Ok(turn) = tokio::time::timeout(TURN_LOOK, turn).await {
                return turn.ok();
            }
        }
    }

    /// Changes the persisted state of a job, then the shown one.
    ///
    /// # Errors
    /// The catalog can't be written; then nothing is changed.
    pub async fn change(&self, job: &Job<R>, change: impl FnOnce(&mut R)) -> Result<(), SqlError> {
        let mut record = job.record();
        change(&mut record);
        self.keep(job.id, &record).await?;
        job.change(|shown| *shown = record);
        Ok(())
    }

    /// Ends a job: persists the outcome, then shows it and notifies waiting tasks.
    pub async fn end(&self, job: &Job<R>, change: impl FnOnce(&mut R)) {
        let mut record = job.record();
        change(&mut record);
        if let Err(error) = self.keep(job.id, &record).await {
            let label = record.label();
            tracing::warn!(job = job.id, label, %error, "how a job ended could not be kept; the next start takes it up again");
        }
        job.end(record);
    }

    async fn keep(&self, id: u64, record: &R) -> Result<(), SqlError> {
        let record = JobRecord { id: SourceId(id), definition: record.written() };
        Ok(self.parts.catalog.put_job(&self.parts.node, &record).await?)
    }

    /// The jobs of a database that a statement means.
    pub fn meant(&self, db: &str, by: &JobsBy) -> Vec<Arc<Job<R>>> {
        let is_meant = |job: &Arc<Job<R>>| {
            let record = job.record();
            match by {
                JobsBy::Label(label) => record.label() == *label,
                JobsBy::LabelLike(pattern) => like(record.label(), pattern),
                JobsBy::State(state) => record.state().eq_ignore_ascii_case(state),
            }
        };
        self.of_db(db).into_iter().filter(is_meant).collect()
    }

    /// Cancels the unfinished ones of these jobs and waits until they have ended; returns how many there were.
    pub async fn cancel(meant: &[Arc<Job<R>>]) -> usize {
        let running: Vec<_> = meant.iter().filter(|job| !job.has_ended()).collect();
        running.iter().for_each(|job| job.stop.set());
        for job in &running {
            job.ended().await;
        }
        running.len()
    }

    /// Records that an interrupted job is started again. One that was interrupted too often ends instead: it may crash the
    /// server. Returns whether it may start.
    pub async fn begins_again(&self, job: &Job<R>) -> bool {
        let starts = *job.record().starts();
        if starts >= STARTS_MAX {
            let message = format!(
                "the server has ended {starts} times while the job ran, and was never stopped in order meanwhile; the job is not begun \
                 again. If it was not what ended the server, submit it again"
            );
            tracing::error!(job = job.id, kind = R::KIND, message, "a job is cancelled");
            self.end(job, |record| record.fail(&message, host::unix_ms())).await;
            return false;
        }
        if let Err(error) = self.change(job, |record| *record.starts() += 1).await {
            tracing::warn!(job = job.id, %error, "it can't be noted that a job is begun again");
        }
        true
    }

    async fn panicked(&self, job: &Job<R>, text: &str) {
        let message = format!("its work panicked, which is a bug of the server: {text}");
        let now = host::unix_ms();
        if job.has_ended() {
            return;
        }
        if job.record().ends_with_panic() {
            self.end(job, |record| record.fail(&message, now)).await;
        } else {
            tracing::error!(
                job = job.id,
                kind = R::KIND,
                "the next start finds out how far a job came that panicked"
            );
        }
    }

    /// Forgets jobs that ended before the time (ms since 1970).
    pub async fn purge(&self, before_ms: i64) {
        for job in self.all() {
            if job.record().finished_ms().is_none_or(|at| at >= before_ms) {
                continue;
            }
            match self.parts.catalog.delete_job(&self.parts.node, SourceId(job.id)).await {
                Ok(()) => drop(self.all.lock().remove(&job.id)),
                Err(error) => tracing::warn!(job = job.id, %error, "an ended job can't be forgotten now"),
            }
        }
    }

    /// Ends all running jobs, for the next start to resume.
    pub async fn pause(&self) {
        let jobs = self.all();
        jobs.iter().filter(|job| !job.has_ended()).for_each(|job| job.pause());
        for job in &jobs {
            job.ended().await;
            if !job.has_ended()
                && let Err(error) = self.change(job, |record| *record.starts() = 0).await
            {
                tracing::warn!(job = job.id, %error, "it can't be noted that a job was stopped in order");
            }
        }
    }
}

/// Runs a job's work in a task of its own. If the work panics, the job ends with the panic's text; in any case its end is
/// announced to waiting tasks.
pub(crate) fn spawn<R: Record, O: Send + Sync + 'static>(
    owner: &Arc<O>,
    jobs: fn(&O) -> &Jobs<R>,
    job: Arc<Job<R>>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let owner = Arc::clone(owner);
    let watcher = jobs(&owner).parts.watcher.clone();
    watcher.clone().spawn_once(R::KIND, async move {
        let (announced, begun) = (Announced(job), Instant::now());
        if let Err(text) = watcher.catch(R::KIND, work).await {
            jobs(&owner).panicked(&announced.0, &text).await;
        }
        let record = announced.0.record();
        if record.finished_ms().is_some() {
            jobs(&owner).parts.finished(&record, begun.elapsed());
        }
    });
}

/// Announces the end of a job's work when it is dropped.
struct Announced<R: Record>(Arc<Job<R>>);

impl<R: Record> Drop for Announced<R> {
    fn drop(&mut self) {
        self.0.announce();
    }
}

#[cfg(test)]
mod tests;

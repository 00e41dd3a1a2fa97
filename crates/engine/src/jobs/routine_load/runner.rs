//! The runner of a job: reads its source and loads one batch after another, until it is stopped or can't continue.
//!
//! After any failure, the next attempt starts with a new reader at the position that is durable with the rows.

use super::job::{Job, Task};
use super::kept::{self, JobState, Reason};
use super::properties::{self, Limits};
use super::task::{Batch, Ended};
use crate::access::{Object, Privilege};
use crate::jobs::ServerJobs;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;
use tributary_ingest::Progress;
use tributary_ingest::memory::InFlight;
use tributary_kafka::{CHUNK_BYTES, Chunk, Offsets, Reader, SourceError, Topic};
use tributary_table::Table;
use tributary_types::Principal;
use tributary_types::host::unix_ms;

/// Chunks that wait to be decoded.
const CHUNKS_AHEAD: usize = 8;
/// Memory of messages in transit, those in the source's client included, unless everything available was read.
const HELD_BYTES: u64 = (8 * 1024 * 1024 + CHUNKS_AHEAD * CHUNK_BYTES) as u64;
/// How long a reader waits for messages at a time.
const POLL: Duration = Duration::from_millis(100);
/// How often it is looked for new partitions, and whether the table is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// How long a chunk waits to be loaded before the source is asked how far the job is behind.
const ENDS_INTERVAL: Duration = Duration::from_secs(2);
/// How often the reading thread looks whether there is room for its chunk, while there is none.
const ROOM_LOOK: Duration = Duration::from_millis(5);
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Why a runner does not continue as it is.
pub(super) enum Halt {
    /// It was stopped.
    Stopped,
    /// The same again, after a while.
    Retry(String),
    /// At once: there are other partitions.
    Again,
    Pause(Reason),
    Cancel(Reason),
}

impl From<SourceError> for Halt {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Unreachable(text) => Self::Retry(text),
            SourceError::Wrong(text) | SourceError::OutOfRange(text) => Self::Pause(Reason::internal(text)),
        }
    }
}

/// The destination of a job's messages.
pub(super) enum Target {
    /// With somebody's privileges, whose limits apply.
    Table(Arc<Table>, Principal),
    /// To the tables that they name, with somebody's privileges.
    Named(Principal),
}

/// Messages of the reading thread.
pub(super) enum News {
    Chunk(Chunk),
    Partitions(Vec<i32>),
}

impl ServerJobs {
    /// Gives an active job its runner.
    pub(super) async fn run_job(self: &Arc<Self>, job: &Arc<Job>) {
        if !job.kept().state.is_active() {
            return;
        }
        let (jobs, job_of_runner) = (Arc::downgrade(self), Arc::clone(job));
        let watcher = self.ingest.watcher().clone();
        let work = |token| async move {
            let run = run(Weak::clone(&jobs), Arc::clone(&job_of_runner), token);
            let Err(text) = watcher.catch("routine_load", run).await else { return };
            if let Some(jobs) = jobs.upgrade() {
                job_of_runner.now().task = None;
                let reason = format!("its work panicked, which is a bug of the server: {text}");
                end_work(&jobs, &job_of_runner, JobState::Paused, Reason::internal(reason)).await;
            }
        };
        // Unwatched: the work is watched in it.
        job.stop.begin(|token| tokio::spawn(work(token))).await;
    }

    /// The destination of a job's messages, if it still exists and the job's creator may load into it.
    fn target_of_job(&self, job: &Job) -> Result<Target, Halt> {
        let kept = job.kept();
        let principal = self.gate.principal(&kept.user, &kept.host);
        let Some(id) = kept.table else {
            // The tables are checked when messages name them.
            return match self.catalog.database_id(&kept.db) {
                Some(id) if id == kept.db_id => Ok(Target::Named(principal)),
                _ => {
                    Err(Halt::Cancel(Reason::internal(format!("database of job {} was dropped", kept.name))))
                }
            };
        };
        let table = self.gate.table_by_id(id).ok_or_else(|| {
            Halt::Cancel(Reason::internal(format!("table of job {} was dropped", kept.name)))
        })?;
        let def = table.def();
        self.gate
            .check(&principal, Privilege::Load, Object::Table { db: &def.db, table: &def.name })
            .map_err(|error| Halt::Pause(Reason::internal(error.detail_text())))?;
        Ok(Target::Table(table, principal))
    }
}

async fn run(jobs: Weak<ServerJobs>, job: Arc<Job>, token: CancellationToken) {
    let mut pause = RETRY_MIN;
    loop {
        let Some(jobs) = jobs.upgrade() else { return };
        let begun = Instant::now();
        let halt = attempt(&jobs, &job, &token).await;
        job.now().task = None;
        let (state, reason) = match halt {
            Halt::Stopped => return,
            Halt::Again => continue,
            Halt::Retry(text) => {
                tracing::warn!(job = job.kept().name, error = text, "a job is interrupted and goes on");
                job.now().other_message = text;
                if begun.elapsed() > RETRY_MAX {
                    pause = RETRY_MIN;
                }
                drop(jobs);
                tokio::select! {
                    () = token.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = RETRY_MAX.min(pause * 2);
                continue;
            }
            Halt::Pause(reason) => (JobState::Paused, reason),
            Halt::Cancel(reason) => (JobState::Cancelled, reason),
        };
        return end_work(&jobs, &job, state, reason).await;
    }
}

/// Records that a job stops, and the reason.
async fn end_work(jobs: &ServerJobs, job: &Job, state: JobState, reason: Reason) {
    let name = &job.kept().name;
    tracing::warn!(job = name, state = state.name(), reason = reason.text, "a job has ended its work");
    let now_ms = unix_ms();
    let changed = jobs
        .change_job(job, |kept| {
            kept.state = state;
            kept.reason = Some(reason);
            let at = if state.is_final() { &mut kept.ended_at_ms } else { &mut kept.paused_at_ms };
            *at = Some(now_ms);
        })
        .await;
    if let Err(error) = changed {
        tracing::error!(job = name, %error, "the state of a job can't be kept");
    }
}

/// Reads and loads until something ends it.
async fn attempt(jobs: &Arc<ServerJobs>, job: &Arc<Job>, token: &CancellationToken) -> Halt {
    let outcome = tokio::select! {
        biased;
        () = token.cancelled() => return Halt::Stopped,
        opened = open(jobs, job) => opened,
    };
    let (reader, progress) = match outcome {
        Ok(opened) => opened,
        Err(halt) => return halt,
    };
    let from = progress.offsets().clone();
    {
        let mut now = job.now();
        now.progress = progress;
        (now.fed, now.fed_messages) = (from.clone(), 0);
        now.other_message.clear();
    }
    let kept = job.kept();
    if kept.state == JobState::NeedSchedule {
        // Not in the catalog: the next start should schedule it, too.
        job.keep(super::kept::Definition { state: JobState::Running, ..(*kept).clone() });
    }
    let (sender, mut news) = mpsc::channel(CHUNKS_AHEAD);
    let watches = properties::partitions(&kept.source).ok().flatten().is_none();
    let thread = std::thread::Builder::new().name("routine-load".to_owned());
    let of = Arc::clone(job);
    let reading = move || read(reader, &Sender { sender, job: of }, watches);
    if let Err(error) = thread.spawn(reading) {
        return Halt::Retry(format!("no thread to read with: {error}"));
    }
    load(jobs, job, token, &mut news, &from).await
}

/// Begins a batch, when the table is ready for it and the limits of the job's creator and of the table admit it.
async fn begin(
    jobs: &Arc<ServerJobs>,
    job: &Job,
    limits: &Limits,
    token: &CancellationToken,
) -> Result<Batch, Halt> {
    let target = jobs.target_of_job(job)?;
    let (table, principal) = match &target {
        Target::Table(table, principal) => (Some(table), principal),
        Target::Named(principal) => (None, principal),
    };
    if let Some(table) = table {
        let ready = jobs.ready_for_job(table, &job.kept()).await;
        ready.map_err(|error| Halt::Pause(Reason::internal(error.detail_text())))?;
    }
    let admitted = tokio::select! {
        biased;
        () = token.cancelled() => return Err(Halt::Stopped),
        admitted = jobs.loads.limits.wait_for_load(principal, table.map(|table| &**table)) => admitted,
    };
    let admitted = match table {
        Some(table) => admitted.with_right(jobs.loads.right(principal, table, None)),
        None => admitted,
    };
    // What was looked up before may have changed while it waited.
    let target = jobs.target_of_job(job)?;
    Batch::begin(jobs, job, target, limits, admitted)
}

/// Connects, and determines the position to resume at.
async fn open(jobs: &Arc<ServerJobs>, job: &Arc<Job>) -> Result<(Box<dyn Reader>, Progress), Halt> {
    jobs.target_of_job(job)?;
    let kept = job.kept();
    let position = job.position(jobs).map_err(|error| {
        Halt::Pause(Reason::internal(format!("the job's position can't be read: {error}")))
    })?;
    let mut progress = kept::progress(&kept, position.as_ref());
    let refused = |error: tributary_types::SqlError| Halt::Pause(Reason::internal(error.detail_text()));
    let settings = properties::settings(&kept.source).map_err(refused)?;
    let named = properties::partitions(&kept.source).map_err(refused)?;
    let shape = properties::shape(&kept);
    let connect = Arc::clone(&jobs.routine.connect.read());
    let opened = tokio::task::spawn_blocking(move || {
        let topic = connect.connect(&settings)?;
        let from = from(&*topic, named, progress.offsets())?;
        let reader = topic.read(&from, shape)?;
        progress.keep_only(&from);
        Ok::<_, SourceError>((reader, progress))
    });
    match opened.await {
        Ok(opened) => opened.map_err(Halt::from),
        Err(panic) => Err(Halt::Retry(format!("opening the source panicked: {panic}"))),
    }
}

/// The offset of each partition to resume at; new ones from their beginning, so that nothing is left out.
fn from(topic: &dyn Topic, named: Option<Vec<i32>>, known: &Offsets) -> Result<Offsets, SourceError> {
    let there = topic.partitions()?;
    let wanted = named.as_ref().unwrap_or(&there);
    if let Some(gone) = wanted.iter().find(|partition| !there.contains(partition)) {
        return Err(SourceError::Wrong(format!(
            "the topic has no partition {gone} any more, it has {there:?}"
        )));
    }
    let next = |&partition: &i32| match known.get(&partition) {
        Some(offset) => Ok((partition, *offset)),
        None => Ok((partition, topic.extent(partition)?.first)),
    };
    wanted.iter().map(next).collect()
}

/// The way from the reading thread to the job.
struct Sender {
    sender: mpsc::Sender<Result<News, SourceError>>,
    job: Arc<Job>,
}

impl Sender {
    /// Sends it when the job has room for it. Meanwhile the ends of the partitions are kept up to date, as no chunk that the job has
    /// taken tells them. Returns whether the job still reads.
    fn send(&self, reader: &dyn Reader, mut news: Result<News, SourceError>) -> bool {
        let mut asked = Instant::now();
        loop {
            match self.sender.try_send(news) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(back)) => news = back,
            }
            // The job has work for longer than this.
            std::thread::sleep(ROOM_LOOK);
            if asked.elapsed() >= ENDS_INTERVAL {
                // While the brokers are away, what is known stays.
                reader.ends().into_iter().for_each(|ends| self.job.now().ends.extend(ends));
                asked = Instant::now();
            }
        }
    }
}

/// The reading thread: runs until the receiver is gone.
fn read(mut reader: Box<dyn Reader>, sender: &Sender, watches: bool) {
    let mut looked = Instant::now();
    while !sender.sender.is_closed() {
        let chunk = reader.next(POLL);
        let is_over = chunk.is_err();
        if !sender.send(&*reader, chunk.map(News::Chunk)) || is_over {
            return;
        }
        if watches && looked.elapsed() >= LOOK_INTERVAL {
            looked = Instant::now();
            // While the brokers are away there is nothing new.
            if let Ok(partitions) = reader.partitions()
                && !sender.send(&*reader, Ok(News::Partitions(partitions)))
            {
                return;
            }
        }
    }
}

/// Loads the incoming messages.
async fn load(
    jobs: &Arc<ServerJobs>,
    job: &Arc<Job>,
    token: &CancellationToken,
    news: &mut mpsc::Receiver<Result<News, SourceError>>,
    from: &Offsets,
) -> Halt {
    let limits = match Limits::of(&job.kept().properties) {
        Ok(limits) => limits,
        Err(error) => return Halt::Pause(Reason::internal(error.detail_text())),
    };
    let mut held = InFlight::new(jobs.ingest.memory());
    let mut looked = Instant::now();
    let mut batch: Option<Batch> = None;
    // There are partitions that the reader does not read.
    let mut has_news = false;
    loop {
        let deadline = batch.as_ref().map(Batch::deadline);
        let came = tokio::select! {
            biased;
            () = token.cancelled() => Err(Halt::Stopped),
            () = until(deadline) => Ok(None),
            came = news.recv() => match came {
                Some(Ok(news)) => Ok(Some(news)),
                Some(Err(error)) => Err(error.into()),
                None => Err(Halt::Retry("the thread that reads has ended".to_owned())),
            },
        };
        let came = match came {
            Ok(came) => came,
            Err(halt) => {
                if let Some(batch) = batch {
                    batch.abort(jobs, job, "the job was interrupted").await;
                }
                return halt;
            }
        };
        let mut is_due = came.is_none();
        match came {
            Some(News::Partitions(partitions)) if partitions.iter().any(|one| !from.contains_key(one)) => {
                // Messages already read are committed first, as the new reader starts after them.
                if batch.is_none() {
                    return Halt::Again;
                }
                (is_due, has_news) = (true, true);
            }
            Some(News::Partitions(_)) | None => {}
            Some(News::Chunk(chunk)) => {
                held.set(if chunk.is_caught_up { 0 } else { HELD_BYTES });
                note(job, &chunk, batch.is_none());
                if chunk.messages > 0 {
                    let mut open = match batch.take() {
                        Some(open) => open,
                        None => match begin(jobs, job, &limits, token).await {
                            Ok(begun) => begun,
                            Err(halt) => return halt,
                        },
                    };
                    if let Err(halt) = open.feed(jobs, job, &chunk).await {
                        job.now().aborted_tasks += 1;
                        open.abort(jobs, job, &halt.text()).await;
                        return halt;
                    }
                    fed(job, &chunk);
                    is_due = open.is_due(&chunk);
                    batch = Some(open);
                } else if let Some(open) = &mut batch {
                    open.moved(&chunk);
                    is_due = open.is_due(&chunk);
                }
            }
        }
        if is_due && let Some(open) = batch.take() {
            match open.commit(jobs, job, &limits).await {
                Ok(Ended::GoOn) => {}
                Ok(Ended::TooManyErrors) => return Halt::Pause(Reason::too_many_errors()),
                Err(halt) => {
                    job.now().aborted_tasks += 1;
                    return halt;
                }
            }
            if has_news {
                return Halt::Again;
            }
        }
        if batch.is_none() && looked.elapsed() >= LOOK_INTERVAL {
            looked = Instant::now();
            if let Err(halt) = jobs.target_of_job(job) {
                return halt;
            }
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// Records a chunk's information about partitions. Without a batch, everything up to the last message is done.
fn note(job: &Job, chunk: &Chunk, is_idle: bool) {
    let mut now = job.now();
    now.ends.extend(chunk.ends.iter().map(|(partition, end)| (*partition, *end)));
    if is_idle && chunk.messages == 0 {
        now.progress.pass(&chunk.next);
    }
}

/// A batch has the chunk's messages.
fn fed(job: &Job, chunk: &Chunk) {
    let mut now = job.now();
    now.fed.extend(chunk.next.iter().map(|(partition, next)| (*partition, *next)));
    now.fed_messages += chunk.messages;
}

impl Halt {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Stopped | Self::Again => "the job was interrupted".to_owned(),
            Self::Retry(text) => text.clone(),
            Self::Pause(reason) | Self::Cancel(reason) => reason.text.clone(),
        }
    }
}

/// A task that has begun at these offsets.
pub(super) fn task(id: String, from: Offsets) -> Task {
    Task { id, txns: Vec::new(), created_at_ms: unix_ms(), started_at_ms: Some(unix_ms()), from }
}

//! Jobs that run an INSERT at given times: `CREATE JOB … ON SCHEDULE … DO INSERT`.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `record` | a job's record in the catalog, and the times of its runs |
//! | `show` | SHOW JOBS, `jobs()`, `tasks()` and `information_schema` |
//!
//! Invariant: the catalog has a run before it begins, by the time that it was planned for, and its outcome before it is shown. The
//! label of a run is made of the job's number and that time, so a run that a crash interrupted is repeated with the same label, and
//! loads nothing twice.
//!
//! Not here: running the statement, which is a session's business; the runner asks for what is due.

mod record;
mod show;

use crate::access::{Object, Privilege};
use crate::background::record::Envelope;
use crate::jobs::ServerJobs;
use crate::variables::time_zone::Zone;
use parking_lot::Mutex;
pub(crate) use record::Record;
use record::{Outcome, Run, State, Times};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tributary_catalog::JobRecord;
use tributary_sql::{CreateJob, Moment, Schedule};
use tributary_types::{ErrorCode, Principal, SourceId, SqlError, TransactionStatus, moment};

/// The most jobs that have not ended.
const JOBS_MAX: usize = 1000;
/// Runs at a time; later ones wait.
const RUNNING_MAX: usize = 8;
/// The longest sleep of the runner.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A job.
pub(crate) struct Job {
    pub id: u64,
    record: Mutex<Record>,
    /// Held while the record is changed.
    writing: tokio::sync::Mutex<()>,
    /// Ends the run under way.
    stop: Mutex<CancellationToken>,
    /// Whether a run is under way, or waits for its turn.
    runs: watch::Sender<bool>,
}

impl Job {
    fn new(id: SourceId, record: Record) -> Self {
        Self {
            id: id.0,
            record: Mutex::new(record),
            writing: tokio::sync::Mutex::new(()),
            stop: Mutex::default(),
            runs: watch::Sender::new(false),
        }
    }

    pub fn record(&self) -> Record {
        self.record.lock().clone()
    }

    /// The label of the run that was planned for that time.
    pub fn label(&self, planned_ms: i64) -> String {
        format!("insert_job_{}_{planned_ms}", self.id)
    }

    /// When its next run begins; `None`: not before the job is changed, or its run has ended.
    fn due_ms(&self) -> Option<i64> {
        if self.is_under_way() { None } else { self.record.lock().due_ms() }
    }

    fn is_under_way(&self) -> bool {
        *self.runs.borrow()
    }

    /// Ends the run under way, and waits until nothing of it runs any more.
    async fn interrupt(&self) {
        self.stop.lock().cancel();
        // The sender lives as long as the job.
        drop(self.runs.subscribe().wait_for(|runs| !*runs).await);
    }
}

/// A run that is due.
pub(crate) struct Due {
    pub job: Arc<Job>,
    /// The time that it was planned for, in ms since 1970.
    pub planned_ms: i64,
    /// Whether a crash has interrupted it before, maybe after its rows were stored.
    pub is_repeated: bool,
    /// Set when the run is to end early.
    pub stop: CancellationToken,
}

/// All jobs of this kind.
pub(crate) struct ScheduledJobs {
    node: String,
    all: Mutex<BTreeMap<u64, Arc<Job>>>,
    /// Held by a statement that changes jobs.
    changing: tokio::sync::Mutex<()>,
    /// Told about jobs that may be due earlier than it was known.
    pub changed: Arc<Notify>,
    /// Set when the server stops.
    pub closing: CancellationToken,
    /// The runs under way.
    pub tasks: TaskTracker,
    pub turns: Arc<Semaphore>,
}

impl ScheduledJobs {
    pub fn new(node: String) -> Self {
        Self {
            node,
            all: Mutex::default(),
            changing: tokio::sync::Mutex::new(()),
            changed: Arc::default(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            turns: Arc::new(Semaphore::new(RUNNING_MAX)),
        }
    }

    fn all(&self) -> Vec<Arc<Job>> {
        self.all.lock().values().cloned().collect()
    }

    fn named(&self, name: &str) -> Option<Arc<Job>> {
        self.all.lock().values().find(|job| job.record.lock().name == name).cloned()
    }

    /// How long nothing is due. The end of a run is told to [`Self::changed`].
    fn rest(&self, now_ms: i64) -> Duration {
        let next = self.all().iter().filter_map(|job| job.due_ms()).min();
        let wait = next.map_or(SLEEP_MAX, |at| Duration::from_millis((at - now_ms).max(1).unsigned_abs()));
        wait.min(SLEEP_MAX)
    }

    /// Ends all runs. The next start repeats the ones that this has interrupted.
    pub async fn pause(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl ServerJobs {
    /// Reads the jobs of the last run of the server.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub(super) async fn read_scheduled(&self) -> Result<(), SqlError> {
        for record in self.catalog.jobs(&self.scheduled.node).await? {
            let (id, envelope) = (record.id, Envelope::read(&record)?);
            if envelope.kind != Record::KIND {
                continue;
            }
            let mut record: Record = envelope.body_of(id)?;
            record.skip_missed(self.unix_ms());
            self.scheduled.all.lock().insert(id.0, Arc::new(Job::new(id, record)));
        }
        Ok(())
    }

    async fn keep_scheduled(&self, id: u64, record: &Record) -> Result<(), SqlError> {
        let record = JobRecord { id: SourceId(id), definition: record.written() };
        Ok(self.catalog.put_job(&self.scheduled.node, &record).await?)
    }

    /// Changes a job: in the catalog, then in memory.
    async fn change_scheduled(&self, job: &Job, change: impl FnOnce(&mut Record)) -> Result<(), SqlError> {
        let _writing = job.writing.lock().await;
        let mut record = job.record();
        change(&mut record);
        self.keep_scheduled(job.id, &record).await?;
        *job.record.lock() = record;
        self.scheduled.changed.notify_one();
        Ok(())
    }

    /// Creates a job, whose statement runs in this database and time zone.
    ///
    /// # Errors
    /// Another job has the name; times that have passed; too many jobs; a principal whose rights are limited by a token.
    pub(crate) async fn create_scheduled(
        &self,
        principal: &Principal,
        db: Option<&str>,
        zone: &str,
        create: &CreateJob,
    ) -> Result<(), SqlError> {
        if principal.limit().is_some() {
            return Err(wrong(
                "a job runs with all rights of its user, and this login has those of its token only: log in with the password",
            ));
        }
        let db = db.or(create.insert.table.db.as_deref());
        let db = db.ok_or_else(|| SqlError::new(ErrorCode::NoDbSelected, "No database selected"))?;
        let _changing = self.scheduled.changing.lock().await;
        if self.scheduled.named(&create.name).is_some() {
            return match create.if_not_exists {
                true => Ok(()),
                false => Err(wrong(format!("job name {} already exists", create.name))),
            };
        }
        let live = self.scheduled.all().iter().filter(|job| !job.record.lock().state.is_final()).count();
        if live >= JOBS_MAX {
            return Err(wrong(format!("there are {live} jobs already; DROP JOB removes one")));
        }
        let now_ms = self.unix_ms();
        let times = times(&create.schedule, zone, now_ms)?;
        let record = Record::new(principal, (db, zone), create, times, now_ms);
        let id = self.catalog.next_job_id().await?;
        self.keep_scheduled(id.0, &record).await?;
        self.scheduled.all.lock().insert(id.0, Arc::new(Job::new(id, record)));
        self.scheduled.changed.notify_one();
        Ok(())
    }

    /// The job of that name, if it is the user's, or the user may administer the server.
    fn own_scheduled(&self, principal: &Principal, name: &str) -> Result<Arc<Job>, SqlError> {
        let job = self.scheduled.named(name).filter(|job| self.shows_scheduled(principal, &job.record()));
        job.ok_or_else(|| wrong(format!("not exist job, jobName:{name}")))
    }

    fn shows_scheduled(&self, principal: &Principal, record: &Record) -> bool {
        let is_own = *principal.user() == *record.user && *principal.account_host() == *record.account_host;
        (is_own && principal.limit().is_none())
            || self.gate.allows(principal, Privilege::Admin, Object::Server)
    }

    /// Ends the run under way, and begins no other one until the job is resumed.
    ///
    /// # Errors
    /// There is no such job, or it has ended.
    pub(crate) async fn pause_scheduled(&self, principal: &Principal, name: &str) -> Result<(), SqlError> {
        let changing = self.scheduled.changing.lock().await;
        let job = self.own_scheduled(principal, name)?;
        let state = job.record().state;
        if state != State::Running {
            return Err(wrong(format!("Can't pause job {name} in the state {}", state.name())));
        }
        self.change_scheduled(&job, |record| record.state = State::Paused).await?;
        // Other jobs don't wait for the end of this one's run.
        drop(changing);
        job.interrupt().await;
        Ok(())
    }

    /// # Errors
    /// There is no such job, or it is not paused.
    pub(crate) async fn resume_scheduled(&self, principal: &Principal, name: &str) -> Result<(), SqlError> {
        let _changing = self.scheduled.changing.lock().await;
        let job = self.own_scheduled(principal, name)?;
        let (state, now_ms) = (job.record().state, self.unix_ms());
        if state != State::Paused {
            return Err(wrong(format!("Can't resume job {name} in the state {}", state.name())));
        }
        self.change_scheduled(&job, |record| record.resume(now_ms)).await
    }

    /// Ends the run under way, and forgets the job.
    ///
    /// # Errors
    /// There is no such job.
    pub(crate) async fn drop_scheduled(
        &self,
        principal: &Principal,
        name: &str,
        if_exists: bool,
    ) -> Result<(), SqlError> {
        let job = match self.own_scheduled(principal, name) {
            Err(_) if if_exists => return Ok(()),
            job => job?,
        };
        loop {
            let changing = self.scheduled.changing.lock().await;
            if !self.scheduled.all.lock().contains_key(&job.id) {
                return Ok(());
            }
            self.change_scheduled(&job, |record| record.state = State::Paused).await?;
            if !job.is_under_way() {
                self.catalog.delete_job(&self.scheduled.node, SourceId(job.id)).await?;
                self.scheduled.all.lock().remove(&job.id);
                return Ok(());
            }
            // Other jobs don't wait for the end of this one's run. Somebody may resume it meanwhile.
            drop(changing);
            job.interrupt().await;
        }
    }

    /// The runs that are due, and how long nothing else is; each has begun for the catalog, and is under way until
    /// [`ServerJobs::ended_scheduled`]. A catalog that fails is asked again after the longest rest.
    pub(crate) async fn due_scheduled(&self) -> (Vec<Due>, Duration) {
        let mut due = Vec::new();
        for job in self.scheduled.all() {
            // Statements that change it wait: they see the run, and can end it.
            let _changing = self.scheduled.changing.lock().await;
            if job.due_ms().is_none_or(|at| at > self.unix_ms()) {
                continue;
            }
            let record = job.record();
            let is_repeated = record.current_ms.is_some();
            if let Err(error) = self.change_scheduled(&job, Record::begin).await {
                tracing::warn!(job = job.id, name = record.name, %error, "a run of a job can't be noted, and begins later");
                return (due, SLEEP_MAX);
            }
            let Some(planned_ms) = job.record().current_ms else { continue };
            let stop = self.scheduled.closing.child_token();
            *job.stop.lock() = stop.clone();
            job.runs.send_replace(true);
            due.push(Due { job, planned_ms, is_repeated, stop });
        }
        let rest = self.scheduled.rest(self.unix_ms());
        (due, rest)
    }

    /// The rows that a run has stored under its label, although it has no outcome, or an error. `None`: none.
    pub(crate) fn stored_by_scheduled(&self, due: &Due) -> Option<u64> {
        let db = self.catalog.database_id(&due.job.record().label_db)?;
        let info = self.ingest.transactions().by_label(db, &due.job.label(due.planned_ms))?;
        (info.status == TransactionStatus::Visible).then_some(info.rows)
    }

    /// Notes the end of a run. One that the stop of the server has ended is repeated by the next start.
    pub(crate) async fn ended_scheduled(&self, due: &Due, begun_ms: i64, outcome: Result<u64, SqlError>) {
        let job = &due.job;
        if !(outcome.is_err() && self.scheduled.closing.is_cancelled()) {
            let outcome = match outcome {
                Ok(rows) => Outcome::Loaded(rows),
                Err(_) if due.stop.is_cancelled() => Outcome::Cancelled,
                Err(error) => Outcome::Failed(error.detail_text().to_owned()),
            };
            let now_ms = self.unix_ms();
            let run = Run { planned_ms: due.planned_ms, begun_ms, ended_ms: now_ms, outcome };
            if let Err(error) = self.change_scheduled(job, |record| record.end(run, now_ms)).await {
                let name = job.record().name;
                tracing::warn!(job = job.id, name, %error, "the end of a run can't be noted; the run is repeated, and loads nothing twice");
            }
        }
        job.runs.send_replace(false);
        self.scheduled.changed.notify_one();
    }

    /// Forgets jobs that ended before the time (ms since 1970).
    pub(super) async fn purge_scheduled(&self, before_ms: i64) {
        for job in self.scheduled.all() {
            if job.record().ended_ms().is_none_or(|at| at >= before_ms) {
                continue;
            }
            match self.catalog.delete_job(&self.scheduled.node, SourceId(job.id)).await {
                Ok(()) => drop(self.scheduled.all.lock().remove(&job.id)),
                Err(error) => tracing::warn!(job = job.id, %error, "an ended job can't be forgotten now"),
            }
        }
    }
}

/// The times of a schedule, which must not have passed.
fn times(schedule: &Schedule, zone: &str, now_ms: i64) -> Result<Times, SqlError> {
    let at = |moment: &Moment, what: &str| match moment {
        Moment::Now => Ok(now_ms),
        Moment::Text(text) => {
            let read = unix_ms_of(text, zone);
            let read = read.ok_or_else(|| {
                wrong(format!(
                    "{what} '{text}' is no time; write it as '2030-01-31 12:00:00', or CURRENT_TIMESTAMP"
                ))
            })?;
            match read >= now_ms {
                true => Ok(read),
                false => Err(wrong(format!("{what} '{text}' has passed (in the time zone {zone})"))),
            }
        }
    };
    Ok(match schedule {
        Schedule::At(moment) => Times { first_ms: at(moment, "AT")?, every_ms: None, last_ms: None },
        Schedule::Every { count, unit, starts, ends } => {
            let first_ms = starts.as_ref().map_or(Ok(now_ms), |starts| at(starts, "STARTS"))?;
            let last_ms = ends.as_ref().map(|ends| at(ends, "ENDS")).transpose()?;
            if last_ms.is_some_and(|last| last < first_ms) {
                return Err(wrong("ENDS is before STARTS"));
            }
            // At most 100 years.
            let every_ms = i64::try_from(count * unit.seconds() * 1000).unwrap_or(i64::MAX);
            Times { first_ms, every_ms: Some(every_ms), last_ms }
        }
    })
}

/// The milliseconds since 1970 of a DATETIME in a time zone.
fn unix_ms_of(text: &str, zone: &str) -> Option<i64> {
    let local = moment::local_datetime(text.as_bytes(), 3)?;
    let zone = Zone::named(zone);
    // The offset at that time, but for the hour around a change of the clocks.
    let near = local - i64::from(zone.offset_seconds(local)) * 1_000_000;
    Some((local - i64::from(zone.offset_seconds(near)) * 1_000_000) / 1000)
}

fn wrong(text: impl AsRef<str>) -> SqlError {
    SqlError::detail(ErrorCode::Unknown, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_sql::{JobStatement, JobUnit, Statement};

    #[test]
    fn a_job_whose_run_is_under_way_is_not_due() {
        let sql = "CREATE JOB j ON SCHEDULE EVERY 1 HOUR DO INSERT INTO t SELECT 1";
        let Ok(Statement::Job(statement)) = tributary_sql::parse(sql) else { panic!("{sql}") };
        let JobStatement::Create(create) = *statement else { panic!("{sql}") };
        let every_hour = Times { first_ms: 1000, every_ms: Some(3_600_000), last_ms: None };
        let mut record = Record::new(&Principal::new("amy", "%", 0), ("d", "+00:00"), &create, every_hour, 0);
        let jobs = ScheduledJobs::new("node".to_owned());
        record.begin();
        let job = Arc::new(Job::new(SourceId(1), record));
        jobs.all.lock().insert(1, Arc::clone(&job));
        assert_eq!(jobs.rest(1500), Duration::from_millis(1), "it was interrupted, and is repeated");
        job.runs.send_replace(true);
        assert_eq!(jobs.rest(1500), SLEEP_MAX, "nobody looks again and again while it runs");
    }

    #[test]
    fn times_are_those_of_the_session() {
        // 2026-01-01 00:00:00 UTC
        let now_ms = 1_767_225_600_000;
        let text = |text: &str| Moment::Text(text.to_owned());
        let at = |moment, zone| times(&Schedule::At(moment), zone, now_ms);
        assert_eq!(at(text("2026-07-01 02:00:00"), "Europe/Berlin").unwrap().first_ms, 1_782_864_000_000);
        assert_eq!(at(text("2026-07-01"), "+00:00").unwrap().first_ms, 1_782_864_000_000);
        assert_eq!(at(Moment::Now, "+00:00").unwrap().first_ms, now_ms);
        for (moment, part) in [("2025-12-31 23:59:59", "has passed"), ("soon", "is no time")] {
            let error = at(text(moment), "+00:00").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let every = |starts, ends| {
            let schedule = Schedule::Every { count: 2, unit: JobUnit::Hour, starts, ends };
            times(&schedule, "+00:00", now_ms)
        };
        assert_eq!(
            every(None, None).unwrap(),
            Times { first_ms: now_ms, every_ms: Some(7_200_000), last_ms: None }
        );
        let error = every(Some(text("2027-01-01")), Some(text("2026-12-31"))).unwrap_err();
        assert!(error.to_string().contains("ENDS is before STARTS"), "{error}");
    }
}
